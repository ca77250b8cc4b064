"""The calendar of a month: a row for each day, a cell for each hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidelake.pages.hour_states import HourState
from tidelake.pages.reports import month_after
from tidelake.tso import format_hour, parse_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day of the calendar. hours: 24 states, None for hours that are not landed."""

    date: str
    name: str
    hours: Sequence[HourState | None]


def days_of(month: str, states: Mapping[str, HourState]) -> list[Day]:
    """Return the days of a month that have a landed hour, from the first to the last of them."""
    begin, end = parse_hour(f"{month}-01T00"), parse_hour(f"{month_after(month)}-01T00")
    every = [begin + timedelta(days=n) for n in range((end - begin).days)]
    days = [_day(day, states) for day in every]
    landed = [n for n, day in enumerate(days) if any(day.hours)]
    return days[landed[0] : landed[-1] + 1] if landed else []


def _day(day: datetime, states: Mapping[str, HourState]) -> Day:
    hours = [states.get(format_hour(day + timedelta(hours=n))) for n in range(24)]
    return Day(date=f"{day:%Y-%m-%d}", name=f"{day:%a} {day.day}", hours=hours)
