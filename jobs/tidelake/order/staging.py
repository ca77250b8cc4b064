"""Stages a window: its changes, typed, deduplicated and ordered, on a branch of every table's changelog."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tidelake.config.feed import Feed
from tidelake.errors import SCHEMA_MISMATCH, OrderError
from tidelake.history.incarnations import Incarnation
from tidelake.history.projection import lived
from tidelake.lake.cut import Advance, TableCounts
from tidelake.lake.tables import bucket_column, key_columns, physical
from tidelake.order.arrow.arrow_staging import Ordering, stage_by_workers
from tidelake.order.deletes import dated
from tidelake.order.exchanged_rows import exchange_rows
from tidelake.order.mask_counts import mask_counts
from tidelake.order.observed_tables import WindowRows
from tidelake.order.offset_rules import refuse_keys_in_two_partitions
from tidelake.order.packs import in_packs
from tidelake.order.planning import PlannedWindow
from tidelake.order.replay_epochs import Steps, steps_back, with_replay_epoch
from tidelake.order.sql.changelog import sql_name, stage_changelog
from tidelake.order.sql.invalid_values import invalid_value_examples
from tidelake.order.sql.order_masks import hashed
from tidelake.order.sql.rows import TableRows, at_once, of_table, sent_names
from tidelake.spark.spread import THREADS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTables:
    """What was written, by incarnation: how each changelog advances, and its counts."""

    changelogs: dict[str, Advance]
    counts: dict[str, TableCounts]


def stage_tables(plan: PlannedWindow) -> StagedTables:
    """Write the window's changes to a branch of each table's changelog, then those that EXCHANGE PARTITION makes.

    Raises:
        OrderError: NO_COMMIT_TS, TWO_PARTITIONS, and what `exchange_rows` raises.
    """
    changelogs, counts = exchange_rows(plan, *_changes_of_rows(plan))
    counted = {
        i: c.model_copy(update={"masked": mask_counts(plan.lake.feed, plan.tables.incarnations[i], plan.seen)}) for i, c in counts.items()
    }
    return StagedTables(changelogs=changelogs, counts=counted)


def _changes_of_rows(plan: PlannedWindow) -> tuple[dict[str, Advance], dict[str, TableCounts]]:
    frame, seen = plan.frame, plan.seen
    whole = SCHEMA_MISMATCH not in plan.aside.rows  # no row of a staged table was put aside
    if seen.undated and plan.lake.feed.watermark.source != "checkpoints":
        raise OrderError(
            f"feed {plan.lake.feed.name}: deletes without commit ts can only be placed by recorded checkpoints",
            code="NO_COMMIT_TS",
            remedy='set [watermark] from = "checkpoints" in feed.toml',
        )
    todo = [t for t in (_table(plan, seen, i) for i in plan.tables.incarnations) if t is not None]
    keyless = not plan.lake.feed.by_offsets and any(not t.incarnation.key for t in todo)
    steps = steps_back(plan.events, plan.progress.scan) if keyless else {}
    done, todo = _by_workers(plan, frame.sparkSession, seen, todo, steps) if whole else ([], todo)
    rows = frame.where(seen.where)
    if plan.lake.feed.watermark.source == "checkpoints":
        rows = _with_deletes(plan, frame, rows, todo, seen)

    def stage(rows: DataFrame, table: TableRows) -> tuple[str, Advance | None, TableCounts]:
        mine = hashed(at_once(of_table(rows, table.names), table), table)
        mine = mine if table.incarnation.key or plan.lake.feed.by_offsets else with_replay_epoch(mine, steps)
        previous = plan.cut.changelogs.get(table.incarnation.id) if plan.cut else None
        advance, counts = stage_changelog(plan.lake.catalog, mine, table, plan.branch, previous, plan.base.kept)
        _told(plan, frame.sparkSession, table, advance, counts)
        return table.incarnation.id, advance, counts

    with ThreadPoolExecutor(THREADS) as pool:
        results = done + [r for near, tables in in_packs(rows, todo, seen) for r in pool.map(partial(stage, near), tables)]
    return {i: a for i, a, _ in results if a is not None}, {i: c for i, _, c in results}


def _by_workers(
    plan: PlannedWindow, spark: SparkSession, seen: WindowRows, todo: Sequence[TableRows], steps: Steps
) -> tuple[list[tuple[str, Advance | None, TableCounts]], list[TableRows]]:
    """Return (what workers staged in Arrow, tables that are left)."""
    ordering = Ordering(
        catalog=plan.lake.catalog,
        events=plan.events,
        window=plan.window,
        hours=plan.progress.scan,
        branch=plan.branch,
        previous=plan.cut.changelogs if plan.cut else {},
        kept=plan.base.kept,
        again=plan.progress.again,
        steps=steps,
        threads=THREADS,
    )
    staged, left = stage_by_workers(spark, ordering, [(t, seen.rows_of(t.names)) for t in todo])
    done = []
    for table, advance, counts in staged:
        if counts.invalid_values:
            rows = of_table(plan.frame.where(seen.where), table.names)
            counts = counts.model_copy(update={"invalid_value_examples": invalid_value_examples(rows, table, counts.invalid_values)})
        _told(plan, spark, table, advance, counts)
        done.append((table.incarnation.id, advance, counts))
    return done, left


def _told(plan: PlannedWindow, spark: SparkSession, table: TableRows, advance: Advance | None, counts: TableCounts) -> None:
    if advance is not None and table.incarnation.key and plan.lake.feed.watermark.one_partition_per == "key":
        _check_keys(plan, spark, table, advance)
    log.info(f"{table.incarnation.name}: {', '.join(_said(table.incarnation, counts))}")


def _said(i: Incarnation, counts: TableCounts) -> list[str]:
    lost = (
        (counts.nulled_zero_dates, "zero date becomes NULL", "zero dates become NULL"),
        (counts.invalid_values, "value does not fit", "values do not fit"),
    )
    told = [f"{n:,} {one if n == 1 else many}" for found, one, many in lost if (n := sum(found.values()))]
    return [f"{counts.changes} changes", *told, *(["types taken from messages"] if i.guessed else [])]


def _check_keys(plan: PlannedWindow, spark: SparkSession, table: TableRows, advance: Advance) -> None:
    """Check that all changes of a key come from one partition of an hour."""
    columns = plan.lake.catalog.load(advance.identifier).columns(advance.to)
    key = [physical(columns, k)[0].name for k in table.incarnation.key]
    inside = f"_commit_ts > {plan.window.applied_ts} AND _commit_ts <= {plan.window.resolved_ts}"
    changes = spark.table(sql_name(advance.identifier, advance.branch)).where(inside)
    refuse_keys_in_two_partitions(changes, key, table.incarnation.name)


def _table(plan: PlannedWindow, seen: WindowRows, incarnation: str) -> TableRows | None:
    i = plan.tables.incarnations[incarnation]
    names = sent_names(i, seen.names)
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
        buckets=previous.buckets if previous else _buckets(plan.lake.feed, i.name, seen.rows_of(names)),
        hours=seen.hours_of(names),
        images=seen.images_of(names),
        sequence=seen.sequence,
    )


def _buckets(feed: Feed, table: str, events: int) -> int:
    """Number of buckets: what feed.toml says, else one for each million of the first window's row events, as a power of two."""
    own = feed.tables.get(table)
    return own.buckets if own and own.buckets else min(256, 1 << max(0, (events // 1_000_000).bit_length()))


def _with_deletes(plan: PlannedWindow, frame: DataFrame, rows: DataFrame, todo: Sequence[TableRows], seen: WindowRows) -> DataFrame:
    from pyspark.sql import functions as F

    every = frame.where(seen.where_any)
    names = [n for t in todo for n in t.names]
    at_ms = plan.cut.checkpoint_at_ms if plan.cut else None
    deletes = dated(every, plan.window, at_ms, plan.progress.checkpoint_at_ms or 0, names)
    wanted = deletes.select(*rows.columns, "unsettled", F.lit(True).alias("undated"))
    return rows.withColumn("unsettled", F.lit(False)).withColumn("undated", F.lit(False)).unionByName(wanted)
