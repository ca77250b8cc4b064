from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidelake.land.store.ranges import Ranges, common, count, holes, minus, runs, show, union

Offsets = set[int]
offsets = st.sets(st.integers(0, 60))


def ranges(of: Offsets) -> Ranges:
    return runs(np.array(sorted(of), np.int64))


def those(of: Ranges) -> Offsets:
    """The offsets, after checking that the ranges are sorted and do not touch."""
    assert all(first <= last for first, last in of)
    assert all(a[1] + 1 < b[0] for a, b in pairwise(of))
    return {offset for first, last in of for offset in range(first, last + 1)}


@given(offsets)
def test_runs_hold_exactly_the_offsets(some: Offsets) -> None:
    assert those(ranges(some)) == some
    assert count(ranges(some)) == len(some)


@given(offsets, offsets)
def test_ranges_behave_like_sets(one: Offsets, other: Offsets) -> None:
    assert those(union([ranges(one), ranges(other)])) == one | other
    assert those(minus(ranges(one), ranges(other))) == one - other
    assert those(common(ranges(one), ranges(other))) == one & other


@given(offsets)
def test_holes_are_what_lies_between(some: Offsets) -> None:
    between = set(range(min(some), max(some) + 1)) - some if some else set()
    assert those(holes(ranges(some))) == between


def test_ranges_are_shown_short() -> None:
    assert show(((3, 3),)) == "3"
    assert show(((3, 3), (5, 9))) == "3, 5–9"
    assert show(tuple((i, i) for i in range(0, 20, 2))) == "0, 2, 4 and 7 more ranges"
