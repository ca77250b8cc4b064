"""Offsets that lie under a later hour's folder are not lost: they are said to lie there, and landing that hour closes the hole."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.archives.objects import Message, confluent, protocol, suited
from tests.land.archive import HOUR, TOPIC, archive, at, codes, lake, make_feed, manifest, messages, put
from tidelake.config.feed import Feed
from tidelake.errors import OrderError
from tidelake.land import land_hour
from tidelake.land.comparison import compare_hour
from tidelake.land.store.coverage import beyond, coverage
from tidelake.land.store.manifest import all_newest

TEN, ELEVEN, TWELVE = (f"2026-01-05T{hour}" for hour in (10, 11, 12))
OWN_HOUR, LATER_HOUR = "hour={:%Y-%m-%dT%H}", "{:%Y/%m/%d/%H}"

Put = Callable[[Feed, int, list[Message]], str]


def aiven(feed: Feed, hours: int, content: list[Message]) -> str:
    """topic-partition-offset below a folder of the hour."""
    return put(feed, 0, content, hours=hours)


def confluent_named(feed: Feed, hours: int, content: list[Message]) -> str:
    """Confluent's TimeBasedPartitioner: topics/<topic>/year=…/hour=…/<topic>+<partition>+<offset>.json.gz; offsets in names only."""
    moment = HOUR + timedelta(hours=hours)
    name = f"{TOPIC}+0+{content[0].offset:010d}.json.gz"
    key = f"{TOPIC}/year={moment:%Y}/month={moment:%m}/day={moment:%d}/hour={moment:%H}/{name}"
    archive(feed).write(key, gzip.compress(confluent(content), mtime=0))
    return key


def feed_of(root: Path, layout: str = "aiven-jsonl", **settings: object) -> Feed:
    source = {"uri": f"{root}/archive", "layout": layout}
    if layout == "confluent-json":
        source["template"] = "{topic}/year={yyyy}/month={MM}/day={dd}/hour={HH}/{topic}+{partition}+{start_offset}.json.gz"
    return make_feed(root, **({"partitions": 1, "protocol": protocol(layout), "source": source} | settings))


def said(feed: Feed, hours: int) -> list[tuple[str, str, str]]:
    """The findings of landing an hour."""
    return [(f.code, f.severity, f.detail) for f in land_hour(feed, at(hours)).findings if f.code.startswith(("GAP", "MISSING"))]


LAYOUTS = pytest.mark.parametrize(("layout", "write"), [("aiven-jsonl", aiven), ("confluent-json", confluent_named)])


@LAYOUTS
@pytest.mark.parametrize("hours", [1, 2])
def test_a_hole_that_a_later_hour_fills_is_said_to_lie_there_and_closed_by_it(layout: str, write: Put, hours: int, tmp_path: Path) -> None:
    feed = feed_of(tmp_path, layout)
    write(feed, 0, suited(layout, messages(0, 9)))
    late = write(feed, hours, suited(layout, messages(10, 19)))
    write(feed, 0, suited(layout, messages(20, 29)))
    write(feed, hours, suited(layout, messages(30, 39)))
    later = f"2026-01-05T{10 + hours}"
    lacks = "the hour lacks offsets 10–19 (10 messages)"
    assert said(feed, 0) == [("GAP_AHEAD", "warning", f"{lacks}: by their names, objects of hour {later} hold them: {late}")]
    for n in range(1, hours + 1):
        if n < hours:
            write(feed, n, suited(layout, messages(40, 40)))
        assert "GAP" not in [code for code, _, _ in said(feed, n) if hours == 1]
    assert said(feed, 0) == [("GAP_CLOSED", "info", f"{lacks}: closed by hour {later}, which is landed")]


def test_the_hole_stays_one_until_its_offsets_are_landed_and_nothing_behind_it_counts(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    for hours, first in ((0, 0), (1, 10), (0, 20), (1, 30)):
        put(feed, 0, messages(first, first + 9), hours=hours)
    land_hour(feed, at(0))
    held = all_newest(lake(feed), feed.name)
    assert coverage(held.values()).prefixes == {TOPIC: {0: (0, 9)}}
    assert beyond(held, coverage(held.values()).prefixes) == [TEN]
    land_hour(feed, at(1))
    for order in (1, -1):
        both = dict(list(all_newest(lake(feed), feed.name).items())[::order])
        whole = coverage(both.values())
        assert (whole.prefixes, dict(whole.holes), beyond(both, whole.prefixes)) == ({TOPIC: {0: (0, 39)}}, {}, [])


def test_an_hour_that_blocked_before_the_later_objects_came_does_not_when_they_are_there(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(20, 29))
    with pytest.raises(OrderError, match="GAP"):
        land_hour(feed, at(0))
    assert codes(manifest(feed).findings) == [("GAP", "critical")]
    put(feed, 0, messages(10, 19), hours=1)
    assert [code for code, _, _ in said(feed, 0)] == ["GAP_AHEAD"]
    assert said(feed, 1) == []
    assert [code for code, _, _ in said(feed, 0)] == ["GAP_CLOSED"]
    assert manifest(feed).generation == 1, "the hour's own objects did not change"


def test_what_no_later_object_begins_with_stays_missing(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(20, 29))
    late = put(feed, 0, messages(15, 19), hours=1)
    with pytest.raises(OrderError) as caught:
        land_hour(feed, at(0))
    assert (caught.value.code, caught.value.message) == ("GAP", "hour 2026-01-05T10: offsets 10–14 are missing (5 messages)")
    assert [(f.code, f.detail) for f in manifest(feed).findings][1:] == [
        ("GAP_AHEAD", f"the hour lacks offsets 15–19 (5 messages): by their names, objects of hour {ELEVEN} hold them: {late}")
    ]


def test_what_a_name_promised_and_its_object_does_not_hold_blocks_the_later_hour(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(20, 29))
    put(feed, 0, messages(10, 14), hours=1)
    assert [code for code, _, _ in said(feed, 0)] == ["GAP_AHEAD"]
    with pytest.raises(OrderError, match=r"GAP shop\[0\]@15: hour 2026-01-05T11: offsets 15–19 are missing"):
        land_hour(feed, at(1))


def test_a_later_file_of_a_landed_hour_is_seen_before_that_hour_is_landed_again(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(20, 29))
    put(feed, 0, messages(30, 39), hours=1)
    with pytest.raises(OrderError, match="GAP"):
        land_hour(feed, at(0))
    land_hour(feed, at(1))
    late = put(feed, 0, messages(10, 19), hours=1)
    assert said(feed, 0)[0][2].endswith(late)


def test_a_partition_whose_messages_all_lie_in_the_next_hour_is_not_missing(tmp_path: Path) -> None:
    feed = make_feed(tmp_path)
    for partition in (0, 1):
        put(feed, partition, messages(0, 9))
    put(feed, 0, messages(10, 19), hours=1)
    late = put(feed, 1, messages(10, 29), hours=2)
    land_hour(feed, at(0))
    lacks = "there is no message in the hour"
    assert said(feed, 1) == [
        ("GAP_AHEAD", "warning", f"{lacks}: by their names, objects of hour {TWELVE} go on at offset 10, so none is lost: {late}")
    ]
    with pytest.raises(OrderError, match=r"MISSING_PARTITION shop\[0\]"):
        land_hour(feed, at(2))
    assert said(feed, 1) == [("GAP_CLOSED", "info", f"{lacks}: closed by hour {TWELVE}, which is landed")]


def test_a_partition_that_goes_on_behind_a_hole_is_missing(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(11, 19), hours=2)
    land_hour(feed, at(0))
    with pytest.raises(OrderError, match="MISSING_PARTITION"):
        land_hour(feed, at(1))


def test_a_feed_may_block_where_hours_do_not_lie_in_their_folders(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, policy={"on_finding": {"GAP_AHEAD": "block"}})
    for hours, first in ((0, 0), (1, 10), (0, 20)):
        put(feed, 0, messages(first, first + 9), hours=hours)
    with pytest.raises(OrderError) as caught:
        land_hour(feed, at(0))
    assert (caught.value.code, 'hours = "timestamps"' in caught.value.remedy) == ("GAP_AHEAD", True)
    land_hour(feed, at(1))
    assert [code for code, _, _ in said(feed, 0)] == ["GAP_CLOSED"]


def test_names_that_hold_the_last_offset_promise_what_lies_before_it(tmp_path: Path) -> None:
    layout = "lenses-json"
    feed = feed_of(tmp_path, layout)
    for hours, first in ((0, 0), (1, 10), (0, 20)):
        put(feed, 0, suited(layout, messages(first, first + 9)), hours=hours, name=first + 9)
    assert [code for code, _, _ in said(feed, 0)] == ["GAP_AHEAD"]


def test_an_hour_waits_for_the_later_hour_that_goes_on_where_it_ends(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, source={"uri": f"{tmp_path}/archive", "layout": "aiven-jsonl", "closed_by": "next-offset"})
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(20, 29), hours=1)
    land_hour(feed, at(0))
    (wait,) = compare_hour(feed, HOUR).waits
    assert str(wait) == "shop[0]: its next object begins at offset 20, and no object has 10–19"
    put(feed, 0, messages(10, 19), hours=2)
    assert compare_hour(feed, HOUR).waits == ()
