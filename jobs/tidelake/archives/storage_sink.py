"""The folder of TiCDC's storage sink: which files there are, in which order they are read, what is missing (archives.md 6).

    <database>/<table>/<table version>[/<physical table id>][/<date>]/CDC[_<dispatcher>_]<number>.{json,csv}
        beside it meta/CDC[_<dispatcher>].index, the name of the newest file
    <database>/<table>/meta/schema_<table version>_<checksum>.json        <database>/meta/schema_…json
    metadata := {"checkpoint-ts": TSO}                                    everything up to it is there

Not a layout of the registry: lines have no partition and offset, and folders are days of the sink's clock, not hours, so the manifest's
proof (no offset is missing) has nothing to count. The proof here is another one: the numbers of each folder count up from 1 to the one that
the index names, every table version has its schema file, and the checkpoint bounds the commit ts of what is complete. It does not
guarantee that a line is there once (after a restart TiCDC writes again), nor an order between tables or between dispatchers of a table:
lines are ordered by commit ts afterwards, by whoever reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from tidelake.archives.lines import MAX_LINE, blocks
from tidelake.archives.raw_records import lines
from tidelake.archives.shape import SourceObject, damaged, unreadable
from tidelake.errors import StorageError
from tidelake.storage import Store
from tidelake.wire.spans import column, frozen

DateSeparator = Literal["none", "year", "month", "day"]
Version = tuple[str, str, int]

_DATES = {"none": "", "year": r"/(?P<date>\d{4})", "month": r"/(?P<date>\d{4}-\d{2})", "day": r"/(?P<date>\d{4}-\d{2}-\d{2})"}
_TABLE = r"(?P<database>[^/]+)/(?P<table>[^/]+)/(?P<version>\d+)(?:/(?P<physical>\d+))?"
_FILE = r"/CDC(?:_(?P<dispatcher>[^/_]+)_)?(?P<number>\d{6,20})\.(?P<form>json|csv)"
_INDEX = r"(?P<folder>.+)/meta/CDC(?:_(?P<dispatcher>[^/_]+))?\.index"
_SCHEMA = re.compile(r"(?P<database>[^/]+)/(?P<table>[^/]+)/meta/schema_(?P<version>\d+)_\d+\.json")
_METADATA = "metadata"


@dataclass(frozen=True, slots=True, order=True)
class DataFile:
    """A file with rows of one table version, in the order in which files of a table are read. date: as in the path, empty without one."""

    database: str
    table: str
    version: int
    physical: int
    date: str
    dispatcher: str
    number: int
    key: str
    size: int
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """What a sink's folder holds. schemas: key of the schema file by table version; checkpoint_ts: TSO, None before the first one;
    problems: why the files may not be all there, for people."""

    files: tuple[DataFile, ...]
    schemas: dict[Version, str]
    checkpoint_ts: int | None
    problems: tuple[str, ...]


def list_sink(store: Store, date_separator: DateSeparator = "day") -> Sink:
    """All that a sink has written below a store. Raises StorageError (BAD_OBJECT) for metadata that is no JSON."""
    checkpoint_ts = _checkpoint(store)  # before the listing: what it promises is then in the listing
    name = re.compile(_TABLE + _DATES[date_separator] + _FILE)
    files, schemas, indexes = list[DataFile](), dict[Version, str](), dict[tuple[str, str], str]()
    for info in store.objects():
        if found := name.fullmatch(info.key):
            place = (found["database"], found["table"], int(found["version"]), int(found["physical"] or 0))
            date = found["date"] if date_separator != "none" else ""
            files.append(DataFile(*place, date, found["dispatcher"] or "", int(found["number"]), info.key, info.size, info.etag))
        elif found := _SCHEMA.fullmatch(info.key):
            schemas[found["database"], found["table"], int(found["version"])] = info.key
        elif found := re.fullmatch(_INDEX, info.key):
            indexes[found["folder"], found["dispatcher"] or ""] = store.read(info.key).decode("utf-8", "replace").strip()
    files.sort()
    problems = (*_holes(files, indexes), *_without_schema(files, schemas))
    return Sink(files=tuple(files), schemas=schemas, checkpoint_ts=checkpoint_ts, problems=problems)


def read_lines(path: Path, file: DataFile, quote: str = '"') -> Iterator[pa.Array]:
    """The rows of a local copy, without their ends, \\n or \\r\\n: Canal-JSON objects, or CSV rows, whose quoted text may hold newlines.

    Raises OrderError (DAMAGED_OBJECT) for a row that is too long, StorageError (BAD_OBJECT) for a file that is cut short.
    """
    source = SourceObject(f"{file.database}.{file.table}", 0, file.key, file.number, file.size, file.etag)
    if file.key.endswith(".json") or not quote:
        return lines(path, source)
    return _csv_rows(path, source, ord(quote))


def _csv_rows(path: Path, source: SourceObject, quote: int) -> Iterator[pa.Array]:
    """A newline ends a row where an even number of quotes stands before it: quotes inside quoted text are doubled."""
    rest = b""
    for block in blocks(path, source):
        text = rest + block.data + b"\n"
        data = frozen(text)
        newlines = np.flatnonzero(data == ord("\n"))
        ends = newlines[np.cumsum(data == quote)[newlines] % 2 == 0]
        if len(text) > MAX_LINE and not len(ends):
            raise damaged(source, f"line {block.first}", f"quoted text of more than {MAX_LINE} bytes")
        if not len(ends):
            rest = text
            continue
        starts = np.append(0, ends[:-1] + 1)
        returns = (ends > starts) & (data[np.maximum(ends, 1) - 1] == ord("\r"))
        yield column(data, starts, ends - starts - returns)
        rest = text[int(ends[-1]) + 1 :]
    if rest:
        raise unreadable(source, "cut short inside a quoted text")


def _checkpoint(store: Store) -> int | None:
    text = store.read_if_present(_METADATA)
    if text is None:
        return None
    try:
        return int(json.loads(text)["checkpoint-ts"])
    except (ValueError, KeyError, TypeError) as e:
        raise StorageError(f"{store.uri_of(_METADATA)} has no checkpoint-ts: {e}", code="BAD_OBJECT") from e


def _holes(files: list[DataFile], indexes: dict[tuple[str, str], str]) -> Iterator[str]:
    """Numbers that are missing in a folder, up to the one that its index names."""
    seen = set[tuple[str, str]]()
    for (folder, dispatcher), group in groupby(files, lambda file: (file.key.rpartition("/")[0], file.dispatcher)):
        several = list(group)
        seen.add((folder, dispatcher))
        newest = indexes.get((folder, dispatcher))
        if newest is None:
            yield f"{folder}: no index file says which file is its newest"
        elif newest != several[-1].key.rpartition("/")[2]:
            yield f"{folder}: the index names {newest}, the newest file is {several[-1].key.rpartition('/')[2]}"
        numbers = {file.number for file in several}
        if missing := sorted(set(range(1, max(numbers) + 1)) - numbers):
            yield f"{folder}: {len(missing)} of {max(numbers)} files are missing, the first is number {missing[0]}"
    for folder, dispatcher in sorted(indexes.keys() - seen):
        yield f"{folder}: the index names {indexes[folder, dispatcher]}, and there is no file"


def _without_schema(files: list[DataFile], schemas: dict[Version, str]) -> Iterator[str]:
    for database, table, version in sorted({(file.database, file.table, file.version) for file in files} - schemas.keys()):
        yield f"{database}/{table}: no schema file for table version {version}"
