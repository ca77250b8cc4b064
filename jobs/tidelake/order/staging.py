"""Stages a window: its changes, typed, deduplicated and ordered, on a branch of every table's changelog."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from tidelake.config.lake_paths import placed_deletes
from tidelake.errors import OrderError
from tidelake.history.incarnations import Incarnation, Rekey
from tidelake.history.projection import lived
from tidelake.io.texts import plural
from tidelake.lake.branches import sql_name
from tidelake.lake.cut import Advance, TableCounts
from tidelake.lake.tables import bucket_column, holders, key_columns
from tidelake.order.arrow.deletes import DeleteRules
from tidelake.order.arrow.staged_by_workers import Ordering, stage_by_workers
from tidelake.order.arrow.table_models import SentName
from tidelake.order.exchanged_rows import exchange_rows
from tidelake.order.mask_counts import mask_counts
from tidelake.order.moved_rows import StagedTables, moves
from tidelake.order.observed_tables import WindowRows
from tidelake.order.offset_rules import refuse_keys_in_two_partitions
from tidelake.order.planning import PlannedWindow, first_buckets
from tidelake.order.rekeyed_rows import rekey_rows
from tidelake.order.replay_epochs import steps_back
from tidelake.order.table_rows import TableRows, sent_names

log = logging.getLogger(__name__)


def stage_tables(plan: PlannedWindow) -> StagedTables:
    """Write the window's changes to a branch of each table's changelog, then those of rows that statements move.

    Raises:
        OrderError: NO_COMMIT_TS, TWO_PARTITIONS, and what `exchange_rows` and `rekey_rows` raise.
        ConfigError: What `rekey_rows` raises.
    """
    staged = _changes_of_rows(plan)
    for m, i in moves(plan.tables):
        staged = rekey_rows(plan, m, i, staged) if isinstance(m, Rekey) else exchange_rows(plan, m, i, staged)
    counted = {
        i: c.model_copy(update={"masked": mask_counts(plan.lake.feed, plan.tables.incarnations[i], plan.seen)})
        for i, c in staged.counts.items()
    }
    return replace(staged, counts=counted)


def _changes_of_rows(plan: PlannedWindow) -> StagedTables:
    lake, seen = plan.lake, plan.seen
    by_checkpoints = lake.feed.watermark.source == "checkpoints"
    if seen.undated and not by_checkpoints:
        raise OrderError(
            f"feed {lake.feed.name}: deletes without commit ts can only be placed by recorded checkpoints",
            code="NO_COMMIT_TS",
            remedy='set [watermark] from = "checkpoints" in feed.toml',
        )
    todo = [t for t in (_table(plan, seen, i) for i in plan.tables.incarnations) if t is not None]
    folder = placed_deletes(lake.feed.name, plan.base.seq) if by_checkpoints and seen.undated else None
    try:
        staged = stage_by_workers(lake.workers, _ordering(plan, todo, folder), [(t, seen.rows_of(t.names)) for t in todo])
    finally:
        for o in list(lake.store.objects(folder)) if folder else ():
            lake.store.delete(o.key)
    for table, advance, counts in staged:
        _told(plan, table, advance, counts)
    changelogs = {t.incarnation.id: a for t, a, _ in staged if a is not None}
    return StagedTables(changelogs=changelogs, counts={t.incarnation.id: c for t, _, c in staged})


def _ordering(plan: PlannedWindow, todo: Sequence[TableRows], deletes: str | None) -> Ordering:
    keyless = not plan.lake.feed.by_offsets and any(not t.incarnation.key for t in todo)
    return Ordering(
        catalog=plan.lake.catalog,
        events=plan.events,
        rules=DeleteRules(
            after_ts=plan.window.applied_ts,
            until_ts=plan.window.resolved_ts,
            applied_at_ms=plan.cut.checkpoint_at_ms if plan.cut else None,
            resolved_at_ms=plan.progress.checkpoint_at_ms or 0,
            born=tuple(
                SentName(database=n.database, table=n.table, after_ts=n.after_ts, until_ts=n.until_ts) for t in todo for n in t.names
            ),
        ),
        hours=plan.progress.scan,
        branch=plan.branch,
        previous=plan.cut.changelogs if plan.cut else {},
        kept=plan.base.kept,
        again=(*plan.progress.again, *plan.repeats.rows),
        aside=plan.aside.places,
        steps=steps_back(plan.events, plan.progress.scan) if keyless else {},
        lake_uri=plan.lake.feed.lake.uri,
        deletes=deletes,
    )


def _told(plan: PlannedWindow, table: TableRows, advance: Advance | None, counts: TableCounts) -> None:
    if advance is not None and table.incarnation.key and plan.lake.feed.watermark.one_partition_per == "key":
        _check_keys(plan, table, advance)
    log.info(f"{table.incarnation.name}: {', '.join(_said(table.incarnation, counts))}")


def _said(i: Incarnation, counts: TableCounts) -> list[str]:
    lost = (
        (counts.nulled_zero_dates, "zero date becomes NULL", "zero dates become NULL"),
        (counts.invalid_values, "value does not fit", "values do not fit"),
    )
    told = [f"{n:,} {one if n == 1 else many}" for found, one, many in lost if (n := sum(found.values()))]
    return [plural(counts.changes, "change"), *told, *(["types taken from messages"] if i.guessed else [])]


def _check_keys(plan: PlannedWindow, table: TableRows, advance: Advance) -> None:
    """Check that all changes of a key come from one partition of an hour."""
    have = holders(plan.lake.catalog.load(advance.identifier).columns(advance.to))
    key = [have[k][0].name for k in table.incarnation.key]
    inside = f"_commit_ts > {plan.window.applied_ts} AND _commit_ts <= {plan.window.resolved_ts}"
    changes = plan.lake.spark.table(sql_name(advance.identifier, advance.branch)).where(inside)
    refuse_keys_in_two_partitions(changes, key, table.incarnation.name)


def _table(plan: PlannedWindow, seen: WindowRows, incarnation: str) -> TableRows | None:
    i = plan.tables.incarnations[incarnation]
    names = sent_names(i, seen.sent)
    if not names:
        return None
    columns = lived(i)
    previous = (
        (plan.cut.changelogs.get(i.id) or plan.cut.snapshots.get(i.id)) if plan.cut else None
    )  # a seeded table may have only the snapshot
    return TableRows(
        feed=plan.lake.feed,
        incarnation=i,
        names=names,
        row_schemas=seen.schemas_of(names),
        bucket=bucket_column(key_columns(plan.lake.feed, i, columns)),
        buckets=previous.buckets if previous else first_buckets(plan, i),
        images=seen.images_of(names),
        sequence=seen.sequence,
    )
