"""Where the types of a table come from: tables.sql, a CREATE TABLE statement, or the messages, as far as these say them (docs/types.md).

MySQL's word is a type in full, but for DECIMAL (precision and scale), ENUM and SET (their elements). A table that nothing defines and whose
messages lack one of these has no types: its rows are set aside (UNDEFINED_TABLE).
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import Shape, ShapeColumn
from tidelake.history.incarnations import Column

_NO_WORD = "types"
_DIGITS, _ELEMENTS = "DECIMAL precision and scale", "ENUM and SET elements"
UNSAID: dict[str, str] = {  # by protocol: what messages do not say of types; empty: they suffice for every table
    "open": f"{_DIGITS}, {_ELEMENTS}",
    "craft": f"{_DIGITS}, {_ELEMENTS}",
    "avro": f"{_DIGITS} with avro-decimal-handling-mode=string",
    "canal-json": f"{_DIGITS}, {_ELEMENTS}, unless TiCDC's content-compatible is on",
    "canal": f"{_DIGITS}, {_ELEMENTS}, unless TiCDC's content-compatible is on",
    "simple-json": "",
    "simple-avro": "",
    "debezium": f"{_DIGITS}; all {_NO_WORD} with debezium-disable-schema",
    "maxwell": f"all {_NO_WORD}",
    "csv": f"all {_NO_WORD}, unless the sink's schema files are there",
}


def unsaid(column: ShapeColumn) -> str | None:
    """What a message does not say of a column's type that the lake needs; None where it says enough."""
    written = column.full_type or column.type
    if written is None:
        return "its type"
    return None if column.elements else _bare(MysqlType.parse(written))


def unsaid_types(columns: Iterable[Column]) -> list[str]:
    """The columns of a table that are typed by MySQL's word alone where that is not the whole type, each with what is missing."""
    return [f"{c.name}: {what}" for c in columns if (what := _bare(c.type)) is not None]


def _bare(mysql: MysqlType) -> str | None:
    if mysql.word == "decimal" and mysql.length is None:
        return "decimal without precision and scale"
    if mysql.word in ("enum", "set") and not mysql.elements:
        return f"{mysql.word} without its elements"
    return None


def unsaid_of(shapes: Iterable[Shape]) -> dict[str, str]:
    """By column, what no shape of a table says of its type."""
    columns = [c for s in shapes for c in s.columns]
    said = {c.name for c in columns if unsaid(c) is None}
    return {c.name: what for c in columns if c.name not in said and (what := unsaid(c)) is not None}
