"""Causes are found in the lake: what blocks, what a cut lacks, warnings, and how old the published data is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.lake import cheap, lakes
from tests.land.archive import HOUR, make_feed, messages, put
from tidelake.config.lake_paths import blocked_key, notices_key
from tidelake.errors import DamageError, OrderError
from tidelake.lake.cut import Reason
from tidelake.lake.opened import Lake
from tidelake.notices.cause import Notice
from tidelake.notices.look import forget, look
from tidelake.publish.rollback import rollback
from tidelake.run import decode, land, order, validate
from tidelake.tso import format_hour
from tidelake.validate.blocked import keep_blocked
from tidelake.validate.quality.verdict import Check

ALL = {"class": "a.B", "on": ["blocked", "incomplete", "warning", "recovered"]}
GAP = OrderError("offsets are missing", code="GAP", remedy="bring them back")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake.of(lakes.feed(tmp_path, notify=[ALL])) as opened:
        yield opened


def told(lake: Lake, hours: float = 0, *, deliver: bool = True) -> list[str]:
    """What a look at this time after the start has the notifier told."""
    notices = [n for several in look(lake, cheap.START + timedelta(hours=hours)).values() for n in several]
    if deliver and notices:
        forget(lake, [n.number for n in notices])
    return [f"{n.event} {n.cause.code} {n.cause.hour}" for n in notices]


def only(lake: Lake, hours: float = 0) -> Notice:
    [[notice]] = look(lake, cheap.START + timedelta(hours=hours)).values()
    return notice


def hour(number: int) -> str:
    return format_hour(cheap.START + timedelta(hours=number))


def test_a_feed_that_never_ran_has_nothing_to_tell_and_gets_no_document(lake: Lake) -> None:
    assert told(lake) == []
    assert list(lake.store.objects()) == []


def test_the_first_hour_of_a_feed_is_told_though_no_cut_is_there(lake: Lake) -> None:
    keep_blocked(lake, hour(0), GAP)
    notice = only(lake)
    assert (notice.cause.why, notice.cause.todo, notice.standing.cut) == ("offsets are missing", "bring them back", None)
    assert told(lake) == ["blocked GAP 2026-01-01T00"]


def test_an_hour_is_told_once_over_its_retries_and_the_hours_that_wait_for_it(lake: Lake) -> None:
    cut = cheap.publish(lake, None, 0)
    heard = list[str]()
    for attempt in range(4):  # a retry of hour 1, and the hour after it
        keep_blocked(lake, hour(1), GAP)
        keep_blocked(lake, hour(2 + attempt), OrderError("hour 1 is not landed", code="HOUR_MISSING"))
        heard += told(lake, 3)
    assert heard == ["blocked GAP 2026-01-01T01"]
    cheap.publish(lake, cut, 1)
    assert told(lake, 3) == ["recovered GAP 2026-01-01T01"]  # and not of hour 2, which said so before this cut
    keep_blocked(lake, hour(2), GAP)
    assert told(lake, 3) == ["blocked GAP 2026-01-01T02"]


def test_an_hour_that_is_published_already_blocks_nothing(lake: Lake) -> None:
    """A redo of it may be blocked; who started it sees that."""
    cheap.publish(lake, cheap.publish(lake, None, 0), 1)
    keep_blocked(lake, hour(1), GAP)
    assert told(lake, 2) == []


def test_a_look_reads_all_cuts_since_the_last_one(lake: Lake) -> None:
    loss = Reason(code="ACCEPTED_LOSS", detail="2 messages", cut=2, hour=hour(1))
    late = [Check(table="d.k", rule="rows between", severity="warning", success=False, expected="5", observed="4", column="v")]
    first = cheap.publish(lake, None, 0)
    assert told(lake) == []
    second = cheap.publish(lake, first, 1, lacks=[loss], checks=late)
    third = cheap.publish(lake, second, 2, lacks=[loss])
    assert told(lake, 3) == [
        "incomplete ACCEPTED_LOSS 2026-01-01T01",
        "warning EXPECTATION 2026-01-01T01",
        "recovered EXPECTATION 2026-01-01T01",
    ]
    assert told(lake, 3) == []
    cheap.publish(lake, third, 3, lacks=[loss])
    assert told(lake, 4) == []
    rollback(lake, "cut 1")
    assert told(lake, 4) == ["recovered ACCEPTED_LOSS 2026-01-01T01"]


def test_a_warning_says_the_rule_and_what_was_found(lake: Lake) -> None:
    check = Check(
        table="d.k", rule="not null", severity="warning", success=False, expected="0", observed="4", column="v", origin="d.k.toml 2"
    )
    cheap.publish(lake, None, 0, checks=[check, check.model_copy(update={"success": True, "column": "w"})])
    cause = only(lake).cause
    assert (cause.why, cause.todo) == ("d.k.v: not null: expected 0, found 4", "correct the source or the rule (d.k.toml 2)")


def test_before_the_first_look_only_the_newest_cut_counts(lake: Lake) -> None:
    loss = Reason(code="LATE_ROWS", detail="late", cut=1, hour=hour(0))
    cheap.publish(lake, cheap.publish(lake, None, 0, lacks=[loss]), 1)
    assert told(lake, 2) == []


@pytest.mark.parametrize("blocked", [False, True])
def test_lag_is_the_age_of_the_published_resolved_ts(tmp_path: Path, blocked: bool) -> None:
    slow = {"class": "a.B", "on": ["lag", "recovered"], "lag_minutes": 180}
    with Lake.of(lakes.feed(tmp_path, notify=[slow])) as lake:
        assert told(lake, 99) == []  # nothing is published yet
        cut = cheap.publish(lake, None, 0)
        if blocked:
            keep_blocked(lake, hour(1), GAP)
        assert told(lake, 2.9) == []
        cause = only(lake, 3.2).cause
        assert cause.why.startswith("the published resolved ts is 3 h 12 min old: 2026-01-01 00:00:00.000Z")
        wanted = "hour 2026-01-01T01 is blocked (GAP): bring them back" if blocked else "look at the runs of the feed's DAG"
        assert cause.todo.startswith(wanted)
        assert told(lake, 4) == ["lag LAG 2026-01-01T00"]
        cheap.publish(lake, cut, 1.5)
        assert told(lake, 4) == ["recovered LAG 2026-01-01T00"]


def test_what_is_not_delivered_is_there_at_the_next_look(lake: Lake) -> None:
    keep_blocked(lake, hour(0), GAP)
    assert [told(lake, deliver=False) for _ in range(3)] == [["blocked GAP 2026-01-01T00"]] * 3
    cheap.publish(lake, None, 0)
    assert told(lake, deliver=False) == ["blocked GAP 2026-01-01T00", "recovered GAP 2026-01-01T00"]


def test_a_damaged_memory_is_named_and_what_lasts_is_told_again_without_it(lake: Lake) -> None:
    keep_blocked(lake, hour(0), GAP)
    told(lake)
    lake.store.write(notices_key("shop"), b"{")
    with pytest.raises(DamageError, match=r"notices/shop.json \(1 bytes\) cannot be read.*; remove it"):
        told(lake)
    lake.store.delete(notices_key("shop"))
    assert told(lake) == ["blocked GAP 2026-01-01T00"]


def test_a_run_that_is_blocked_writes_down_why(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, notify=[ALL])
    put(feed, 0, messages(0, 4))
    put(feed, 0, messages(8, 9))
    put(feed, 1, messages(0, 9))
    with Lake.of(feed) as lake:
        with pytest.raises(OrderError, match="GAP"):
            land(lake, HOUR)
        assert told(lake) == ["blocked GAP 2026-01-05T10"]
        assert "shop[0]@5: hour 2026-01-05T10: offsets 5–7 are missing" in lake.store.read(blocked_key("small", "2026-01-05T10")).decode()
        put(feed, 0, messages(5, 7))
        land(lake, HOUR)
        assert told(lake) == []  # the hour is not published yet


def test_every_stage_that_is_blocked_writes_down_why(tmp_path: Path) -> None:
    with Lake.of(make_feed(tmp_path, notify=[ALL])) as lake:
        with pytest.raises(OrderError, match="NOT_LANDED"):
            decode(lake, HOUR)
        assert told(lake) == ["blocked NOT_LANDED 2026-01-05T10"]
        with pytest.raises(OrderError, match=r"HOUR_MISSING|NOT_DECODED"):
            order(lake, HOUR)
        assert told(lake)[0] == "recovered NOT_LANDED 2026-01-05T10"
        with pytest.raises(OrderError, match="NOT_ORDERED"):
            validate(lake, HOUR)
        assert told(lake)[-1] == "blocked NOT_ORDERED 2026-01-05T10"
