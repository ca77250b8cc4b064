"""Objects that say which offsets they cover: what they do not hold of them is no message and no loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.land.archive import HOUR, codes, cover, make_feed, manifest, messages, put
from tidelake.config.feed import Feed
from tidelake.errors import OrderError
from tidelake.land import land_hour
from tidelake.land.closing import ends_of


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return make_feed(tmp_path, partitions=1, source={"uri": f"{tmp_path}/archive", "layout": "canonical"})


def test_what_an_object_covers_and_does_not_hold_is_legal_and_ends_the_hour(feed: Feed) -> None:
    cover(feed, put(feed, 0, [*messages(0, 3), *messages(6, 9)]), "0-11")
    cover(feed, put(feed, 0, messages(13, 14)), "12-14")
    report = land_hour(feed, HOUR)
    assert codes(report.findings) == [("LEGAL_GAPS", "info")]
    facts = manifest(feed).partitions["shop"][0]
    assert (facts.ranges, facts.legal_gaps, facts.gaps) == (((0, 3), (6, 9), (13, 14)), ((4, 5), (10, 12)), ())
    assert (facts.first, facts.last, facts.count) == (0, 14, 10)
    trailing = facts.model_copy(update={"ranges": ((0, 3), (6, 9)), "legal_gaps": ((4, 5), (10, 11))})
    assert ends_of([manifest(feed).model_copy(update={"partitions": {"shop": {0: trailing}}})]) == {("shop", 0): 11}


def test_what_no_object_covers_is_missing(feed: Feed) -> None:
    cover(feed, put(feed, 0, [*messages(0, 3), *messages(6, 9)]), "0-9")
    cover(feed, put(feed, 0, messages(15, 19)), "12-19")
    with pytest.raises(OrderError, match=r"^GAP shop\[0\]@10: .*offsets 10–11 are missing \(2 messages\)"):
        land_hour(feed, HOUR)
    facts = manifest(feed).partitions["shop"][0]
    assert (facts.legal_gaps, facts.gaps) == (((4, 5), (12, 14)), ((10, 11),))


@pytest.mark.parametrize("said", ["", "0", "0-9-9", "-1-9", "all"])
def test_a_footer_that_says_something_else_covers_nothing(feed: Feed, said: str) -> None:
    cover(feed, put(feed, 0, [*messages(0, 3), *messages(6, 9)]), said)
    with pytest.raises(OrderError, match=r"^GAP shop\[0\]@4: .*offsets 4–5 are missing"):
        land_hour(feed, HOUR)


def test_a_message_in_conflict_is_none_that_the_log_never_held(feed: Feed) -> None:
    cover(feed, put(feed, 0, messages(0, 9)), "0-9")
    cover(feed, put(feed, 0, messages(5, 9, "other"), name=5), "5-9")
    with pytest.raises(OrderError, match=r"^OVERLAP_CONFLICT shop\[0\]@5: "):
        land_hour(feed, HOUR)
    facts = manifest(feed).partitions["shop"][0]
    assert (facts.conflicts, facts.legal_gaps) == (((5, 9),), ())
