"""Reads the rows of an export's file: text in pieces of bounded size; rejected rows are reported by number and place.

A file is read once, from start to end. A row may be as large as MAX_ROW; nothing else of a file is kept in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
from pydantic import BaseModel

from tidelake.archives.readers.codecs import decompressed, naming
from tidelake.archives.readers.layout import SourceObject
from tidelake.errors import ContractError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ddl.tokens import Cursor
from tidelake.io.documents import Document
from tidelake.seed.exports.dialect import Dialect
from tidelake.seed.exports.export_cells import canonical
from tidelake.seed.exports.export_files import ExportFile
from tidelake.seed.exports.export_parquet import parquet_columns, read_parquet
from tidelake.seed.exports.scan.dump_csv import scan_csv
from tidelake.seed.exports.scan.dump_rows import BAD, END, INSIDE, NUMBER, WHY, RowRoom
from tidelake.seed.exports.scan.dump_sql import scan_sql

PIECE = 4 << 20
MAX_ROW = 256 << 20  # TiDB's largest row is 120 MiB; escapes may double it
KEPT = 100  # rejected rows of a file that are reported one by one
_ZONE = re.compile(rb"SET\s+(?:SESSION\s+)?@?@?TIME_ZONE\s*=\s*'([^']*)'", re.IGNORECASE)
_VALUES = re.compile(rb"\bVALUES\s*", re.IGNORECASE)
_UTC = frozenset({"+00:00", "UTC"})

ExportColumns = Sequence[tuple[str, MysqlType]]
ScanPiece = Callable[[bytes, int, bool, bool], RowRoom]  # (piece, number of its first row, inside a statement, final)


class RefusedRows(BaseModel):
    """A row that cannot be read. row: its number in the file, from 1, without the header; byte: its decompressed position."""

    row: int
    byte: int
    code: str
    error: str


class FileReport(Document, BaseModel):
    """Result of reading a file.

    Attributes:
        key: The file.
        size: Bytes.
        sha256: Of the file.
        rows: Rows that were read.
        refused: Rows that could not be read.
        examples: The first of them.
        losses: Kind of loss → column → number of values (docs/types.md).
        invalid_rows: Column → numbers of the first rows whose value does not fit its type.
        null_keys: Rows with a NULL in the key.
    """

    key: str
    size: int = 0
    sha256: str = ""
    rows: int = 0
    refused: int = 0
    examples: list[RefusedRows] = []
    losses: dict[str, dict[str, int]] = {}
    invalid_rows: dict[str, list[int]] = {}
    null_keys: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReading:
    """How to read a table's files. columns: the lake's columns of the table, in order; may_lack: columns that a file may lack."""

    columns: ExportColumns
    may_lack: frozenset[str]
    dialect: Dialect
    time_zone: str
    names_sent: bool


@dataclass(frozen=True, slots=True)
class ExportBatch:
    """A batch of rows. cells: in the order of `columns`; numbers: row numbers in the file."""

    columns: tuple[str, ...]
    cells: pa.ListArray
    numbers: pa.Array


def read_rows(path: Path, file: ExportFile, reading: ExportReading, report: FileReport) -> Iterator[ExportBatch]:
    """Yield the rows of a local copy of a file and add the findings to the report.

    Raises:
        ContractError: The file has other columns than the table.
        StorageError: The file is damaged.
    """
    if file.kind == "parquet":
        columns = _wanted(parquet_columns(path), reading, file)
        first = 1
        for cells in read_parquet(path, columns, reading.time_zone, names_sent=reading.names_sent):
            yield _batch(columns, cells, pa.array(range(first, first + len(cells)), pa.int64()))
            first += len(cells)
        report.rows = first - 1
        return
    with _text_of(path, file) as text:
        columns, scan = _scan_of(text, reading, file)
        if columns:
            yield from _scanned(text, columns, scan, reading, report)


def check_columns(path: Path, file: ExportFile, reading: ExportReading) -> None:
    """Raise what `read_rows` raises for the file's columns. Reads no rows."""
    if file.kind == "parquet":
        _wanted(parquet_columns(path), reading, file)
        return
    with _text_of(path, file) as text:
        _scan_of(text, reading, file)


class _Text:
    """Text of a file: the part that is read but not scanned yet."""

    def __init__(self, stream: IO[bytes], source: SourceObject) -> None:
        self._stream, self._source = stream, source
        self.rest, self.at, self.ended = b"", 0, False

    def more(self, size: int = PIECE) -> None:
        """Read the next piece."""
        with naming(self._source):
            piece = self._stream.read(size)
        self.ended = not piece
        self.rest += piece

    def skip(self, size: int) -> None:
        """Drop scanned bytes."""
        self.rest, self.at = self.rest[size:], self.at + size


@contextmanager
def _text_of(path: Path, file: ExportFile) -> Iterator[_Text]:
    source = SourceObject(topic="", partition=0, key=file.key, number=0, size=file.size, etag=file.etag)
    with decompressed(path, source) as stream:
        yield _Text(stream, source)


def _scan_of(text: _Text, reading: ExportReading, file: ExportFile) -> tuple[ExportColumns, ScanPiece]:
    return (_csv if file.kind == "csv" else _sql)(text, reading, file)


def _scanned(text: _Text, columns: ExportColumns, scan: ScanPiece, reading: ExportReading, report: FileReport) -> Iterator[ExportBatch]:
    number, inside, width, size = 1, False, len(columns), PIECE
    while not (text.ended and not text.rest):
        text.more(size)
        room = scan(text.rest, number, inside, text.ended)
        _refuse(room, text.at, report)
        cells = room.rows(width)
        if len(cells):
            report.rows += len(cells)
            numbers = pa.array(room.numbers[: len(cells)])
            yield _batch(columns, canonical(cells, [t for _, t in columns], names_sent=reading.names_sent), numbers)
        number, inside, end = int(room.at[NUMBER]), bool(room.at[INSIDE]), int(room.at[END])
        text.skip(end)
        size = PIECE if end else max(PIECE, len(text.rest))  # a large row: double the size next time
        if len(text.rest) > MAX_ROW:
            error = f"no row ends within {MAX_ROW:,} bytes from here; the rest of the file is not read"
            _add(report, RefusedRows(row=number, byte=text.at, code="TOO_LARGE", error=error))
            return
        if text.ended:
            return


def _refuse(room: RowRoom, base: int, report: FileReport) -> None:
    count = int(room.at[BAD])
    for row, at, code in room.bad[: min(count, KEPT)].tolist():
        _add(report, RefusedRows(row=row, byte=base + at, code=WHY[code][0], error=WHY[code][1]), counted=0)
    report.refused += count


def _add(report: FileReport, refused: RefusedRows, counted: int = 1) -> None:
    report.refused += counted
    if len(report.examples) < KEPT:
        report.examples.append(refused)


def _csv(text: _Text, reading: ExportReading, file: ExportFile) -> tuple[ExportColumns, ScanPiece]:
    d = reading.dialect
    names = [name for name, _ in reading.columns]
    if d.header:
        while b"\n" not in text.rest and not text.ended:
            text.more()
        line, newline, _ = text.rest.partition(b"\n")
        text.skip(len(line) + len(newline))
        names = _header(line.removesuffix(b"\r").decode(errors="replace"), d) if line else []
    columns = _wanted(names, reading, file) if names else ()
    if not d.null and len(reading.columns) == 1:
        raise ContractError(f"{file.key}: with an empty --csv-null a NULL would be a blank line", remedy="export it as SQL")
    words = (d.separator.encode(), d.delimiter.encode(), d.null.encode(), d.escape)
    return columns, lambda piece, number, _, final: scan_csv(piece, len(columns), number, final, *words)


def _header(line: str, d: Dialect) -> list[str]:
    q, escape = re.escape(d.delimiter), r"\\." if d.escape else "(?!)"
    fields = re.findall(rf"(?:^|(?<={re.escape(d.separator)})){q}((?:{escape}|{q}{q}|[^{q}])*){q}(?={re.escape(d.separator)}|$)", line)
    plain = [f.replace(d.delimiter * 2, d.delimiter) for f in fields]
    return [re.sub(r"\\(.)", r"\1", f) for f in plain] if d.escape else plain


def _sql(text: _Text, reading: ExportReading, file: ExportFile) -> tuple[ExportColumns, ScanPiece]:
    while (found := _statement(text.rest)) is None and not text.ended and len(text.rest) < MAX_ROW:
        text.more(1 << 16)
    _check_zone(text.rest[: 1 << 16], reading, file)
    if found is None:
        if text.rest.strip() and b"INSERT" in text.rest.upper():
            raise ContractError(f"{file.key}: does not begin with a statement that inserts rows", remedy="is it a file of Dumpling?")
        return (), lambda *_: RowRoom.of(0, 1, 1, 1, False)
    head, names = found
    columns = _wanted(names or [name for name, _ in reading.columns], reading, file)
    escape = reading.dialect.escape
    return columns, lambda piece, number, inside, final: scan_sql(piece, len(columns), number, final, head, inside, escape)


def _statement(text: bytes) -> tuple[bytes, list[str]] | None:
    """Return (start of the file's statements, the columns that they name); None if the file starts differently."""
    start = text.find(b"INSERT INTO ")
    values = _VALUES.search(text, start) if start >= 0 else None
    if values is None:
        return None
    cursor = Cursor(text[start : values.start()].decode())
    cursor.expect("INSERT", "INTO")
    cursor.table("")
    return text[start : values.start()] + values[0].rstrip(), list(cursor.names()) if cursor.next.upper == "(" else []


def _check_zone(text: bytes, reading: ExportReading, file: ExportFile) -> None:
    found = _ZONE.search(text)
    zone = found[1].decode(errors="replace") if found else reading.time_zone
    if zone != reading.time_zone and not {zone, reading.time_zone} <= _UTC:
        raise ContractError(
            f"{file.key}: written in time zone {zone!r}, the feed's is {reading.time_zone!r}",
            code="TIME_ZONE",
            remedy=f"export with `--params time_zone={reading.time_zone}`",
        )


def _wanted(names: Sequence[str], reading: ExportReading, file: ExportFile) -> ExportColumns:
    """The file's columns with their types. Raises ContractError for columns that only one of file and table has."""
    known = {name.lower(): (name, mysql) for name, mysql in reading.columns}
    strange = [n for n in names if n.lower() not in known]
    missing = [n for n in known if n not in {x.lower() for x in names} and n not in reading.may_lack]
    if strange or missing:
        what = f"has column {strange[0]!r}, which the table does not have" if strange else f"lacks the table's column {missing[0]!r}"
        raise ContractError(
            f"{file.key} {what}",
            code="OTHER_COLUMNS",
            remedy="Dumpling leaves out generated columns: for a stored one write the file with `dumpling --sql` (docs/seed.md), or set "
            'mask = "drop"; else the file\'s CREATE TABLE is from another time, or the file has no header (--csv-no-header)',
        )
    return [known[n.lower()] for n in names]


def _batch(columns: ExportColumns, cells: pa.ListArray, numbers: pa.Array) -> ExportBatch:
    return ExportBatch(tuple(name for name, _ in columns), cells, numbers)
