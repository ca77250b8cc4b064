"""Maxwell (docs/reference/protocols.md 9.3), without commit ts of rows and without watermark: its own messages and those of TiCDC.

The key says whose a message is. What Maxwell itself writes: protocols.maxwell_upstream. What TiCDC writes, JSON objects back to back:

Kafka key   := u64be 1                                         of rows
             | {"ts", "scm", "tbl", "t": 2}                    of a statement
row value   := { {"database", "table", "type": "insert" | "update" | "delete", "ts": seconds, "data"?: row, "old"?: row} }*
DDL value   := {"type": "table-create" | "table-alter" | …, "database", "table", "old", "def", "ts": commit ts, "sql"}

row         {column: string | number | null}, sorted by name; `old` of an update holds the changed columns, of a delete the row.
            Binary columns are base64, which only the table's columns (Context.columns) can tell from text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.protocols.maxwell_upstream import is_upstream, read_upstream
from tidelake.wire.cells.plain_cells import from_text, is_binary, scalar
from tidelake.wire.json.json_text import Number, integer, kind, load, load_all, refuse_width, statement, string
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.columnar import Scanned

if TYPE_CHECKING:
    from tidelake.protocols import Context

VERSION = (1).to_bytes(8, "big")
SIDES = {"insert": (True, False), "update": (True, True), "delete": (False, True)}  # type → has data, has old
MAX_ROWS = 1 << 16  # of one message
MAX_TS = (1 << 64) - 1
_NAMED = b'"database":'

MaxwellTables = dict[str, SchemaColumn]


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The events of one message, of any legal form. Raises DecodeError."""
    if (size := len(key or b"") + len(value or b"")) > context.max_bytes:
        raise DecodeError(f"key and value have {size} bytes, the cap is {context.max_bytes}", code="TOO_LARGE")
    if _is_upstream(key, value):
        return [] if value is None else read_upstream(value, context)
    if value is None:
        raise DecodeError("the Kafka value is null, expected a Maxwell message", code="NULL_VALUE")
    if _is_of_rows(key or b""):
        rows = load_all(value, "the value", MAX_ROWS)
        return [_row(row, f"row {i}", context) for i, row in enumerate(rows)]
    return [_ddl(load(key or b"", "the key"), load(value, "the value"))]


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """Nothing yet: every message is left to `read`."""
    return Scanned.nothing(wanted)


def _is_upstream(key: bytes | None, value: bytes | None) -> bool:
    """Whether the message is Maxwell's own: TiCDC's keys are the version word, or an object that does not name the database."""
    if not key:
        return value is None or is_upstream(value)
    return not VERSION.startswith(key[:1]) and (not key.startswith(b"{") or _NAMED in key)


def _is_of_rows(key: bytes) -> bool:
    if key.startswith(b"{"):
        return False
    if len(key) < len(VERSION):
        raise DecodeError(f"the key has {len(key)} bytes, its version word needs {len(VERSION)}", code="TRUNCATED")
    if not key.startswith(VERSION):
        raise DecodeError(f"version {int.from_bytes(key[:8], 'big')}, expected 1", code="UNKNOWN_VERSION")
    if len(key) > len(VERSION):
        raise DecodeError(f"{len(key) - len(VERSION)} bytes follow the version word in the key of rows", code="TRAILING_BYTES")
    return True


def _ddl(key: dict[str, Any], value: dict[str, Any]) -> Event:
    commit_ts = integer(value, "ts", "the value", 0, MAX_TS)
    if (said := integer(key, "ts", "the key", 0, MAX_TS)) != commit_ts:
        raise DecodeError(f"commit ts {said} in the key, {commit_ts} in the value", code="BAD_STRUCTURE")
    return Event(
        kind="ddl",
        commit_ts=commit_ts,
        database=string(value, "database", "the value") or None,
        table=string(value, "table", "the value") or None,
        ddl=statement(value, "sql", "the value"),
        ddl_type=string(value, "type", "the value"),
    )


def _row(row: dict[str, Any], at: str, context: Context) -> Event:
    op = string(row, "type", at)
    if op not in SIDES:
        raise DecodeError(f"{at}: type {op[:40]!r}, expected one of {', '.join(SIDES)}", code="UNKNOWN_TYPE")
    database, table = string(row, "database", at), string(row, "table", at)
    if not database or not table:
        raise DecodeError(f"{at} of database {database[:80]!r} and table {table[:80]!r}, expected both names", code="BAD_STRUCTURE")
    known = {c.name: c for c in context.columns_of(database, table) or ()}
    has_data, has_old = SIDES[op]
    if op == "update" and row.get("old") in (None, {}):
        has_old = False  # an update that changed nothing
    row_schema, after = _image(row, "data", at, known) if has_data else (None, None)
    before_schema, before = _image(row, "old", at, known) if has_old else (None, None)
    return Event(
        kind="row", op=op, database=database, table=table, row_schema=row_schema, before_schema=before_schema, after=after, before=before
    )


def _image(row: dict[str, Any], side: str, at: str, known: MaxwellTables) -> tuple[RowSchema, list[bytes | None]]:
    columns = row.get(side)
    if not isinstance(columns, dict) or not columns:
        raise DecodeError(f"{at}: member {side} is a JSON {kind(columns)}, expected an object of columns", code="BAD_STRUCTURE")
    refuse_width(columns, f"{at}: member {side}")
    described = [known.get(name) or SchemaColumn(name) for name in columns]
    cells = [_cell(columns[c.name], c, f"{at}, column {c.name[:80]!r} of {side}") for c in described]
    return RowSchema(tuple(described)), cells


def _cell(value: Any, column: SchemaColumn, where: str) -> bytes | None:
    if is_binary(column) and isinstance(value, str) and not isinstance(value, Number):
        return from_text(value, "base64", where)
    return scalar(value, where)
