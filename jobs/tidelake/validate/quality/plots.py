"""Plots over hours as inline SVG: stacked bars and a line, with axes, ticks, gridlines, gaps and a text summary for screen readers.

Colours, fonts and dark mode come from the page's CSS (classes c0 … c5, gap, grid, axis). Every text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise

from markupsafe import Markup

COLOURS = 6  # number of colours in the page's CSS
_WIDTH, _HEIGHT = 420, 214
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 8, 10, 38
_INNER = _WIDTH - _LEFT - _RIGHT
_BASE = _HEIGHT - _BOTTOM
_LABELS = 7  # number of labels that fit below the axis
_TICKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One value per hour; None for hours without one. colour: index of the page's colours."""

    name: str
    values: Sequence[float | None]
    colour: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Data of a plot. hours: consecutive; unit: text after a number; stopped: indexes of hours that were blocked or failed."""

    title: str
    unit: str
    hours: Sequence[datetime]
    series: Sequence[Series]
    stopped: frozenset[int] = frozenset()
    decimals: int = 0

    def has_data(self, i: int) -> bool:
        """Whether any series has a value in the i-th hour."""
        return any(s.values[i] is not None for s in self.series)

    def total(self, i: int) -> float:
        """The sum of all series in the i-th hour."""
        return sum(s.values[i] or 0 for s in self.series)

    @property
    def has_gaps(self) -> bool:
        """Whether some hour has no data."""
        return not all(self.has_data(i) for i in range(len(self.hours)))

    def said(self, value: float) -> str:
        """Format a number with its unit."""
        return f"{value:,.{self.decimals}f} {self.unit}".rstrip()


def stacked(plot: Plot) -> Markup:
    """Draw stacked bars, one per hour."""
    scale = _Scale.of(0, max(plot.total(i) for i in range(len(plot.hours))))
    bars = (bar for i in range(len(plot.hours)) for bar in _bar(plot, scale, i))
    return _svg(plot, scale, Markup("").join(bars))


def line(plot: Plot) -> Markup:
    """Draw the first series as a line with a dot per hour. Hours without a value interrupt the line."""
    values = plot.series[0].values
    known = [v for v in values if v is not None] or [0.0]
    scale = _Scale.of(min(0, *known), max(0, *known))
    step = _INNER / len(values)
    points = [(_LEFT + (i + 0.5) * step, scale.y(v)) if v is not None else None for i, v in enumerate(values)]
    parts = [
        Markup('<path class="line c{}" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>').format(plot.series[0].colour, *a, *b)
        for a, b in pairwise(points)
        if a is not None and b is not None
    ]
    dots = [Markup('<circle class="c{}" cx="{:.1f}" cy="{:.1f}" r="2.2"/>').format(plot.series[0].colour, *p) for p in points if p]
    return _svg(plot, scale, Markup("").join([*parts, *dots]))


@dataclass(frozen=True, slots=True)
class _Scale:
    """The y axis: round ticks that enclose all values."""

    low: float
    high: float
    step: float

    @classmethod
    def of(cls, low: float, high: float) -> _Scale:
        span = (high - low) or 1
        power = 10.0 ** math.floor(math.log10(span / _TICKS))
        step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m * _TICKS >= span * 0.999)
        return cls(math.floor(low / step) * step, math.ceil((high or (low and high) or 1) / step) * step, step)

    def y(self, value: float) -> float:
        return _BASE - (value - self.low) / (self.high - self.low) * (_BASE - _TOP)

    def ticks(self) -> Iterator[tuple[float, str]]:
        for n in range(round((self.high - self.low) / self.step) + 1):
            value = self.low + n * self.step
            yield value, _short(value, self.step)


def _short(value: float, step: float) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if step >= size / 10:
            return f"{value / size:g} {letter}" if value else "0"
    return f"{value:,.0f}" if step >= 1 and step == int(step) else f"{value:,g}"


def _bar(plot: Plot, scale: _Scale, i: int) -> Iterator[Markup]:
    step = _INNER / len(plot.hours)
    width = min(step * 0.74, 34)
    x, top = _LEFT + (i + 0.5) * step - width / 2, scale.y(0)
    for s in plot.series:
        value = s.values[i] or 0
        if value > 0:
            height = max(scale.y(0) - scale.y(value), 1)  # even one message among thousands is visible
            top -= height
            yield Markup('<rect class="c{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(s.colour, x, top, width, height)


def _svg(plot: Plot, scale: _Scale, drawing: Markup) -> Markup:
    parts = [*_grid(scale), *_gaps(plot), drawing, *_x_axis(plot), *_stops(plot), *_tips(plot)]
    head = Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return head.format(_WIDTH, _HEIGHT, _summary(plot)) + Markup("").join(parts) + Markup("</svg>")


def _grid(scale: _Scale) -> Iterator[Markup]:
    for value, label in scale.ticks():
        y = scale.y(value)
        kind = "axis" if value == 0 else "grid"
        yield Markup('<line class="{}" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(kind, _LEFT, _WIDTH - _RIGHT, y, y)
        yield Markup('<text class="y" x="{}" y="{:.1f}">{}</text>').format(_LEFT - 6, y + 4, label)


def _gaps(plot: Plot) -> Iterator[Markup]:
    """One band for each run of hours without data."""
    step = _INNER / len(plot.hours)
    for full, run in groupby(range(len(plot.hours)), plot.has_data):
        if not full:
            first, *rest = run
            band = Markup('<rect class="gap" x="{:.1f}" y="{}" width="{:.1f}" height="{}"/>')
            yield band.format(_LEFT + first * step, _TOP, step * (1 + len(rest)), _BASE - _TOP)


def _x_axis(plot: Plot) -> Iterator[Markup]:
    """Hours of the day that are multiples of the stride, with the date below the first of each day."""
    step = _INNER / len(plot.hours)
    stride = next((s for s in (1, 2, 3, 4, 6, 8, 12) if len(plot.hours) / s <= _LABELS), 24)
    day = None
    for i, hour in enumerate(plot.hours):
        if hour.hour % stride:
            continue
        x = _LEFT + (i + 0.5) * step
        yield Markup('<line class="axis" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>').format(x, _BASE, _BASE + 4)
        yield Markup('<text class="x" x="{:.1f}" y="{}">{:%H:%M}</text>').format(x, _BASE + 17, hour)
        if hour.date() != day:
            yield Markup('<text class="x day" x="{:.1f}" y="{}">{} {:%b}</text>').format(x, _BASE + 32, hour.day, hour)
            day = hour.date()


def _stops(plot: Plot) -> Iterator[Markup]:
    step = _INNER / len(plot.hours)
    for i in sorted(plot.stopped):
        x = _LEFT + (i + 0.5) * step
        yield Markup('<path class="stop" d="M{:.1f} {}l5 -9h-10z"/>').format(x, _TOP + 9)


def _tips(plot: Plot) -> Iterator[Markup]:
    """An invisible rectangle per hour; browsers show its title under the pointer."""
    step = _INNER / len(plot.hours)
    for i, hour in enumerate(plot.hours):
        parts = [f"{s.name} {plot.said(value)}" for s in plot.series if (value := s.values[i]) is not None]
        tip = f"{hour:%Y-%m-%d %H:%M} UTC{' (stopped)' if i in plot.stopped else ''}: {', '.join(parts) or 'no data'}"
        area = Markup('<rect class="tip" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect>')
        yield area.format(_LEFT + i * step, _TOP, step, _BASE - _TOP, tip)


def _summary(plot: Plot) -> str:
    known = [i for i in range(len(plot.hours)) if plot.has_data(i)]
    if not known:
        return f"{plot.title}: no data"
    most = max(known, key=plot.total)
    last = known[-1]
    return (
        f"{plot.title}, {plot.hours[0]:%Y-%m-%d %H:%M} to {plot.hours[-1]:%Y-%m-%d %H:%M} UTC: "
        f"{plot.said(plot.total(last))} in the hour from {plot.hours[last]:%H:%M}, "
        f"at most {plot.said(plot.total(most))} in the hour from {plot.hours[most]:%Y-%m-%d %H:%M}"
    )
