"""Compiled: numbers for 128-bit hashes in a hash table with open addressing, and what a fold keeps of each number."""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Flags, Ints, Longs, Words
from tidelake.wire.kernels.compiled import compiled, inlined_step, int64

NONE = -1  # no number, no row
_U = np.uint64


@inlined_step
def _place(first: np.uint64, second: np.uint64, mask: int) -> int:
    """The place where the search for a hash begins. Its words may be small numbers."""
    x = _U(_U(first ^ _U(second * _U(0x9E3779B97F4A7C15))) * _U(0xBF58476D1CE4E5B9))
    return int64(_U(x ^ (x >> _U(32)))) & mask


@compiled
def number(table: Ints, known: Words, count: int, hashes: Words, out: Ints, adds: bool) -> int:
    """Give every hash its number. Return how many numbers there are.

    table: numbers by place, NONE for an empty one; a power of two, at least twice as many as there will be numbers. known: the hash of each
    number. adds: unknown hashes get the next numbers, otherwise NONE.
    """
    mask = len(table) - 1
    for i in range(len(hashes)):
        first, second = hashes[i, 0], hashes[i, 1]
        at = _place(first, second, mask)
        while table[at] != NONE and (known[table[at], 0] != first or known[table[at], 1] != second):
            at = (at + 1) & mask
        if table[at] == NONE and adds:
            table[at] = count
            known[count, 0], known[count, 1] = first, second
            count += 1
        out[i] = table[at]
    return count


@compiled
def spread(table: Ints, known: Words, count: int) -> None:
    """Fill an empty table with the known numbers."""
    mask = len(table) - 1
    for n in range(count):
        at = _place(known[n, 0], known[n, 1], mask)
        while table[at] != NONE:
            at = (at + 1) & mask
        table[at] = n


@compiled
def newest(numbers: Ints, places: Longs, rows: Longs, best: Longs, row: Longs) -> None:
    """Keep the row with the greatest place for each number.

    places, best: 128-bit numbers as (low, high) words; row: NONE where no row is known.
    """
    for i in range(len(numbers)):
        n, low, high = numbers[i], places[i, 0], places[i, 1]
        later = high > best[n, 1] or (high == best[n, 1] and _U(low) > _U(best[n, 0]))
        if row[n] == NONE or later:
            row[n] = rows[i]
            best[n, 0], best[n, 1] = low, high


@compiled
def meet(numbers: Ints, left: Longs, found: Flags) -> None:
    """Mark rows that are still to come for their number, in order, and count them down. NONE is never marked."""
    for i in range(len(numbers)):
        n = numbers[i]
        found[i] = n != NONE and left[n] > 0
        if found[i]:
            left[n] -= 1
