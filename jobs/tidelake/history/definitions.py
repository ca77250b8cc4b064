"""Where the types of a table come from: tables.sql, a CREATE TABLE statement, or the messages (docs/types.md).

The type word in messages is the full type, except for DECIMAL (precision and scale), ENUM and SET (their elements). A table without a
definition whose messages lack one of these has no types: its rows are set aside (UNDEFINED_TABLE).
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.history.incarnations import Column

_NO_WORD = "types"
_DIGITS, _ELEMENTS = "DECIMAL precision and scale", "ENUM and SET elements"
UNSAID: dict[str, str] = {  # by protocol: what messages do not carry of types; empty: messages suffice for every table
    "open": f"{_DIGITS}, {_ELEMENTS}",
    "craft": f"{_DIGITS}, {_ELEMENTS}",
    "avro": f"{_DIGITS} with avro-decimal-handling-mode=string",
    "canal-json": f"{_DIGITS}, {_ELEMENTS}, unless TiCDC's content-compatible is on",
    "canal": f"{_DIGITS}, {_ELEMENTS}, unless TiCDC's content-compatible is on",
    "simple-json": "",
    "simple-avro": "",
    "debezium": f"{_DIGITS}; all {_NO_WORD} with debezium-disable-schema; types of integers and texts from Debezium's own connectors",
    "maxwell": f"all {_NO_WORD}",
    "csv": f"all {_NO_WORD}, unless the sink's schema files are there",
}


def unsaid(column: SchemaColumn) -> str | None:
    """Return what the lake needs of a column's type and a message does not carry; None if it carries enough."""
    written = column.full_type or column.type
    if written is None:
        return "its type"
    return None if column.elements else _bare(MysqlType.parse(written))


def unsaid_types(columns: Iterable[Column]) -> list[str]:
    """Return the columns that are typed by a word alone that is not the full type, each with what is missing."""
    return [f"{c.name}: {what}" for c in columns if (what := _bare(c.type)) is not None]


def _bare(mysql: MysqlType) -> str | None:
    if mysql.word == "decimal" and mysql.length is None:
        return "decimal without precision and scale"
    if mysql.word in ("enum", "set") and not mysql.elements:
        return f"{mysql.word} without its elements"
    return None


def unsaid_of(row_schemas: Iterable[RowSchema]) -> dict[str, str]:
    """Return by column what no schema of a table carries of its type."""
    columns = dict.fromkeys(c for s in row_schemas for c in s.columns)
    said = {c.name for c in columns if unsaid(c) is None}
    return {c.name: what for c in columns if c.name not in said and (what := unsaid(c)) is not None}
