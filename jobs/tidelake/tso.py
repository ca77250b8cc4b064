"""TSO ↔ time: 46 bits of milliseconds since 1970 (UTC), 18 bits of counter (docs/reference/protocols.md 10).

A TSO is unsigned 64 bits; Arrow, Spark and Iceberg have no such type, so columns keep it wrapped in int64 (`wrap`, `unwrap`).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tidelake.errors import ConfigError

LOGICAL_BITS = 18
MOST = (1 << 63) - 1  # the largest TSO of a row
_HOUR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def physical_ms(ts: int) -> int:
    """Milliseconds since 1970 of a TSO."""
    return ts >> LOGICAL_BITS


def at(ts: int) -> datetime:
    """The aware UTC time of a TSO, to the millisecond."""
    seconds, ms = divmod(physical_ms(ts), 1000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=ms * 1000)


def from_ms(ms: int, logical: int = 0) -> int:
    """The TSO of a millisecond and counter."""
    return ms << LOGICAL_BITS | logical


def last_of(moment: datetime) -> int:
    """The largest TSO of the moment's millisecond: `--at 12:00:00` includes all that committed in that millisecond."""
    return from_ms((moment - _EPOCH) // timedelta(milliseconds=1), (1 << LOGICAL_BITS) - 1)


def wrap(ts: int) -> int:
    """uint64 → int64 of the same bits."""
    return ts - (1 << 64) if ts >= 1 << 63 else ts


def unwrap(ts: int) -> int:
    """int64 → uint64 of the same bits."""
    return ts + (1 << 64) if ts < 0 else ts


def show(ts: int) -> str:
    """A TSO as people read it: the number and its time."""
    return f"{unwrap(ts)} ({at(ts):%Y-%m-%dT%H:%M:%S}.{physical_ms(ts) % 1000:03d}Z)" if ts >= 0 else str(unwrap(ts))


def parse_moment(text: str) -> datetime:
    """ISO 8601 with a zone → aware UTC datetime. Raises ConfigError."""
    try:
        moment = datetime.fromisoformat(text)
        utc = moment.astimezone(UTC)
    except (ValueError, OverflowError) as e:
        raise ConfigError(f"not an ISO 8601 time: {text!r}", remedy="write it like 2026-01-05T12:00:00Z") from e
    if moment.tzinfo is None:
        raise ConfigError(f"{text!r} has no time zone", remedy="append Z for UTC")
    return utc


def parse_ts(text: str) -> int:
    """A TSO, or the last one of an ISO 8601 time with a zone. Raises ConfigError."""
    return int(text) if text.isdecimal() else last_of(parse_moment(text))


def parse_hour(text: str) -> datetime:
    """`2026-01-05T10` → aware UTC datetime. Raises ConfigError."""
    if not _HOUR.fullmatch(text):
        raise ConfigError(f"not an hour: {text!r}", remedy="write it like 2026-01-05T10 (UTC)")
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    except ValueError as e:
        raise ConfigError(f"not an hour: {text!r} ({e})", remedy="write it like 2026-01-05T10 (UTC)") from e


def format_hour(moment: datetime) -> str:
    """The hour's name, as in object keys: `2026-01-05T10`."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H}"


def begin_ts(hour: datetime) -> int:
    """The first TSO of an hour."""
    return from_ms(int(hour.timestamp() * 1000))


def end_ts(hour: datetime) -> int:
    """The last TSO of an hour."""
    return from_ms(int((hour + timedelta(hours=1)).timestamp() * 1000)) - 1
