from __future__ import annotations

from pathlib import Path

from tests.land.archive import HOUR, at, lake, make_feed, messages, put
from tidelake.feed import Feed
from tidelake.land import land_hour
from tidelake.land.coverage import Coverage, coverage
from tidelake.land.manifest import Manifest, Partition, all_newest, generations, newest
from tidelake.land.ranges import Ranges, holes


def hour(name: str, **partitions: Ranges) -> Manifest:
    """A manifest of which only the ranges matter; p0="…" are those of partition 0."""
    facts = {
        int(p[1:]): Partition(
            first=None, last=None, count=0, bytes=0, ranges=r, gaps=holes(r), min_timestamp_ms=None, max_timestamp_ms=None
        )
        for p, r in partitions.items()
    }
    return Manifest(
        feed="f", hour=name, generation=1, protocol="open", layout="", sources=(), objects=(), partitions={"t": facts}, findings=()
    )


def covered(*manifests: Manifest, until: str) -> Coverage:
    return coverage({m.hour: m for m in manifests}, until)


def test_contiguous_hours_are_one_prefix() -> None:
    found = covered(hour("2026-01-05T10", p0=((0, 9),), p1=((3, 4),)), hour("2026-01-05T11", p0=((10, 19),)), until="2026-01-05T11")
    assert found == Coverage(first_hour="2026-01-05T10", prefixes={("t", 0): (0, 19), ("t", 1): (3, 4)}, missing_hours=())


def test_the_prefix_ends_at_the_first_gap_of_any_hour() -> None:
    found = covered(hour("2026-01-05T10", p0=((0, 4), (8, 9))), hour("2026-01-05T11", p0=((10, 19),)), until="2026-01-05T11")
    assert found.prefixes == {("t", 0): (0, 4)}
    assert [found.holds("t", 0, offset) for offset in (0, 4, 5, 8, 19)] == [True, True, False, False, False]
    assert not found.holds("t", 1, 0)


def test_late_records_in_another_hour_fill_a_gap() -> None:
    found = covered(hour("2026-01-05T10", p0=((0, 2), (36, 36))), hour("2026-01-05T11", p0=((3, 35),)), until="2026-01-05T11")
    assert found.prefixes == {("t", 0): (0, 36)}


def test_hours_after_the_asked_one_do_not_count() -> None:
    hours = (hour("2026-01-05T10", p0=((0, 9),)), hour("2026-01-05T11", p0=((10, 19),)))
    assert covered(*hours, until="2026-01-05T10").prefixes == {("t", 0): (0, 9)}


def test_hours_that_are_not_landed_are_named_from_the_first_landed_one_to_the_asked_one() -> None:
    hours = (hour("2026-01-05T22"), hour("2026-01-06T01"))
    assert covered(*hours, until="2026-01-06T03").missing_hours == ("2026-01-05T23", "2026-01-06T00", "2026-01-06T02", "2026-01-06T03")
    assert covered(until="2026-01-06T03") == Coverage(first_hour=None, prefixes={}, missing_hours=())


def test_a_partition_of_which_nothing_is_landed_has_no_prefix() -> None:
    assert covered(hour("2026-01-05T10", p0=()), until="2026-01-05T10").prefixes == {}


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
    assert coverage(found, "2026-01-05T12").prefixes == {("shop", 0): (0, 29)}


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
