"""Simple in JSON (docs/reference/protocols.md 9.1): one object a message, the Kafka key empty or null.

    {"version": 1, "database", "table", "tableID", "type": INSERT | UPDATE | DELETE, "commitTs", "buildTs", "schemaVersion",
     "claimCheckLocation"?, "handleKeyOnly"?, "checksum"?: {"version", "corrupted", "current", "previous"}, "data"?: row, "old"?: row}
    {"version": 1, "type": WATERMARK, "commitTs", "buildTs"}
    {"version": 1, "type": BOOTSTRAP, "commitTs": 0, "buildTs", "tableSchema"}
    {"version": 1, "type": CREATE | RENAME | …, "sql", "commitTs", "buildTs", "tableSchema"?, "preTableSchema"?}

row         {column: text | null | {"location": zone, "value": text}}; the object is a TIMESTAMP, binary columns are base64
tableSchema {"schema", "table", "tableID", "version", "columns": [{"name", "dataType": {"mysqlType", "length"?, "decimal"?, "elements"?,
            "unsigned"?, …}, …}], "indexes": [{"unique", "primary", "nullable", "columns", …}]}

A row's columns and types are those of the schema that it names; without it they have names only, and base64 stays as it is.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidelake.errors import DecodeError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.wire.checksum.checksums import ChecksumRules, with_verdicts
from tidelake.wire.claim_check import opened
from tidelake.wire.compression import decompress
from tidelake.wire.json import json_batches, json_cells
from tidelake.wire.json.json_known import KnownColumn, KnownSchemas, KnownTable
from tidelake.wire.json.json_text import Number, integer, kind, load, members, refuse_width, required, short, statement, string
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.columnar import Scanned
from tidelake.wire.simple import simple_images
from tidelake.wire.simple.json_simple import ZONED, other_messages, scan_simple
from tidelake.wire.simple.simple_images import places, zone_names
from tidelake.wire.simple.simple_schema import (
    DDL_TYPES,
    MAX_ID,
    MAX_TS,
    VERSION,
    SimpleTableSchema,
    TableIndex,
    column,
    database_of,
    image,
    schema_of_row,
    schemas,
)

if TYPE_CHECKING:
    from tidelake.protocols import Context

OPS = {"INSERT": ("insert", ("data",)), "UPDATE": ("update", ("data", "old")), "DELETE": ("delete", ("old",))}
_WHAT = "the value"
_ROW = b'{"version":1,"database":'
_Sides = dict[str, tuple[RowSchema | None, list[bytes | None] | None]]
_GO_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_U32 = (1 << 32) - 1
_RULES = ChecksumRules(names_sent=False, mended=True)


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The event of one message; schemas that it brings are remembered. Raises DecodeError."""
    message = load(_text(key, value, context), _WHAT)
    if integer(message, "version", _WHAT, 0, MAX_ID) != VERSION:
        raise DecodeError(f"version {message['version']}, expected {VERSION}", code="UNKNOWN_VERSION")
    word, commit_ts = string(message, "type", _WHAT), integer(message, "commitTs", _WHAT, 0, MAX_TS)
    if word in OPS:
        return [_row(message, word, commit_ts, context)]
    if word == "WATERMARK":
        return [Event(kind="resolved", commit_ts=commit_ts)]
    if word == "BOOTSTRAP":
        schema = _remembered(message, "tableSchema", context)
        if schema is None:
            raise DecodeError("a BOOTSTRAP without tableSchema", code="BAD_STRUCTURE")
        return [Event(kind="bootstrap", commit_ts=commit_ts, database=schema.database, table=schema.table)]
    if word in DDL_TYPES:
        return [_ddl(message, word, commit_ts, context)]
    raise DecodeError(f"type {word[:40]!r}, expected one of {', '.join((*OPS, 'WATERMARK', 'BOOTSTRAP', *DDL_TYPES))}", code="UNKNOWN_TYPE")


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """The rows and watermarks in the usual form, compiled; the rest is left to `read`. Schemas of the whole batch are learned first."""
    _learn_schemas(messages, wanted, context)
    if context.options.large_message_handle_compression != "none":
        return Scanned.nothing(wanted)
    values, at = json_batches.payload(messages.column("value")), places(len(wanted))

    def kernel(*arrays: Any) -> tuple[int, int]:
        return scan_simple(values, at, *arrays)

    def learn(known: KnownSchemas, message: int) -> KnownSchemas:
        return _learned(known, messages.column("value")[message].as_py(), context)

    size = len(values.data)
    room = json_batches.BatchRoom(events=len(wanted), cells=size // len('"":"",'), size=size)
    found = simple_images.scan(kernel, learn, wanted, room, context.memory, "simple-json tables")
    return with_verdicts(found, at.sent, zone_names(values.data, at), _RULES, context.memory)


def _learn_schemas(messages: pa.RecordBatch, wanted: Ints, context: Context) -> None:
    compressed = context.options.large_message_handle_compression != "none"
    values, others = json_batches.payload(messages.column("value")), np.array(wanted, np.int32)
    found = others if compressed else others[: other_messages(values, others.copy(), others)]

    def look(key: bytes | None, value: bytes | None) -> None:
        if not compressed or not _text(key, value, context).startswith(_ROW):
            read(key, value, context)

    simple_images.learn_schemas(messages, found, look)


def _learned(known: KnownSchemas, value: bytes, context: Context) -> KnownSchemas:
    """What the compiled scan can recognise after it has seen this message: its table, and the columns that it has not met."""
    try:
        row, text = read(None, value, context)[0], value.decode()  # raises where the schema has not come
        spans = {name: (start, end) for name, _, start, end in members(text, 0)}
        database, table, version = (text[slice(*spans[name])].encode() for name in ("database", "table", "schemaVersion"))
        sides = [spans[side][0] for side in ("data", "old") if side in spans]
        pieces = {name: piece.encode() for start in sides for name, piece, _, _ in members(text, start)}
        schema = schemas(context.memory).get(row.database or "", row.table or "", int(version))
        columns = schema.columns if schema else [SchemaColumn(name) for name in sorted(pieces)]
        named = KnownTable((database[1:-1], table[1:-1], version), (row.database, row.table))
        return known.with_layout(named, [KnownColumn(pieces.get(c.name) or _piece(c.name), b"", _kind(c.type), c) for c in columns])
    except (DecodeError, ValueError, KeyError):
        return known  # not a row, or of another form: the general reader says what it is


def _piece(name: str) -> bytes:
    """A member's name as Go writes it, colon included; one that it writes in another way is left to the general reader."""
    text = json.dumps(name, ensure_ascii=False).translate(_GO_ESCAPES)
    return f"{text}:".encode()


def _kind(word: str | None) -> int:
    if word in (None, "timestamp"):
        return ZONED
    return json_cells.BASE64 if MysqlType(word).is_binary else json_cells.TEXT


def _text(key: bytes | None, value: bytes | None, context: Context) -> bytes:
    """The message itself, taken out of claim-check file and compression."""
    if value is not None and len(value) > context.max_bytes:
        raise DecodeError(f"the value has {len(value)} bytes, the cap is {context.max_bytes}", code="TOO_LARGE")
    _, value = opened(key, value, context.options)
    if value is None:
        raise DecodeError("the Kafka value is null, expected a Simple message", code="NULL_VALUE")
    return decompress(value, context.options.large_message_handle_compression, context.max_bytes, _WHAT)


def _ddl(message: dict[str, Any], word: str, commit_ts: int, context: Context) -> Event:
    sql = statement(message, "sql", _WHAT)
    former, schema = (_remembered(message, name, context) for name in ("preTableSchema", "tableSchema"))
    named = schema or former
    database, table = (named.database, named.table) if named else (database_of(sql), None)
    return Event(kind="ddl", commit_ts=commit_ts, database=database, table=table, ddl=sql, ddl_type=word)


def _row(message: dict[str, Any], word: str, commit_ts: int, context: Context) -> Event:
    database, table = string(message, "database", _WHAT), string(message, "table", _WHAT)
    if not database or not table:
        raise DecodeError(f"a row of database {database!r} and table {table!r}, expected both names", code="BAD_STRUCTURE")
    version = integer(message, "schemaVersion", _WHAT, 0, MAX_TS)
    schema = schema_of_row(context.memory, context.shelf, database, table, version, commit_ts)
    op, needed = OPS[word]
    sides: _Sides = {"data": (None, None), "old": (None, None)}
    for side in sides:
        values = message.get(side)
        if (values is not None) != (side in needed):
            raise DecodeError(f"{word} {'without' if values is None else 'with'} member {side}", code="BAD_STRUCTURE")
        if values is not None:
            sides[side] = image(_object(message, side, _WHAT), schema, _cell, side)
    return Event(
        kind="row",
        op=op,
        commit_ts=commit_ts,
        database=database,
        table=table,
        physical_table_id=integer(message, "tableID", _WHAT, 0, MAX_ID),
        row_schema=sides["data"][0],
        after=sides["data"][1],
        before_schema=sides["old"][0],
        before=sides["old"][1],
        handle_only=_flag(message, "handleKeyOnly", _WHAT),
        claim_check=None if message.get("claimCheckLocation") is None else string(message, "claimCheckLocation", _WHAT) or None,
        checksum=_verdict(message, sides, schema, context),
    )


def _verdict(message: dict[str, Any], sides: _Sides, schema: SimpleTableSchema | None, context: Context) -> str | None:
    """Whether the row adds up to its checksum, None where it has none."""
    if message.get("checksum") is None:
        return None
    sent = _object(message, "checksum", _WHAT)
    _, current, previous = (integer(sent, name, "checksum", 0, _U32) for name in ("version", "current", "previous"))
    found = [string(v, "location", _WHAT) for side in sides for v in (message.get(side) or {}).values() if isinstance(v, dict)]
    images = [(*sides["data"], current), (*sides["old"], previous)]
    rules, corrupted = _RULES, _flag(sent, "corrupted", "checksum")
    return simple_images.verdict(images, schema, found, corrupted=corrupted, rules=rules, refuse=context.refuse_mismatches)


def _cell(value: Any, word: str | None, what: str) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, dict) and word in (None, "timestamp") and value.keys() == {"location", "value"}:
        string(value, "location", what)
        value = value["value"]
    if isinstance(value, Number) or not isinstance(value, str):
        raise DecodeError(f"{what} is a JSON {kind(value)}, expected a string{'' if word else ', a time'} or null", code="BAD_VALUE")
    if word is None or not MysqlType(word).is_binary:
        return value.encode()
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as e:
        raise DecodeError(f"{what}: {len(value)} characters are not base64: {e}", code="BAD_VALUE") from e


def _remembered(message: dict[str, Any], member: str, context: Context) -> SimpleTableSchema | None:
    """The schema in a member, now known."""
    if message.get(member) is None:
        return None
    described = _object(message, member, _WHAT)
    refuse_width(_objects(described, "columns", member), member)
    schema = SimpleTableSchema.of(
        string(described, "schema", member),
        string(described, "table", member),
        integer(described, "version", member, 0, MAX_TS),
        [_column(c) for c in _objects(described, "columns", member)],
        [_index(i) for i in _objects(described, "indexes", member)],
    )
    schemas(context.memory).add(schema, context.shelf)
    return schema


def _column(described: dict[str, Any]) -> SchemaColumn:
    name, data_type = string(described, "name", "a column"), _object(described, "dataType", "a column")
    length, decimal = (integer(data_type, n, "dataType", -1, MAX_ID) if n in data_type else None for n in ("length", "decimal"))
    unsigned = _flag(data_type, "unsigned", "dataType") or _flag(data_type, "zerofill", "dataType")
    elements = [] if data_type.get("elements") is None else _strings(data_type, "elements", "dataType")
    return column(name, string(data_type, "mysqlType", "dataType"), unsigned=unsigned, length=length, decimal=decimal, elements=elements)


def _index(described: dict[str, Any]) -> TableIndex:
    unique, primary, nullable = (_flag(described, name, "an index") for name in ("unique", "primary", "nullable"))
    return TableIndex(unique=unique, primary=primary, nullable=nullable, columns=tuple(_strings(described, "columns", "an index")))


def _flag(holder: dict[str, Any], name: str, what: str) -> bool:
    value = holder.get(name)
    if value is not None and not isinstance(value, bool):
        raise DecodeError(f"{what}: member {name} is a JSON {kind(value)}, expected true or false", code="BAD_VALUE")
    return bool(value)


def _object(holder: dict[str, Any], name: str, what: str) -> dict[str, Any]:
    value = required(holder, name, what)
    if not isinstance(value, dict):
        raise DecodeError(f"{what}: member {name} is a JSON {kind(value)}, expected an object", code="BAD_STRUCTURE")
    return value


def _objects(holder: dict[str, Any], name: str, what: str) -> list[dict[str, Any]]:
    values = required(holder, name, what)
    if not isinstance(values, list) or not all(isinstance(v, dict) for v in values):
        raise DecodeError(f"{what}: member {name} is no array of objects", code="BAD_STRUCTURE")
    return values


def _strings(holder: dict[str, Any], name: str, what: str) -> list[str]:
    values = required(holder, name, what)
    if not isinstance(values, list) or not all(isinstance(v, str) and not isinstance(v, Number) for v in values):
        raise DecodeError(f"{what}: member {name} is no array of strings", code="BAD_STRUCTURE")
    return [short(v, f"{what}: member {name}") for v in values]
