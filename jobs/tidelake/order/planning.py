"""Plans a window: where it begins, how far it reaches, which statements and rows it has, and what it lacks."""

from __future__ import annotations

import logging
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from tidelake.config.lake_paths import BRANCH
from tidelake.decode.known import opening
from tidelake.decode.record import refusals_named
from tidelake.decode.statements import since
from tidelake.history.incarnations import Catalog, Incarnation
from tidelake.history.ordering import check_progress
from tidelake.history.window import LedgerEntry, Statement, Window, compile_window
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import Base, lineage
from tidelake.lake.events import control_rows, ensure_events
from tidelake.lake.namespaces import refuse_taken, take
from tidelake.lake.opened import Lake
from tidelake.order.clocks import is_ahead
from tidelake.order.incomplete import Lack, decided, of_holes
from tidelake.order.observed_tables import WindowRows, look
from tidelake.order.offset_rules import mixed, placed_statements
from tidelake.order.progress import WindowProgress, not_after_seed, progress, published_ahead, stands_still
from tidelake.order.repeats.sent_again import SentAgain, sent_again
from tidelake.order.repeats.statements import StatementPlace, place_of
from tidelake.order.schema_mismatches import Aside, put_aside
from tidelake.order.table_rows import sent_names
from tidelake.order.window_base import WindowBase
from tidelake.wire.statements import WITHOUT_DDL

_DDL = ["commit_ts", "database", "ddl"]

log = logging.getLogger(__name__)
_BUCKET_ROWS = 1_000_000  # of a bucket of a table without a changelog
_MOST_BUCKETS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWindow:
    """A window that can be staged.

    Attributes:
        lake: The feed's lake.
        hour: The hour that the window ends with.
        base: The cut that it builds on.
        events: The events table, at the snapshot that is read.
        progress: How far the feed is complete.
        repeats: What the producer sent again.
        window: The commit ts range.
        branch: The branch of changelogs that this run writes.
        tables: All tables of the feed at the window's end, with their histories.
        ledger: The window's statements, each with its effect.
        aside: Rows that fit no schema; its `seen` describes the window's other rows.
        accepted: Coordinates of messages whose loss was accepted.
        lacks: What the window lacks because of missing messages and offsets.
    """

    lake: Lake
    hour: str
    base: Base
    events: LakeTable
    progress: WindowProgress
    repeats: SentAgain
    window: Window
    branch: str
    tables: Catalog
    ledger: list[LedgerEntry]
    aside: Aside
    accepted: list[str]
    lacks: list[Lack]

    @property
    def cut(self) -> Cut | None:
        """The cut that the window builds on; None for the first window."""
        return self.base.cut

    @property
    def seen(self) -> WindowRows:
        """What rows the window has."""
        return self.aside.seen


def plan_window(lake: Lake, begins: WindowBase, fence: int) -> PlannedWindow:
    """Plan a window that is not published.

    Args:
        lake: The feed's lake.
        begins: What the window continues, and its last hour.
        fence: Number of the lease that this run holds. It separates its branch from those of other attempts.

    Raises:
        OrderError: What `progress` raises, WENT_BACK, STANDS_STILL, UNDECIDED, what `put_aside` and what a statement raises.
        ConfigError, OwnershipError: What `namespaces.take` raises, before anything is staged.
    """
    feed, base, hour, cut = lake.feed, begins.base, begins.hour, begins.base.cut
    known = opening(feed, cut)
    refuse_taken(lake.catalog, feed, known)
    events = ensure_events(lake.catalog, feed)
    done = progress(feed, lake.store, events, cut, hour, base.since)
    window = _window(lake, cut, done, hour)
    with refusals_named({h: done.records[h] for h in done.hours}):
        if window.resolved_ts == window.applied_ts:
            raise stands_still(feed, done, window.applied_ts)
        accepted, lacks = decided(feed, lake.store, events, done, window)
    repeats = sent_again(lake, events, cut, window, done)
    seen = look(lake.workers, events, window, done, feed, cut.seeded_ts if cut else 0, repeats.rows)
    lacks += [Lack("TWO_PARTITIONS", said)] if (said := mixed(feed, seen.partitions)) else []
    lacks += of_holes(done.holes)
    sent = _statements(lake, events, cut, window, done, seen, repeats.statements)
    told, tidb = feed.protocol not in WITHOUT_DDL, feed.of_tidb
    names, ledger, unknown = compile_window(known, sent, seen.observed, feed.policy, has_ddl=told, of_tidb=tidb)
    take(lake.catalog, feed, names)
    aside = put_aside(lake, events, done.scan, seen, unknown, base.seq)
    return PlannedWindow(
        lake=lake,
        hour=hour,
        base=base,
        events=events,
        progress=done,
        repeats=repeats,
        window=window,
        branch=f"{BRANCH}{base.seq}_{fence}",
        tables=names,
        ledger=ledger,
        aside=aside,
        accepted=[*accepted, *aside.accepted],
        lacks=lacks,
    )


def _window(lake: Lake, cut: Cut | None, done: WindowProgress, hour: str) -> Window:
    """The commit ts range. Logs the resolved ts that do not count. Raises OrderError if the range is empty."""
    window = Window(applied_ts=cut.resolved_ts if cut else 0, resolved_ts=done.resolved_ts)
    if cut is not None and cut.is_seed and done.resolved_ts <= cut.seeded_ts:
        raise not_after_seed(lake.feed, done, cut, hour)
    for found in done.ahead:
        log.info(f"{found.code} {found.where}: {found.detail}")
    if cut is not None and window.resolved_ts <= window.applied_ts and is_ahead(lake.feed, lake.store, cut):
        raise published_ahead(lake.feed, cut, _before(lake, cut))
    check_progress(window.applied_ts, window.resolved_ts)
    return window


def _before(lake: Lake, cut: Cut) -> Cut | None:
    """The newest earlier cut whose resolved ts can be true."""
    earlier = (
        read_cut(lake.store, lake.feed.name, seq) for seq in sorted(lineage(lake.catalog, lake.feed.name), reverse=True) if seq < cut.seq
    )
    return next((c for c in earlier if c.resolved_ts < cut.resolved_ts and not is_ahead(lake.feed, lake.store, c)), None)


def _statements(
    lake: Lake,
    events: LakeTable,
    cut: Cut | None,
    window: Window,
    done: WindowProgress,
    seen: WindowRows,
    repeated: Container[StatementPlace],
) -> list[Statement]:
    """The window's statements without those that came before, in order of their coordinates."""
    feed = lake.feed
    rows = [r for r in _ddl_rows(events, done.scan) if not any(again.has(r) for again in done.again) and place_of(r) not in repeated]
    rows = placed_statements(feed, rows, seen.partitions) if feed.by_offsets else rows
    return since(feed, cut, rows, window.resolved_ts)


def _ddl_rows(events: LakeTable, hours: Sequence[str]) -> list[dict[str, Any]]:
    rows = list(control_rows(events, "ddl", hours, ["hour", "topic", "partition", "offset", "ordinal", *_DDL]))
    return sorted(rows, key=lambda r: (r["topic"], r["partition"], r["offset"], r["ordinal"]))


def first_buckets(plan: PlannedWindow, i: Incarnation) -> int:
    """Return the number of buckets of a table that has no changelog yet.

    It is what feed.toml says, else one for each million rows, as a power of two. The rows are the row events of the window and, if a new
    key made the table, the rows of its former life.
    """
    own = plan.lake.feed.tables.get(i.name)
    return own.buckets if own and own.buckets else buckets_for(_bucket_rows(plan, i))


def buckets_for(rows: int) -> int:
    """Return the number of buckets of a table that begins with so many rows."""
    return min(_MOST_BUCKETS, 1 << (rows // _BUCKET_ROWS).bit_length())


def _bucket_rows(plan: PlannedWindow, i: Incarnation) -> int:
    """The approximate number of rows."""
    sent = plan.seen.rows_of(sent_names(i, plan.seen.sent))
    stood = plan.cut.snapshots.get(i.id) if plan.cut else None
    former = _bucket_rows(plan, plan.tables.incarnations[i.former]) if i.rekey is not None else 0
    return sent + former + (stood.rows if stood is not None else 0)
