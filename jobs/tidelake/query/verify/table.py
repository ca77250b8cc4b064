"""Plans and runs the comparison of one table of a feed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from tidelake.config.feed import Feed
from tidelake.config.table_name import parse
from tidelake.history.incarnations import Column, Incarnation
from tidelake.io.duckdb_door import identifier
from tidelake.lake.opened import Lake
from tidelake.lake.tables import lake_column, value_rules
from tidelake.query.asof import life_at, table_asof
from tidelake.query.render import local
from tidelake.query.verify.cell_texts import CellText, LakeCell, SourceCell, cell_text, quoted, row_text
from tidelake.query.verify.compare import ComparedTable, OnCompared, compare
from tidelake.query.verify.here import SIZES, summed
from tidelake.query.verify.questions import ComparePlan, RowPlace, hashed
from tidelake.query.verify.upstream import UpstreamDatabase

_INTEGERS = re.compile(r"int|bigint|decimal\(\d+,\d+\)")  # lake types that all servers order as numbers
_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Result for a table. uncompared: column → reason; notes: reservations about the result."""

    table: str
    ts: int
    compared: ComparedTable
    uncompared: dict[str, str]
    notes: list[str]


def verify_table(
    lake: Lake,
    table: str,
    ts: int,
    source: SourceCell,
    upstream: UpstreamDatabase,
    sizes: Sequence[int] = SIZES,
    advance: OnCompared | None = None,
) -> Verified:
    """Compare a table with its source as of a TSO. Starts Spark only if the TSO is not a cut.

    Args:
        lake: The feed's lake.
        table: Name at that TSO, db.table.
        ts: The TSO.
        source: Kind of source.
        upstream: The source, or its recorded answers.
        sizes: Rows of a part at each level.
        advance: Called with (ranges compared, ranges in all).

    Raises:
        ConfigError: UNKNOWN_TABLE.
    """
    _, life = life_at(lake, table, ts)
    plan, uncompared, notes = plan_of(lake.feed, life, table, ts, source)
    if plan is None:
        return Verified(table=table, ts=ts, compared=ComparedTable(), uncompared=uncompared, notes=notes)

    def scan(read: Callable[[pa.RecordBatchReader], list[tuple[str, ...]]]) -> list[tuple[str, ...]]:
        with _rows(lake, table, ts) as rows:
            return read(rows)

    with _rows(lake, table, ts) as rows, summed(plan, rows) as here:
        found = compare(plan, here, upstream, scan, sizes, advance)
    return Verified(table=table, ts=ts, compared=found, uncompared=uncompared, notes=notes)


def plan_of(feed: Feed, i: Incarnation, table: str, ts: int, source: SourceCell) -> tuple[ComparePlan | None, dict[str, str], list[str]]:
    """Return (plan, or None if no column can be compared; column → why it is not compared; notes)."""
    columns = i.columns_at(ts)
    masks = {c.name: mask for c in columns if (mask := value_rules(feed, i, c).mask)}
    cells = [_cell(feed, i, c) for c in columns if c.name not in masks]
    made = {c.name: cell_text(c, source, feed.time_zone) for c in cells}
    texts = tuple(t for t in made.values() if isinstance(t, CellText))
    uncompared = {name: why for name, why in made.items() if isinstance(why, str)}
    uncompared |= {name: f"masked ({mask})" for name, mask in masks.items()}
    nulls = [c.name for c in cells if c.zero_is_null]
    notes = [f"zero dates count as NULL, which the lake has for them: {', '.join(nulls)}"] if nulls else []
    key = _key(i, columns)
    if uncompared.keys() & set(key):
        key = ()
        notes.append("part of the key is not compared, so rows are compared as of a table without one")
    if not texts:
        return None, uncompared, notes
    places = _number_places(cells, key)
    named = tuple(t for t in texts if t.name in key) or texts
    database, name = parse(table)
    plan = ComparePlan(
        source=source,
        ts=ts,
        database=database,
        table=name,
        texts=texts,
        key=key,
        places=places or (hashed(row_text(named)),),
        scans=not places,
    )
    return plan, uncompared, notes


def _cell(feed: Feed, i: Incarnation, c: Column) -> LakeCell:
    kind = lake_column(feed, i, c).type
    zero_is_null = c.type.word in ("date", "datetime", "timestamp") and value_rules(feed, i, c).zero_date == "null"
    return LakeCell(name=c.name, lake_name=c.lake_name, type=c.type, lake_type=kind, zero_is_null=zero_is_null)


def _key(i: Incarnation, columns: Sequence[Column]) -> tuple[str, ...]:
    names = {c.id: c.name for c in columns}
    return tuple(names[k] for k in i.key) if all(k in names for k in i.key) else ()


def _number_places(cells: Sequence[LakeCell], key: Sequence[str]) -> tuple[RowPlace, ...]:
    """Return the leading key columns that are numbers; ranges of them use the key's index. Text has collations that the lake lacks."""
    by_name = {c.name: c for c in cells}
    out: list[RowPlace] = []
    for name in key:
        if by_name[name].type.word not in _NUMBERS or not _INTEGERS.fullmatch(by_name[name].lake_type):
            break
        out.append(RowPlace(upstream=quoted(name), here=identifier(by_name[name].lake_name)))
    return tuple(out)


@contextmanager
def _rows(lake: Lake, table: str, ts: int) -> Iterator[pa.RecordBatchReader]:
    with table_asof(lake, table, ts) as found:
        yield local(found.rows, "UTC")
