"""The folder of TiCDC's storage sink: its files, their reading order, and missing files (docs/reference/archives.md 6).

    <database>/<table>/<table version>[/<physical table id>][/<date>]/CDC[_<dispatcher>_]<number>.{json,csv}
        beside it meta/CDC[_<dispatcher>].index, the name of the newest file
    <database>/<table>/meta/schema_<table version>_<checksum>.json        <database>/meta/schema_…json
    metadata := {"checkpoint-ts": TSO}                                    everything up to it is written

As a layout: files that are numbered together (of a table version, physical table, date and dispatcher) are a partition. Its number is the
CRC of its path below the table. A line's offset is its file's number times 2^32, plus the number of lines before it in the file. So no file
moves another file's offsets, whenever it comes, and a missing number is a gap, like a missing offset in Kafka's archives.
land/sink_hours.py assigns files to hours. A CSV message has the table version as its key, because only the version's schema file names the
columns.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.archives.readers.layout import Layout, SourceObject, damaged, message_batch, refused, unreadable
from tidelake.archives.readers.lines import MAX_LINE, blocks
from tidelake.archives.readers.raw_records import lines
from tidelake.config.options import SinkOptions
from tidelake.config.source import DateSeparator
from tidelake.errors import StorageError
from tidelake.io.storage import ObjectInfo, Store
from tidelake.wire.kernels.spans import column, frozen

Version = tuple[str, str, int]

_DATES = {"none": "", "year": r"/(?P<date>\d{4})", "month": r"/(?P<date>\d{4}-\d{2})", "day": r"/(?P<date>\d{4}-\d{2}-\d{2})"}
_TABLE = r"(?P<database>[^/]+)/(?P<table>[^/]+)/(?P<version>\d+)(?:/(?P<physical>\d+))?"
_FILE = r"/CDC(?:_(?P<dispatcher>[^/_]+)_)?(?P<number>\d{6,20})\.(?P<form>json|csv)"
_INDEX = r"(?P<folder>.+)/meta/CDC(?:_(?P<dispatcher>[^/_]+))?\.index"
_SCHEMA = re.compile(r"(?P<database>[^/]+)/(?P<table>[^/]+)/meta/schema_(?P<version>\d+)_\d+\.json")
_VERSION = re.compile(r"/meta/schema_(\d+)_\d+\.json$")
_METADATA = "metadata"
_JSON_TS = r'"_tidb":\{[^{}]*"commitTs":(?P<ts>[0-9]{1,19})'  # not in any text, where quotes follow backslashes
HEADER = "ticdc-meta$"
OFFSET_BITS = 32  # bits for the lines of a file


@dataclass(frozen=True, slots=True, order=True)
class DataFile:
    """A file with rows of one table version; sorts in the order in which files of a table are read. date: as in the path, empty without
    one.
    """

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

    @property
    def topic(self) -> str:
        """The table, in the form of topic names."""
        return f"{self.database}.{self.table}"

    @property
    def sequence(self) -> str:
        """The sequence that its number belongs to: the path below the table, with the dispatcher."""
        return f"{self.version}/{self.physical}/{self.date}/{self.dispatcher}"

    @property
    def partition(self) -> int:
        """The number of the sequence as a partition."""
        return zlib.crc32(self.sequence.encode()) >> 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A file that an index names and that is missing or empty: about to be written, or lost.

    above: the number of the newest existing file, 0 without one; since_ms: when the index was written, epoch ms of the store's clock.
    """

    file: DataFile
    above: int
    since_ms: int

    def __str__(self) -> str:
        folder, _, name = self.file.key.rpartition("/")
        there = f"the newest file is number {self.above}" if self.above else "there is no file"
        return f"{folder}: the index names {name}, and {there}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """The content of a sink's folder. schemas: key of the schema file by table version; schema_files: keys of all of them, also of
    databases; checkpoint_ts: TSO, None before the first one; problems: why files may be missing, as messages; index_problems: those of
    index files, without absent; absent: files that indexes name and that do not exist.
    """

    files: tuple[DataFile, ...]
    schemas: dict[Version, str]
    schema_files: tuple[str, ...]
    checkpoint_ts: int | None
    problems: tuple[str, ...]
    index_problems: tuple[str, ...] = ()
    absent: tuple[Absent, ...] = ()


class _Index(NamedTuple):
    """An index file. said: its text; file: the file that it names, None for an invalid name; since_ms: when it was written."""

    said: str
    file: DataFile | None
    since_ms: int


def list_sink(store: Store, date_separator: DateSeparator = "day") -> Sink:
    """Return everything that a sink has written below a store. Raises StorageError (BAD_OBJECT) for metadata that is not JSON."""
    checkpoint_ts = checkpoint(store)  # read before the listing, so that the listing has all files up to it
    name = re.compile(_TABLE + _DATES[date_separator] + _FILE)
    files, schemas, schema_files, indexes = list[DataFile](), dict[Version, str](), list[str](), dict[tuple[str, str], _Index]()
    for info in store.objects():
        if file := _data_file(name, info):
            files.append(file)
        elif schema_version(info.key) is not None:
            schema_files.append(info.key)
            if found := _SCHEMA.fullmatch(info.key):
                schemas[found["database"], found["table"], int(found["version"])] = info.key
        elif found := re.fullmatch(_INDEX, info.key):
            named = store.read(info.key).decode("utf-8", "replace").strip()
            at = ObjectInfo(f"{found['folder']}/{named}", 0, "")
            indexes[found["folder"], found["dispatcher"] or ""] = _Index(named, _data_file(name, at), info.modified_ms)
    files.sort()
    index_problems, absent = tuple(_index_problems(files, indexes)), tuple(_absent(files, indexes))
    problems = (*index_problems, *map(str, absent), *_holes(files), *_without_schema(files, schemas))
    return Sink(
        files=tuple(files),
        schemas=schemas,
        schema_files=tuple(schema_files),
        checkpoint_ts=checkpoint_ts,
        problems=problems,
        index_problems=index_problems,
        absent=absent,
    )


def _data_file(name: re.Pattern[str], info: ObjectInfo) -> DataFile | None:
    if not (found := name.fullmatch(info.key)):
        return None
    date = found.groupdict().get("date") or ""
    place = (found["database"], found["table"], int(found["version"]), int(found["physical"] or 0), date, found["dispatcher"] or "")
    return DataFile(*place, int(found["number"]), info.key, info.size, info.etag)


def read_lines(path: Path, file: DataFile, quote: str = '"') -> Iterator[pa.Array]:
    r"""Yield the rows of a local copy, without their ends, \n or \r\n: Canal-JSON objects, or CSV rows with newlines in quoted text.

    Raises OrderError (DAMAGED_OBJECT) for a row that is too long, StorageError (BAD_OBJECT) for a file that is cut short.
    """
    source = SourceObject(f"{file.database}.{file.table}", 0, file.key, file.number, file.size, file.etag)
    if file.key.endswith(".json") or not quote:
        return lines(path, source)
    return _csv_rows(path, source, ord(quote))


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield the lines of one file as MESSAGE batches. CSV must use double quotes, and keeps its line ends, which its decoder needs."""
    csv = source.key.endswith(".csv")
    offset = source.number << OFFSET_BITS
    for rows in _csv_rows(path, source, ord('"'), ends_kept=True) if csv else lines(path, source):
        rows = rows if csv else rows.filter(pc.greater(pc.binary_length(rows), 0))
        offsets = pa.array(np.arange(offset, offset + len(rows)), pa.int64())
        yield message_batch(source, offsets, rows, key=_versions(source, len(rows)) if csv else None)
        offset += len(rows)


def _versions(source: SourceObject, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(b"%d" % version_of(source.key)[2], pa.binary()), count)


def commit_ts(rows: pa.Array, source: SourceObject, options: SinkOptions) -> pa.Array:
    """Return the commit ts of lines, null for a header. Raises ConfigError (ARCHIVE_LAYOUT) for lines without one."""
    csv = source.key.endswith(".csv")
    texts = rows.cast(pa.string(), safe=False)
    found = pc.struct_field(pc.extract_regex(texts, pattern=_csv_pattern(options.delimiter) if csv else _JSON_TS), "ts")
    missing = pc.is_null(found)
    if csv:
        missing = pc.and_(missing, pc.invert(pc.match_substring(texts, f"{HEADER}operation")))
    if pc.any(missing, min_count=0).as_py():
        option = "include-commit-ts = true under [sink.csv]" if csv else "enable-tidb-extension=true"
        raise refused(source, "storage-sink", "a line has no commit ts", f"set {option} in the changefeed")
    return found.cast(pa.int64())


def _csv_pattern(delimiter: str) -> str:
    d, other = re.escape(delimiter), re.escape(delimiter[0])
    name = f'(?:"(?:[^"]|"")*"|[^"{other}]*)'
    return f'^(?:"[IUD]"|[IUD]){d}{name}{d}{name}{d}(?P<ts>[0-9]{{1,19}})(?:{d}|[\r\n]|$)'


def _csv_rows(path: Path, source: SourceObject, quote: int, *, ends_kept: bool = False) -> Iterator[pa.Array]:
    """Yield CSV rows. A newline ends a row if an even number of quotes is before it: quotes inside quoted text are doubled."""
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
        yield column(data, starts, ends - starts + 1 if ends_kept else ends - starts - returns)
        rest = text[int(ends[-1]) + 1 :]
    if rest:
        raise unreadable(source, "cut short inside a quoted text")


def list_schemas(store: Store) -> dict[str, int]:
    """Return the schema files of a sink's tables and databases: key → version (TSO)."""
    out = dict[str, int]()
    for database in store.folders():
        for folder in store.folders(f"{database}/"):
            for info in store.objects(f"{database}/meta/" if folder == "meta" else f"{database}/{folder}/meta/"):
                if (version := schema_version(info.key)) is not None:
                    out[info.key] = version
    return out


def schema_version(key: str) -> int | None:
    """Return the version (TSO) in the key of a schema file; None for other files."""
    found = _VERSION.search(key)
    return int(found[1]) if found else None


def version_of(key: str) -> Version:
    """Return database, table and version of a data file."""
    database, table, version = key.split("/")[:3]
    return database, table, int(version)


def checkpoint(store: Store) -> int | None:
    """Return the TSO up to which everything is written, None before the first one. Raises StorageError (BAD_OBJECT)."""
    text = store.read_if_present(_METADATA)
    if text is None:
        return None
    try:
        return int(json.loads(text)["checkpoint-ts"])
    except (ValueError, KeyError, TypeError) as e:
        raise StorageError(f"{store.uri_of(_METADATA)} has no checkpoint-ts: {e}", code="BAD_OBJECT") from e


def _holes(files: list[DataFile]) -> Iterator[str]:
    """Describe the missing numbers in each folder, up to its newest file."""
    for (folder, _), group in groupby(files, _place):
        numbers = {file.number for file in group}
        if missing := sorted(set(range(1, max(numbers) + 1)) - numbers):
            yield f"{folder}: {len(missing)} of {max(numbers)} files are missing, the first is number {missing[0]}"


def _index_problems(files: list[DataFile], indexes: dict[tuple[str, str], _Index]) -> Iterator[str]:
    """Describe folders without an index, or whose index names an invalid file or an older one than the newest."""
    for (folder, dispatcher), group in groupby(files, _place):
        *_, last = group
        index = indexes.get((folder, dispatcher))
        if index is None:
            yield f"{folder}: no index file names the newest file"
        elif index.file and index.file.number < last.number:
            yield f"{folder}: the index names {index.said}, the newest file is {last.key.rpartition('/')[2]}"
    for (folder, _), index in sorted(indexes.items()):
        if index.file is None:
            yield f"{folder}: the index names {index.said}, which is not a file name"


def _absent(files: list[DataFile], indexes: dict[tuple[str, str], _Index]) -> Iterator[Absent]:
    """Yield files that an index names and that are missing. An index is written before its file."""
    newest = {place: max(file.number for file in group) for place, group in groupby((f for f in files if f.size), _place)}
    for place, index in sorted(indexes.items()):
        above = newest.get(place, 0)
        if index.file and index.file.number > above:
            yield Absent(file=index.file, above=above, since_ms=index.since_ms)


def _place(file: DataFile) -> tuple[str, str]:
    return file.key.rpartition("/")[0], file.dispatcher


def _without_schema(files: list[DataFile], schemas: dict[Version, str]) -> Iterator[str]:
    for database, table, version in sorted({(file.database, file.table, file.version) for file in files} - schemas.keys()):
        yield f"{database}/{table}: no schema file for table version {version}"


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"json", "csv"}),
    has_keys=False,
    file_bits=OFFSET_BITS,
    protocols=frozenset({"canal-json", "csv"}),
)
