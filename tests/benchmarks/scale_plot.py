"""A plot with logarithmic axes as SVG: lines that are named at their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 400, 60, 150, 30, 50
_COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#6c4a8b", "#b08900", "#555555")
FILLED = (("black", "merge-on-read"), ("white", "buckets rewritten"))  # what filled and hollow points are
_STYLE = "font-family: sans-serif; font-size: 12px; background: white"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """points: x, y; filled: whether each is drawn filled."""

    name: str
    points: Sequence[tuple[float, float]]
    filled: Sequence[bool]


def plot(lines: Sequence[Line], x_title: str, y_title: str, keys: Sequence[tuple[str, str]] = FILLED) -> str:
    """keys: colours of points and what they mean."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    across, up = _Axis(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT), _Axis(min(ys), max(ys), _HEIGHT - _BOTTOM, _TOP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" style="{_STYLE}" role="img">']
    parts.append(f"<title>{escape(y_title)} by {escape(x_title)}</title>")
    for x in across.ticks():
        parts += [_rule(across.at(x), _TOP, across.at(x), _HEIGHT - _BOTTOM), _text(across.at(x), _HEIGHT - _BOTTOM + 18, f"{x:,.0f}")]
    for y in up.ticks():
        parts += [_rule(_LEFT, up.at(y), _WIDTH - _RIGHT, up.at(y)), _text(_LEFT - 8, up.at(y) + 4, f"{y:g}", "end")]
    parts += [_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, x_title), _text(_LEFT - 40, 14, y_title, "start")]
    labels = _apart([up.at(line.points[-1][1]) for line in lines])
    for line, colour, label in zip(lines, _COLOURS, labels, strict=False):
        places = [(across.at(x), up.at(y)) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (x, y), filled in zip(places, line.filled, strict=True):
            inside = colour if filled else "white"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{inside}" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(places[-1][0] + 12, label + 4, line.name, "start", colour))
    for n, (inside, said) in enumerate(keys):
        y = _HEIGHT - _BOTTOM - 14 - 18 * n
        parts.append(f'<circle cx="{_WIDTH - _RIGHT + 18}" cy="{y - 4}" r="5" fill="{inside}" stroke="black" stroke-width="2"/>')
        parts.append(_text(_WIDTH - _RIGHT + 30, y, said, "start"))
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        low, high = math.log10(self.low), math.log10(self.high)
        margin = 0.06 * (high - low or 1)
        return self.begin + (math.log10(value) - low + margin) / (high - low + 2 * margin or 1) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round numbers on the axis: of small spans every one, else 1, 2 and 5 of every power of ten; of large spans its powers alone."""
        span = self.high / self.low
        steps = range(1, 10) if span < 5 else (1, 2, 5) if span < 50 else (1,)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        ends = sorted((self.begin, self.end))
        return [t for t in (s * 10.0**p for p in powers for s in steps) if ends[0] <= self.at(t) <= ends[1]]


def _apart(places: Sequence[float]) -> list[float]:
    """The places, moved down where two would be less than a line of text apart."""
    found, last = list(places), -math.inf
    for n in sorted(range(len(places)), key=places.__getitem__):
        found[n] = last = max(places[n], last + 14)
    return found


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
