"""Holes that later hours fill: the resolved ts stays below them, and counts beyond them once they are filled, whatever lay between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.histories import Feeder, publish, resolved, row, rows_of
from tests.lake.windows import KV, judged, opened, table
from tidelake.config.lake_paths import events_table
from tidelake.errors import OrderError
from tidelake.lake.cut import Cut
from tidelake.lake.opened import Lake
from tidelake.order.progress import WindowProgress, open_hours, progress

TEN = {0: [row(0, "insert", 100, KV, ("1", "a")), *resolved(150)], 4: resolved(300)}
ELEVEN = {2: resolved(200), 5: [row(0, "insert", 350, KV, ("3", "c")), *resolved(400)]}
TWELVE = {7: resolved(500)}
LAST = {3: [row(0, "insert", 250, KV, ("2", "b"))]}


def reached(feed: Feeder, lake: Lake, cut: Cut | None, hour: str) -> tuple[WindowProgress, Cut]:
    """How far an hour reaches after a cut, and the cut there."""
    events = lake.catalog.load(events_table(feed.feed.name))
    done = progress(feed.feed, lake.store, events, cut, hour)
    seq, ts = (cut.seq + 1, cut.resolved_ts) if cut else (1, 0)
    facts = {"prefixes": done.prefixes, "watermarks": done.watermarks, "open_hours": open_hours(done), "events_snapshot_id": events.main}
    return done, Cut(feed=feed.feed.name, seq=seq, hour=hour, applied_ts=ts, resolved_ts=done.resolved_ts, run="", version="", **facts)


def test_offsets_behind_a_hole_count_once_later_hours_have_filled_it(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        ten = feed.scattered(lake, TEN)
        done, cut = reached(feed, lake, None, ten)
        assert (done.resolved_ts, done.prefixes, cut.open_hours) == (150, {"t": {0: (0, 1)}}, [ten])
        eleven = feed.scattered(lake, ELEVEN)
        done, cut = reached(feed, lake, cut, eleven)
        assert (done.resolved_ts, done.prefixes, cut.open_hours) == (200, {"t": {0: (0, 2)}}, [ten, eleven])
        twelve, last = feed.scattered(lake, TWELVE), feed.scattered(lake, LAST)
        assert reached(feed, lake, cut, twelve)[0].resolved_ts == 200
        done, cut = reached(feed, lake, cut, last)
        assert (done.resolved_ts, done.prefixes, cut.open_hours) == (500, {"t": {0: (0, 7)}}, [])
        assert done.scan == [ten, eleven, twelve, last]


@pytest.mark.long
@pytest.mark.usefixtures("small_hours")
def test_rows_that_came_with_a_later_hour_are_published_in_their_order_and_none_is_late(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        for runs, ts in ((TEN, 150), (ELEVEN, 200)):
            cut = publish(lake, feed.scattered(lake, runs))
            assert cut is not None
            assert cut.resolved_ts == ts
        twelve = feed.scattered(lake, TWELVE)
        with pytest.raises(OrderError, match="STANDS_STILL"):
            publish(lake, twelve)
        publish(lake, feed.scattered(lake, LAST))
        assert rows_of(lake, "d.k") == table(("1", "a"), ("2", "b"), ("3", "c"))
        assert rows_of(lake, "d.k", 250) == table(("1", "a"), ("2", "b"))
        assert judged(lake) == ({}, False)
