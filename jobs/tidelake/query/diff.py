"""Differences of tables between two TSOs, computed in DuckDB; at cuts without Spark.

Rows are compared in the form that `asof` prints, over the columns that exist at both TSOs. Columns are matched by id, which they keep
through renames. Tables are matched by incarnation, whatever their names. A table with the same Iceberg snapshot in both cuts is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from tidelake.config.feed import Feed
from tidelake.errors import ConfigError
from tidelake.history.incarnations import Column, Incarnation
from tidelake.io import duckdb_door as duck
from tidelake.lake.opened import Lake
from tidelake.lake.tables import kept, shown_type
from tidelake.query.asof import TableAsOf, lives, standing, table_asof
from tidelake.query.render import Rendered, expressions, flat, local

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BEFORE, AFTER = "before", "after"
CHANGE = "_change"  # added, removed, before or after


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Differences of one table. Columns that were added or removed are not compared.

    Attributes:
        name_before: Name at the first TSO; None if the table did not exist.
        name_after: Name at the second TSO; None if the table did not exist.
        added: Number of rows.
        removed: Number of rows.
        changed: Number of rows; None if the table has no key. A changed row then counts as removed and added.
        columns_added: Names.
        columns_removed: Names.
    """

    name_before: str | None
    name_after: str | None
    added: int = 0
    removed: int = 0
    changed: int | None = 0
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The later name."""
        return self.name_after or self.name_before or ""

    @property
    def same(self) -> bool:
        """Whether nothing changed: no rows, no columns, not the name."""
        altered = self.columns_added or self.columns_removed or self.name_before != self.name_after
        return not (self.added or self.removed or self.changed or altered)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """The rows of one table that were added, removed or changed, in key order.

    Attributes:
        columns: CHANGE, then the compared columns as canonical text.
        binary: Columns that are {"hex": …}.
        rows: The rows.
    """

    columns: list[Rendered]
    binary: frozenset[str]
    rows: pa.RecordBatchReader


OnRows = Callable[[Diff, ChangedRows], None]


def differences(lake: Lake, table: str, before: int, after: int, rows: OnRows | None = None) -> Iterator[Diff]:
    """Yield the differences of tables between two TSOs, by table name.

    Args:
        lake: The feed's lake.
        table: Name at either TSO, or `all`.
        before: First TSO.
        after: Second TSO.
        rows: Called with the changed rows of each table.

    Raises:
        ConfigError: UNKNOWN_TABLE.
        StorageError: NOT_PUBLISHED.
    """
    a, b = standing(lake, before), standing(lake, after)
    wanted = [i for i in a.names | b.names if table == "all" or table.lower() in (_lower(a, i), _lower(b, i))]
    if not wanted and table != "all":
        raise ConfigError(f"no table {table!r} at either TSO: {lives(b.catalog, table)}", code="UNKNOWN_TABLE")
    for i in sorted(wanted, key=lambda i: (b.names.get(i) or a.names[i], i)):
        yield _difference(lake, a, b, i, rows)


def _lower(at: TableAsOf, incarnation: str) -> str | None:
    name = at.names.get(incarnation)
    return None if name is None else name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """A table at one TSO. columns, key: what is compared, in the same order on both sides; binary: columns that are binary on both."""

    name: str | None
    ts: int
    columns: list[Rendered]
    key: list[str]
    binary: frozenset[str]


def _difference(lake: Lake, a: TableAsOf, b: TableAsOf, i: str, rows: OnRows | None) -> Diff:
    one, other = _sides(lake.feed, a, b, i)
    named = Diff(
        name_before=one.name,
        name_after=other.name,
        changed=0 if one.key else None,
        columns_added=_only(lake.feed, b, a, i),
        columns_removed=_only(lake.feed, a, b, i),
    )
    if None not in (one.name, other.name, a.snapshot(i)) and a.snapshot(i) == b.snapshot(i):
        return named
    with TemporaryDirectory(prefix="tidelake-diff-") as folder, duck.scratch(Path(folder)) as scratch:
        for label, side in ((BEFORE, one), (AFTER, other)):
            _hash(lake, scratch, label, side)
        counted = _count(scratch, named, keyed=bool(one.key))
        if rows is not None and (counted.added or counted.removed or counted.changed):
            kinds = ["STRUCT(hex VARCHAR)" if c.name in other.binary else "VARCHAR" for c in other.columns]
            cells = ", ".join(f"c{n} {kind}" for n, kind in enumerate(kinds))
            scratch.execute(f"CREATE TABLE picked (_k VARCHAR, {CHANGE} VARCHAR, {cells})")
            for label, side in ((BEFORE, one), (AFTER, other)):
                _pick(lake, scratch, label, side, keyed=bool(one.key))
            named_cells = ", ".join(f"c{n} AS {duck.identifier(c.name)}" for n, c in enumerate(other.columns))
            ordered = f"SELECT {CHANGE}, {named_cells} FROM picked ORDER BY _k, {CHANGE} = '{AFTER}'"  # noqa: S608
            columns = [Rendered(name=CHANGE, type=None), *other.columns]
            rows(counted, ChangedRows(columns=columns, binary=other.binary, rows=scratch.sql(ordered).to_arrow_reader(10_000)))
    return counted


def _sides(feed: Feed, a: TableAsOf, b: TableAsOf, i: str) -> tuple[_Side, _Side]:
    """Both sides with the columns that both have, or those of the one TSO at which the table exists."""
    there = [_columns(feed, s, i) for s in (a, b) if i in s.names]
    ids = [c.id for c in there[-1] if all(c.id in {o.id for o in columns} for columns in there)]
    life = _life(b if i in b.names else a, i)
    key = life.key if set(life.key) <= set(ids) else ()
    last = {c.id: c for c in there[-1]}
    types = {k: [shown_type(feed, life, c) for columns in there for c in columns if c.id == k] for k in ids}
    binary = {k for k in ids if all(t.is_binary for t in types[k])}
    sides = []
    for at in (a, b):
        here = {c.id: c for c in _columns(feed, at, i)} if i in at.names else last
        columns = [Rendered(name=here[k].lake_name, type=shown_type(feed, life, here[k])) for k in ids]
        names = frozenset(here[k].lake_name for k in binary)
        sides.append(_Side(name=at.names.get(i), ts=at.ts, columns=columns, key=[here[k].lake_name for k in key], binary=names))
    return sides[0], sides[1]


def _only(feed: Feed, at: TableAsOf, other: TableAsOf, i: str) -> tuple[str, ...]:
    """Return the columns that the table has at one TSO and not at the other; empty if it does not exist at both."""
    if i not in at.names or i not in other.names:
        return ()
    here, there = (_columns(feed, s, i) for s in (at, other))
    return tuple(c.lake_name for c in here if c.id not in {o.id for o in there})


def _columns(feed: Feed, at: TableAsOf, i: str) -> tuple[Column, ...]:
    """Return the columns that the lake has of a table at a TSO."""
    return kept(feed, _life(at, i), _life(at, i).columns_at(at.ts))


def _life(at: TableAsOf, i: str) -> Incarnation:
    return at.catalog.incarnations[i]


@contextmanager
def _rows(lake: Lake, scratch: DuckDBPyConnection, side: _Side) -> Iterator[None]:
    """Register the rows of a side as `source`."""
    with table_asof(lake, str(side.name), side.ts) as found:
        scratch.register("source", local(found.rows, lake.feed.time_zone))
        yield
        scratch.unregister("source")


def _hash(lake: Lake, scratch: DuckDBPyConnection, label: str, side: _Side) -> None:
    """Create the table of a side: _k: the key's text (without a key the row's hash), _h: the row's hash, _n: number of equal rows."""
    if side.name is None:
        scratch.execute(f"CREATE TABLE {label} (_k VARCHAR, _h HUGEINT, _n BIGINT)")
        return
    with _rows(lake, scratch, side):
        key = _key(side)
        scratch.execute(
            f"CREATE TABLE {label} AS SELECT {key} AS _k, md5_number({_joined(flat(side.columns))}) AS _h, count(*) AS _n FROM source GROUP BY 1, 2"  # noqa: S608, E501
        )


def _count(scratch: DuckDBPyConnection, named: Diff, *, keyed: bool) -> Diff:
    """Count the differences and create `chosen`: the rows to pick from either side."""
    missing = "coalesce(b._n, 0) - coalesce(a._n, 0)"
    change = f"CASE WHEN a._k IS NULL OR {missing} > 0 THEN 'added' WHEN b._k IS NULL OR {missing} < 0 THEN 'removed' ELSE 'changed' END"
    differ = "a._h IS DISTINCT FROM b._h OR a._n IS DISTINCT FROM b._n"
    scratch.execute(
        f"CREATE TABLE chosen AS SELECT coalesce(a._k, b._k) AS _k, {change} AS _change, greatest(abs({missing}), 1) AS _n "  # noqa: S608
        f"FROM {BEFORE} a FULL JOIN {AFTER} b ON a._k = b._k WHERE {differ}"
    )
    found = dict(scratch.execute("SELECT _change, CAST(sum(_n) AS BIGINT) FROM chosen GROUP BY 1").fetchall())
    return replace(named, added=found.get("added", 0), removed=found.get("removed", 0), changed=found.get("changed", 0) if keyed else None)


def _pick(lake: Lake, scratch: DuckDBPyConnection, label: str, side: _Side, *, keyed: bool) -> None:
    """Insert the chosen rows of a side into `picked`: _k, _change, c0, c1, …"""
    if side.name is None:
        return
    whose = "removed" if label == BEFORE else "added"
    change = f"CASE c._change WHEN 'changed' THEN '{label}' ELSE c._change END"
    copies = "" if keyed else " QUALIFY row_number() OVER (PARTITION BY s._k) <= c._n"
    cells = [f"c{n}" for n in range(len(side.columns))]
    with _rows(lake, scratch, side):
        rows = f"SELECT {_key(side)}, {', '.join(_shown(side))} FROM source"  # noqa: S608
        scratch.execute(
            f"INSERT INTO picked SELECT s._k, {change}, {', '.join(cells)} FROM ({rows}) s(_k, {', '.join(cells)}) "  # noqa: S608
            f"JOIN chosen c ON s._k = c._k WHERE c._change IN ('{whose}', 'changed'){copies}"
        )


def _shown(side: _Side) -> list[str]:
    """SQL for the columns as asof prints them. A column that is binary at one TSO only is printed as 0x… there."""
    pairs = zip(side.columns, expressions(side.columns), flat(side.columns), strict=True)
    return [plain if (c.type is not None and c.type.is_binary and c.name not in side.binary) else text for c, text, plain in pairs]


def _key(side: _Side) -> str:
    columns = [c for name in side.key for c in side.columns if c.name == name]
    return _joined(flat(columns or side.columns)) if side.key else f"CAST(md5_number({_joined(flat(side.columns))}) AS VARCHAR)"


def _joined(texts: Sequence[str]) -> str:
    """SQL that joins texts into one and keeps NULL distinct from text."""
    cells = (f"coalesce(length({t}) || ':' || ({t}), '~')" for t in (f"CAST({t} AS VARCHAR)" for t in texts))
    return f"concat_ws('|', {', '.join(cells)})"
