"""Debezium's JSON envelope (docs/reference/protocols.md 9.2): one event a message.

As TiCDC writes it:
key    := {"payload": {handle column: value}, "schema"?: …}                       statements: {"databaseName"}, watermarks: {}
value  := {"payload": {"source": {"db", "table", "commit_ts", …}, "op": "c" | "u" | "d", "before"?: row, "after"?: row, …}, "schema"?: …}
        | {"payload": {"source": …, "op": "m"}}                                    a resolved ts
        | {"payload": {"source": …, "ddl": statement, "tableChanges": [{"type": "CREATE" | "ALTER" | "DROP", …}]}}

As Debezium's own connectors for MySQL and MariaDB write it (9.2.1): the same, without "payload" and "schema" if the converter's schemas are
off, op "r" for a row of a snapshot and "t" for TRUNCATE, no commit_ts. A null value is a tombstone, {"ts_ms"} a heartbeat, {"status", "id",
"event_count", "data_collections", "ts_ms"} the begin or end of a transaction: these are no events.

How a value is written depends on its column's type, and only the schema says that (protocols.debezium_fields); without a schema the table's
columns do (Context.columns). Where neither does, and with Context.types_later where the message does not, cells are the values as sent. Key
and value are compressed each on its own.

What TiCDC loses on the way: a zero DATE or DATETIME is NULL (0 where NOT NULL), a NULL in a column with a default is that default, a
DECIMAL is a double, an invalid ENUM or SET is "", the fraction digits of DATETIME and TIME are not said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.history.source_names import source_name
from tidelake.protocols.debezium_fields import UPSTREAM, DebeziumTable, fields_of
from tidelake.wire.cells.debezium_cells import DebeziumField, cell
from tidelake.wire.compression import decompress
from tidelake.wire.json.json_text import integer, kind, load, refuse_width, required, statement, string
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.columnar import Scanned

if TYPE_CHECKING:
    from tidelake.protocols import Context

OPS = {"c": "insert", "u": "update", "d": "delete", "r": "upsert"}
WATERMARK, TRUNCATE = "m", "t"
MAX_TS = (1 << 64) - 1
MAX_PLACE = (1 << 63) - 1
_TICDC = "TiCDC"
_HEARTBEAT = frozenset({"ts_ms"})
_TRANSACTION = frozenset({"status", "id", "event_count", "data_collections", "ts_ms"})
_STREAMED = (None, "false")  # source.snapshot of a change that was read from the binlog
_OWN_STATEMENTS = ("SET ", "USE ")  # what a snapshot sends of the connector's own session
_SIDES: dict[str, list[set[str]]] = {"c": [{"after"}], "r": [{"after"}], "u": [{"after"}, {"before", "after"}], "d": [{"before"}]}


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The event of one message, none for messages that say nothing of a change. Raises DecodeError."""
    if (size := len(key or b"") + len(value or b"")) > context.max_bytes:
        raise DecodeError(f"key and value have {size} bytes, the cap is {context.max_bytes}", code="TOO_LARGE")
    if value is None:
        return []  # a tombstone, for topics that Kafka compacts: the delete came before it
    message = _loaded(value, context, "the value")
    bare = "payload" not in message
    payload = message if bare else _object(message, "payload", "the value")
    if payload.keys() in (_HEARTBEAT, _TRANSACTION):
        return []
    source = _object(payload, "source", "the payload")
    connector = _name(source, "connector") or _TICDC
    if connector != _TICDC and connector not in UPSTREAM:
        raise DecodeError(f"source.connector is {connector[:40]!r}, expected {_TICDC}, mysql or mariadb", code="UNKNOWN_TYPE")
    commit_ts = None if source.get("commit_ts") is None else integer(source, "commit_ts", "the source", 0, MAX_TS)
    keys = _handle(key, context, bare=bare)
    op = string(payload, "op", "the payload") if payload.get("op") is not None else None
    if op is None:
        return _ddl(payload, source, commit_ts)
    if op == WATERMARK:
        return [Event(kind="resolved", commit_ts=integer(source, "commit_ts", "the source", 0, MAX_TS))]
    if op == TRUNCATE:
        return [_truncate(source)]
    if op not in OPS:
        raise DecodeError(f"op {op[:40]!r}, expected c, u, d, r, t or m", code="UNKNOWN_TYPE")
    return [_row(op, payload, source, commit_ts, message.get("schema"), keys, context)]


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """Nothing yet: every message is left to `read`."""
    return Scanned.nothing(wanted)


def _loaded(payload: bytes, context: Context, what: str) -> dict[str, Any]:
    return load(decompress(payload, context.options.large_message_handle_compression, context.max_bytes, what), what)


def _handle(key: bytes | None, context: Context, *, bare: bool) -> frozenset[str]:
    """The names of the handle columns. None for a row without: older versions of TiCDC send no key, Debezium none for a table without."""
    if not key or key == b"null":
        return frozenset()
    members = _loaded(key, context, "the key")
    return frozenset(members if bare else _object(members, "payload", "the key"))


def _ddl(payload: dict[str, Any], source: dict[str, Any], commit_ts: int | None) -> list[Event]:
    sql = statement(payload, "ddl", "the payload")
    if not _is_streamed(source) and sql.upper().startswith(_OWN_STATEMENTS):
        return []
    event = Event(
        kind="ddl",
        commit_ts=commit_ts,
        database=_name(source, "db") or None,
        table=_name(source, "table") or None,
        ddl=sql,
        ddl_type=_change(payload.get("tableChanges")),
        source=_place(source),
    )
    return [event]


def _truncate(source: dict[str, Any]) -> Event:
    """TRUNCATE as a row of the table's topic (skipped.operations without t); the statement itself comes as one, too."""
    database, table = _names(source)
    sql = ".".join("`" + name.replace("`", "``") + "`" for name in (database, table))
    return Event(kind="ddl", database=database, table=table, ddl=f"TRUNCATE TABLE {sql}", source=_place(source))


def _is_streamed(source: dict[str, Any]) -> bool:
    """Whether the change was read from the binlog, not from the tables as they were."""
    return source.get("snapshot") in _STREAMED


def _place(source: dict[str, Any]) -> str | None:
    """The name of a change of the binlog. Rows of a snapshot have none: they all say one position."""
    if source.get("file") is None or not _is_streamed(source):
        return None
    server, position, row = (integer(source, name, "the source", 0, MAX_PLACE) for name in ("server_id", "pos", "row"))
    return source_name(server, _name(source, "file"), position, row)


def _names(source: dict[str, Any]) -> tuple[str, str]:
    database, table = _name(source, "db"), _name(source, "table")
    if not database or not table:
        raise DecodeError(f"a row of database {database[:80]!r} and table {table[:80]!r}, expected both names", code="BAD_STRUCTURE")
    return database, table


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
    schema: Any,
    keys: frozenset[str],
    context: Context,
) -> Event:
    database, table = _names(source)
    there = {side for side in ("before", "after") if payload.get(side) is not None}
    if there not in _SIDES[op]:  # "u" without before: output-old-value is off
        raise DecodeError(f"op {op} with {' and '.join(sorted(there)) or 'neither before nor after'}", code="BAD_STRUCTURE")
    known = DebeziumTable.of(database, table, context, upstream=_name(source, "connector") in UPSTREAM)
    images = {side: _image(side, payload, schema, known, keys) for side in there}
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
        source=_place(source),
    )


def _image(
    side: str, payload: dict[str, Any], schema: Any, table: DebeziumTable, keys: frozenset[str]
) -> tuple[RowSchema, list[bytes | None]]:
    row = _object(payload, side, "the payload")
    if not row:
        raise DecodeError(f"{side} has no columns", code="BAD_STRUCTURE")
    refuse_width(row, side)
    fields = None if schema is None else fields_of(schema, side, table)
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


def _name(source: dict[str, Any], member: str) -> str:
    return "" if source.get(member) is None else string(source, member, "the source")


def _object(members: dict[str, Any], name: str, what: str) -> dict[str, Any]:
    value = required(members, name, what)
    if not isinstance(value, dict):
        raise DecodeError(f"{what}: member {name} is a JSON {kind(value)}, expected an object", code="BAD_STRUCTURE")
    return value
