from __future__ import annotations

from pathlib import Path

from tests.land.archive import HOUR, at, lake, make_feed, messages, put
from tests.land.manifests import hour
from tidelake.config.feed import Feed
from tidelake.errors import Coordinates
from tidelake.land import land_hour
from tidelake.land.store.coverage import Coverage, coverage, missing_hours
from tidelake.land.store.manifest import all_newest, generations, newest


def test_contiguous_hours_are_one_prefix() -> None:
    found = coverage([hour("2026-01-05T10", p0=((0, 9),), p1=((3, 4),)), hour("2026-01-05T11", p0=((10, 19),))])
    assert found == Coverage(prefixes={"t": {0: (0, 19), 1: (3, 4)}}, holes={})


def test_the_prefix_ends_at_the_first_hole_of_any_hour() -> None:
    found = coverage([hour("2026-01-05T10", p0=((0, 4), (8, 9))), hour("2026-01-05T11", p0=((10, 19),))])
    assert found == Coverage(prefixes={"t": {0: (0, 4)}}, holes={Coordinates("t", 0): (5, 7)})


def test_late_records_in_another_hour_fill_a_hole() -> None:
    found = coverage([hour("2026-01-05T10", p0=((0, 2), (36, 36))), hour("2026-01-05T11", p0=((3, 35),))])
    assert found == Coverage(prefixes={"t": {0: (0, 36)}}, holes={})


def test_what_was_covered_before_counts() -> None:
    known = {"t": {0: (0, 9), 2: (5, 6)}}
    found = coverage([hour("2026-01-05T11", p0=((10, 19),), p1=((7, 7),))], known)
    assert found == Coverage(prefixes={"t": {0: (0, 19), 1: (7, 7), 2: (5, 6)}}, holes={})
    assert coverage([hour("2026-01-05T11", p0=((12, 19),))], known).holes == {Coordinates("t", 0): (10, 11)}


def test_hours_that_are_not_landed_are_named_from_the_first_landed_one_to_the_asked_one() -> None:
    found = missing_hours(["2026-01-05T22", "2026-01-06T01"], "2026-01-06T03")
    assert found == ("2026-01-05T23", "2026-01-06T00", "2026-01-06T02", "2026-01-06T03")
    assert missing_hours([], "2026-01-06T03") == ()


def test_a_partition_of_which_nothing_is_landed_has_no_prefix() -> None:
    assert coverage([hour("2026-01-05T10", p0=())]).prefixes == {}


def three_hours(root: Path) -> Feed:
    feed = make_feed(root, partitions=1)
    for hours in range(3):
        put(feed, 0, messages(hours * 10, hours * 10 + 9), hours=hours)
        land_hour(feed, at(hours))
    put(feed, 0, messages(20, 29), name=99, hours=2)
    land_hour(feed, at(2))
    return feed


def test_the_newest_generation_of_each_hour_is_found(tmp_path: Path) -> None:
    feed = three_hours(tmp_path)
    store = lake(feed)
    assert generations(store, feed.name) == {"2026-01-05T10": 1, "2026-01-05T11": 1, "2026-01-05T12": 2}
    found = all_newest(store, feed.name)
    assert [(m.hour, m.generation) for m in found.values()] == [("2026-01-05T10", 1), ("2026-01-05T11", 1), ("2026-01-05T12", 2)]
    assert list(all_newest(store, feed.name, since="2026-01-05T11", until="2026-01-05T11")) == ["2026-01-05T11"]
    assert newest(store, feed.name, "2026-01-05T12") == found["2026-01-05T12"]
    assert newest(store, feed.name, "2026-01-05T13") is None
    assert coverage(found.values()).prefixes == {"shop": {0: (0, 29)}}


def test_manifests_of_other_feeds_and_other_files_are_not_taken_for_the_feeds_own(tmp_path: Path) -> None:
    feed = three_hours(tmp_path)
    store = lake(feed)
    store.write("manifests/small/hour=2026-01-05T10/notes.txt", b"")
    store.write("manifests/small2/hour=2026-01-05T09/000001.json", b"")
    assert list(all_newest(store, feed.name)) == ["2026-01-05T10", "2026-01-05T11", "2026-01-05T12"]


def test_a_manifest_reads_back_as_it_was_written(tmp_path: Path) -> None:
    feed = three_hours(tmp_path)
    found = newest(lake(feed), feed.name, "2026-01-05T12")
    assert found is not None
    assert lake(feed).read("manifests/small/hour=2026-01-05T12/000002.json") == found.to_json()
    assert land_hour(feed, HOUR).generation == 1
