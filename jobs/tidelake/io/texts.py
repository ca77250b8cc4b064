"""Format numbers, times and untrusted texts for reports."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from markupsafe import Markup, escape

from tidelake.tso import at, parse_hour, physical_ms, unwrap

_CLIPPED = 2000
# Controls, surrogates and marks that reorder or hide the text around them: shown as U+FFFD. Tabs and line ends are spaces in HTML.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_QUOTED = re.compile(r"`([^`]+)`")
_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d\.\d{3}Z)")


def printable(value: object) -> object:
    """Filter every expression of the report page: text without unprintable characters, integers with separators."""
    if isinstance(value, (Markup, bool)):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value


def clipped(text: str, characters: int = _CLIPPED) -> str:
    """Return the beginning of a long text, with the number of characters left out."""
    return text if len(text) <= characters else f"{text[:characters]}… ({len(text) - characters:,} more characters)"


def prose(text: str) -> Markup:
    """Return a sentence of Tidelake's as HTML: backticks become code, times do not break over lines."""
    safe = _TIME.sub(r'<time datetime="\1T\2">\1 \2</time>', str(escape(printable(clipped(text)))))
    return Markup(_QUOTED.sub(r"<code>\1</code>", safe))


def plural(n: int, noun: str) -> str:
    """Return a count with its noun: `1 row`, `2,000 rows`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def moment(ts: int | None) -> str:
    """Return a TSO with its time. 0 is the start: nothing was published before."""
    if not ts:
        return "the first message"
    ts = unwrap(ts)
    return f"{instant(physical_ms(ts))} (TSO {ts})"


def instant(ms: int) -> str:
    """Return a UTC time with milliseconds. ms: since 1970."""
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%d %H:%M:%S}.{ms % 1000:03d}Z"


def clock(ts: int) -> str:
    """Return the time of a TSO to the minute: `2026-01-05 10:59 UTC`."""
    return f"{at(unwrap(ts)):%Y-%m-%d %H:%M} UTC"


def iso(ts: int) -> str:
    """Return the time of a TSO for programs: `2026-01-05T10:59:56Z`."""
    return f"{at(unwrap(ts)):%Y-%m-%dT%H:%M:%SZ}"


def lag(seconds: float) -> str:
    """Return the distance of a resolved ts from the end of its hour. seconds: positive before the end."""
    return f"{duration(abs(seconds))} {'before' if seconds >= 0 else 'after'} the end of the hour"


def duration(seconds: float) -> str:
    """Return a duration: `3.4 s`, `2 min 5 s`, `1 h 3 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"


def size(n: int) -> str:
    """Return a number of bytes in binary units."""
    value, unit = float(n), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{n:,} B" if unit == "B" else f"{value:,.1f} {unit}"


def hour_name(hour: str) -> str:
    """Return an hour as `2026-01-05, 10:00–11:00 UTC`."""
    start = parse_hour(hour)
    return f"{start:%Y-%m-%d, %H:%M}–{start + timedelta(hours=1):%H:%M} UTC"


def signed(n: int) -> str:
    """Return a number with its sign: `+12`, `−3`, `±0`."""
    return f"{'+' if n > 0 else '−' if n < 0 else '±'}{abs(n):,}"
