"""Rows that a statement moves in the order stage: from one table to another (exchanged_rows), or into the table's next life (rekeyed_rows).

At the statement's place in commit order a table is folded as `asof` does, from the last cut and the changelogs staged so far. Rows that
leave are written as DELETE, rows that come as INSERT, with the statement's commit ts, so every reader of changelogs sees the move. These
changes come from no message: their `_origin` names the kind of statement, and they have no coordinates. They come after all row events of
their commit ts.

A statement can arrive in the window after the cut of its own commit ts (docs/architecture.md 8.1). That cut does not change: the rows then
move one TSO tick after it, before all row events of that ts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import EVENT
from tidelake.history.incarnations import Catalog, Column, Exchange, Incarnation, Rekey
from tidelake.history.projection import lived
from tidelake.lake.branches import begin_branch, sql_name
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Advance, TableCounts, TableCut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import last_snapshot, places
from tidelake.lake.folding.fold import Fold
from tidelake.lake.folding.folded_frame import folded_reader
from tidelake.lake.folding.table_fold import TableAt
from tidelake.lake.tables import PARTIAL, bucket_column, holders, kept, key_columns, lake_column
from tidelake.order.change_sequence import moved_sql
from tidelake.order.changelogs import advanced, open_changelog
from tidelake.order.planning import PlannedWindow
from tidelake.order.table_rows import TableRows
from tidelake.spark.part_reader import read_parts
from tidelake.spark.sql_text import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Move = Exchange | Rekey
OF_NO_EVENT = f"_origin != '{EVENT}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTables:
    """What was written, by incarnation: how each changelog advances, and its counts."""

    changelogs: dict[str, Advance]
    counts: dict[str, TableCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A table that rows come to or leave.

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

    @property
    def changes(self) -> TableAt | None:
        """The changes that count."""
        return TableAt(self.changelog, self.at) if self.at is not None else None


def moves(tables: Catalog) -> list[tuple[Move, Incarnation]]:
    """Return the window's statements that move rows, in order: each with the partitioned table, or the life that begins."""
    return sorted(_moves(tables), key=lambda one: (one[0].ts, one[0].number))


def _moves(tables: Catalog) -> Iterator[tuple[Move, Incarnation]]:
    for i in tables.incarnations.values():
        yield from ((e, i) for e in i.exchanges if e.part is not None)
        if i.rekey is not None:
            yield i.rekey, i


def types_of(feed: Feed, i: Incarnation, columns: Sequence[Column]) -> dict[int, str]:
    """Return the lake types of a table's columns by their ids."""
    return {c.id: lake_column(feed, i, c).type for c in columns}


def moment(plan: PlannedWindow, m: Move) -> int:
    """Return the commit ts of the moved rows."""
    return max(m.ts, plan.window.applied_ts + 1)


def known(plan: PlannedWindow, i: Incarnation) -> TableCut | None:
    """Return the table's changelog at the last cut."""
    return plan.cut.changelogs.get(i.id) if plan.cut else None


def since(plan: PlannedWindow, i: Incarnation) -> tuple[int, TableCut | None]:
    """Return TSO and snapshot that the table continues from: of an earlier cut if it was dropped and recovered."""
    cut, base, lake = plan.cut, plan.base, plan.lake
    if cut is None or i.id in cut.snapshots or not i.recovered:
        return plan.window.applied_ts, cut.snapshots.get(i.id) if cut else None
    found = cut if base.parent_seq is None else read_cut(lake.store, cut.feed, base.parent_seq)
    ts, snapshot = last_snapshot(lake.catalog, lake.store, found, i)
    here = places(base.newest) if base.newest else {}
    return ts, snapshot.model_copy(update={"identifier": here.get(snapshot.uuid, snapshot.identifier)}) if snapshot else None


def side(plan: PlannedWindow, i: Incarnation, m: Move, staged: StagedTables, buckets: int) -> Side:
    """Return a table with a changelog to write. buckets: number of buckets if it has none yet."""
    columns, advance = kept(plan.lake.feed, i, i.columns_at(m.ts)), staged.changelogs.get(i.id)
    table = TableRows(
        feed=plan.lake.feed,
        incarnation=i,
        names=(),
        row_schemas=(),
        bucket=bucket_column(key_columns(plan.lake.feed, i, lived(i))),
        buckets=advance.buckets if advance else buckets,
        sequence=plan.seen.sequence,
    )
    if advance is not None:
        return Side(table=table, changelog=plan.lake.catalog.load(advance.identifier), at=advance.to, begin=None, columns=columns)
    previous = known(plan, i)
    opened, begin = open_changelog(plan.lake.catalog, table, previous, plan.base.kept)
    begin_branch(plan.lake.catalog, opened, plan.branch, begin)
    changelog = plan.lake.catalog.load(opened.identifier)
    return Side(table=table, changelog=changelog, at=previous.snapshot_id if previous else None, begin=begin, columns=columns)


def with_moved(plan: PlannedWindow, to: Side, staged: StagedTables, *, left: int = 0, came: int = 0) -> StagedTables:
    """Return what is staged with the rows that were appended to a side: numbers of those that left and came."""
    i = to.table.incarnation
    advance = _advance(plan, to, staged.changelogs.get(i.id))
    changelogs = {k: a for k, a in staged.changelogs.items() if k != i.id} | ({i.id: advance} if advance else {})
    if not (left or came):
        return StagedTables(changelogs=changelogs, counts=staged.counts)
    c = staged.counts.get(i.id, TableCounts())
    grown = {"exchanged_out": c.exchanged_out + left, "exchanged_in": c.exchanged_in + came, "changes": c.changes + left + came}
    return StagedTables(changelogs=changelogs, counts={**staged.counts, i.id: c.model_copy(update=grown)})


def _advance(plan: PlannedWindow, to: Side, before: Advance | None) -> Advance | None:
    i = to.table.incarnation
    if before is not None:
        return before.model_copy(update={"to": plan.lake.catalog.load(before.identifier).branch(plan.branch)})
    assert to.begin is not None
    staged = plan.lake.catalog.load(to.changelog.identifier)
    return advanced(plan.lake.catalog, to.table, staged, plan.branch, to.begin, known(plan, i))[0]


def standing(plan: PlannedWindow, i: Incarnation, changes: TableAt | None, m: Move) -> DataFrame:
    """Return the rows of a table at the statement, with the columns of that time.

    If the statement came late, only the moves of earlier ones of its moment count: they precede all row events.
    """
    ts, snapshot = since(plan, i)
    base = TableAt(plan.lake.catalog.load(snapshot.identifier), snapshot.snapshot_id) if snapshot is not None else None
    reader, _ = folded_reader(fold_of(plan, i, m, ts), base, changes, only_moved=moment(plan, m) > m.ts)
    return read_parts(plan.lake.spark, reader)


def fold_of(plan: PlannedWindow, i: Incarnation, m: Move, applied_ts: int) -> Fold:
    """Return the fold of a table from a TSO up to the statement."""
    return Fold(
        feed=plan.lake.feed,
        incarnation=i,
        columns=kept(plan.lake.feed, i, i.columns_at(m.ts)),
        applied_ts=applied_ts,
        until_ts=moment(plan, m),
    )


def append(plan: PlannedWindow, rows: DataFrame, to: Side, m: Move, origin: str, types: Mapping[int, str]) -> None:
    """Append changes to a table's changelog, in the types that it has at the window's end.

    Args:
        plan: The window.
        rows: Columns of the side, and `_change_type`.
        to: The table.
        m: The statement.
        origin: The changes' `_origin`.
        types: Lake types of the rows' columns, by the column's id. Other columns are NULL.
    """
    have, ts = holders(to.changelog.columns()), moment(plan, m)
    sources = [(c, have[c.id][0]) for c in to.columns if c.id in types]
    values = [f"{_converted(quote(c.lake_name), types[c.id], holder.type)} AS {quote(holder.name)}" for c, holder in sources]
    written = rows.selectExpr(
        *values,
        "_change_type",
        f"{moved_sql(ts, '_change_type', last=ts == m.ts, statement=m.number)} AS _change_seq",
        f"{ts}L AS _commit_ts",
        f"timestamp_millis({ts >> 18}) AS _commit_at",
        f"'{origin}' AS _origin",
        f"false AS {quote(PARTIAL.name)}",
    )
    writer = _all_columns(written, to.changelog).writeTo(sql_name(to.changelog.identifier, plan.branch))
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
