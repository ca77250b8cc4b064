"""Ranges of offsets: sorted, disjoint, not touching (first, last), both ends included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tidelake.io.texts import plural

Range = tuple[int, int]
Ranges = tuple[Range, ...]


def runs(ascending: npt.NDArray[np.int64]) -> Ranges:
    """Return the contiguous runs of ascending, distinct offsets."""
    if not len(ascending):
        return ()
    breaks = np.flatnonzero(np.diff(ascending) != 1)
    firsts = ascending[np.append(0, breaks + 1)]
    lasts = ascending[np.append(breaks, len(ascending) - 1)]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))


def union(several: Iterable[Sequence[Range]]) -> Ranges:
    """Return all offsets of any of the ranges."""
    out: list[Range] = []
    for first, last in sorted(r for ranges in several for r in ranges):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return tuple(out)


def holes(ranges: Ranges) -> Ranges:
    """Return the offsets between the ranges."""
    return tuple((a[1] + 1, b[0] - 1) for a, b in pairwise(ranges))


def numbers(ranges: Iterable[Range], bits: int) -> Ranges:
    """Return the numbers of the files that offsets are in. bits: low bits of an offset, which are not part of the number."""
    return union([[(first >> bits, last >> bits)] for first, last in ranges])


def minus(ranges: Iterable[Range], taken: Ranges) -> Ranges:
    """Return the offsets of `ranges` that `taken` lacks."""
    out: list[Range] = []
    for first, last in ranges:
        for a, b in taken:
            if b < first or a > last:
                continue
            if a > first:
                out.append((first, a - 1))
            first = b + 1
        if first <= last:
            out.append((first, last))
    return tuple(out)


def common(one: Ranges, other: Ranges) -> Ranges:
    """Return the offsets in both."""
    return minus(one, minus(one, other))


def count(ranges: Iterable[Range]) -> int:
    """Return the number of offsets."""
    return sum(last - first + 1 for first, last in ranges)


def show(ranges: Sequence[Range], limit: int = 3) -> str:
    """Format ranges for messages: `17`, `17–20`, `17–20, 31 and 4 more ranges`."""
    shown = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in ranges[:limit])
    return shown if len(ranges) <= limit else f"{shown} and {plural(len(ranges) - limit, 'more range')}"
