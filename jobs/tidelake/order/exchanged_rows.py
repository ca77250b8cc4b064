"""EXCHANGE PARTITION in the order stage: the exchanged rows become changes of both tables, with the statement's commit ts.

At the statement's place in commit order both tables are folded as `asof` does, from the last cut and the changelogs staged so far. Rows
that leave a table are written as DELETE, rows that come as INSERT, so every reader of changelogs sees the move. These changes come from no
message: their `_origin` is partition_exchange, and they have no coordinates. They come after all row events of their commit ts.

A statement can arrive in the window after the cut of its own commit ts (docs/architecture.md 8.1). That cut does not change: the rows are
then exchanged one TSO tick after it, before all row events of that ts.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import PARTITION_EXCHANGE
from tidelake.errors import OrderError
from tidelake.history.incarnations import Column, Exchange, Incarnation
from tidelake.history.projection import lived
from tidelake.io.texts import plural
from tidelake.lake.branches import begin_branch, sql_name
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Advance, TableCounts, TableCut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import last_snapshot, places
from tidelake.lake.folding.fold import Fold
from tidelake.lake.folding.folded_frame import folded_reader
from tidelake.lake.folding.table_fold import TableAt
from tidelake.lake.tables import PARTIAL, bucket_column, kept, key_columns, lake_column, mask_of, physical, wider
from tidelake.order.change_sequence import exchanged_sql
from tidelake.order.changelogs import advanced, open_changelog
from tidelake.order.planning import PlannedWindow
from tidelake.order.table_rows import TableRows
from tidelake.spark.observed_counts import Observed
from tidelake.spark.part_reader import read_parts
from tidelake.spark.sql_text import quote
from tidelake.tso import show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

_REMEDY = "nothing is lost: the window waits, and docs/ddl.md lists the options (exchange partition)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One of the two tables.

    Attributes:
        table: The table.
        changelog: Its changelog, with all columns of the window.
        at: Snapshot with the changes that count; None if no row has changed.
        begin: Where the branch begins, if this module created it.
        columns: Its columns.
    """

    table: TableRows
    changelog: LakeTable
    at: int | None
    begin: int | None
    columns: tuple[Column, ...]


def exchange_rows(
    plan: PlannedWindow, changelogs: Mapping[str, Advance], counts: Mapping[str, TableCounts]
) -> tuple[dict[str, Advance], dict[str, TableCounts]]:
    """Add the window's exchanges to what was staged of its row events. Return both mappings by incarnation.

    Args:
        plan: The window.
        changelogs: Changelogs as staged.
        counts: Counts as staged.

    Raises:
        OrderError: UNSUPPORTED_DDL: rows do not fit the partition that they move to, or the tables have different masks.
    """
    staged, counted = dict(changelogs), dict(counts)
    for e, p in _statements(plan):
        t = plan.tables.incarnations[e.other]
        _check_masks(plan.lake.feed, e, p, t)
        of_p, of_t = _side(plan, p, t, e, staged), _side(plan, t, p, e, staged)
        left, came = _cross(plan, plan.lake.spark, e, of_p, of_t)
        for side, gone, new in ((of_p, left, came), (of_t, came, left)):
            i = side.table.incarnation
            advance = _advance(plan, side, staged.get(i.id))
            staged = {k: a for k, a in staged.items() if k != i.id} | ({i.id: advance} if advance else {})
            if gone or new:
                c = counted.get(i.id, TableCounts())
                counted[i.id] = c.model_copy(
                    update={
                        "exchanged_out": c.exchanged_out + gone,
                        "exchanged_in": c.exchanged_in + new,
                        "changes": c.changes + gone + new,
                    }
                )
        log.info(f"{p.name}: partition {e.partition}: {plural(left, 'row')} moved to {t.name}, {came} moved in")
    return staged, counted


def _statements(plan: PlannedWindow) -> list[tuple[Exchange, Incarnation]]:
    """The window's exchanges in order, each with the partitioned table."""
    found = [(e, i) for i in plan.tables.incarnations.values() for e in i.exchanges if e.part is not None]
    return sorted(found, key=lambda one: (one[0].ts, one[0].number))


def _moment(plan: PlannedWindow, e: Exchange) -> int:
    """The commit ts of the exchanged rows."""
    return max(e.ts, plan.window.applied_ts + 1)


def _known(plan: PlannedWindow, i: Incarnation) -> TableCut | None:
    """The table's changelog at the last cut."""
    return plan.cut.changelogs.get(i.id) if plan.cut else None


def _since(plan: PlannedWindow, i: Incarnation) -> tuple[int, TableCut | None]:
    """TSO and snapshot that the table continues from: of an earlier cut if it was dropped and recovered."""
    cut, base, lake = plan.cut, plan.base, plan.lake
    if cut is None or i.id in cut.snapshots or not i.recovered:
        return plan.window.applied_ts, cut.snapshots.get(i.id) if cut else None
    found = cut if base.parent_seq is None else read_cut(lake.store, cut.feed, base.parent_seq)
    ts, snapshot = last_snapshot(lake.catalog, lake.store, found, i)
    here = places(base.newest) if base.newest else {}
    return ts, snapshot.model_copy(update={"identifier": here.get(snapshot.uuid, snapshot.identifier)}) if snapshot else None


def _check_masks(feed: Feed, e: Exchange, p: Incarnation, t: Incarnation) -> None:
    """Refuse tables with different masks or types: values are exchanged as the lake has them."""
    others = {c.name.lower(): c for c in t.columns_at(e.ts)}
    for c in p.columns_at(e.ts):
        mine, other = ((mask_of(feed, i, x), lake_column(feed, i, x).type) for i, x in ((p, c), (t, others[c.name.lower()])))
        if mine != other:
            raise OrderError(
                f"column {c.name!r} is {_said(*mine)} in {p.name}, {_said(*other)} in {t.name}: rows that change places at {show(e.ts)} "
                "cannot be converted",
                code="UNSUPPORTED_DDL",
                remedy=_REMEDY,
            )


def _said(mask: str | None, kind: str) -> str:
    return f"masked ({mask})" if mask else kind


def _side(plan: PlannedWindow, i: Incarnation, other: Incarnation, e: Exchange, staged: Mapping[str, Advance]) -> _Side:
    columns, advance = kept(plan.lake.feed, i, i.columns_at(e.ts)), staged.get(i.id)
    table = TableRows(
        feed=plan.lake.feed,
        incarnation=i,
        names=(),
        row_schemas=(),
        bucket=bucket_column(key_columns(plan.lake.feed, i, lived(i))),
        buckets=advance.buckets if advance else _buckets(plan, i, other, staged),
        sequence=plan.seen.sequence,
    )
    if advance is not None:
        return _Side(table=table, changelog=plan.lake.catalog.load(advance.identifier), at=advance.to, begin=None, columns=columns)
    previous = _known(plan, i)
    opened, begin = open_changelog(plan.lake.catalog, table, previous, plan.base.kept)
    begin_branch(plan.lake.catalog, opened, plan.branch, begin)
    changelog = plan.lake.catalog.load(opened.identifier)
    return _Side(table=table, changelog=changelog, at=previous.snapshot_id if previous else None, begin=begin, columns=columns)


def _buckets(plan: PlannedWindow, i: Incarnation, other: Incarnation, staged: Mapping[str, Advance]) -> int:
    """Number of buckets of a table without a changelog: that of the table that its rows come from."""

    def of(table: Incarnation) -> int | None:
        tables = (plan.base.cut.changelogs, plan.base.cut.snapshots) if plan.base.cut else ()
        return next((known[table.id].buckets for known in tables if table.id in known), None)

    own = plan.lake.feed.tables.get(i.name)
    theirs = staged[other.id].buckets if other.id in staged else of(other)
    return of(i) or (own and own.buckets) or theirs or 1


def _advance(plan: PlannedWindow, side: _Side, before: Advance | None) -> Advance | None:
    i = side.table.incarnation
    if before is not None:
        return before.model_copy(update={"to": plan.lake.catalog.load(before.identifier).branch(plan.branch)})
    assert side.begin is not None
    staged = plan.lake.catalog.load(side.changelog.identifier)
    return advanced(plan.lake.catalog, side.table, staged, plan.branch, side.begin, _known(plan, i))[0]


def _cross(plan: PlannedWindow, spark: SparkSession, e: Exchange, p: _Side, t: _Side) -> tuple[int, int]:
    """Append the exchanged rows to both changelogs. Return (rows that left the partition, rows that came)."""
    from pyspark.sql import functions as F

    for side in (p, t):
        _check_types(plan, spark, e, side)
    leaving, coming = _standing(plan, spark, p, e), _standing(plan, spark, t, replace(e, part=None))
    inside = f"_change_type = 'INSERT' AND NOT {_fits(plan, p, e)}"
    conditions = {"gone": "_change_type = 'DELETE'", "came": "_change_type = 'INSERT'", "mismatches": inside}
    sums = (F.coalesce(F.sum(F.expr(f"CAST({sql} AS BIGINT)")), F.lit(0)).alias(name) for name, sql in conditions.items())
    moved = _changes(leaving, coming.selectExpr(*_called(t, p))).persist()
    try:
        found = Observed(moved, *sums)
        _append(plan, found.rows, p, e)
        n = found.values()
        if n["mismatches"]:
            raise _misplaced(e, p, t, n["mismatches"])
        if n["gone"] or n["came"]:
            _append(plan, _mirrored(moved, p, t), t, e)
    finally:
        moved.unpersist()
    return int(n["gone"]), int(n["came"])


def _misplaced(e: Exchange, p: _Side, t: _Side, rows: int) -> OrderError:
    return OrderError(
        f"{rows} rows of {t.table.incarnation.name} are none of partition {e.partition!r} of {p.table.incarnation.name}, where "
        f"EXCHANGE PARTITION put them at TSO {show(e.ts)}: their columns do not determine when they leave with it",
        code="UNSUPPORTED_DDL",
        remedy=_REMEDY,
    )


def _check_types(plan: PlannedWindow, spark: SparkSession, e: Exchange, side: _Side) -> None:
    """Refuse a type change between the statement and the window's end, because changes are staged in the types at its end."""
    i = side.table.incarnation
    last = {c.id: c for c in lived(i)}
    types = {c.name: tuple(lake_column(plan.lake.feed, i, x).type for x in (c, last[c.id])) for c in side.columns}
    changed = {name: both for name, both in types.items() if both[0] != both[1] and not wider(*both)}
    if changed and side.begin is None and not _older(plan, spark, side, e).where(f"_commit_ts > {plan.window.applied_ts}").isEmpty():
        name, (then, now) = next(iter(changed.items()))
        raise OrderError(
            f"column {name!r} of {i.name} is {then} where its rows change places at TSO {show(e.ts)}, {now} at the window's end: "
            "the earlier values of rows of the same window are unknown",
            code="UNSUPPORTED_DDL",
            remedy=_REMEDY,
        )


def _older(plan: PlannedWindow, spark: SparkSession, side: _Side, e: Exchange) -> DataFrame:
    """The changes before the statement."""
    frame = spark.read.option("versionAsOf", side.at).table(sql_name(side.changelog.identifier))
    return frame.where(f"_commit_ts <= {e.ts} OR (_commit_ts = {_moment(plan, e)} AND _origin = '{PARTITION_EXCHANGE}')")


def _fits(plan: PlannedWindow, p: _Side, e: Exchange) -> str:
    """SQL condition for rows of the partition, never NULL."""
    assert e.part is not None
    return f"coalesce({_fold(plan, p, e, 0).left(e.part)}, false)"


def _standing(plan: PlannedWindow, spark: SparkSession, side: _Side, e: Exchange) -> DataFrame:
    """The rows of a table, or of its partition e.part, at the statement, with the columns of that time.

    If the statement came late, only the moves of earlier ones of its moment count: they precede all row events.
    """
    since, snapshot = _since(plan, side.table.incarnation)
    base = TableAt(plan.lake.catalog.load(snapshot.identifier), snapshot.snapshot_id) if snapshot is not None else None
    changes = TableAt(side.changelog, side.at) if side.at is not None else None
    reader, _ = folded_reader(_fold(plan, side, e, since), base, changes, only_exchanged=_moment(plan, e) > e.ts)
    rows = read_parts(spark, reader)
    return rows.where(_fits(plan, side, e)) if e.part is not None else rows


def _fold(plan: PlannedWindow, side: _Side, e: Exchange, since: int) -> Fold:
    return Fold(
        feed=plan.lake.feed,
        incarnation=side.table.incarnation,
        columns=side.columns,
        applied_ts=since,
        until_ts=_moment(plan, e),
    )


def _called(one: _Side, other: _Side) -> list[str]:
    """SQL for the columns of one table with the names and in the order of the other's."""
    names = {c.name.lower(): c.lake_name for c in one.columns}
    return [f"{quote(names[c.name.lower()])} AS {quote(c.lake_name)}" for c in other.columns]


def _changes(gone: DataFrame, came: DataFrame) -> DataFrame:
    """Changes of one table. If a key both leaves and comes, `_change_seq` puts its delete first."""
    return gone.selectExpr("*", "'DELETE' AS _change_type").unionByName(came.selectExpr("*", "'INSERT' AS _change_type"))


def _mirrored(changes: DataFrame, one: _Side, other: _Side) -> DataFrame:
    """Rows of one table as the opposite changes of the other table."""
    return changes.selectExpr(*_called(one, other), "IF(_change_type = 'DELETE', 'INSERT', 'DELETE') AS _change_type")


def _append(plan: PlannedWindow, rows: DataFrame, side: _Side, e: Exchange) -> None:
    """Append changes to a table's changelog, in the types that it has at the window's end."""
    i, have, ts = side.table.incarnation, side.changelog.columns(), _moment(plan, e)
    types = {c.id: lake_column(plan.lake.feed, i, c).type for c in side.columns}
    holders = {c.id: physical(have, c.id)[0] for c in side.columns}
    values = [f"{_converted(quote(c.lake_name), types[c.id], holders[c.id].type)} AS {quote(holders[c.id].name)}" for c in side.columns]
    written = rows.selectExpr(
        *values,
        "_change_type",
        f"{exchanged_sql(ts, '_change_type', last=ts == e.ts, statement=e.number)} AS _change_seq",
        f"{ts}L AS _commit_ts",
        f"timestamp_millis({ts >> 18}) AS _commit_at",
        f"'{PARTITION_EXCHANGE}' AS _origin",
        f"false AS {quote(PARTIAL.name)}",
    )
    writer = _all_columns(written, side.changelog).writeTo(sql_name(side.changelog.identifier, plan.branch))
    writer.option("snapshot-property.tidelake.run", plan.branch).option("distribution-mode", "hash").append()


def _converted(value: str, have: str, to: str) -> str:
    """SQL of a value in another lake type, as lake.columns.conversions converts it."""
    if have == to:
        return value
    if to in ("int", "bigint") and have == "string":
        value, have = f"try_cast({value} AS decimal(38,10))", "decimal"
    return f"try_cast({f'round({value})' if to in ('int', 'bigint') and not have.endswith('int') else value} AS {to})"


def _all_columns(frame: DataFrame, target: LakeTable) -> DataFrame:
    """The frame with the table's columns in order; retired ones are NULL."""
    have = set(frame.columns)
    spelled = (quote(c.name) if c.name in have else f"CAST(NULL AS {c.type}) AS {quote(c.name)}" for c in target.columns())
    return frame.selectExpr(*spelled)
