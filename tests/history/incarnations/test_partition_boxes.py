"""The boxes of a range of several columns hold the tuples that a comparison of tuples puts into it."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.history.partition_boxes import Bound, Interval, after, between, one

Tuple = tuple[int | None, ...]
VALUES = st.integers(-2, 2)


def is_below(row: Tuple, bound: Bound) -> bool:
    """MySQL's rule: tuples are compared from the left, NULL is the least, MAXVALUE greater than all."""
    for n, value in enumerate(row):
        limit = float(bound[n]) if n < len(bound) else float("inf")
        here = float("-inf") if value is None else float(value)
        if here != limit:
            return here < limit
    return False


def has(interval: Interval, value: int | None) -> bool:
    if value is None:
        return interval.null
    return (interval.low is None or int(interval.low) <= value) and (interval.high is None or value < int(interval.high))


@given(columns=st.integers(1, 3), data=st.data())
def test_a_tuple_is_in_a_box_if_it_is_below_the_bound_and_not_below_the_one_before(columns: int, data: st.DataObject) -> None:
    bounds = st.lists(VALUES.map(str), max_size=columns).map(tuple)
    low, high = data.draw(bounds), data.draw(bounds)
    rows: list[Tuple] = data.draw(st.lists(st.tuples(*[st.none() | st.integers(-4, 4)] * columns), min_size=20, max_size=20))
    boxes = between(low, high, columns)
    for row in rows:
        mine = [box for box in boxes if all(has(interval, value) for interval, value in zip(box, row, strict=False))]
        wanted = is_below(row, high) and not (low and is_below(row, low))
        assert len(mine) == wanted, (row, mine)


def test_a_range_of_one_column_is_one_box() -> None:
    assert between((), (), 1) == [(Interval(),)]
    assert between((), ("5",), 1) == [(Interval(high="5"),)]
    assert between(("5",), ("7",), 1) == [(Interval("5", "7", null=False),)]
    assert between(("5",), ("5",), 1) == []


@pytest.mark.parametrize(("value", "next_one"), [("-1", "0"), ("9", "10"), ("2026-02-28", "2026-03-01"), ("9999-12-31", None)])
def test_the_next_value(value: str, next_one: str | None) -> None:
    assert (after(value), one(value)) == (next_one, Interval(value, next_one, null=False))


def test_no_row_is_after_the_last_day() -> None:
    assert between((date.max.isoformat(),), (), 2) == []
