"""Filters for scans of a lake table, and the facts that its metadata holds about a data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

_Moment = TypeVar("_Moment", int, datetime)
Where = Mapping[str, object]  # column → value, None for NULL, list of values, or After


@dataclass(frozen=True, slots=True)
class After(Generic[_Moment]):
    """Range in `scan(where=…)`: values after low, up to and including high."""

    low: _Moment
    high: _Moment


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A data file in the table's metadata.

    path: URI; partition: values in the order of the partition spec; size: bytes; lower, upper: name or field id of a column → its bound,
    where known; deletes: URIs of the files that may delete rows of this file by position, sorted.
    """

    path: str
    partition: tuple[Any, ...]
    rows: int
    size: int
    lower: dict[str | int, Any]
    upper: dict[str | int, Any]
    deletes: tuple[str, ...]


def plain(location: str) -> str:
    """Return a location in one spelling: file:///x, file:/x and /x are one place, s3a:// is s3://."""
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    return location.replace("s3a://", "s3://", 1).rstrip("/")
