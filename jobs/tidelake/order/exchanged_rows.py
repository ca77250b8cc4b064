"""EXCHANGE PARTITION in the order stage: the exchanged rows become changes of both tables (moved_rows)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import PARTITION_EXCHANGE
from tidelake.errors import OrderError
from tidelake.history.incarnations import Exchange, Incarnation
from tidelake.history.projection import lived
from tidelake.io.texts import plural
from tidelake.lake.branches import sql_name
from tidelake.lake.cut import Advance
from tidelake.lake.tables import lake_column, mask_of, wider
from tidelake.order.moved_rows import OF_NO_EVENT, Side, StagedTables, append, fold_of, moment, side, standing, types_of, with_moved
from tidelake.order.planning import PlannedWindow
from tidelake.spark.observed_counts import Observed
from tidelake.spark.sql_text import quote
from tidelake.tso import show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

_REMEDY = "nothing is lost: the window waits, and docs/ddl.md lists the options (exchange partition)"


def exchange_rows(plan: PlannedWindow, e: Exchange, p: Incarnation, staged: StagedTables) -> StagedTables:
    """Return what is staged with the rows of an exchange.

    Args:
        plan: The window.
        e: The exchange, of the partitioned table.
        p: That table.
        staged: What is staged of row events and of earlier statements.

    Raises:
        OrderError: UNSUPPORTED_DDL: rows do not fit the partition that they move to, or the tables have different masks.
    """
    t = plan.tables.incarnations[e.other]
    _check_masks(plan.lake.feed, e, p, t)
    of_p, of_t = (side(plan, i, e, staged, _buckets(plan, i, other, staged.changelogs)) for i, other in ((p, t), (t, p)))
    left, came = _cross(plan, e, of_p, of_t)
    log.info(f"{p.name}: partition {e.partition}: {plural(left, 'row')} moved to {t.name}, {came} moved in")
    return with_moved(plan, of_t, with_moved(plan, of_p, staged, left=left, came=came), left=came, came=left)


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


def _buckets(plan: PlannedWindow, i: Incarnation, other: Incarnation, staged: Mapping[str, Advance]) -> int:
    """Number of buckets of a table without a changelog: that of the table that its rows come from."""

    def of(table: Incarnation) -> int | None:
        tables = (plan.base.cut.changelogs, plan.base.cut.snapshots) if plan.base.cut else ()
        return next((known[table.id].buckets for known in tables if table.id in known), None)

    own = plan.lake.feed.tables.get(i.name)
    theirs = staged[other.id].buckets if other.id in staged else of(other)
    return of(i) or (own and own.buckets) or theirs or 1


def _cross(plan: PlannedWindow, e: Exchange, p: Side, t: Side) -> tuple[int, int]:
    """Append the exchanged rows to both changelogs. Return (rows that left the partition, rows that came)."""
    from pyspark.sql import functions as F

    for one in (p, t):
        _check_types(plan, e, one)
    fits = _fits(plan, p.table.incarnation, e)
    leaving, coming = standing(plan, p.table.incarnation, p.changes, e).where(fits), standing(plan, t.table.incarnation, t.changes, e)
    inside = f"_change_type = 'INSERT' AND NOT {fits}"
    conditions = {"gone": "_change_type = 'DELETE'", "came": "_change_type = 'INSERT'", "mismatches": inside}
    sums = (F.coalesce(F.sum(F.expr(f"CAST({sql} AS BIGINT)")), F.lit(0)).alias(name) for name, sql in conditions.items())
    of_p, of_t = (types_of(plan.lake.feed, one.table.incarnation, one.columns) for one in (p, t))
    moved = _changes(leaving, coming.selectExpr(*_called(t, p))).persist()
    try:
        found = Observed(moved, *sums)
        append(plan, found.rows, p, e, PARTITION_EXCHANGE, of_p)
        n = found.values()
        if n["mismatches"]:
            raise _misplaced(e, p, t, n["mismatches"])
        if n["gone"] or n["came"]:
            append(plan, _mirrored(moved, p, t), t, e, PARTITION_EXCHANGE, of_t)
    finally:
        moved.unpersist()
    return int(n["gone"]), int(n["came"])


def _misplaced(e: Exchange, p: Side, t: Side, rows: int) -> OrderError:
    return OrderError(
        f"{rows} rows of {t.table.incarnation.name} are none of partition {e.partition!r} of {p.table.incarnation.name}, where "
        f"EXCHANGE PARTITION put them at TSO {show(e.ts)}: their columns do not determine when they leave with it",
        code="UNSUPPORTED_DDL",
        remedy=_REMEDY,
    )


def _check_types(plan: PlannedWindow, e: Exchange, one: Side) -> None:
    """Refuse a type change between the statement and the window's end, because changes are staged in the types at its end."""
    i = one.table.incarnation
    last = {c.id: c for c in lived(i)}
    types = {c.name: tuple(lake_column(plan.lake.feed, i, x).type for x in (c, last[c.id])) for c in one.columns}
    changed = {name: both for name, both in types.items() if both[0] != both[1] and not wider(*both)}
    if changed and one.begin is None and not _older(plan, one, e).where(f"_commit_ts > {plan.window.applied_ts}").isEmpty():
        name, (then, now) = next(iter(changed.items()))
        raise OrderError(
            f"column {name!r} of {i.name} is {then} where its rows change places at TSO {show(e.ts)}, {now} at the window's end: "
            "the earlier values of rows of the same window are unknown",
            code="UNSUPPORTED_DDL",
            remedy=_REMEDY,
        )


def _older(plan: PlannedWindow, one: Side, e: Exchange) -> DataFrame:
    """The changes before the statement."""
    frame = plan.lake.spark.read.option("versionAsOf", one.at).table(sql_name(one.changelog.identifier))
    return frame.where(f"_commit_ts <= {e.ts} OR (_commit_ts = {moment(plan, e)} AND {OF_NO_EVENT})")


def _fits(plan: PlannedWindow, p: Incarnation, e: Exchange) -> str:
    """SQL condition for rows of the partition, never NULL."""
    assert e.part is not None
    return f"coalesce({fold_of(plan, p, e, 0).left(e.part)}, false)"


def _called(one: Side, other: Side) -> list[str]:
    """SQL for the columns of one table with the names and in the order of the other's."""
    names = {c.name.lower(): c.lake_name for c in one.columns}
    return [f"{quote(names[c.name.lower()])} AS {quote(c.lake_name)}" for c in other.columns]


def _changes(gone: DataFrame, came: DataFrame) -> DataFrame:
    """Changes of one table. If a key both leaves and comes, `_change_seq` puts its delete first."""
    return gone.selectExpr("*", "'DELETE' AS _change_type").unionByName(came.selectExpr("*", "'INSERT' AS _change_type"))


def _mirrored(changes: DataFrame, one: Side, other: Side) -> DataFrame:
    """Rows of one table as the opposite changes of the other table."""
    return changes.selectExpr(*_called(one, other), "IF(_change_type = 'DELETE', 'INSERT', 'DELETE') AS _change_type")
