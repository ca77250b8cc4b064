"""A resolved ts that no clock had reached when its message was written does not count, is named, and never becomes a cut."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.lake import lakes
from tests.lake.cheap import publish as cheap_publish
from tests.lake.histories import publish, resolved, row, rows_of
from tests.lake.windows import KV, opened, table
from tidelake.config.policy import Policy
from tidelake.errors import ConfigError, OrderError
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.cuts import newest_cut
from tidelake.lake.events import ensure_events
from tidelake.lake.opened import Lake
from tidelake.land.store.coverage import Coverage
from tidelake.order.clocks import believed_before, checkpoint_counts, counts, is_ahead, marks
from tidelake.order.progress import progress, published_ahead, resolved_now
from tidelake.publish.rollback import rollback
from tidelake.query.asof import standing, table_asof
from tidelake.run import order
from tidelake.tso import from_ms, parse_hour, show

FAR = from_ms(int(datetime(2166, 5, 7, tzinfo=UTC).timestamp() * 1000))
HOUR = "2026-01-05T10"
END = int(datetime(2026, 1, 5, 11, tzinfo=UTC).timestamp() * 1000)
MINUTE = 60_000


@pytest.mark.usefixtures("small_hours")
def test_a_watermark_of_another_century_does_not_count_and_the_feed_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path, partitions=2) as (feed, lake):
        first = [row(0, "insert", 10, KV, ("1", "a")), *resolved(20, 0, 1), *resolved(FAR, 0, 1)]
        cut = publish(lake, feed.add(lake, first))
        assert cut is not None
        assert (cut.resolved_ts, cut.watermarks) == (20, {"t": {0: 20, 1: 20}})
        (one, two) = read_certificate(lake.store, "shop", 1)["findings"]
        assert (one["code"], one["severity"], one["where"], two["where"]) == ("RESOLVED_TS_AHEAD", "warning", "t[0]@2", "t[1]@1")
        assert show(FAR) in one["detail"]
        cut = publish(lake, feed.add(lake, [row(0, "insert", 30, KV, ("2", "b")), *resolved(40, 0, 1)]))
        assert cut is not None
        assert (cut.resolved_ts, rows_of(lake, "d.k")) == (40, table(("1", "a"), ("2", "b")))


def test_where_nothing_else_was_seen_the_window_is_blocked_with_the_cause(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        hour = feed.add(lake, resolved(FAR))
        with pytest.raises(OrderError) as blocked:
            order(lake, parse_hour(hour))
        assert (blocked.value.code, str(blocked.value.at), blocked.value.exit_code) == ("RESOLVED_TS_AHEAD", "t[0]@0", 3)
        assert "2166-05-07" in str(blocked.value)
        assert "clock_skew_minutes" in blocked.value.remedy


def test_where_the_feed_says_so_one_is_enough_to_block(tmp_path: Path) -> None:
    with opened(tmp_path, policy=Policy(on_finding={"RESOLVED_TS_AHEAD": "block"})) as (feed, lake):
        hour = feed.add(lake, [*resolved(20), *resolved(FAR)])
        with pytest.raises(OrderError, match=r"RESOLVED_TS_AHEAD t\[0\]@1: "):
            progress(lake.feed, lake.store, ensure_events(lake.catalog, lake.feed), None, hour)


def test_a_row_of_another_century_is_named_while_it_waits(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        hour = feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), row(0, "insert", FAR, KV, ("2", "b")), *resolved(20)])
        done = progress(lake.feed, lake.store, ensure_events(lake.catalog, lake.feed), None, hour)
        assert [(a.code, a.where, a.ts) for a in done.ahead] == [("COMMIT_TS_AHEAD", "t[0]@1", FAR)]
        assert done.resolved_ts == 20


def test_a_resolved_ts_counts_up_to_the_hour_s_end_or_its_own_later_timestamp(tmp_path: Path) -> None:
    """Kafka's clock decides where the archive's hours run behind, but not where it is itself ahead of now."""
    now = int(time.time() * 1000)
    stamped = [
        (END + 10 * MINUTE, 1, True),
        (END + 11 * MINUTE, 1, False),
        (END + 60 * MINUTE, END + 50 * MINUTE, now >= END + 50 * MINUTE),
        (END + 61 * MINUTE, END + 50 * MINUTE, False),
        (max(now, END) + 3600 * MINUTE, max(now, END) + 3600 * MINUTE, False),
        (1 << 45, 1, False),
    ]
    for at_ms, stamp, counted in stamped:
        with opened(tmp_path / f"{at_ms}-{stamp}") as (feed, lake):
            feed.stamp = stamp
            ts = from_ms(at_ms) - (1 << 64 if at_ms >= 1 << 45 else 0)
            feed.add(lake, [*resolved(20), *resolved(ts)])
            best, ahead = marks(lake.feed, ensure_events(lake.catalog, lake.feed), HOUR, {("t", 0): 1})
            assert (best, len(ahead)) == ({("t", 0): ts if counted else 20}, 0 if counted else 1), at_ms


def test_how_far_clocks_may_be_apart_is_a_policy(tmp_path: Path) -> None:
    feed = lakes.feed(tmp_path)
    assert [counts(feed, HOUR, from_ms(END + m * MINUTE)) for m in (10, 11)] == [True, False]
    wide = lakes.feed(tmp_path, policy=Policy(clock_skew_minutes=600))
    assert [counts(wide, HOUR, from_ms(END + m * MINUTE)) for m in (600, 601)] == [True, False]
    assert [checkpoint_counts(feed, END, from_ms(END + m * MINUTE)) for m in (10, 11)] == [True, False]


def test_a_checkpoint_that_was_recorded_before_its_time_does_not_count(tmp_path: Path) -> None:
    recorded = tmp_path / "checkpoints.json"
    feed = lakes.feed(tmp_path, watermark={"from": "checkpoints", "uri": str(recorded)})
    true = {"at_ms": END - MINUTE, "checkpoint_ts": from_ms(END - 2 * MINUTE)}
    recorded.write_text(json.dumps([true, {"at_ms": END - 1, "checkpoint_ts": FAR}]))
    nothing = Coverage(prefixes={}, holes={})
    assert resolved_now(feed, {}, nothing, HOUR) == (true["checkpoint_ts"], true["at_ms"])
    recorded.write_text(json.dumps([{"at_ms": END - 1, "checkpoint_ts": FAR}]))
    with pytest.raises(OrderError, match=r"RESOLVED_TS_AHEAD: checkpoints\.json: .*2166-05-07"):
        resolved_now(feed, {}, nothing, HOUR)


def test_a_lake_that_published_such_a_cut_is_told_to_rollback(tmp_path: Path) -> None:
    """As a version did that believed every resolved ts."""
    with opened(tmp_path) as (feed, lake):
        first = cheap_publish(lake, None, 1)
        second = cheap_publish(lake, first, 2)
        document = "cuts/shop/00000002.json"
        spoilt = second.model_copy(update={"resolved_ts": FAR, "hour": "2026-01-05T09", "watermarks": {"t": {0: FAR}}})
        lake.store.write(document, spoilt.model_dump_json().encode())
        hour = feed.add(lake, resolved(from_ms(END - MINUTE)))
        with pytest.raises(OrderError) as still:
            order(lake, parse_hour(hour))
        assert (still.value.code, still.value.exit_code) == ("STANDS_STILL", 3)
        assert "cut 2 was published at" in still.value.message
        assert "2166-05-07" in still.value.message
        assert "`tidelake rollback --feed shop --to 'cut 1'`" in still.value.remedy
        rollback(lake, "cut 1")
        newest = newest_cut(lake.catalog, lake.store, "shop")
        assert newest is not None
        assert newest.resolved_ts == first.resolved_ts
        assert "redo --feed shop --from 2026-01-05T09" in published_ahead(lake.feed, spoilt, None).remedy


def test_watermarks_of_such_a_cut_are_not_taken_over(tmp_path: Path) -> None:
    feed = lakes.feed(tmp_path)
    cut = Cut(feed="shop", seq=1, hour=HOUR, applied_ts=0, resolved_ts=20, run="r", version="0", watermarks={"t": {0: 20, 1: FAR}})
    assert believed_before(feed, cut) == {"t": {0: 20}}
    with opened(tmp_path) as (_, lake):
        assert not is_ahead(feed, lake.store, cut)


def test_asof_before_everything_that_the_first_cut_holds_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Lake, "spark")
    with opened(tmp_path) as (feed, lake):
        hour = feed.add(lake, [*resolved(10), row(0, "insert", 12, KV, ("1", "a")), *resolved(20)])
        first = cheap_publish(lake, None, 1)
        document = first.model_copy(update={"generations": {hour: 1}, "hour": hour})
        lake.store.write("cuts/shop/00000001.json", document.model_dump_json().encode())
        for ask in (lambda: table_asof(lake, "d.k", 9).__enter__(), lambda: standing(lake, 9)):
            with pytest.raises(ConfigError) as refused:
                ask()
            assert (refused.value.code, refused.value.exit_code) == ("BEFORE_FIRST_CUT", 2)
            assert "its first cut is cut 1 at" in refused.value.message
            assert "with changes from 10 (" in refused.value.message
        assert standing(lake, 10).ts == 10
