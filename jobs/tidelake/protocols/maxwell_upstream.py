"""Maxwell's own messages (docs/reference/protocols.md 9.3): one JSON object a message, ordered as the binlog is.

Kafka key   := {"database", "table", "pk.<column>": value}      kafka_key_format=hash; a table without a key has "_uuid"
             | ["database", "table", [{column: value}]]         kafka_key_format=array
             | a UUID as text                                   of a statement
row         := {"database", "table", "type", "ts": seconds, "xid"?, "xoffset"? | "commit"?: true, "position"?: "file:offset",
                "gtid"?, "server_id"?, "thread_id"?, "schema_id"?, "primary_key"?, "primary_key_columns"?, "data": row, "old"?: row}
statement   := {"type": "table-create" | …, "database", "table"?, "old"?: table, "def"?: table, "ts": ms, "sql", "position"?, "gtid"?}

insert, bootstrap-insert   `data` is the row
update                     `data` is the row, `old` has the columns that changed, and is left out if none did
delete                     `data` is the deleted row
bootstrap-start, bootstrap-complete, a null value, rows of Maxwell's table of bootstraps: nothing changed

The key says nothing that the value does not say. Messages have no types; how cells are written: wire/cells/maxwell_cells.py. A row's place
in the binlog is the position of its event, and its number in the transaction (`xoffset`), which the transaction's last row does not have.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.history.source_names import LAST_ROW, source_name
from tidelake.wire.cells.maxwell_cells import FORM, sent
from tidelake.wire.json.json_text import Number, integer, kind, load, refuse_width, statement, string
from tidelake.wire.kernels.utf8_text import head

if TYPE_CHECKING:
    from tidelake.protocols import Context

ROWS = {"insert": "insert", "update": "update", "delete": "delete", "bootstrap-insert": "upsert"}  # type → op
NOTHING = frozenset({"bootstrap-start", "bootstrap-complete"})
STATEMENTS = frozenset({"table-create", "table-alter", "table-drop", "database-create", "database-alter", "database-drop"})
OWN = frozenset({"xid", "commit", "position", "gtid", "def"})  # members that TiCDC's messages do not have
ORDER = frozenset({"database_name", "table_name", "where_clause", "is_complete", "inserted_rows", "started_at", "completed_at"})
MAX_KEY, MAX_SCHEMAS = 1024, 4096
_MEMORY = "maxwell"
_COMMENTS = 4096  # characters before a statement's first word
_RENAME = re.compile(r"\s*(?:/\*.*?\*/\s*|(?:--|#)[^\n]*\n\s*)*+RENAME\b", re.IGNORECASE | re.DOTALL)

_RowSchemas = dict[tuple[tuple[str, ...], frozenset[str]], RowSchema]


def read_upstream(value: bytes, context: Context) -> list[Event]:
    """Return the events of one message. Raises DecodeError."""
    message = load(value, "the value")
    if "encrypted" in message:
        raise DecodeError("the message is encrypted; run Maxwell with encrypt=none", code="BAD_STRUCTURE")
    what = string(message, "type", "the value")
    if what in ROWS:
        return [] if _is_own_order(message) else [_row(what, message, context)]
    if what in STATEMENTS:
        return [_statement(what, message, context)]
    if what in NOTHING:
        return []
    known = ", ".join([*ROWS, *sorted(NOTHING), *sorted(STATEMENTS)])
    raise DecodeError(f"type {what[:40]!r}, expected one of {known}", code="UNKNOWN_TYPE")


def is_upstream(value: bytes) -> bool:
    """Return whether a message without a key is Maxwell's own, and not TiCDC's. Raises DecodeError."""
    message = load(value, "the value")
    return not OWN.isdisjoint(message) or str(message.get("type")).startswith("bootstrap-")


def _is_own_order(message: dict[str, Any]) -> bool:
    """Whether it is a row of Maxwell's own table of bootstraps, which it sends beside all others."""
    data = message.get("data")
    return message.get("table") == "bootstrap" and isinstance(data, dict) and data.keys() >= ORDER


def _row(what: str, message: dict[str, Any], context: Context) -> Event:
    database, table = string(message, "database", "the value"), string(message, "table", "the value")
    if not database or not table:
        raise DecodeError(f"a row of database {database[:80]!r} and table {table[:80]!r}, expected both names", code="BAD_STRUCTURE")
    if "reason" in message and "ts" not in message:
        raise DecodeError(f"a message of a dead letter topic: the row was not sent, {str(message['reason'])[:80]}", code="BAD_STRUCTURE")
    keys = _keys(message)
    row_schema, row = _image(message, "data", keys, context)
    before_schema, before = (row_schema, row) if what == "delete" else (None, None)
    if message.get("old") not in (None, {}):
        if what != "update":
            raise DecodeError(f"type {what} with member old, which only an update has", code="BAD_STRUCTURE")
        before_schema, before = _image(message, "old", keys, context)
    return Event(
        kind="row",
        op=ROWS[what],
        database=database,
        table=table,
        row_schema=None if what == "delete" else row_schema,
        before_schema=before_schema,
        after=None if what == "delete" else row,
        before=before,
        source=_source(message, context) if what != "bootstrap-insert" else None,
    )


def _keys(message: dict[str, Any]) -> frozenset[str]:
    names = message.get("primary_key_columns")
    if names is None:
        return frozenset()
    if not isinstance(names, list) or len(names) > MAX_KEY or not all(isinstance(n, str) and not isinstance(n, Number) for n in names):
        raise DecodeError("member primary_key_columns is not an array of names", code="BAD_STRUCTURE")
    return frozenset(map(str, names))


def _image(message: dict[str, Any], side: str, keys: frozenset[str], context: Context) -> tuple[RowSchema, list[bytes | None]]:
    columns = message.get(side)
    if not isinstance(columns, dict) or not columns:
        raise DecodeError(f"member {side} is a JSON {kind(columns)}, expected an object of columns", code="BAD_STRUCTURE")
    refuse_width(columns, f"member {side}")
    cells = [sent(value, f"column {name[:80]!r} of {side}") for name, value in columns.items()]
    return _row_schema(tuple(columns), keys, context), cells


def _row_schema(names: tuple[str, ...], keys: frozenset[str], context: Context) -> RowSchema:
    known = context.memory.setdefault(_MEMORY, _RowSchemas())
    assert isinstance(known, dict)
    if (found := known.get((names, keys))) is None:
        if len(known) >= MAX_SCHEMAS:
            known.clear()
        found = known[names, keys] = RowSchema(tuple(SchemaColumn(n, key=n in keys, form=FORM) for n in names))
    schema: RowSchema = found
    return schema


def _statement(what: str, message: dict[str, Any], context: Context) -> Event:
    database = string(message, "database", "the value")
    table = string(message, "table", "the value") if "table" in message else ""
    if not database or (what.startswith("table-") and not table):
        raise DecodeError(f"{what} of database {database[:80]!r} and table {table[:80]!r}", code="BAD_STRUCTURE")
    return Event(
        kind="ddl",
        database=database,
        table=table or None,
        ddl=_alone(what, message, database, table),
        ddl_type=what,
        source=_place(message, 0) if context.options.output_xoffset else None,  # as rows: a repeat is told from changes whole, or not
    )


def _alone(what: str, message: dict[str, Any], database: str, table: str) -> str:
    """The part of a statement that is about the message's table: a DROP or RENAME of several tables is sent whole for each of them."""
    sql = statement(message, "sql", "the value")
    if what == "table-drop":
        return f"DROP TABLE {_quoted(database)}.{_quoted(table)}"
    if what == "table-alter" and _RENAME.match(head(sql, _COMMENTS)):
        names = [f"{_quoted(d)}.{_quoted(t)}" for d, t in (_names(message, side) for side in ("old", "def"))]
        return f"RENAME TABLE {' TO '.join(names)}"
    return sql


def _names(message: dict[str, Any], side: str) -> tuple[str, str]:
    described = message.get(side)
    if not isinstance(described, dict):
        raise DecodeError(f"member {side} is a JSON {kind(described)}, expected a table", code="BAD_STRUCTURE")
    return string(described, "database", side), string(described, "table", side)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _source(message: dict[str, Any], context: Context) -> str | None:
    """A row's place, if all rows of its transaction have one.

    Without output_xoffset, only the last row of a transaction could be told from the others. Rows that waited for a bootstrap have no
    xid, and their xoffset counts what waited.
    """
    if not context.options.output_xoffset or "xid" not in message:
        return None
    if message.get("commit") is True:
        return _place(message, LAST_ROW)
    return _place(message, integer(message, "xoffset", "the value", 0, LAST_ROW - 1)) if "xoffset" in message else None


def _place(message: dict[str, Any], row: int) -> str | None:
    """A place in the binlog that Maxwell reads. `server_id` is no part of it: it is the server where the transaction began."""
    if "position" not in message:
        return None
    position = string(message, "position", "the value")
    file, colon, offset = position.rpartition(":")
    if not colon or not offset.isascii() or not offset.isdecimal() or len(offset) > len(str(1 << 63)):
        raise DecodeError(f"position {position[:80]!r}, expected file:offset", code="BAD_VALUE")
    return source_name(0, file, int(offset), row)
