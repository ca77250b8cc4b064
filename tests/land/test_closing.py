"""When an hour is complete, and what is said of one that is not."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.land.archive import HOUR, TOPIC, archive, at, codes, lake, make_feed, manifest, messages, put
from tidelake.archives import layout_of
from tidelake.config.feed import Feed
from tidelake.errors import Coordinates, OrderError
from tidelake.land import land_hour
from tidelake.land.closing import Ends, ends_of, waits_for
from tidelake.land.listing import lister

LATER = datetime(2026, 1, 6, tzinfo=UTC)


def feed_of(tmp_path: Path, rule: str | None = "next-offset", minutes: int | None = None, **settings: Any) -> Feed:
    source = {"uri": f"{tmp_path}/archive", "layout": "aiven-jsonl", "closed_by": rule, "quiet_minutes": minutes}
    source |= settings.pop("source", {})
    return make_feed(tmp_path, source=source, **settings)


def waits(feed: Feed, ends: Ends | None = None, now: datetime = LATER) -> list[str]:
    """What the hour waits for, the archive having been written long before `now`."""
    store, layout = archive(feed), layout_of(feed.source.layout or "")
    return [str(w) for w in waits_for(feed, store, lake(feed), layout, HOUR, lister(feed, store, store, HOUR, layout)(), ends or {}, now)]


def written(feed: Feed) -> datetime:
    """When the newest object of the hour was written, by the store's clock: half an hour after the hour."""
    late = at(1) + timedelta(minutes=30)
    for info in archive(feed).objects(""):
        os.utime(Path(feed.source.uri) / info.key, (late.timestamp(), late.timestamp()))
    newest = lister(feed, archive(feed), archive(feed), HOUR, layout_of(feed.source.layout or ""))().newest_ms
    return datetime.fromtimestamp(newest / 1000, UTC)


def test_an_hour_that_is_not_over_is_open_by_every_rule(tmp_path: Path) -> None:
    for rule in ("next-offset", "resolved", "quiet"):
        feed = feed_of(tmp_path, rule, 0)
        assert waits(feed, now=at(1) - timedelta(seconds=1)) == ["the hour ends at 2026-01-05T11:00:00Z"]


def test_every_expected_partition_must_have_an_object_of_a_later_hour(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, partitions=3)
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(10, 19), hours=1)
    put(feed, 2, messages(0, 9), hours=2)
    assert waits(feed) == ["shop[1]: there is no object of a later hour"]
    put(feed, 1, messages(5, 9), hours=8)
    assert waits(feed) == []


def test_later_hours_are_looked_at_up_to_now_and_a_day_at_most(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, partitions=1)
    put(feed, 0, messages(0, 9), hours=24)
    assert waits(feed, now=at(24)) == []
    assert waits(feed, now=at(24) - timedelta(seconds=1)) == ["shop[0]: there is no object of a later hour"]
    feed = feed_of(tmp_path / "later", partitions=1)
    put(feed, 0, messages(0, 9), hours=25)
    assert waits(feed, now=at(48)) == ["shop[0]: there is no object of a later hour"]


def test_the_next_object_must_continue_where_the_hour_ends(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, partitions=1)
    put(feed, 0, messages(13, 19), hours=1)
    put(feed, 0, messages(20, 29), hours=1)
    assert waits(feed, {(TOPIC, 0): 12}) == []
    assert waits(feed, {(TOPIC, 0): None}) == []
    assert waits(feed, {(TOPIC, 0): 9}) == ["shop[0]: its next object begins at offset 13, and no object has 10–12"]


def test_a_name_that_says_the_last_offset_says_nothing_of_the_first(tmp_path: Path) -> None:
    template = "{topic}/{yyyy}{MM}{dd}{HH}/{partition}/{start_offset}"
    feed = feed_of(tmp_path, partitions=1, source={"layout": "lenses-json", "template": template})
    archive(feed).write("shop/2026010511/0/29.json", b"{}")
    assert waits(feed, {(TOPIC, 0): 9}) == []


def test_a_pattern_waits_for_the_topics_that_the_hour_has(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, partitions=1, topics=("/sh.*/",))
    put(feed, 0, messages(0, 9), topic="shoes")
    put(feed, 0, messages(0, 9), topic="shirts", hours=-1)
    assert waits(feed, {("shoes", 0): 9}) == ["shoes[0]: there is no object of a later hour"]


def test_quiet_counts_from_the_newest_object_whatever_later_hours_hold(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, "quiet", 20)
    put(feed, 0, messages(0, 9))
    newest = written(feed)
    end = newest + timedelta(minutes=20)
    said = f"its newest object was written at {newest:%Y-%m-%dT%H:%M:%SZ}, and it must be quiet until {end:%Y-%m-%dT%H:%M:%SZ}"
    assert waits(feed, now=end - timedelta(seconds=1)) == [said]
    assert waits(feed, now=end) == []


def test_an_archive_that_was_copied_long_after_the_hour_is_not_waited_for(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, "quiet", 10_000)
    put(feed, 0, messages(0, 9))
    assert len(waits(feed, now=at(4) - timedelta(seconds=1))) == 1
    assert waits(feed, now=at(4)) == []


def test_quiet_counts_from_the_hours_end_where_no_object_is_newer(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, "quiet", 20)
    said = "the hour ended at 2026-01-05T11:00:00Z, and it must be quiet until 2026-01-05T11:20:00Z"
    assert waits(feed, now=at(1) + timedelta(minutes=19)) == [said]
    assert waits(feed, now=at(1) + timedelta(minutes=20)) == []


def test_a_quiet_time_may_be_asked_for_beside_the_next_offset(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, "next-offset", 20, partitions=1)
    put(feed, 0, messages(0, 9))
    end = written(feed) + timedelta(minutes=20)
    (said,) = waits(feed, now=end - timedelta(seconds=1))
    assert said.endswith(f", and it must be quiet until {end:%Y-%m-%dT%H:%M:%SZ}")
    assert waits(feed, now=end) == ["shop[0]: there is no object of a later hour"]


@pytest.mark.parametrize(
    ("watermark", "rule", "minutes"),
    [({}, "next-offset", 0), ({"from": "checkpoints", "uri": "x"}, "quiet", 15)],
)
def test_the_strongest_rule_that_the_source_allows_is_the_default(
    watermark: dict[str, str], rule: str, minutes: int, tmp_path: Path
) -> None:
    feed = feed_of(tmp_path, None, watermark=watermark)
    assert (feed.closed_by, feed.quiet_minutes) == (rule, minutes)
    assert feed_of(tmp_path, "quiet", watermark=watermark).quiet_minutes == 15


def test_an_hour_that_was_landed_too_early_says_so_until_the_archive_went_on(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(0, 9))
    put(feed, 1, messages(0, 4))
    put(feed, 1, messages(5, 9), hours=1)
    report = land_hour(feed, HOUR)
    assert (report.messages, codes(report.findings)) == (15, [("HOUR_NOT_CLOSED", "warning")])
    assert (report.findings[0].topic, report.findings[0].partition) == (TOPIC, 0)
    assert report.findings[0].detail == "the hour may not be complete: there is no object of a later hour"
    assert manifest(feed).findings == report.findings
    put(feed, 0, messages(10, 19), hours=1)
    report = land_hour(feed, HOUR)
    assert (report.new, report.findings) == (False, ())


def test_an_open_hour_blocks_where_the_resolved_ts_does_not_stand_in_the_messages(tmp_path: Path) -> None:
    watermark = {"from": "checkpoints", "uri": "x"}
    feed = feed_of(tmp_path, watermark=watermark, partitions=1)
    put(feed, 0, messages(0, 9))
    with pytest.raises(
        OrderError, match=r"HOUR_NOT_CLOSED shop\[0\]: hour 2026-01-05T10: the hour may not be complete: there is no object of a later"
    ):
        land_hour(feed, HOUR)
    assert manifest(feed).partitions[TOPIC][0].count == 10
    feed = feed_of(tmp_path, watermark=watermark, partitions=1, policy={"on_finding": {"HOUR_NOT_CLOSED": "warn"}})
    assert codes(land_hour(feed, HOUR).findings) == [("HOUR_NOT_CLOSED", "warning")]


def test_a_partition_that_was_silent_goes_on_from_the_hours_before(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, partitions=1, policy={"on_gap": "warn", "on_finding": {"HOUR_NOT_CLOSED": "block"}})
    put(feed, 0, messages(0, 9), hours=-1)
    put(feed, 0, messages(12, 19), hours=1)
    with pytest.raises(OrderError) as caught:
        land_hour(feed, at(-1))
    assert (caught.value.code, caught.value.at) == ("HOUR_NOT_CLOSED", Coordinates(TOPIC, 0))
    with pytest.raises(OrderError, match="its next object begins at offset 12, and no object has 10–11"):
        land_hour(feed, HOUR)


def test_the_end_of_a_partition_is_its_last_offset_over_all_hours_in_conflict_or_not(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, policy={"on_finding": {"OVERLAP_CONFLICT": "warn"}})
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(9, 9, "other"), name=9)
    put(feed, 1, messages(0, 4))
    put(feed, 1, messages(5, 9), hours=1)
    put(feed, 0, messages(3, 4), hours=1)
    land_hour(feed, HOUR)
    land_hour(feed, at(1))
    first, second = manifest(feed), manifest(feed, "2026-01-05T11")
    assert ends_of([first]) == {(TOPIC, 0): 9, (TOPIC, 1): 4}
    assert ends_of([first, second]) == {(TOPIC, 0): 9, (TOPIC, 1): 9}
