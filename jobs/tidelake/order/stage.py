"""The order stage: events in (applied, resolved] → deduplicated, ordered, typed changelogs, staged on a branch of this run.

Nothing is visible until compact publishes. Run again, it drops what an earlier attempt staged and stages anew.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from tidelake import __version__
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import BRANCH, CATALOG, run_key
from tidelake.decode.known import opening
from tidelake.decode.record import refusals_named
from tidelake.decode.statements import WITHOUT_DDL, since
from tidelake.errors import SHAPE_MISFIT, OrderError
from tidelake.history.incarnations import Catalog, Incarnation
from tidelake.history.ordering import check_progress
from tidelake.history.projection import lived
from tidelake.history.window import LedgerEntry, Statement, Window, compile_window
from tidelake.io.storage import Store, open_store
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Advance, Cut, Staged, TableCounts, TableCut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import Base, base_of, first_held, lineage
from tidelake.lake.events import control_rows, ensure_events
from tidelake.lake.namespaces import refuse_taken, take
from tidelake.lake.tables import bucket_column, key_columns, physical
from tidelake.lake.turns import is_published
from tidelake.order.arrow import arrow_staging as arrow_order
from tidelake.order.clocks import is_ahead
from tidelake.order.deletes import dated
from tidelake.order.exchanged_rows import Exchanging, exchange_rows
from tidelake.order.incomplete import Why, decided, of_holes, of_tables, reasons, refuse
from tidelake.order.late import judge_late
from tidelake.order.mask_counts import mask_counts
from tidelake.order.observed_tables import Seen, look
from tidelake.order.offset_rules import mixed, placed_statements, refuse_keys_in_two_partitions
from tidelake.order.packs import in_packs
from tidelake.order.progress import Progress, not_after_seed, open_hours, progress, published_ahead, stands_still, why_published
from tidelake.order.replay_epochs import steps_back, with_stretch
from tidelake.order.schema_mismatches import put_aside
from tidelake.order.sql.changelog import sql_name, stage_changelog
from tidelake.order.sql.order_masks import hashed
from tidelake.order.sql.rows import TableRows, at_once, of_table, sent_names
from tidelake.spark.spread import THREADS, split_bytes
from tidelake.tso import format_hour

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DDL = ["commit_ts", "database", "ddl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderReport:
    """What an order run did. staged is None where there was nothing to do, and `why` says so."""

    staged: Staged | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What the steps of one run share."""

    catalog: LakeCatalog
    feed: Feed
    store: Store
    events: LakeTable
    base: Base
    cut: Cut | None
    progress: Progress
    window: Window
    branch: str
    names: Catalog


def order_window(
    session: Callable[[], SparkSession],
    catalog: LakeCatalog,
    feed: Feed,
    hour: datetime,
    fence: int,
    tell: Callable[[str], None] = lambda _: None,
    redo_from: str | None = None,
) -> OrderReport:
    """Stage the changelogs of the window that ends with this hour; redo_from: of all that is published from this hour on, and to where
    the lake stands at least.

    Raises OrderError: what `progress` raises, WENT_BACK, STANDS_STILL, UNDECIDED, INCOMPLETE, what `put_aside` and what a statement raises;
    what `namespaces.take` raises, before anything is staged.
    """
    started, name = time.time(), format_hour(hour)
    store = open_store(feed.lake.uri)
    base = base_of(catalog, store, feed.name, redo_from)
    cut = base.cut
    if base.follows is not None and base.newest is not None:
        name = max(name, base.newest.hour)
    if is_published(feed, catalog, store, cut, name) and cut is not None:
        return OrderReport(staged=None, why=why_published(catalog, feed, cut, name))
    refuse_taken(catalog, feed, opening(feed, cut))
    events = ensure_events(catalog, feed)
    done = progress(feed, store, events, cut, name, base.since)
    window = Window(applied_ts=cut.resolved_ts if cut else 0, resolved_ts=done.resolved_ts)
    if cut is not None and cut.is_seed and done.resolved_ts <= cut.seeded_ts:
        raise not_after_seed(feed, done, cut, name)
    for found in done.ahead:
        tell(f"{found.code} {found.where}: {found.detail}")
    if cut is not None and window.resolved_ts <= window.applied_ts and is_ahead(feed, store, cut):
        raise published_ahead(feed, cut, _before(catalog, store, feed, cut))
    check_progress(window.applied_ts, window.resolved_ts)
    with refusals_named({h: done.records[h] for h in done.hours}):
        if window.resolved_ts == window.applied_ts:
            raise stands_still(feed, done, window.applied_ts)
        accepted, lacks = decided(feed, store, events, done, window)
    frame = _row_events(session(), events, done.scan)
    seen = look(frame, events, window, done, cut.seeded_ts if cut else 0, feed.by_offsets)
    lacks += [Why("TWO_PARTITIONS", said)] if (said := mixed(feed, seen.partitions)) else []
    lacks += of_holes(done.holes)
    sent = _statements(feed, events, cut, window, done, seen)
    names, ledger, strangers = compile_window(opening(feed, cut), sent, seen.sightings, feed.policy, told=feed.protocol not in WITHOUT_DDL)
    take(catalog, feed, names)
    aside = put_aside(feed, store, frame, seen, strangers, base.seq)
    seen = aside.seen
    branch = f"{BRANCH}{base.seq}_{fence}"
    run = _Run(
        catalog=catalog,
        feed=feed,
        store=store,
        events=events,
        base=base,
        cut=cut,
        progress=done,
        window=window,
        branch=branch,
        names=names,
    )
    late = judge_late(session(), catalog, feed, events, base, seen) if cut else {}
    changelogs, counts = _exchanged(run, session, *_stage_all(run, frame, seen, SHAPE_MISFIT not in aside.rows, tell), tell)
    counts = {i: c.model_copy(update={"masked": mask_counts(feed, names.incarnations[i], seen)}) for i, c in counts.items()}
    lacks += of_tables(aside.rows, aside.accepted, counts, late)
    staged = Staged(
        cut=_next_cut(run, name, ledger, [*accepted, *aside.accepted], lacks, changelogs),
        changelogs=changelogs,
        counts=counts,
        window_events=seen.inside,
        seeded_events=seen.seeded,
        late_events=seen.late,
        late=late,
        waiting_events=seen.waiting,
        messages=done.messages,
        message_bytes=done.message_bytes,
        kinds=_sums(done.records[h].counts for h in done.hours),
        rejected=_sums([*(done.records[h].rejected for h in done.hours), aside.rows]),
        findings=[found.finding(feed) for found in done.ahead],
        started_at_ms=int(started * 1000),
        seconds={"order": round(time.time() - started, 3)},
    )
    refuse(feed, staged.cut)
    store.write(run_key(feed.name, staged.cut.seq, "order"), staged.model_dump_json(indent=1).encode())
    return OrderReport(staged=staged)


def _before(catalog: LakeCatalog, store: Store, feed: Feed, cut: Cut) -> Cut | None:
    """The newest cut before this one whose resolved ts can be true."""
    earlier = (read_cut(store, feed.name, seq) for seq in sorted(lineage(catalog, feed.name), reverse=True) if seq < cut.seq)
    return next((c for c in earlier if c.resolved_ts < cut.resolved_ts and not is_ahead(feed, store, c)), None)


def _row_events(spark: SparkSession, events: LakeTable, hours: Sequence[str]) -> DataFrame:
    """The events table as it stands, read by all cores where these hours are asked for."""
    size = sum(f.size for f in events.files({"kind": "row", "hour": list(hours)}, [], events.main)) if hours else 0
    reader = spark.read.option("versionAsOf", events.main).option("split-size", split_bytes(spark, size)).option("file-open-cost", 1 << 16)
    return reader.table(f"{CATALOG}.{events.identifier}")


def _sums(several: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in several:
        total.update(one)
    return dict(total)


def _statements(feed: Feed, events: LakeTable, cut: Cut | None, window: Window, done: Progress, seen: Seen) -> list[Statement]:
    """The window's."""
    rows = [r for r in _ddl_rows(events, done.scan) if not any(again.has(r) for again in done.again)]
    rows = placed_statements(feed, rows, seen.partitions) if feed.by_offsets else rows
    return since(feed, cut, rows, window.resolved_ts)


def _ddl_rows(events: LakeTable, hours: Sequence[str]) -> list[dict[str, Any]]:
    rows = list(control_rows(events, "ddl", hours, ["hour", "topic", "partition", "offset", "ordinal", *_DDL]))
    return sorted(rows, key=lambda r: (r["topic"], r["partition"], r["offset"], r["ordinal"]))


def _stage_all(
    run: _Run, frame: DataFrame, seen: Seen, whole: bool, tell: Callable[[str], None]
) -> tuple[dict[str, Advance], dict[str, TableCounts]]:
    """whole: no row of a table that is staged was put aside."""
    if seen.undated and run.feed.watermark.source != "checkpoints":
        raise OrderError(
            f"feed {run.feed.name}: deletes without commit ts can only be placed by recorded checkpoints",
            code="NO_COMMIT_TS",
            remedy='set [watermark] from = "checkpoints" in feed.toml',
        )
    todo = [t for t in (_table(run, seen, i) for i in run.names.incarnations) if t is not None]
    done, todo = _by_workers(run, frame.sparkSession, seen, todo, tell) if whole else ([], todo)
    steps = steps_back(run.events, run.progress.scan) if any(not i.key for i in run.names.incarnations.values()) else {}
    rows = frame.where(seen.where)
    if run.feed.watermark.source == "checkpoints":
        rows = _with_deletes(run, frame, rows, todo, seen)

    def stage(rows: DataFrame, table: TableRows) -> tuple[str, Advance | None, TableCounts]:
        mine = hashed(at_once(of_table(rows, table.names), table), table)
        mine = mine if table.incarnation.key or run.feed.by_offsets else with_stretch(mine, steps)
        previous = run.cut.changelogs.get(table.incarnation.id) if run.cut else None
        advance, counts = stage_changelog(run.catalog, mine, table, run.branch, previous, run.base.kept)
        _told(run, frame.sparkSession, table, advance, counts, tell)
        return table.incarnation.id, advance, counts

    with ThreadPoolExecutor(THREADS) as pool:
        results = done + [r for near, tables in in_packs(rows, todo, seen) for r in pool.map(partial(stage, near), tables)]
    return {i: a for i, a, _ in results if a is not None}, {i: c for i, _, c in results}


def _by_workers(
    run: _Run, spark: SparkSession, seen: Seen, todo: Sequence[TableRows], tell: Callable[[str], None]
) -> tuple[list[tuple[str, Advance | None, TableCounts]], list[TableRows]]:
    """(what workers staged in Arrow, tables that are left)."""
    ordering = arrow_order.Ordering(
        catalog=run.catalog,
        events=run.events,
        window=run.window,
        hours=run.progress.scan,
        branch=run.branch,
        previous=run.cut.changelogs if run.cut else {},
        kept=run.base.kept,
        threads=THREADS,
    )
    staged, left = arrow_order.stage(spark, ordering, [(t, seen.rows_of(t.names)) for t in todo], tell)
    for table, advance, counts in staged:
        _told(run, spark, table, advance, counts, tell)
    return [(table.incarnation.id, advance, counts) for table, advance, counts in staged], left


def _told(
    run: _Run, spark: SparkSession, table: TableRows, advance: Advance | None, counts: TableCounts, tell: Callable[[str], None]
) -> None:
    if advance is not None and table.incarnation.key and run.feed.watermark.one_partition_per == "key":
        _check_keys(run, spark, table, advance)
    tell(f"{table.incarnation.name}: {', '.join(_said(table.incarnation, counts))}")


def _said(i: Incarnation, counts: TableCounts) -> list[str]:
    lost = ((counts.nulled, "zero date becomes NULL", "zero dates become NULL"), (counts.unfit, "value does not fit", "values do not fit"))
    told = [f"{n:,} {one if n == 1 else many}" for found, one, many in lost if (n := sum(found.values()))]
    return [f"{counts.changes} changes", *told, *(["types as messages say them"] if i.guessed else [])]


def _exchanged(
    run: _Run,
    session: Callable[[], SparkSession],
    changelogs: dict[str, Advance],
    counts: dict[str, TableCounts],
    tell: Callable[[str], None],
) -> tuple[dict[str, Advance], dict[str, TableCounts]]:
    exchanging = Exchanging(
        catalog=run.catalog,
        store=run.store,
        feed=run.feed,
        base=run.base,
        applied_ts=run.window.applied_ts,
        names=run.names,
        branch=run.branch,
        tell=tell,
    )
    return exchange_rows(exchanging, session, changelogs, counts)


def _check_keys(run: _Run, spark: SparkSession, table: TableRows, advance: Advance) -> None:
    """All changes of a key come from one partition of an hour."""
    columns = run.catalog.load(advance.identifier).columns(advance.to)
    key = [physical(columns, k)[0].name for k in table.incarnation.key]
    inside = f"_commit_ts > {run.window.applied_ts} AND _commit_ts <= {run.window.resolved_ts}"
    changes = spark.table(sql_name(advance.identifier, advance.branch)).where(inside)
    refuse_keys_in_two_partitions(changes, key, table.incarnation.name)


def _table(run: _Run, seen: Seen, incarnation: str) -> TableRows | None:
    i = run.names.incarnations[incarnation]
    names = sent_names(i, seen.names)
    if not names:
        return None
    columns = lived(i)
    previous = (run.cut.changelogs.get(i.id) or run.cut.snapshots.get(i.id)) if run.cut else None  # of a seeded table the latter alone
    return TableRows(
        feed=run.feed,
        incarnation=i,
        names=names,
        shapes=seen.shapes_of(names),
        bucket=bucket_column(key_columns(run.feed, i, columns)),
        buckets=previous.buckets if previous else _buckets(run.feed, i.name, seen.rows_of(names)),
        hours=seen.hours_of(names),
        images=seen.images_of(names),
    )


def _buckets(feed: Feed, table: str, events: int) -> int:
    """1 while small; else one bucket for each million of the first window's row events, as a power of two, or what feed.toml says."""
    own = feed.tables.get(table)
    return own.buckets if own and own.buckets else min(256, 1 << max(0, (events // 1_000_000).bit_length()))


def _with_deletes(run: _Run, frame: DataFrame, rows: DataFrame, todo: Sequence[TableRows], seen: Seen) -> DataFrame:
    from pyspark.sql import functions as F

    every = frame.where(seen.where_any)
    names = [n for t in todo for n in t.names]
    at_ms = run.cut.checkpoint_at_ms if run.cut else None
    deletes = dated(every, run.window, at_ms, run.progress.checkpoint_at_ms or 0, names)
    wanted = deletes.select(*rows.columns, "unsettled", F.lit(True).alias("undated"))
    return rows.withColumn("unsettled", F.lit(False)).withColumn("undated", F.lit(False)).unionByName(wanted)


def _next_cut(
    run: _Run, hour: str, ledger: list[LedgerEntry], accepted: list[str], lacks: Sequence[Why], changelogs: dict[str, Advance]
) -> Cut:
    cut, done = run.cut, run.progress
    known = dict(cut.changelogs) if cut else {}
    for i, a in changelogs.items():
        known[i] = TableCut(identifier=a.identifier, uuid=a.uuid, snapshot_id=a.to, buckets=a.buckets)
    because = reasons(lacks, run.base.seq, hour, cut)
    carried = [e for e in cut.ledger if e.commit_ts == run.window.resolved_ts] if cut else []
    return Cut(
        feed=run.feed.name,
        seq=run.base.seq,
        seeded_ts=cut.seeded_ts if cut else 0,
        follows=run.base.follows,
        hour=hour,
        first_hour=(first_held(run.catalog, run.store, cut) if cut else None) or (done.hours[0] if cut is None or cut.is_seed else ""),
        applied_ts=run.window.applied_ts,
        resolved_ts=run.window.resolved_ts,
        run=run.branch,
        version=__version__,
        events_snapshot_id=run.events.main,
        prefixes=done.prefixes,
        watermarks=done.watermarks,
        checkpoint_at_ms=done.checkpoint_at_ms,
        open_hours=open_hours(done),
        generations={h: done.records[h].generation for h in done.hours},
        incomplete=bool(because),
        incomplete_because=because,
        accepted=accepted,
        catalog=run.names,
        snapshots=dict(cut.snapshots) if cut else {},
        changelogs=known,
        past=dict(run.base.newest.past) if run.base.newest else {},
        ledger=[*carried, *ledger],
    )
