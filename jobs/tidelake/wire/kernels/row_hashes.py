"""Compiled: 128-bit hashes of rows, column by column (SipHash-1-3 with 128 bits of output, Aumasson and Bernstein 2012).

A row is a sequence of 64-bit words: one for a number, two for a decimal, length and bytes for text. A NULL cell is the word 0; a word of
flags after each 64 columns says which cells are NULL. So different rows are different sequences.

The hash is keyed. Nobody knows the key before the rows are written, so nobody can write rows with equal hashes. Two different rows then
have equal hashes with a chance of 2^-128; for some pair of 10^8 rows that is less than 10^-22.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Bytes, Flags, Longs, Words
from tidelake.wire.kernels.compiled import compiled, inlined_step

_U = np.uint64
_START = np.array([0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573], np.uint64)
_SECOND = _U(0xDD)
_WORD = 8  # bytes


def begin(rows: int, key: tuple[int, int]) -> Words:
    """Return the states of rows before their first cell, four words each.

    Args:
        rows: Number of rows.
        key: Two numbers of 64 bits.
    """
    one, two = (_U(k & (1 << 64) - 1) for k in key)
    return np.tile(_START ^ np.array([one, two, one, two]), (rows, 1))


@inlined_step
def _turned(x: np.uint64, bits: int) -> np.uint64:
    return _U(_U(x << _U(bits)) | _U(x >> _U(64 - bits)))


@inlined_step
def _round(v: Words, i: int) -> None:
    a, b, c, d = v[i, 0], v[i, 1], v[i, 2], v[i, 3]
    a = _U(a + b)
    b = _U(_turned(b, 13) ^ a)
    a = _turned(a, 32)
    c = _U(c + d)
    d = _U(_turned(d, 16) ^ c)
    a = _U(a + d)
    d = _U(_turned(d, 21) ^ a)
    c = _U(c + b)
    b = _U(_turned(b, 17) ^ c)
    c = _turned(c, 32)
    v[i, 0], v[i, 1], v[i, 2], v[i, 3] = a, b, c, d


@inlined_step
def _take(v: Words, i: int, word: np.uint64) -> None:
    v[i, 3] ^= word
    _round(v, i)
    v[i, 0] ^= word


@compiled
def take_words(v: Words, words: Words) -> None:
    """Take one word into each state."""
    for i in range(len(words)):
        _take(v, i, words[i])


@compiled
def take_bytes(v: Words, data: Bytes, offsets: Longs, nulls: Flags) -> None:
    """Take length and bytes into each state. offsets: of the values in data, one more than there are values; nulls: cells without any."""
    for i in range(len(nulls)):
        at, end = offsets[i], offsets[i + 1]
        if nulls[i]:
            end = at
        _take(v, i, _U(end - at))
        while at < end:
            word, left = _U(0), min(end - at, _WORD)
            for n in range(left):
                word |= _U(data[at + n]) << _U(8 * n)
            _take(v, i, word)
            at += left


@compiled
def finish(v: Words, out: Words) -> None:
    """Write the two words of each hash. The states cannot be used afterwards."""
    for i in range(len(v)):
        v[i, 2] ^= _U(0xEE)
        for _ in range(3):
            _round(v, i)
        out[i, 0] = v[i, 0] ^ v[i, 1] ^ v[i, 2] ^ v[i, 3]
        v[i, 1] ^= _SECOND
        for _ in range(3):
            _round(v, i)
        out[i, 1] = v[i, 0] ^ v[i, 1] ^ v[i, 2] ^ v[i, 3]
