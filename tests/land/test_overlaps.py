"""The same offset more than once in an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.archives.objects import Message
from tests.land.archive import HOUR, archive, codes, landed, make_feed, manifest, messages, put
from tidelake.errors import Coordinates, OrderError
from tidelake.land import land_hour
from tidelake.land.store import objects


def test_the_same_message_again_is_dropped_and_counted(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1)
    put(feed, 0, messages(0, 19))
    put(feed, 0, messages(10, 29))
    put(feed, 0, messages(12, 13))
    report = land_hour(feed, HOUR)
    assert (report.messages, codes(report.findings)) == (30, [("OVERLAP_SAME", "info")])
    assert report.findings[0].detail == "12 messages came again with the same content"
    assert manifest(feed).partitions["shop"][0].duplicates == 12
    assert landed(feed, manifest(feed), tmp_path)["shop", 0] == messages(0, 29)


def test_a_message_that_is_twice_in_one_object_is_dropped_once(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1)
    put(feed, 0, [*messages(0, 4), *messages(3, 6)])
    assert land_hour(feed, HOUR).messages == 7


@pytest.mark.parametrize(
    "other",
    [
        Message(12, b"else", b"k12", 1_767_607_200_012),
        Message(12, b"v12", None, 1_767_607_200_012),
        Message(12, None, b"k12", 1_767_607_200_012),
    ],
)
def test_another_message_at_the_same_offset_blocks_and_neither_is_landed(other: Message, tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1, policy={"on_gap": "warn"})
    first = put(feed, 0, messages(0, 19))
    second = put(feed, 0, [*messages(10, 11), other, *messages(13, 14)])
    put(feed, 0, messages(20, 21))
    with pytest.raises(OrderError) as caught:
        land_hour(feed, HOUR)
    error = caught.value
    assert (error.code, error.at, error.exit_code) == ("OVERLAP_CONFLICT", Coordinates("shop", 0, 12), 3)
    assert error.message == f"hour 2026-01-05T10: offsets 12 have different contents in {first}, {second}; none of them is landed"
    facts = manifest(feed).partitions["shop"][0]
    assert (facts.conflicts, facts.ranges, facts.duplicates, facts.count) == (((12, 12),), ((0, 11), (13, 21)), 4, 21)
    assert codes(manifest(feed).findings) == [("OVERLAP_CONFLICT", "critical"), ("OVERLAP_SAME", "info")]
    assert 12 not in [m.offset for m in landed(feed, manifest(feed), tmp_path)["shop", 0]]
    archive(feed).delete(second)
    report = land_hour(feed, HOUR)
    assert (report.generation, report.messages, codes(report.findings)) == (2, 22, [("LATE_FILE", "warning")])


def test_a_conflict_with_what_was_landed_before_blocks_and_takes_the_offset_back(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1)
    put(feed, 0, messages(0, 9))
    assert land_hour(feed, HOUR).messages == 10
    put(feed, 0, [*messages(5, 5, "other"), *messages(10, 12)], name=5)
    with pytest.raises(OrderError, match=r"OVERLAP_CONFLICT shop\[0\]@5"):
        land_hour(feed, HOUR)
    assert manifest(feed).partitions["shop"][0].ranges == ((0, 4), (6, 12))


def test_nulls_are_the_same_as_nulls_and_not_as_empty(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1)
    put(feed, 0, [Message(0, None), Message(1, b"")])
    put(feed, 0, [Message(0, None), Message(1, None)], name=7)
    with pytest.raises(OrderError, match="offsets 1 have different contents"):
        land_hour(feed, HOUR)


def test_headers_are_no_part_of_a_messages_identity(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1)
    put(feed, 0, [Message(0, b"v", headers=[("a", b"1")])])
    put(feed, 0, [Message(0, b"v", headers=[])], name=7)
    assert land_hour(feed, HOUR).messages == 1


def test_an_hour_that_was_delivered_twice_in_full_is_compared_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "GROUP_BYTES", 500)
    feed = make_feed(tmp_path, partitions=1)
    put(feed, 0, messages(0, 499))
    put(feed, 0, [*messages(0, 399), Message(400, b"other", b"k400", 1_767_607_200_400), *messages(401, 499)], name=1)
    with pytest.raises(OrderError, match=r"OVERLAP_CONFLICT shop\[0\]@400"):
        land_hour(feed, HOUR)
    facts = manifest(feed).partitions["shop"][0]
    assert (facts.count, facts.duplicates, facts.conflicts) == (499, 499, ((400, 400),))
