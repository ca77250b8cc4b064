"""Writes the document of a staged window, from which validate and compact continue."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tidelake import __version__
from tidelake.config.lake_paths import run_key
from tidelake.lake.cut import Advance, Cut, LateCounts, Staged, TableCut
from tidelake.lake.cuts import first_held
from tidelake.order.incomplete import Lack, of_tables, reasons, refuse
from tidelake.order.moved_rows import StagedTables
from tidelake.order.planning import PlannedWindow
from tidelake.order.progress import open_hours


def hand_over(plan: PlannedWindow, tables: StagedTables, late: dict[str, LateCounts], started: float) -> Staged:
    """Write what was staged, with the cut that it becomes.

    Args:
        late: Row events that came after the cut that should hold them, by table.
        started: When the stage began, in seconds since the epoch.

    Raises:
        OrderError: INCOMPLETE, where the window lacks something and the feed's policy is to block.
    """
    done, seen, aside = plan.progress, plan.seen, plan.aside
    lacks = [*plan.lacks, *of_tables(aside.rows, aside.accepted, tables.counts, late)]
    staged = Staged(
        cut=_next_cut(plan, tables.changelogs, lacks),
        changelogs=tables.changelogs,
        counts=tables.counts,
        window_events=seen.inside,
        seeded_events=seen.seeded,
        late_events=seen.late,
        late=late,
        waiting_events=seen.waiting,
        earlier_generations={h: r.generation for h, r in done.records.items() if h not in done.hours},
        undated_events=seen.undated,
        quarantined=aside.tables,
        repeated=seen.repeated,
        messages=done.messages,
        message_bytes=done.message_bytes,
        kinds=_sums(done.records[h].counts for h in done.hours),
        rejected=_sums([*(done.records[h].rejected for h in done.hours), aside.rows]),
        findings=[*(found.finding(plan.lake.feed) for found in done.ahead), *plan.repeats.findings],
        started_at_ms=int(started * 1000),
        seconds={"order": round(time.time() - started, 3)},
    )
    refuse(plan.lake.feed, staged.cut)
    plan.lake.store.write(run_key(plan.lake.feed.name, staged.cut.seq, "order"), staged.model_dump_json(indent=1).encode())
    return staged


def _next_cut(plan: PlannedWindow, changelogs: dict[str, Advance], lacks: Sequence[Lack]) -> Cut:
    cut, done = plan.cut, plan.progress
    known = dict(cut.changelogs) if cut else {}
    for i, a in changelogs.items():
        known[i] = TableCut(identifier=a.identifier, uuid=a.uuid, snapshot_id=a.to, buckets=a.buckets)
    because = reasons(lacks, plan.base.seq, plan.hour, cut)
    carried = [e for e in cut.ledger if e.commit_ts == plan.window.resolved_ts] if cut else []
    return Cut(
        feed=plan.lake.feed.name,
        seq=plan.base.seq,
        seeded_ts=cut.seeded_ts if cut else 0,
        parent_seq=plan.base.parent_seq,
        hour=plan.hour,
        first_hour=_first_hour(plan),
        applied_ts=plan.window.applied_ts,
        resolved_ts=plan.window.resolved_ts,
        run=plan.branch,
        version=__version__,
        events_snapshot_id=plan.events.main,
        prefixes=done.prefixes,
        watermarks=done.watermarks,
        names=plan.repeats.names,
        checkpoint_at_ms=done.checkpoint_at_ms,
        open_hours=open_hours(done),
        generations={h: done.records[h].generation for h in done.hours},
        incomplete=bool(because),
        incomplete_because=because,
        accepted=plan.accepted,
        catalog=plan.tables,
        snapshots=dict(cut.snapshots) if cut else {},
        changelogs=known,
        past=dict(plan.base.newest.past) if plan.base.newest else {},
        files=dict(cut.files) if cut else {},
        metadata=dict(cut.metadata) if cut else {},
        ledger=[*carried, *plan.ledger],
    )


def _first_hour(plan: PlannedWindow) -> str:
    """The first hour that the cuts cover, this one included; empty if an earlier version did not record it."""
    cut = plan.cut
    held = first_held(plan.lake.catalog, plan.lake.store, cut) if cut else None
    return held or (plan.progress.hours[0] if cut is None or cut.is_seed else "")


def _sums(several: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in several:
        total.update(one)
    return dict(total)
