"""What is asked of a lake table, and what its metadata answers of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

_Moment = TypeVar("_Moment", int, datetime)
Where = Mapping[str, object]  # column → value, a list of them, or After


@dataclass(frozen=True, slots=True)
class After(Generic[_Moment]):
    """In `scan(where=…)`: values after low, up to and including high."""

    low: _Moment
    high: _Moment


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A data file: its URI, its partition's values in the order of the spec, its rows, its bytes, and upper bounds of columns where known.

    deletes: files that delete rows of it by position."""

    path: str
    partition: tuple[Any, ...]
    rows: int
    size: int
    upper: dict[str, Any]
    deletes: int
