"""Trends of the last hours of a feed: four plots, and their numbers as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from tidelake.tso import format_hour, parse_hour
from tidelake.validate.quality.facts import HourFacts, TableFacts
from tidelake.validate.quality.plots import COLOURS, Plot, Series, line, stacked

HOURS = 48  # maximum number of hours that are drawn, up to the current one
_OPS = ("inserts", "updates", "deletes", "upserts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A plot on the page. series: for the legend; gaps, stops: whether the legend explains them."""

    title: str
    svg: Markup
    series: Sequence[Series]
    gaps: bool
    stops: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trends:
    """Figures in reading order, and facts of the hours that have any, newest first. With a single hour there are no figures."""

    figures: Sequence[Figure]
    facts: Sequence[HourFacts]


def trends(current: HourFacts, history: Sequence[HourFacts]) -> Trends:
    """Return the trends up to and including the current hour."""
    end = parse_hour(current.hour)
    by_hour = {f.hour: f for f in history if f.hour < current.hour} | {current.hour: current}
    every = [end - timedelta(hours=n) for n in reversed(range(HOURS))]
    first = next(i for i, hour in enumerate(every) if format_hour(hour) in by_hour)
    hours = every[first:]
    facts = [by_hour.get(format_hour(hour)) for hour in hours]
    known = [f for f in reversed(facts) if f is not None]
    if len(known) < 2:
        return Trends(figures=(), facts=known)
    stopped = frozenset(i for i, f in enumerate(facts) if f is not None and f.status in ("blocked", "failed"))
    drawn = [(plot, draw(plot)) for plot, draw in _plots(hours, facts, stopped)]
    figures = [
        Figure(title=p.title, svg=svg, series=p.series if len(p.series) > 1 else (), gaps=p.has_gaps, stops=bool(stopped))
        for p, svg in drawn
    ]
    return Trends(figures=figures, facts=known)


def outline(facts: HourFacts) -> HourFacts:
    """Return what plots show of an hour: its facts with all tables in one. Facts of thousands of tables take 25 MB."""
    total = TableFacts.model_validate({op: changed_rows(facts, op) for op in _OPS})
    return facts.model_copy(update={"tables": {"": total}, "checks": [], "ddl": [], "findings": [], "late": {}, "redo": None})


def quarantined(facts: HourFacts) -> int:
    """Return the number of the hour's messages that could not be decoded."""
    return sum(r.messages for r in facts.rejected)


def changed_rows(facts: HourFacts, op: str) -> int:
    """Return how many rows of all tables the window inserted, updated, … (op)."""
    return sum(getattr(t, op) for t in facts.tables.values())


def _plots(
    hours: Sequence[datetime], facts: Sequence[HourFacts | None], stopped: frozenset[int]
) -> list[tuple[Plot, Callable[[Plot], Markup]]]:
    def values(of: Callable[[HourFacts], float | None]) -> list[float | None]:
        return [None if f is None else of(f) for f in facts]

    def op_values(op: str) -> list[float | None]:
        return values(lambda f: changed_rows(f, op))

    def stage_values(stage: str) -> list[float | None]:
        return values(lambda f: f.seconds.get(stage, 0.0))

    def plot(title: str, unit: str, series: Sequence[Series], decimals: int = 0) -> Plot:
        return Plot(title=title, unit=unit, hours=hours, series=series, stopped=stopped, decimals=decimals)

    ops = [Series(name=op, values=op_values(op), colour=i) for i, op in enumerate(_OPS)]
    used = [s for s in ops if any(s.values)] or ops[:1]
    stages = [Series(name=name, values=stage_values(name), colour=i % COLOURS) for i, name in enumerate(_stages(facts))]
    return [
        (plot("Rows per hour", "rows", used), stacked),
        (plot("Lag of the resolved ts behind the end of the hour (s)", "s", [Series(name="lag", values=values(_lag))], 1), line),
        (plot("Quarantined messages per hour", "messages", [Series(name="quarantined", values=values(quarantined), colour=2)]), stacked),
        (plot("Duration per stage (s)", "s", stages or [Series(name="all", values=values(lambda _: 0.0))], 1), stacked),
    ]


def _lag(facts: HourFacts) -> float | None:
    return facts.lag_seconds


def _stages(facts: Sequence[HourFacts | None]) -> list[str]:
    """Every stage that took time, in running order."""
    return list(dict.fromkeys(stage for f in reversed(facts) if f is not None for stage in f.seconds))
