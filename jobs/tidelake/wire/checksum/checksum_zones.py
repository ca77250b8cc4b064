"""Time zones as arrays, for checksums of TIMESTAMPs (docs/reference/protocols.md 4.2): messages print local times, TiDB sums UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from tidelake.wire.kernels.arrays import Ints, Longs

_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2038, 1, 20, tzinfo=UTC)  # TIMESTAMP ends on 2038-01-19
_STEP = timedelta(days=7)  # no zone changed its clocks twice within a week and back
_BEFORE_ALL = -(1 << 62)


class Zones(NamedTuple):
    """Zone i has from UTC second start[j] on the offset seconds[j], for j in first[i] to first[i+1]. One that is not known has none."""

    first: Ints
    start: Longs
    seconds: Longs


def zones(names: Sequence[str]) -> Zones:
    """By the names in messages: `Asia/Shanghai`, `+08:00`, `UTC`."""
    tables = [_table(name) for name in names]
    first = np.cumsum([0, *(len(t) for t in tables)], dtype=np.int32)
    pairs = np.array([pair for t in tables for pair in t], np.int64).reshape(-1, 2)
    return Zones(first, pairs[:, 0].copy(), pairs[:, 1].copy())


@lru_cache(1024)
def _table(name: str) -> tuple[tuple[int, int], ...]:
    """(UTC second, offset from then on), ascending; nothing for a name that is none."""
    offset = _OFFSET.fullmatch(name)
    if offset:
        seconds = int(offset[2]) * 3600 + int(offset[3]) * 60
        return ((_BEFORE_ALL, -seconds if offset[1] == "-" else seconds),)
    try:
        zone: tzinfo = UTC if name == "UTC" else ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # also what is a folder of the database
        return ()
    return tuple(_changes(zone))


def _changes(zone: tzinfo) -> list[tuple[int, int]]:
    at, now = _FIRST, _offset(zone, _FIRST)
    found = [(_BEFORE_ALL, now)]
    while at < _LAST:
        following = at + _STEP
        if _offset(zone, following) != now:
            low, high = int(at.timestamp()), int(following.timestamp())
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, _FIRST + timedelta(seconds=middle)) == now else (low, middle)
            now = _offset(zone, following)
            found.append((high, now))
        at = following
    return found


def _offset(zone: tzinfo, at: datetime) -> int:
    offset = at.astimezone(zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())
