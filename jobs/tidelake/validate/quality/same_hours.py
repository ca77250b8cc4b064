"""The rule for unusual numbers: a number of an hour is compared with those of the same hour of earlier days.

Numbers of all tables are judged together, as columns of an array. The rule is one sentence, RULE, which checks and docs show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tidelake.io.texts import duration

DAYS = 7  # earlier days whose same hour is read
LEAST = 4  # earlier values that a comparison needs
_MADS, _SHARE = 3, 0.25

Unit = Literal["rows", "seconds", "share"]
_FLOORS: dict[Unit, float] = {"rows": 20, "seconds": 60, "share": 0.01}
RULE = (
    f"unusual is what lies outside the range of the same hour of the last {DAYS} days by more than {_MADS} MAD, by more than "
    f"{_SHARE:.0%} of the nearest end of the range, and by more than {_FLOORS['rows']:.0f} rows (lag: {_FLOORS['seconds']:.0f} s, "
    f"NULL: {_FLOORS['share'] * 100:.0f} % of the values)"
)

_Array = npt.NDArray[np.float64]


class Metric(NamedTuple):
    """What a number counts. table: db.table, "" for the whole window; column: for NULLs. Lag and NULLs are unusual only above the range."""

    table: str
    name: str
    unit: Unit = "rows"
    column: str | None = None

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{self.name} of {self.column}" if self.column else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusual:
    """An unusual number, with what it was compared with.

    Attributes:
        number: What it counts.
        value: The value of the hour.
        earlier: The values of the same hour of earlier days, sorted.
        low: The least value that is usual; None where a low value never is unusual.
        high: The greatest value that is usual.
    """

    number: Metric
    value: float
    earlier: tuple[float, ...]
    low: float | None
    high: float

    @property
    def excess(self) -> float:
        """Distance from the range of earlier values, in widths of what is allowed. Above 1."""
        above = self.value > self.earlier[-1]
        end, limit = (self.earlier[-1], self.high) if above else (self.earlier[0], self.low or 0.0)
        return abs(self.value - end) / abs(limit - end)

    @property
    def observed(self) -> str:
        """`rows 12, the same hour of the last 7 days had 9,800 to 11,200 (median 10,400)`."""
        least, most, middle = (self._text(v) for v in (self.earlier[0], self.earlier[-1], float(np.median(self.earlier))))
        known = "" if len(self.earlier) == DAYS else f", {len(self.earlier)} of them known"
        had = f"the same hour of the last {DAYS} days had {least} to {most} (median {middle}{known})"
        return f"{self.number.label} {self._text(self.value)}, {had}"

    @property
    def expected(self) -> str:
        """`rows 7,350 to 14,000`."""
        high = self._text(self.high)
        return f"{self.number.label} at most {high}" if self.low is None else f"{self.number.label} {self._text(self.low)} to {high}"

    def _text(self, value: float) -> str:
        match self.number.unit:
            case "seconds":
                return f"−{duration(-value)}" if value < 0 else duration(value)
            case "share":
                return f"{value * 100:.3g} %"
        return f"{value:,.0f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Result of a comparison. numbers: how many were compared; short: how many were not, for lack of earlier values."""

    unusual: Sequence[Unusual]
    numbers: int
    short: int


def compare(numbers: Sequence[Metric], now: Sequence[float], before: Sequence[Sequence[float]]) -> Compared:
    """Compare the numbers of an hour with those of the same hour of earlier days.

    Args:
        numbers: What they count.
        now: The values of the hour.
        before: One sequence of values a day; NaN for what is not known of it.
    """
    if not numbers or len(before) < LEAST:
        return Compared(unusual=(), numbers=0, short=len(numbers))
    earlier = np.array(before, dtype=np.float64)
    enough = np.count_nonzero(~np.isnan(earlier), axis=0) >= LEAST
    keys = [k for k, known in zip(numbers, enough, strict=True) if known]
    values, earlier = np.array(now, dtype=np.float64)[enough], earlier[:, enough]
    low, high = _limits(keys, earlier)
    found = np.flatnonzero((values < low) | (values > high))
    unusual = [_unusual(keys[n], values[n], earlier[:, n], low[n], high[n]) for n in found]
    return Compared(unusual=unusual, numbers=len(keys), short=len(numbers) - len(keys))


def _limits(keys: Sequence[Metric], earlier: _Array) -> tuple[_Array, _Array]:
    least, most = np.nanmin(earlier, axis=0), np.nanmax(earlier, axis=0)
    mad = np.nanmedian(np.abs(earlier - np.nanmedian(earlier, axis=0)), axis=0)
    wide = np.maximum(_MADS * mad, [_FLOORS[k.unit] for k in keys])
    low = np.where([k.unit == "rows" for k in keys], least - np.maximum(wide, _SHARE * np.abs(least)), -np.inf)
    return low, most + np.maximum(wide, _SHARE * np.abs(most))


def _unusual(number: Metric, value: Any, earlier: _Array, low: Any, high: Any) -> Unusual:
    known = tuple(sorted(float(v) for v in earlier if not np.isnan(v)))
    return Unusual(
        number=number, value=float(value), earlier=known, low=max(float(low), 0.0) if np.isfinite(low) else None, high=float(high)
    )
