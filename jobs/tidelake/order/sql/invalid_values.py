"""Examples of values that do not fit their type, for people: the value, its row, and its message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelake.errors import Coordinates
from tidelake.history.projection import Projection
from tidelake.order.sql.rows import TableRows, with_values
from tidelake.spark.sql_casts import losses, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN = 3  # values shown of a column, and columns of a table
_LENGTH = 80  # characters shown of a value
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def invalid_value_examples(rows: DataFrame, table: TableRows, counted: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the first invalid values by column, as `'12,5x' of id='3' at topic[0]@17`; masked values stay masked.

    counted: numbers as in TableCounts.invalid_values.
    """
    wanted = [p for p in table.projections if p.column.name in counted][:SHOWN]
    return {p.column.name: _of_column(rows, table, p) for p in wanted}


def setting(table: str, column: str, value: str) -> str:
    """Return the line of feed.toml that lets a column's values pass."""
    name = column if _BARE.fullmatch(column) else quoted(column)
    return f'[columns.{quoted(table)}.{name}] invalid_values = "{value}"'


def quoted(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _of_column(rows: DataFrame, table: TableRows, p: Projection) -> list[str]:
    k, rules = p.column.id, table.rules(p.column)
    after, before = (losses(f"{s}{k}", f"v{s}{k}", p.column.type, rules)["invalid_values"] for s in "ab")
    key = {c.name: f"IF(op = 'delete', b{c.id}, a{c.id})" for c in table.incarnation.columns if c.id in table.incarnation.key}
    found = with_values(rows, table).where(f"{after} OR {before}")
    first = found.orderBy("topic", "partition", "offset", "ordinal").limit(SHOWN)
    cells = [f"{cell} AS {quote(f'key_{n}')}" for n, cell in enumerate(key.values())]
    out = []
    for r in first.selectExpr("topic", "partition", "offset", f"IF({after}, a{k}, b{k}) AS cell", *cells).collect():
        of = ", ".join(f"{name}={_shown(r[f'key_{n}'])}" for n, name in enumerate(key))
        out.append(f"{_shown(r['cell'])}{' of ' if of else ''}{of} at {Coordinates(r['topic'], r['partition'], r['offset'])}")
    return out


def _shown(cell: bytes | None) -> str:
    return "NULL" if cell is None else repr(bytes(cell).decode(errors="replace")[:_LENGTH])
