"""Hours of archives whose paths say none: every message lands once, with the hour that its time and its offset say."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.archives.objects import Message
from tests.land.archive import HOUR, TOPIC, archive, at, codes, lake, manifest
from tests.land.archive import put as put_by_path
from tests.land.resolved import END, MUST, resolved, rows
from tests.land.timed import BEGIN, MINUTE, feed_of, messages, offsets, put, span
from tidelake.errors import ConfigError, OrderError
from tidelake.land import land_hour
from tidelake.land.comparison import compare_hour
from tidelake.land.store.coverage import coverage
from tidelake.land.store.manifest import all_newest
from tidelake.tso import show


def test_an_hour_ends_before_the_first_message_of_a_later_hour_and_the_next_goes_on_there(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    both = put(feed, messages(0, 1, 30, 59.99, 60, 59, 70), 71)
    rest = put(feed, messages(6, 119.99, 120), 121)
    report = land_hour(feed, HOUR)
    assert (report.messages, report.findings) == (3, ())
    assert (offsets(feed, 0, tmp_path), span(feed, 0)) == ([0, 1, 2], (0, 3))
    assert [s.key for s in manifest(feed).sources] == [both]
    land_hour(feed, at(1))
    assert (offsets(feed, 1, tmp_path), span(feed, 1)) == ([3, 4, 5, 6], (3, 7))  # offset 4 came late
    assert [s.key for s in manifest(feed, "2026-01-05T11").sources] == [both, rest]
    land_hour(feed, at(2))
    assert (offsets(feed, 2, tmp_path), span(feed, 2)) == ([7], (7, None))
    assert coverage(all_newest(lake(feed), feed.name).values()).prefixes == {TOPIC: {0: (0, 7)}}


def test_an_hour_that_has_not_ended_takes_what_there_is_and_more_when_it_is_landed_again(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, source={"closed_by": "next-offset"})
    put(feed, messages(0, 1, 2), 5)
    assert [str(w) for w in compare_hour(feed, HOUR).waits] == ["shop[0]: no object was written since the hour ended"]
    report = land_hour(feed, HOUR)
    assert (codes(report.findings), span(feed, 0)) == ([("HOUR_NOT_CLOSED", "warning")], (0, None))
    assert report.findings[0].detail == "the hour may not be complete: there is no message of a later hour"
    put(feed, messages(2, 50, 61), 62)
    again = land_hour(feed, HOUR)
    assert (again.generation, codes(again.findings)) == (2, [("LATE_FILE", "warning")])
    assert (offsets(feed, 0, tmp_path), span(feed, 0)) == ([0, 1, 2], (0, 3))
    put(feed, messages(4, 62), 63)  # of a later hour: this one stays as it is
    assert (land_hour(feed, HOUR).new, compare_hour(feed, HOUR).waits, compare_hour(feed, HOUR).findings) == (False, (), ())
    land_hour(feed, at(1))
    assert offsets(feed, 1, tmp_path) == [3, 4]


def test_what_an_hour_does_not_need_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = feed_of(tmp_path)
    keys = [put(feed, messages(10 * i, *(15 * i + m for m in range(10))), 15 * i + 10) for i in range(16)]
    read: list[str] = []
    store = type(archive(feed))
    download = store.download
    monkeypatch.setattr(store, "download", lambda self, key, path: read.append(key) or download(self, key, path))
    land_hour(feed, HOUR)
    assert (read, len(manifest(feed).sources)) == (keys[:5], 4)  # the fifth begins with the first message behind the hour
    read.clear()
    land_hour(feed, at(1))
    assert read == keys[4:9]
    read.clear()
    assert (land_hour(feed, HOUR).new, land_hour(feed, at(1)).new, read) == (False, False, [])
    other = feed_of(tmp_path / "late", source={"uri": f"{tmp_path}/archive"})
    land_hour(other, at(3))  # what was written before the hour has nothing of it
    assert read == keys[12:]
    assert offsets(other, 3, tmp_path) == list(range(120, 160))


def test_a_clock_that_is_ahead_does_not_hold_up_what_follows(tmp_path: Path) -> None:
    """A message counts as of when its object was written, at the latest, and one without a timestamp then."""
    feed = feed_of(tmp_path)
    put(feed, messages(0, 1, 9_999_999, 20), 21)
    put(feed, messages(3, None, 40), 41)
    put(feed, messages(5, None), 65)
    assert land_hour(feed, HOUR).messages == 5
    assert (offsets(feed, 0, tmp_path), span(feed, 0)) == ([0, 1, 2, 3, 4], (0, 5))


@pytest.mark.parametrize("layout", ["confluent-json-nested", "secor"])
def test_messages_without_timestamps_land_with_the_hour_in_which_their_object_was_written(layout: str, tmp_path: Path) -> None:
    template = "{topic}/offset={any}/{any}_{partition}_{start_offset}" if layout == "secor" else None
    feed = feed_of(tmp_path, layout, source={"template": template})
    name = "shop/offset=0/1_0_{}" if layout == "secor" else "shop/partition=0/shop+0+{:010d}"
    for first, written in ((0, 30), (3, 59.9), (6, 60), (9, 90)):
        put(feed, messages(first, None, None, None), written, key=name.format(first))
    land_hour(feed, HOUR)
    land_hour(feed, at(1))
    assert (offsets(feed, 0, tmp_path), offsets(feed, 1, tmp_path)) == (list(range(6)), list(range(6, 12)))


def test_names_with_the_last_offset_and_names_without_one(tmp_path: Path) -> None:
    for layout, template, name in (
        ("lenses-json", "{topic}/{partition}/{start_offset}_{any}", "shop/0/{1:012d}_1_2"),
        ("kcat", "{topic}/{partition}-{any}", "shop/0-part{0}"),
    ):
        feed = feed_of(tmp_path / layout, layout, source={"template": template})
        for first in (0, 10, 20, 30, 40):
            content = messages(first, *(3.0 * (first + i) for i in range(10)))
            put(feed, content, 3 * (first + 10), key=name.format(first, first + 9))
        for hours, last in ((0, 19), (1, 39), (2, 49)):
            report = land_hour(feed, at(hours))
            assert report.messages == last + 1 - 20 * hours
            assert offsets(feed, hours, tmp_path) == list(range(20 * hours, last + 1))
            assert not land_hour(feed, at(hours)).new
        assert [span(feed, h) for h in range(3)] == [(0, 20), (20, 40), (40, None)]


def test_a_hole_is_found_by_the_hour_that_has_it_or_goes_on_behind_it_and_can_be_filled(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, policy={})
    put(feed, messages(0, 1, 2), 3)
    put(feed, messages(4, 50), 51)
    put(feed, messages(6, 61), 62)
    with pytest.raises(OrderError, match=r"offsets 3 are missing \(1 message\)|offsets 2–3 are missing") as caught:
        land_hour(feed, HOUR)
    assert (caught.value.code, span(feed, 0)) == ("GAP", (0, 6))
    with pytest.raises(OrderError, match="offsets 5 are missing"):
        land_hour(feed, at(1))
    put(feed, messages(2, 30, 31), 32)
    put(feed, messages(5, 52), 53)
    assert land_hour(feed, HOUR).findings[0].code == "LATE_FILE"
    assert offsets(feed, 0, tmp_path) == [0, 1, 2, 3, 4, 5]
    assert land_hour(feed, at(1)).findings == ()


def test_hours_may_be_landed_from_the_newest_on(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, messages(0, 5, 61, 50, 70, 119, 121, 110, 130), 131)
    for hours in (2, 1, 0):
        land_hour(feed, at(hours))
    assert [offsets(feed, h, tmp_path) for h in range(3)] == [[0], [1, 2, 3, 4], [5, 6, 7]]


def test_a_partition_that_is_silent_or_new_goes_on_where_it_was(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, partitions=2)
    put(feed, messages(0, 1, 61), 62)
    assert codes(land_hour(feed, HOUR).findings) == [("MISSING_PARTITION", "warning")]
    assert (span(feed, 0), span(feed, 0, 1)) == ((0, 1), (0, None))
    put(feed, messages(0, 30, 40), 70, partition=1)  # of the first hour, archived when it was landed
    land_hour(feed, at(1))
    assert (offsets(feed, 1, tmp_path), offsets(feed, 1, tmp_path, 1)) == ([1], [0, 1])
    land_hour(feed, at(2))
    assert (span(feed, 2), span(feed, 2, 1)) == ((2, None), (2, None))


def test_the_resolved_ts_is_looked_for_behind_the_hour(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, protocol="open", source={"closed_by": "resolved"})
    stamp = {"timestamp_ms": BEGIN + 61 * MINUTE}
    put(feed, [*(m._replace(timestamp_ms=BEGIN) for m in rows(0, 4)), resolved(5, END)._replace(**stamp)], 61)
    stands = [f"shop[0]: its resolved ts is {show(END)}, at offset 5; {MUST}"]
    assert [str(w) for w in compare_hour(feed, HOUR).waits] == stands
    assert codes(land_hour(feed, HOUR).findings) == [("HOUR_NOT_CLOSED", "warning")]
    put(feed, [resolved(7, END + 1)._replace(**stamp)], 62)
    stands = [f"shop[0]: its resolved ts is {show(END + 1)}, at offset 7, and before it no object has 6"]
    assert [str(w) for w in compare_hour(feed, HOUR).waits] == stands
    put(feed, [m._replace(**stamp) for m in rows(6, 6)], 63)
    assert (compare_hour(feed, HOUR).waits, land_hour(feed, HOUR).findings) == ((), ())


def test_an_archive_that_went_on_without_hours_in_its_paths_goes_on_where_it_was(tmp_path: Path) -> None:
    before = feed_of(tmp_path, partitions=2, source={"hours": "path"})
    for hours, partition in ((0, 0), (0, 1), (1, 0)):
        put_by_path(before, partition, messages(10 * hours, *range(10)), hours=hours)
        land_hour(before, at(hours))
    feed = feed_of(tmp_path, partitions=2)
    for partition in (0, 1):
        put(feed, messages(5, *range(125, 145)), 150, partition=partition)
    land_hour(feed, at(2))
    assert (offsets(feed, 2, tmp_path), offsets(feed, 2, tmp_path, 1)) == (list(range(20, 25)), list(range(10, 25)))


def expected(times: Sequence[int], hours: int) -> list[list[int]]:
    """The oracle: which offsets each hour has, by going through them one by one."""
    out, at_offset = [], 0
    for hour in range(hours):
        taken = []
        while at_offset < len(times) and times[at_offset] < BEGIN + (hour + 1) * 60 * MINUTE:
            taken.append(at_offset)
            at_offset += 1
        out.append(taken)
    return out


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_lost_and_nothing_twice_whatever_timestamps_do(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    feed = feed_of(tmp_path, source={"template": "{topic}/{partition}/{any}"} if seed % 3 == 2 else {})
    minute, content, times, written = 0.0, list[Message](), list[int](), 0.0
    objects = list[tuple[list[Message], float]]()
    while minute < 240:
        part = list[Message]()
        for _ in range(dice.randint(1, 12)):
            minute += dice.choice((0, 0.5, 2, 7, 7))
            stamp = dice.choice((minute, minute, minute, minute - 20, minute + 45, 60 * round(minute / 60), None))
            part += messages(len(content) + len(part), stamp)
        written = max(written, minute) + dice.choice((0.5, 3))
        times += [min(BEGIN + int(written * MINUTE), m.timestamp_ms if m.timestamp_ms is not None else 1 << 60) for m in part]
        content += part
        objects.append((part, written))
    for number, (part, moment) in enumerate(objects):
        named = f"shop/0/{dice.getrandbits(40):x}" if seed % 3 == 2 else None
        put(feed, part, moment, key=named)
        if dice.random() < 0.3 and seed % 3 != 1 and len(part) > 1:  # delivered twice
            put(feed, part[1:], moment, key=f"{named}b" if named else None)
        assert number < 200
    oracle = expected(times, 6)
    order = list(range(6)) if seed % 2 else [0, 1, 3, 2, 4, 5]
    for hour in order:
        land_hour(feed, at(hour))
    assert [offsets(feed, hour, tmp_path) for hour in range(6)] == oracle
    assert sum(map(len, oracle)) == len(content)
    assert [land_hour(feed, at(hour)).new for hour in order] == [False] * 4 + [True, False]  # hour 4 had no message behind it
    assert [land_hour(feed, at(hour)).new for hour in order] == [False] * 6


def test_no_hour_in_the_paths_must_be_said(tmp_path: Path) -> None:
    template = "{topic}/{partition}/{start_offset}"
    feed = feed_of(tmp_path, source={"template": template, "hours": "path"})
    with pytest.raises(ConfigError, match=r'it has no hour; if the paths have none, set hours = "timestamps" and write \{any\} for dates'):
        land_hour(feed, HOUR)
    feed = feed_of(tmp_path, source={"template": "{topic}/{yyyy}/{partition}"})
    with pytest.raises(ConfigError, match=r"its fields are \['partition', 'topic', 'yyyy'\], they must be \['partition', 'topic'\]"):
        land_hour(feed, HOUR)
    with pytest.raises(ConfigError, match='its default paths; with hours = "timestamps" a template is required'):
        land_hour(feed_of(tmp_path, "secor"), HOUR)
