"""The rows of a partition as boxes: a row is in the partition if it is in one of them. Pure.

A box is an interval for each column. RANGE COLUMNS compares tuples: (a, b) < (1, 5) is a < 1, or a = 1 and b < 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

Bound = tuple[str, ...]  # of the columns before MAXVALUE


@dataclass(frozen=True, slots=True)
class Interval:
    """Values from `low` up to below `high`. None: no bound. null: NULL belongs to it."""

    low: str | None = None
    high: str | None = None
    null: bool = True

    def __and__(self, other: Interval) -> Interval:
        lows, highs = ([b for b in pair if b is not None] for pair in ((self.low, other.low), (self.high, other.high)))
        return Interval(max(lows, key=_order, default=None), min(highs, key=_order, default=None), self.null and other.null)

    @property
    def empty(self) -> bool:
        """Whether no value is in it."""
        return not self.null and self.low is not None and self.high is not None and _order(self.low) >= _order(self.high)


Box = tuple[Interval, ...]  # the first columns; all values of the others


def one(value: str) -> Interval:
    """Return the interval of one whole number or one date."""
    return Interval(value, after(value), null=False)


def after(value: str) -> str | None:
    """Return the next whole number or date; None after the last date."""
    if not _is_date(value):
        return str(int(value) + 1)
    return None if value == date.max.isoformat() else (date.fromisoformat(value) + timedelta(days=1)).isoformat()


def between(low: Bound, high: Bound, columns: int) -> list[Box]:
    """Return the boxes of the tuples from `low` up to below `high`. A bound without values is no bound."""
    found = [_both(one, other) for one in _from(low, columns) for other in _below(high, columns)]
    return [box for box in found if not any(interval.empty for interval in box)]


def _below(bound: Bound, columns: int) -> Iterator[Box]:
    """Tuples below a bound. With MAXVALUE in it, those that begin with it as well."""
    if not bound:
        yield (Interval(),)
    for n, value in enumerate(bound):
        yield (*map(one, bound[:n]), Interval(high=value))
    if 0 < len(bound) < columns:
        yield tuple(map(one, bound))


def _from(bound: Bound, columns: int) -> Iterator[Box]:
    """All other tuples."""
    if not bound:
        yield (Interval(),)
    for n, value in enumerate(bound):
        low = value if n == columns - 1 else after(value)
        if low is not None:
            yield (*map(one, bound[:n]), Interval(low, null=False))


def _both(one: Box, other: Box) -> Box:
    width = max(len(one), len(other))
    return tuple(a & b for a, b in zip(_wide(one, width), _wide(other, width), strict=True))


def _wide(box: Box, width: int) -> Sequence[Interval]:
    return [*box, *[Interval()] * (width - len(box))]


def _is_date(value: str) -> bool:
    return "-" in value[1:]


def _order(value: str) -> tuple[int, str]:
    return (0, value) if _is_date(value) else (int(value), "")
