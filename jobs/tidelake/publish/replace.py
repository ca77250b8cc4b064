"""Replaces published cuts by a redo: moves the tables, and counts the differences (docs/architecture.md 8.6).

A redo's snapshots and changelogs are staged on branches that start at the earlier cut. Publishing moves main of every table from the
newest cut to them in one commit each, so readers never see the earlier cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelake.history.incarnations import Incarnation
from tidelake.lake.branches import sql_name
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Advance, Cut, Intent, Return, TableCut
from tidelake.lake.cuts import places
from tidelake.lake.names import retired
from tidelake.publish.steps import plan_moves
from tidelake.spark.sql_text import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def replace(catalog: LakeCatalog, intent: Intent, newest: Cut) -> None:
    """Change a staged intent so that it replaces the newest cut.

    Main moves from where it is now; tables that the new cut lacks leave their names.
    """
    cut, now = intent.cut, places(newest)
    intent.advances = [_from_main(catalog, a) for a in intent.advances]
    known = {t.uuid for t in (*cut.snapshots.values(), *cut.changelogs.values())}
    gone = {u: i for u, i in now.items() if u not in known and u not in newest.past and u not in {m.uuid for m in intent.moves}}
    intent.moves += plan_moves(gone, {u: retired(i, u) for u, i in gone.items()})
    cut.past = {u: i for u, i in (now | cut.past | {u: retired(i, u) for u, i in gone.items()}).items() if u not in known}
    staged = {a.uuid for a in intent.advances}
    for t in cut.changelogs.values():
        table = catalog.load(now.get(t.uuid, t.identifier)) if t.uuid not in staged else None
        if table is not None and table.main != t.snapshot_id:
            intent.returns.append(Return(identifier=table.identifier, uuid=t.uuid, base=table.main, to=t.snapshot_id))


def _from_main(catalog: LakeCatalog, a: Advance) -> Advance:
    """The advance from where main is now. Where only columns change, nothing was staged: the branch is made for the earlier snapshot."""
    table = catalog.load(a.identifier)
    if a.branch not in table.branches and table.main != a.to:
        catalog.set_branch(table, a.branch, a.to)
    return a.model_copy(update={"base": table.main})


def redone(spark: SparkSession, catalog: LakeCatalog, newest: Cut, intent: Intent) -> dict[str, Any]:
    """Return for the certificate which cut is replaced, and how many rows of which tables differ.

    Tables without differences are left out.
    """
    cut, now = intent.cut, places(newest)
    was, will = {n.name: n for n in newest.catalog.alive()}, {n.name: n for n in cut.catalog.alive()}
    staged = {a.uuid: a.identifier for a in intent.advances}
    tables: dict[str, dict[str, int]] = {}
    for name in sorted(was.keys() | will.keys()):
        old = _Version.of(catalog, was.get(name), newest.snapshots, now)
        new = _Version.of(catalog, will.get(name), cut.snapshots, now | staged)
        counts = _compared(spark, old, new)
        if counts:
            tables[name] = counts
    return {"replaces": newest.seq, "parent_seq": cut.parent_seq, "tables": tables}


class _Version:
    """A table at a cut, staged or published, without columns that are masked by `drop`."""

    def __init__(self, catalog: LakeCatalog, incarnation: Incarnation, at: TableCut, identifier: str) -> None:
        self.at, self._identifier, self._key = at, identifier, incarnation.key
        self._physical = {c.source_id: c.name for c in catalog.load(identifier).columns(at.snapshot_id)}
        self._names = {c.id: c.lake_name for c in incarnation.columns if c.id in self._physical}

    @classmethod
    def of(cls, catalog: LakeCatalog, i: Incarnation | None, tables: dict[str, TableCut], now: dict[str, str]) -> _Version | None:
        """Return the table at the cut; None if it does not exist there."""
        at = tables.get(i.id) if i else None
        return cls(catalog, i, at, now.get(at.uuid, at.identifier)) if i and at else None

    def rows(self, spark: SparkSession, names: list[str]) -> DataFrame:
        """Return these columns of its rows."""
        frame = spark.read.option("versionAsOf", self.at.snapshot_id).table(sql_name(self._identifier))
        ids = {name: k for k, name in self._names.items()}
        return frame.selectExpr(*(f"{quote(self._physical[ids[n]])} AS {quote(n)}" for n in names))

    @property
    def names(self) -> list[str]:
        return list(self._names.values())

    @property
    def key(self) -> list[str]:
        return [self._names[k] for k in self._key]


def _compared(spark: SparkSession, old: _Version | None, new: _Version | None) -> dict[str, int]:
    """Number of rows added, removed and changed, without zeros. Columns that only one version has are not compared."""
    if old is None or new is None:
        counts = {"added": new.at.rows if new else 0, "removed": old.at.rows if old else 0}
        return {"table": 1} | {k: n for k, n in counts.items() if n}
    if (old.at.uuid, old.at.snapshot_id) == (new.at.uuid, new.at.snapshot_id):
        return {}
    names = [n for n in new.names if n in old.names]
    a, b = _alike(old.rows(spark, names), new.rows(spark, names))
    counts = _by_key(a, b, new.key) if new.key and new.key == old.key else _as_bags(a, b)
    return {k: n for k, n in counts.items() if n}


def _alike(a: DataFrame, b: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Both frames with the same column types: text where they differ."""
    types = dict(b.dtypes)
    spelled = [quote(n) if types[n] == t else f"CAST({quote(n)} AS STRING) AS {quote(n)}" for n, t in a.dtypes]
    return a.selectExpr(*spelled), b.selectExpr(*spelled)


def _by_key(a: DataFrame, b: DataFrame, key: list[str]) -> dict[str, int]:
    row = f"struct({', '.join(quote(n) for n in a.columns)})"
    keys = [quote(k) for k in key]
    both = a.selectExpr(*keys, f"{row} AS _old").join(b.selectExpr(*keys, f"{row} AS _new"), key, "full_outer")
    changed = "_old IS NOT NULL AND _new IS NOT NULL AND NOT (_old <=> _new)"
    return _only_row(
        both.selectExpr("count_if(_old IS NULL) AS added", "count_if(_new IS NULL) AS removed", f"count_if({changed}) AS changed")
    )


def _as_bags(a: DataFrame, b: DataFrame) -> dict[str, int]:
    signed = a.selectExpr("*", "-1L AS _n").unionByName(b.selectExpr("*", "1L AS _n"))
    each = signed.groupBy(*(quote(n) for n in a.columns)).sum("_n").toDF(*a.columns, "_n")
    return _only_row(each.selectExpr("coalesce(sum(greatest(_n, 0)), 0) AS added", "-coalesce(sum(least(_n, 0)), 0) AS removed"))


def _only_row(aggregates: DataFrame) -> dict[str, int]:
    (row,) = aggregates.collect()
    return dict(row.asDict())
