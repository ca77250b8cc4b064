"""Canal protobuf of TiCDC and of Alibaba Canal (docs/reference/protocols.md 9.4). Everything is in the Kafka value; the key means nothing.

Packet    := 2 version(=1)  3 type(=7, MESSAGES)  4 compression(=0 or 1, NONE)  5 body: Messages
Messages  := 1 batch id  2 Entry*
Entry     := 1 Header  2 entry type  3 store value: of ROWDATA a RowChange
Header    := 2 binlog file  3 position of the event in it  4 server id  8 schema name  9 table name  …
RowChange := 2 event type  10 is DDL  11 SQL  12 RowData*  14 schema name of the DDL
RowData   := 1 Column*, before  2 Column*, after
Column    := 2 JDBC type  3 name  4 is key  6 is NULL  8 value  10 MySQL type  …

Fields may come in any order, unknown ones and those not named here are skipped. Values are text as in Canal-JSON; binary columns, and
those of JDBC type 2004, carry each byte as the code point U+0000 to U+00FF. There is no commit ts and no resolved ts. Entries for the
begin and end of transactions, heartbeats and GTIDs hold no events; neither do the statements that Canal's server sends beside the rows
they changed (canal_statements.py).

The name of a change is the place of its binlog event and the number of its row among all rows of the message that come from that event:
spread by primary keys, Canal sends each row as an entry of its own. TiCDC sends no place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.history.source_names import source_name
from tidelake.protocols import Context
from tidelake.protocols.canal_statements import XA_ROLLED_BACK, stands_beside_rows
from tidelake.wire.binary import canal_cells
from tidelake.wire.binary import canal_scan as steps
from tidelake.wire.binary.canal_places import names_of
from tidelake.wire.binary.canal_scan import (
    HEARTBEAT_LIKE,
    MAX_COLUMNS,
    MAX_ENTRIES,
    MAX_ROWS,
    MESSAGES,
    QUERY,
    ROWDATA,
    UNCOMPRESSED,
    VERSION,
    XA_COMMIT,
)
from tidelake.wire.binary.protobuf import BYTES, NUMBER, WireField, fields
from tidelake.wire.cells import canal_types
from tidelake.wire.cells.canal_types import column_type, form, utf8
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.binary_known import KnownKeys
from tidelake.wire.kernels.binary_out import KEY, LEARN_SCHEMA, Out, leave, new_out, scanned, values
from tidelake.wire.kernels.canal_marks import BLOB
from tidelake.wire.kernels.columnar import Scanned
from tidelake.wire.kernels.utf8_text import text_of
from tidelake.wire.kernels.varint import Region

COMPRESSIONS = {2: "ZLIB", 3: "GZIP", 4: "LZF"}
OPS = {1: "insert", 2: "update", 3: "delete"}
DDL_WORDS = {4: "CREATE", 5: "ALTER", 6: "ERASE", 7: "QUERY", 8: "TRUNCATE", 9: "RENAME", 10: "CINDEX", 11: "DINDEX"}
XA_ROLLBACK = 14
MAX_NAME_BYTES = 1024  # MySQL's identifiers have at most 64 characters

_PACKET = {
    2: WireField("the version", NUMBER),
    3: WireField("the packet type", NUMBER),
    4: WireField("the compression", NUMBER),
    5: WireField("the body", BYTES),
}
_MESSAGES = {2: WireField("an entry", BYTES, MAX_ENTRIES)}
_ENTRY = {1: WireField("the header", BYTES), 2: WireField("the entry type", NUMBER), 3: WireField("the store value", BYTES)}
_HEADER = {
    2: WireField("the binlog file", BYTES),
    3: WireField("the binlog position", NUMBER),
    4: WireField("the server id", NUMBER),
    8: WireField("the schema name", BYTES),
    9: WireField("the table name", BYTES),
}
_CHANGE = {
    2: WireField("the event type", NUMBER),
    10: WireField("the DDL mark", NUMBER),
    11: WireField("the statement", BYTES),
    12: WireField("a row", BYTES, MAX_ROWS),
    14: WireField("the schema name", BYTES),
}
_ROW = {1: WireField("a column before", BYTES, MAX_COLUMNS), 2: WireField("a column after", BYTES, MAX_COLUMNS)}
_COLUMN = {
    2: WireField("the JDBC type", NUMBER),
    3: WireField("the name", BYTES),
    4: WireField("the key mark", NUMBER),
    6: WireField("the NULL mark", NUMBER),
    8: WireField("the value", BYTES),
    10: WireField("the MySQL type", BYTES),
}
_STEPS = {
    canal_types.TEXT: canal_cells.RAW,
    canal_types.BYTES: canal_cells.LATIN1,
    canal_types.TEXT_AS_BYTES: canal_cells.LATIN1_TEXT,
}
_MEMORY = "canal"
_MAX_LESSONS = 16  # of one message: each one costs another look at it

_Name = tuple[str | None, str | None]
_Column = tuple[bytes, bytes, int]  # name, MySQL type, marks
_RowSchemas = dict[tuple[_Column, ...], RowSchema]


@dataclass(slots=True)
class _Names:
    """Names the changes of a message."""

    place: tuple[int, bytes, int] | None = None  # server, file, position of the last one
    row: int = 0

    def next(self, header: dict[str, Any]) -> str | None:
        """Return the name of the next change, which has this header."""
        place = header.get("the server id", 0), _bytes(header.get("the binlog file")), header.get("the binlog position", 0)
        self.row = self.row + 1 if place == self.place else 0
        self.place = server, file, position = place
        return source_name(server, file.decode(errors="replace"), position, self.row)


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The events of one message. Raises DecodeError."""
    if value is None:
        raise DecodeError("the Kafka value is null, expected a Canal packet", code="NULL_VALUE")
    packet = fields(Region(value, 0, len(value), "the message"), _PACKET)
    version, kind, compression = packet.get("the version", VERSION), packet.get("the packet type"), packet.get("the compression", 0)
    if version != VERSION:
        raise DecodeError(f"Canal packet version {version}, expected {VERSION}", code="UNKNOWN_VERSION")
    if kind is not None and kind != MESSAGES:
        raise DecodeError(f"Canal packet type {kind}, expected {MESSAGES} (MESSAGES)", code="UNKNOWN_TYPE")
    if compression > UNCOMPRESSED:
        word = COMPRESSIONS.get(compression, "unknown")
        raise DecodeError(f"the packet has compression {compression} ({word}), which no Canal server writes", code="BAD_COMPRESSION")
    if kind is None or "the body" not in packet:
        raise DecodeError(f"a packet of {len(value)} bytes without {'type' if kind is None else 'body'}", code="TRUNCATED")
    entries = fields(packet["the body"], _MESSAGES).get("an entry")
    if not entries:
        raise DecodeError("a packet without entries", code="BAD_STRUCTURE")
    events, row_schemas, names = list[Event](), _RowSchemas(), _Names()
    for i, entry in enumerate(entries):
        entry.what = f"entry {i}"
        events += _entry(entry, row_schemas, names, MAX_ROWS - len(events))
    return events


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """The rows of a batch, compiled; messages with DDL or anything unusual are left."""
    column = values(messages.column("value"))
    total = int(np.diff(column.bounds)[wanted].sum(dtype=np.int64))
    present = wanted[column.valid[wanted]]
    work, memory = steps.new_work(total // steps.LEAST_ROW), _memory(context)
    out = new_out(len(messages), total // steps.LEAST_ROW, total // steps.LEAST_COLUMN, total)
    first = lessons = 0
    while first < len(present):
        at, status = steps.scan_messages(column, present, first, memory.names.table, memory.row_schemas.table, work, out)
        first, lessons = at, lessons + 1 if at == first else 1
        if first < len(present) and (lessons > _MAX_LESSONS or not memory.learn(status, out)):
            leave(out, present[first])
            first, lessons = first + 1, 0
    found = scanned(out, memory.names.values, memory.row_schemas.values, np.setdiff1d(wanted, present))
    return replace(found, source=names_of(work.places, column.data, len(found.message)))


def _entry(entry: Region, row_schemas: _RowSchemas, names: _Names, room: int) -> list[Event]:
    what, found = entry.what, fields(entry, _ENTRY)
    kind = found.get("the entry type", 0)
    if kind in HEARTBEAT_LIKE:
        return []
    if kind != ROWDATA:
        raise DecodeError(f"{what} has type {kind}, expected {ROWDATA} (ROWDATA) or one of {HEARTBEAT_LIKE}", code="UNKNOWN_TYPE")
    header, change = fields(_there(found, "the header", what), _HEADER), fields(_there(found, "the store value", what), _CHANGE)
    event, rows = change.get("the event type", 0), change.get("a row", [])
    if change.get("the DDL mark", 0):
        return [replace(_ddl(event, header, change, what), source=names.next(header))]
    if event in OPS:
        return [replace(e, source=names.next(header)) for e in _rows(event, header, rows, row_schemas, room, what)]
    if event == XA_COMMIT and not rows:
        return []
    if event == QUERY and not rows:
        statement, database = _decoded(_bytes(change.get("the statement")), "the statement", decode=text_of), _database(header, change)
        if stands_beside_rows(database, statement):
            return []
        return [replace(_ddl(event, header, change, what), source=names.next(header))]
    rolled_back = f", {XA_ROLLED_BACK}" if event == XA_ROLLBACK else ""
    raise DecodeError(f"{what} has event type {event} with {len(rows)} rows and no DDL mark{rolled_back}", code="UNKNOWN_TYPE")


def _there(found: dict[str, Any], name: str, what: str) -> Region:
    if name not in found:
        raise DecodeError(f"{what} lacks {name}", code="BAD_STRUCTURE")
    part: Region = found[name]
    part.what = f"{name} of {what}"
    return part


def _ddl(event: int, header: dict[str, Any], change: dict[str, Any], what: str) -> Event:
    statement = _decoded(_bytes(change.get("the statement")), "the statement", decode=text_of)
    if event not in DDL_WORDS or not statement or "a row" in change:
        rows = len(change.get("a row", []))
        raise DecodeError(
            f"{what} is marked as DDL with event type {event}, {len(statement)} characters of SQL and {rows} rows", code="BAD_STRUCTURE"
        )
    return Event(
        kind="ddl", database=_database(header, change), table=_name(header, "the table name"), ddl=statement, ddl_type=DDL_WORDS[event]
    )


def _database(header: dict[str, Any], change: dict[str, Any]) -> str | None:
    """Of a statement: the session's, in which it looks for names without a database; else that of the first table."""
    return _name(change, "the schema name") or _name(header, "the schema name")


def _rows(event: int, header: dict[str, Any], rows: list[Region], row_schemas: _RowSchemas, room: int, what: str) -> list[Event]:
    database, table = _name(header, "the schema name"), _name(header, "the table name")
    if database is None or table is None:
        raise DecodeError(f"{what} has rows of database {database!r} and table {table!r}, expected both names", code="BAD_STRUCTURE")
    if not rows:
        raise DecodeError(f"{what} is an {OPS[event]} without rows: a statement of a binlog that is not row-based?", code="BAD_STRUCTURE")
    if len(rows) > room:
        raise DecodeError(f"more than {MAX_ROWS} rows in one message", code="TOO_LARGE")
    events, op = [], OPS[event]
    for i, row in enumerate(rows):
        row.what = f"row {i} of {what}"
        found = fields(row, _ROW)
        before, after = found.get("a column before", []), found.get("a column after", [])
        if not (before if op == "delete" else after) or (before if op == "insert" else after if op == "delete" else None):
            raise DecodeError(f"{op} with {len(before)} columns before and {len(after)} after in {row.what}", code="BAD_STRUCTURE")
        before_schema, old = (None, None) if op == "insert" else _image(before, row.what, row_schemas)
        row_schema, new = (None, None) if op == "delete" else _image(after, row.what, row_schemas)
        events.append(
            Event(
                kind="row", op=op, database=database, table=table, row_schema=row_schema, before_schema=before_schema, after=new, before=old
            )
        )
    return events


def _image(columns: list[Region], what: str, row_schemas: _RowSchemas) -> tuple[RowSchema, list[bytes | None]]:
    described, raw = list[_Column](), list[bytes | None]()
    for column in columns:
        found = fields(column, _COLUMN)
        value = _bytes(found.get("the value"))
        if found.get("the NULL mark", 0):
            if value:
                raise DecodeError(f"a column of {what} is NULL and has a value of {len(value)} bytes", code="BAD_STRUCTURE")
            raw.append(None)
        else:
            raw.append(value)
        marks = (found.get("the key mark", 0) != 0) * steps.KEY_MARK | (found.get("the JDBC type") == BLOB) * steps.BLOB_MARK
        described.append((_bytes(found.get("the name")), _bytes(found.get("the MySQL type")), marks))
    key = tuple(described)
    row_schema = row_schemas.get(key) or row_schemas.setdefault(key, _row_schema(key))
    return row_schema, [
        _cell(cell, c.name, _step(type_text, marks)) for cell, c, (_, type_text, marks) in zip(raw, row_schema.columns, key, strict=True)
    ]


def _step(type_text: bytes, marks: int) -> int:
    """How the values of a column become its cells."""
    word, _, binary = column_type(type_text.decode())
    return _STEPS[form(word, binary, BLOB if marks & steps.BLOB_MARK else None)]


def _cell(value: bytes | None, name: str, step: int) -> bytes | None:
    if not value or step == canal_cells.RAW:
        return value
    data = _latin1(value, name)
    return utf8(data) if step == canal_cells.LATIN1_TEXT else data


def _row_schema(described: tuple[_Column, ...]) -> RowSchema:
    """Raises DecodeError for names, types and doublings that no table has."""
    columns = dict[str, SchemaColumn]()
    for name_bytes, type_bytes, marks in described:
        if not name_bytes or not type_bytes:
            raise DecodeError(f"a column of name {name_bytes[:80]!r} and type {type_bytes[:80]!r}, expected both", code="BAD_STRUCTURE")
        name = _decoded(name_bytes, "a column name", MAX_NAME_BYTES)
        word, full, _ = column_type(_decoded(type_bytes, "a MySQL type"))
        if name in columns:
            raise DecodeError(f"two columns of the name {name!r}", code="BAD_STRUCTURE")
        columns[name] = SchemaColumn(name, word, bool(marks & steps.KEY_MARK), full_type=full)
    return RowSchema(tuple(columns.values()))


def _latin1(cell: bytes, name: str) -> bytes:
    text = _decoded(cell, f"the value of column {name!r}", decode=text_of)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as e:
        raise DecodeError(f"column {name!r} holds U+{ord(e.object[e.start]):04X}, which is no byte", code="BAD_VALUE") from e


def _name(found: dict[str, Any], which: str) -> str | None:
    return _decoded(_bytes(found.get(which)), which, MAX_NAME_BYTES) or None


def _bytes(part: Region | None) -> bytes:
    return b"" if part is None else part.data[part.at : part.end]


def _decoded(data: bytes, what: str, most: int | None = None, decode: Callable[[bytes], str] = bytes.decode) -> str:
    if most is not None and len(data) > most:
        raise DecodeError(f"{what} has {len(data)} bytes, at most {most} are expected", code="BAD_LENGTH")
    try:
        return decode(data)
    except UnicodeDecodeError as e:
        raise DecodeError(f"{what} is not UTF-8 at its byte {e.start}", code="BAD_UTF8") from e


@dataclass(frozen=True, slots=True)
class _Memory:
    """Schemas and names met so far, by the descriptions that the kernels write."""

    row_schemas: KnownKeys[RowSchema]
    names: KnownKeys[_Name]

    def learn(self, status: int, out: Out) -> bool:
        """Add what a kernel could not find; False if there is no room."""
        key = out.key[: out.used[KEY]].tobytes()
        return self._learn_schema(key) if status == LEARN_SCHEMA else self._learn_name(key)

    def _learn_name(self, key: bytes) -> bool:
        schema, table = _described(key)
        try:
            name = _decoded(schema, "the schema name", MAX_NAME_BYTES), _decoded(table, "the table name", MAX_NAME_BYTES)
            return self.names.learn(key, name)
        except DecodeError:
            return self.names.learn(key, (None, None), valid=False)

    def _learn_schema(self, key: bytes) -> bool:
        parts = _described(key)
        columns = tuple((name, word, marks[0]) for name, word, marks in zip(parts[::3], parts[1::3], parts[2::3], strict=True))
        try:
            row_schema = _row_schema(columns)
        except DecodeError:
            return self.row_schemas.learn(key, RowSchema(()), valid=False)
        return self.row_schemas.learn(key, row_schema, [[_step(word, marks)] for _, word, marks in columns])


def _described(key: bytes) -> list[bytes]:
    """The parts of a kernel's description: each its length and its bytes."""
    parts, at = [], 0
    while at < len(key):
        (size,) = struct.unpack_from("<q", key, at)
        parts.append(key[at + 8 : at + 8 + size])
        at += 8 + size
    return parts


def _memory(context: Context) -> _Memory:
    memory = context.memory.get(_MEMORY)
    if not isinstance(memory, _Memory) or memory.row_schemas.crowded or memory.names.crowded:
        memory = context.memory[_MEMORY] = _Memory(KnownKeys(), KnownKeys())
    return memory
