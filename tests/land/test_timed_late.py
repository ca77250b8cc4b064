"""Hours of archives whose paths say none, where something was landed early, came late or was written anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.land.archive import HOUR, TOPIC, at, codes, cover, manifest
from tests.land.timed import feed_of, messages, offsets, put, span
from tidelake.land import land_hour

ANY = {"template": "{topic}/{partition}/{any}"}


def test_what_comes_after_the_next_hour_was_landed_belongs_to_that(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, messages(0, 1, 2), 3)
    for hours in (0, 1):
        land_hour(feed, at(hours))
    put(feed, messages(2, 50, 70, 130), 131)
    new = [land_hour(feed, at(hours)).new for hours in (0, 1, 2)]
    assert (new, land_hour(feed, HOUR).new) == ([True, True, True], False)
    assert [offsets(feed, h, tmp_path) for h in range(3)] == [[0, 1], [2, 3], [4]]
    assert [span(feed, h) for h in range(3)] == [(0, 2), (2, 4), (4, None)]


def test_an_hour_has_ended_as_soon_as_a_message_behind_it_is_there(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, source={"closed_by": "next-offset"})
    put(feed, messages(0, 1, 2), 3)
    assert codes(land_hour(feed, HOUR).findings) == [("HOUR_NOT_CLOSED", "warning")]
    put(feed, messages(2, 61), 62)
    report = land_hour(feed, HOUR)
    assert (report.generation, report.objects_written, report.findings, span(feed, 0)) == (2, 0, (), (0, 2))


def test_the_first_hour_may_lie_behind_all_that_is_there(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, messages(0, 1, 2), 3)
    put(feed, messages(2, 50), 51)
    land_hour(feed, at(3))
    assert (offsets(feed, 3, tmp_path), span(feed, 3)) == ([], (3, None))
    put(feed, messages(3, 200, 250), 251)
    land_hour(feed, at(4))
    assert offsets(feed, 4, tmp_path) == [3, 4]


def test_the_first_hour_begins_with_its_first_message_whatever_order_names_have(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, source=ANY)
    put(feed, messages(2, 50, 62), 62, key="shop/0/a")
    put(feed, messages(0, 10, 61), 62, key="shop/0/b")
    land_hour(feed, at(1))
    assert (offsets(feed, 1, tmp_path), span(feed, 1)) == ([1, 2, 3], (1, None))


def test_an_hour_that_was_landed_early_leaves_the_rest_to_the_next_one_where_names_have_no_offsets(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, source=ANY)
    put(feed, messages(0, 1, 2), 3, key="shop/0/a")
    land_hour(feed, HOUR)
    put(feed, messages(2, 40), 41, key="shop/0/b")
    put(feed, messages(3, 70), 71, key="shop/0/c")
    land_hour(feed, at(1))
    assert (offsets(feed, 0, tmp_path), offsets(feed, 1, tmp_path)) == ([0, 1], [2, 3])


@pytest.mark.parametrize("name", [None, "shop/0/{}"])
def test_what_fills_a_hole_is_taken_and_moves_no_border(name: str | None, tmp_path: Path) -> None:
    feed = feed_of(tmp_path, source=ANY if name else {})
    for first, *minutes in ((0, 1, 2), (4, 50, 51, 61)):
        put(feed, messages(first, *minutes), 62, key=name and name.format(first))
    land_hour(feed, HOUR)
    assert (offsets(feed, 0, tmp_path), span(feed, 0)) == ([0, 1, 4, 5], (0, 6))
    put(feed, messages(2, 20, 62), 63, key=name and name.format("x"))  # a clock that is ahead
    assert codes(land_hour(feed, HOUR).findings) == [("LATE_FILE", "warning")]
    assert (offsets(feed, 0, tmp_path), span(feed, 0)) == ([0, 1, 2, 3, 4, 5], (0, 6))


def test_the_object_over_the_border_is_a_source_of_both_hours_and_a_new_one_of_the_same_name_is_seen(tmp_path: Path) -> None:
    for layout, template, name in (
        ("lenses-json", "{topic}/{partition}/{start_offset}", "shop/0/{1:012d}"),
        ("aiven-jsonl", None, "shop-0-{0:012d}"),
    ):
        feed = feed_of(tmp_path / layout, layout, source={"template": template})
        keys = [
            put(feed, messages(f, *(3.5 * (f + i) for i in range(10))), 3.5 * (f + 10), key=name.format(f, f + 9)) for f in range(0, 50, 10)
        ]
        land_hour(feed, at(1))
        land_hour(feed, HOUR)
        assert [s.key for s in manifest(feed).sources] == keys[:2]
        assert [s.key for s in manifest(feed, "2026-01-05T11").sources] == keys[1:4]
        assert (offsets(feed, 0, tmp_path), offsets(feed, 1, tmp_path)) == (list(range(18)), list(range(18, 35)))
        put(feed, messages(10, *(3.5 * (10 + i) for i in range(11))), 75, key=keys[1].partition(".")[0])
        for hours in (0, 1):
            assert land_hour(feed, at(hours)).generation == 2


def test_an_offset_in_conflict_at_the_end_is_of_the_hour_before(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, policy={"on_gap": "warn", "on_finding": {"OVERLAP_CONFLICT": "warn"}})
    put(feed, messages(0, 1, 2, 3), 4)
    put(feed, [messages(2, 3)[0]._replace(value=b"{}")], 4)
    assert codes(land_hour(feed, HOUR).findings) == [("OVERLAP_CONFLICT", "warning")]
    put(feed, messages(3, 70), 71)
    land_hour(feed, at(1))
    assert (offsets(feed, 0, tmp_path), offsets(feed, 1, tmp_path)) == ([0, 1], [3])


def test_a_topic_that_a_pattern_finds_later_begins_with_its_first_message(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, topics=("/sh.*/",))
    put(feed, messages(0, 1, 61), 62, key="shop/partition=0/shop+0+0000000000")
    land_hour(feed, HOUR)
    put(feed, messages(0, 30, 70), 71, key="shoes/partition=0/shoes+0+0000000000")
    land_hour(feed, at(1))
    made = manifest(feed, "2026-01-05T11").partitions
    assert (made["shoes"][0].ranges, made["shoes"][0].start, made[TOPIC][0].ranges) == (((0, 1),), 0, ((1, 1),))


def test_names_that_begin_alike_are_of_their_own_topics(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, messages(0, 1), 3)
    put(feed, messages(0, 1, 2), 3, key="shop-2-0-00000000000000000000")
    report = land_hour(feed, HOUR)
    assert (report.messages, report.findings) == (1, ())


def test_an_hour_without_a_message_is_told_as_such(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, messages(0, 1, 125), 126)
    assert [codes(land_hour(feed, at(hours)).findings) for hours in range(3)] == [[], [("MISSING_PARTITION", "warning")], []]
    assert [span(feed, h) for h in range(3)] == [(0, 1), (1, 1), (1, None)]


def test_objects_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, messages(10, 50, 62), 63, key="shop-0-10")
    put(feed, messages(8, 50, 61), 63, key="shop-0-8")
    land_hour(feed, at(1))
    assert offsets(feed, 1, tmp_path) == [9, 10, 11]


def test_an_object_that_covers_offsets_covers_those_of_the_hour(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, "canonical", source={"template": "{topic}/{partition}/{start_offset}"})
    content = messages(0, 1, 2, 61, 62)
    key = put(feed, [content[0], content[1]._replace(offset=3), content[2]._replace(offset=5)], 63, key="shop/0/0")
    cover(feed, key, "0-9")
    for hours in (0, 1):
        land_hour(feed, at(hours))
    facts = [manifest(feed, f"2026-01-05T1{hours}").partitions[TOPIC][0] for hours in (0, 1)]
    assert [(f.ranges, f.legal_gaps, f.next) for f in facts] == [(((0, 0), (3, 3)), ((1, 2), (4, 4)), 5), (((5, 5),), ((6, 9),), None)]
