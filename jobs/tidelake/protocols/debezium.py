"""Debezium's JSON envelope as TiCDC writes it (docs/reference/protocols.md 9.2): one event a message.

key    := {"payload": {handle column: value}, "schema"?: …}                       statements: {"databaseName"}, watermarks: {}
value  := {"payload": {"source": {"db", "table", "commit_ts", …}, "op": "c" | "u" | "d", "before"?: row, "after"?: row, …}, "schema"?: …}
        | {"payload": {"source": …, "op": "m"}}                                    a resolved ts
        | {"payload": {"source": …, "ddl": statement, "tableChanges": [{"type": "CREATE" | "ALTER" | "DROP", …}]}}
schema := {"fields": [{"field": "before" | "after", "fields": [{"field": column, "type", "name"?: Debezium's meaning, "tidb_type"?, …}]}]}

How a value is written depends on its column's type, and only the schema says that (tidb_type with the TiDB extension, else what
Debezium's names tell); with debezium-disable-schema the table's columns do (Context.columns). Where neither does, and with
Context.types_later where the message does not, cells are the values as sent. Key and value are compressed each on its own.

What is lost on the way: a zero DATE or DATETIME is NULL (0 where NOT NULL), a NULL in a column with a default is that default, a DECIMAL
is a double, an invalid ENUM or SET is "", the fraction digits of DATETIME and TIME are not said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidelake.errors import ContractError, DecodeError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.wire.cells.debezium_cells import DebeziumField, cell
from tidelake.wire.compression import decompress
from tidelake.wire.json.json_text import Number, integer, kind, load, refuse_width, required, statement, string
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.columnar import Scanned

if TYPE_CHECKING:
    from tidelake.protocols import Context

OPS = {"c": "insert", "u": "update", "d": "delete"}
WATERMARK = "m"
MAX_TS = (1 << 64) - 1
MAX_WORD = 64  # characters of a type
MEANINGS = {  # Debezium's name of a field → MySQL's word, where the schema has no tidb_type
    "io.debezium.time.Date": "date",
    "io.debezium.time.Timestamp": "datetime",
    "io.debezium.time.MicroTimestamp": "datetime",
    "io.debezium.time.ZonedTimestamp": "timestamp",
    "io.debezium.time.MicroTime": "time",
    "io.debezium.time.Year": "year",
    "io.debezium.data.Bits": "bit",
    "io.debezium.data.Enum": "enum",
    "io.debezium.data.EnumSet": "set",
    "io.debezium.data.Json": "json",
    "io.debezium.data.TiDBVectorFloat32": "vector",
}
_COMMA = re.compile(r"(?<!\\),")

Fields = dict[str, DebeziumField]


@dataclass(frozen=True, slots=True)
class _Table:
    """What is known of a table from elsewhere than the message. known: its columns by name; types_later: but their types may be others."""

    known: dict[str, SchemaColumn]
    types_later: bool
    time_zone: str

    @classmethod
    def of(cls, database: str, table: str, context: Context) -> _Table:
        """From the context."""
        return cls({c.name: c for c in context.columns_of(database, table) or ()}, context.types_later, context.time_zone)

    def column(self, name: str) -> SchemaColumn:
        """A column of which the message says the name only."""
        found = None if self.types_later else self.known.get(name)
        return found or SchemaColumn(name)


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The event of one message. Raises DecodeError."""
    if (size := len(key or b"") + len(value or b"")) > context.max_bytes:
        raise DecodeError(f"key and value have {size} bytes, the cap is {context.max_bytes}", code="TOO_LARGE")
    if value is None:
        raise DecodeError("the Kafka value is null, expected a Debezium envelope", code="NULL_VALUE")
    message = _loaded(value, context, "the value")
    payload = _object(message, "payload", "the value")
    source = _object(payload, "source", "the payload")
    commit_ts = None if source.get("commit_ts") is None else integer(source, "commit_ts", "the source", 0, MAX_TS)
    keys = _handle(key, context)
    op = string(payload, "op", "the payload") if payload.get("op") is not None else None
    if op is None:
        return [_ddl(payload, source, commit_ts)]
    if op == WATERMARK:
        return [Event(kind="resolved", commit_ts=integer(source, "commit_ts", "the source", 0, MAX_TS))]
    if op not in OPS:
        raise DecodeError(f"op {op[:40]!r}, expected c, u, d or m", code="UNKNOWN_TYPE")
    return [_row(op, payload, source, commit_ts, message, keys, context)]


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """Nothing yet: every message is left to `read`."""
    return Scanned.nothing(wanted)


def _loaded(payload: bytes, context: Context, what: str) -> dict[str, Any]:
    return load(decompress(payload, context.options.large_message_handle_compression, context.max_bytes, what), what)


def _handle(key: bytes | None, context: Context) -> frozenset[str]:
    """The names of the handle columns; older versions send no key."""
    return frozenset(_object(_loaded(key, context, "the key"), "payload", "the key")) if key else frozenset()


def _ddl(payload: dict[str, Any], source: dict[str, Any], commit_ts: int | None) -> Event:
    return Event(
        kind="ddl",
        commit_ts=commit_ts,
        database=_name(source, "db") or None,
        table=_name(source, "table") or None,
        ddl=statement(payload, "ddl", "the payload"),
        ddl_type=_change(payload.get("tableChanges")),
    )


def _change(changes: Any) -> str | None:
    """CREATE, ALTER or DROP; statements on databases and views change no table."""
    if changes in (None, []):
        return None
    first = changes[0] if isinstance(changes, list) else None
    if not isinstance(first, dict):
        raise DecodeError(f"member tableChanges is a JSON {kind(changes)}, expected an array of objects", code="BAD_STRUCTURE")
    return string(first, "type", "tableChanges")


def _row(
    op: str,
    payload: dict[str, Any],
    source: dict[str, Any],
    commit_ts: int | None,
    message: dict[str, Any],
    keys: frozenset[str],
    context: Context,
) -> Event:
    database, table = _name(source, "db"), _name(source, "table")
    if not database or not table:
        raise DecodeError(f"a row of database {database[:80]!r} and table {table[:80]!r}, expected both names", code="BAD_STRUCTURE")
    there = {side for side in ("before", "after") if payload.get(side) is not None}
    if there not in ({"c": [{"after"}], "u": [{"after"}, {"before", "after"}], "d": [{"before"}]}[op]):  # "u": output-old-value is off
        raise DecodeError(f"op {op} with {' and '.join(sorted(there)) or 'neither before nor after'}", code="BAD_STRUCTURE")
    images = {side: _image(side, payload, message.get("schema"), _Table.of(database, table, context), keys) for side in there}
    row_schema, after = images.get("after", (None, None))
    before_schema, before = images.get("before", (None, None))
    return Event(
        kind="row",
        op=OPS[op],
        commit_ts=commit_ts,
        database=database,
        table=table,
        row_schema=row_schema,
        before_schema=before_schema,
        after=after,
        before=before,
    )


def _image(side: str, payload: dict[str, Any], schema: Any, table: _Table, keys: frozenset[str]) -> tuple[RowSchema, list[bytes | None]]:
    row = _object(payload, side, "the payload")
    if not row:
        raise DecodeError(f"{side} has no columns", code="BAD_STRUCTURE")
    refuse_width(row, side)
    fields = None if schema is None else _fields(schema, side, table)
    described, cells = [], []
    for name, value in row.items():
        where = f"column {name[:80]!r} of {side}"
        if fields is None:
            field = DebeziumField(table.column(name))
        elif name in fields:
            field = fields[name]
        else:
            raise DecodeError(f"{where} is not in the schema", code="BAD_STRUCTURE")
        c = field.column
        described.append(SchemaColumn(c.name, c.type, name in keys, full_type=c.full_type, elements=c.elements))
        cells.append(cell(value, field, table.time_zone, where))
    return RowSchema(tuple(described)), cells


def _fields(schema: Any, side: str, table: _Table) -> Fields:
    for part in _list(schema, "the schema"):
        if _text(part, "field") == side:
            fields = (_field(f, table) for f in _list(part, f"the schema of {side}"))
            return {f.column.name: f for f in fields}
    raise DecodeError(f"the schema has no field {side}", code="BAD_STRUCTURE")


def _list(schema: Any, what: str) -> list[dict[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list) or not all(isinstance(f, dict) for f in fields):
        raise DecodeError(f"{what}: member fields is a JSON {kind(fields)}, expected an array of objects", code="BAD_STRUCTURE")
    return fields


def _field(said: dict[str, Any], table: _Table) -> DebeziumField:
    name, meaning = string(said, "field", "the schema"), _text(said, "name")
    word = _text(said, "tidb_type") or MEANINGS.get(meaning, "bit" if _text(said, "type") == "boolean" else "")
    if word:
        column = SchemaColumn(name, _type(word), full_type=_bits(word, said), elements=_elements(word, said))
        known = table.known.get(name)
        if known is not None and known.type == column.type and column.full_type is None:
            column = SchemaColumn(name, column.type, full_type=known.full_type, elements=column.elements or known.elements)
    else:
        column = table.column(name)
    default = said.get("default")
    return DebeziumField(column, meaning, default if isinstance(default, str) and not isinstance(default, Number) else None)


def _type(word: str) -> str:
    try:
        if len(word) > MAX_WORD:
            raise ContractError("too long")
        return MysqlType.parse(word).name
    except ContractError as e:
        raise DecodeError(f"tidb_type {word[:80]!r} is no MySQL type", code="UNKNOWN_TYPE") from e


def _bits(word: str, said: dict[str, Any]) -> str | None:
    length = _text(said.get("parameters") or {}, "length")
    return f"bit({length})" if word == "bit" and re.fullmatch("[0-9]{1,2}", length) else None


def _elements(word: str, said: dict[str, Any]) -> tuple[str, ...] | None:
    r"""Members joined by commas; a comma inside an ENUM's member is written `\\,`, inside a SET's there is none."""
    if word not in ("enum", "set") or not (allowed := _text(said.get("parameters") or {}, "allowed")):
        return None
    return tuple(member.replace("\\,", ",") for member in _COMMA.split(allowed))


def _text(said: Any, name: str) -> str:
    """A member that is a string, or empty where it is absent."""
    value = said.get(name) if isinstance(said, dict) else None
    if value is None:
        return ""
    return string(said, name, "the schema")


def _name(source: dict[str, Any], member: str) -> str:
    return "" if source.get(member) is None else string(source, member, "the source")


def _object(members: dict[str, Any], name: str, what: str) -> dict[str, Any]:
    value = required(members, name, what)
    if not isinstance(value, dict):
        raise DecodeError(f"{what}: member {name} is a JSON {kind(value)}, expected an object", code="BAD_STRUCTURE")
    return value
