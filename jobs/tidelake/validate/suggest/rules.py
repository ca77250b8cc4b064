"""Turns what a table held into expectations, each with what was seen. Every rule holds for the rows that it was made from."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tidelake.io.texts import plural
from tidelake.validate.suggest.profile import ColumnProfile, TableProfile

LEAST_ROWS = 20  # rows that a rule about values needs
_REPEATS = 20  # times that each of a few values must occur on average
_FEW_NUMBERS = 5  # distinct integers that are a set, not a range
_HUGE = 1e307  # numbers above have no round number of twice their size
_TOML_DIGITS = 17  # 5 × 10^17 fits into 64 bits
_ROW_COUNT = "expect_table_row_count_to_be_between"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """A suggested expectation. seen: what was seen, for its comment."""

    type: str
    seen: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A column of the judged rows. elements: all values that its ENUM type has, where they are known; mask: its mask, None without one."""

    name: str
    key: bool = False
    json: bool = False
    elements: tuple[str, ...] | None = None
    mask: str | None = None


def suggested(profile: TableProfile, columns: Mapping[int, Described]) -> list[Suggested]:
    """Return the rules for a table, in the order of its columns.

    Args:
        profile: What the table held.
        columns: Its columns by id. Nothing is suggested about the values of masked ones.
    """
    rules = [r for i, c in columns.items() if c.mask is None and i in profile.columns for r in _of_column(c, profile.columns[i])]
    return [*_of_key(profile, columns), *rules, *_of_counts(profile)]


def _of_key(profile: TableProfile, columns: Mapping[int, Described]) -> Iterator[Suggested]:
    if not profile.keys.are_unique:
        return
    key = [columns[n].name for n in profile.key]
    inserts = sum(profile.counts("INSERT"))
    seen = f"{plural(inserts, 'insert')}, no key twice. Updates repeat the key of their row, so only inserts are judged"
    once = {"row_condition": "_change_type = 'INSERT'"}
    if len(key) == 1:
        yield Suggested(type="expect_column_values_to_be_unique", seen=seen, arguments={"column": key[0], **once})
    else:
        yield Suggested(type="expect_compound_columns_to_be_unique", seen=seen, arguments={"column_list": key, **once})


def _of_column(c: Described, p: ColumnProfile) -> Iterator[Suggested]:
    if p.rows < LEAST_ROWS:
        return
    if not p.nulls:
        yield Suggested(
            type="expect_column_values_to_not_be_null", seen=f"no NULL in {plural(p.rows, 'row')}", arguments={"column": c.name}
        )
    found = _set(c, p) or _range(c, p)
    if found is not None:
        yield found


def _set(c: Described, p: ColumnProfile) -> Suggested | None:
    given, filled = p.values, p.rows - p.nulls
    if not given or c.key or c.json or (isinstance(next(iter(given)), int) and len(given) > _FEW_NUMBERS):
        return None
    if c.elements is not None and given <= set(c.elements):
        seen = f"{plural(len(given), 'value')} of the {plural(len(c.elements), 'element')} of the type, in {plural(filled, 'row')}"
        return _in_set(c, seen, c.elements)
    if filled < LEAST_ROWS or filled < _REPEATS * len(given):
        return None
    return _in_set(c, f"{plural(len(given), 'distinct value')} in {plural(filled, 'row')}", sorted(given))


def _in_set(c: Described, seen: str, values: Sequence[Any]) -> Suggested:
    return Suggested(type="expect_column_values_to_be_in_set", seen=seen, arguments={"column": c.name, "value_set": list(values)})


def _range(c: Described, p: ColumnProfile) -> Suggested | None:
    if p.least is None or not p.finite or p.rows - p.nulls < LEAST_ROWS:
        return None
    seen, limits = f"{p.least} to {p.most} in {plural(p.rows - p.nulls, 'row')}", dict[str, Any]()
    if isinstance(p.least, date):  # a datetime is a date as well
        limits["min_value"] = _before(p.least)
    elif isinstance(p.least, int | float | Decimal):
        limits["min_value"] = 0 if p.least >= 0 else -above(-p.least)
        limits |= {} if c.key else {"max_value": above(p.most)}
    if not limits:
        return None
    return Suggested(type="expect_column_values_to_be_between", seen=seen, arguments={"column": c.name, **limits})


def _before(least: date) -> date:
    """The first day of the year before, which is before the value in every time zone."""
    year = max(least.year - 1, 1)
    return datetime(year, 1, 1) if isinstance(least, datetime) else date(year, 1, 1)  # noqa: DTZ001 - as TOML has local times


def above(value: float | Decimal) -> int | float:
    """Return a round number, 1, 2 or 5 times a power of ten, of at least twice the value; 0 for values that are not above 0."""
    if value <= 0:
        return 0
    wanted = 2 * float(value)
    if wanted > _HUGE:
        return sys.float_info.max
    power = math.floor(math.log10(wanted))
    limits = (_power(digit, exponent) for exponent in (power, power + 1) for digit in (1, 2, 5))
    return next(limit for limit in limits if limit >= wanted)


def _power(digit: int, exponent: int) -> int | float:
    """digit × 10^exponent: an integer where TOML has one."""
    return digit * 10**exponent if 0 <= exponent <= _TOML_DIGITS else float(f"{digit}e{exponent}")


def _of_counts(profile: TableProfile) -> Iterator[Suggested]:
    """Bounds for the numbers of an hour: half of the least, and twice the greatest one."""
    if not profile.by_hour:
        return
    counts = profile.counts("NEW")
    if counts[-1]:
        least = {"min_value": counts[0] // 2} if counts[0] > 1 else {}
        yield Suggested(type=_ROW_COUNT, seen=f"new rows: {_hours(counts)}", arguments={**least, "max_value": above(counts[-1] + 10)})
    for kind, words in (("INSERT", "inserts"), ("UPDATE_AFTER", "updates"), ("DELETE", "deletes")):
        counts = profile.counts(kind)
        arguments = {"row_condition": f"_change_type = '{kind}'", "max_value": above(counts[-1] + 10) if counts[-1] else 0}
        if counts[-1] or kind == "DELETE":
            yield Suggested(type=_ROW_COUNT, seen=f"{words}: {_hours(counts)}", arguments=arguments)


def _hours(counts: Sequence[int]) -> str:
    return (
        f"{counts[0]:,} to {counts[-1]:,} in each of {plural(len(counts), 'hour')} with changes (median {statistics.median(counts):,.0f})"
    )
