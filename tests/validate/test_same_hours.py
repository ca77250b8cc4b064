"""The rule for unusual numbers, on numbers alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidelake.validate.quality.same_hours import DAYS, LEAST, RULE, Metric, Unusual, compare

ROWS = Metric("shop.orders", "rows")
LAG = Metric("", "lag", "seconds")
NULLS = Metric("shop.orders", "NULL by policy", "share", "day")
USUAL = (9_800, 10_200, 10_300, 10_400, 10_500, 10_900, 11_200)  # median 10,400, MAD 200


def judged(number: Metric, value: float, *earlier: float) -> Unusual | None:
    """What is unusual about a value."""
    found = compare([number], [value], [[e] for e in earlier])
    assert (found.numbers, found.short) == (1, 0)
    return next(iter(found.unusual), None)


def test_a_number_far_from_its_earlier_values_is_unusual_and_shows_what_it_was_compared_with() -> None:
    found = judged(ROWS, 12, *USUAL)
    assert found is not None
    assert found.observed == "rows 12, the same hour of the last 7 days had 9,800 to 11,200 (median 10,400)"
    assert found.expected == "rows 7,350 to 14,000"


@pytest.mark.parametrize(
    ("value", "earlier", "unusual"),
    [
        (7_350, USUAL, False),  # a quarter of the nearest end below the range
        (7_349, USUAL, True),
        (14_000, USUAL, False),
        (14_001, USUAL, True),
        (0, (20,) * 7, False),  # not more than 20 rows
        (0, (21,) * 7, True),
        (40, (20,) * 7, False),
        (41, (20,) * 7, True),
        (100, (200, 260, 300, 340, 400, 440, 500), False),  # 3 MAD of 80 below the least value
        (100, (400, 420, 440, 450, 460, 480, 500), True),
        (5_900, (0, 0, 0, 0, 0, 0, 5_000), False),  # once a week
        (0, (0, 0, 0, 0, 0, 0, 5_000), False),
        (6_251, (0, 0, 0, 0, 0, 0, 5_000), True),
        (2_000, (2_100, 10_000, 10_200, 10_300, 10_100, 10_000, 2_300), False),  # Saturday
        (0, (0,) * 7, False),
    ],
)
def test_what_lies_further_outside_the_range_than_all_three_limits_is_unusual(value: int, earlier: tuple[int, ...], unusual: bool) -> None:
    assert (judged(ROWS, value, *earlier) is not None) is unusual


def test_a_lag_is_unusual_only_if_it_is_high() -> None:
    found = judged(LAG, 400, 3, 4, 5, 3, 4, 5, 3)
    assert found is not None
    assert found.observed == "lag 6 min 40 s, the same hour of the last 7 days had 3.0 s to 5.0 s (median 4.0 s)"
    assert found.expected == "lag at most 1 min 5 s"
    assert judged(LAG, 64, 3, 4, 5, 3, 4, 5, 3) is None
    assert judged(LAG, -1, *(900,) * 7) is None


def test_a_share_of_nulls_is_unusual_only_if_it_is_high() -> None:
    found = judged(NULLS, 0.4, *(0.01,) * 7)
    assert found is not None
    assert found.observed == "NULL by policy of day 40 %, the same hour of the last 7 days had 1 % to 1 % (median 1 %)"
    assert found.expected == "NULL by policy of day at most 2 %"
    assert judged(NULLS, 0.019, *(0.01,) * 7) is None
    assert judged(NULLS, 0.0, *(0.9,) * 7) is None


def test_fewer_than_four_earlier_values_are_not_compared_and_counted() -> None:
    days = [[10_000.0 if n < LEAST - 1 else math.nan, math.nan if n < LEAST - 1 else 1.0] for n in range(DAYS)]
    found = compare([ROWS, LAG], [0.0, 900.0], days)
    assert [u.number for u in found.unusual] == [LAG]
    assert found.unusual[0].observed.endswith("(median 1.0 s, 4 of them known)")
    assert (found.numbers, found.short) == (1, 1)
    assert compare([ROWS], [0.0], [[10_000.0]] * (LEAST - 1)).short == 1
    assert compare([], [], [[]] * DAYS).numbers == 0


def test_the_most_distant_number_has_the_greatest_excess() -> None:
    far, near, above = (judged(ROWS, v, *USUAL) for v in (0, 7_000, 140_000))
    assert far is not None
    assert near is not None
    assert above is not None
    assert above.excess > far.excess > near.excess > 1


def test_thousands_of_tables_are_one_comparison() -> None:
    keys = [Metric(f"shop.t{n}", "rows") for n in range(3000)]
    found = compare(keys, [1003.0 if n % 1000 else 5.0 for n in range(3000)], [[1000.0 + d] * 3000 for d in range(DAYS)])
    assert [u.number.table for u in found.unusual] == ["shop.t0", "shop.t1000", "shop.t2000"]
    assert found.numbers == 3000


def test_the_sentence_has_the_numbers_of_the_rule() -> None:
    assert RULE == (
        "unusual is what lies outside the range of the same hour of the last 7 days by more than 3 MAD, by more than 25% of the nearest "
        "end of the range, and by more than 20 rows (lag: 60 s, NULL: 1 % of the values)"
    )
    assert np.median(USUAL) == 10_400
