"""Compiled: 128-bit hashes of rows, column by column (SipHash-1-3 with 128 bits of output, Aumasson and Bernstein 2012).

A row is a sequence of 64-bit words: one for a number, two for a decimal, length and bytes for text, their number and then each value for a
list. A NULL cell is the word 0; a word of flags after each 64 columns says which cells are NULL. So different rows are different sequences.

The hash is keyed. Nobody knows the key before the rows are written, so nobody can write rows with equal hashes. Two different rows then
have equal hashes with a chance of 2^-128; for some pair of 10^8 rows that is less than 10^-22.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Bytes, Flags, Ints, Longs, Words
from tidelake.wire.kernels.compiled import compiled, inlined_step
from tidelake.wire.kernels.json_kernels import item, word

_U = np.uint64
_START = np.array([0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573], np.uint64)
_SECOND = _U(0xDD)
_WORD = 8  # bytes
_NULL = _U(2**64 - 1)  # in the place of a length

_State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


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
def _round(state: _State) -> _State:
    a, b, c, d = state
    a = _U(a + b)
    b = _U(_turned(b, 13) ^ a)
    a = _turned(a, 32)
    c = _U(c + d)
    d = _U(_turned(d, 16) ^ c)
    a = _U(a + d)
    d = _U(_turned(d, 21) ^ a)
    c = _U(c + b)
    b = _U(_turned(b, 17) ^ c)
    return a, b, _turned(c, 32), d


@inlined_step
def _state(v: Words, i: int) -> _State:
    return v[i, 0], v[i, 1], v[i, 2], v[i, 3]


@inlined_step
def _keep(v: Words, i: int, state: _State) -> None:
    v[i, 0], v[i, 1], v[i, 2], v[i, 3] = state


@inlined_step
def _with(state: _State, taken: np.uint64) -> _State:
    a, b, c, d = state
    a, b, c, d = _round((a, b, c, _U(d ^ taken)))
    return _U(a ^ taken), b, c, d


@inlined_step
def _with_bytes(state: _State, data: Bytes, at: int, end: int) -> _State:
    """With the length and the bytes from at to end."""
    state = _with(state, _U(end - at))
    while end - at >= _WORD:
        state = _with(state, word(data, at))
        at += _WORD
    if at < end:
        state = _with(state, _U(word(data, at) & _U((_U(1) << _U(8 * (end - at))) - _U(1))))
    return state


@compiled
def take_words(v: Words, words: Words) -> None:
    """Take one word into each state."""
    for i in range(len(words)):
        _keep(v, i, _with(_state(v, i), words[i]))


@compiled
def take_bytes(v: Words, data: Bytes, offsets: Longs, nulls: Flags) -> None:
    """Take length and bytes into each state. offsets: of the values in data, one more than there are values; nulls: cells without any."""
    for i in range(len(nulls)):
        at = offsets[i]
        _keep(v, i, _with_bytes(_state(v, i), data, at, at if nulls[i] else offsets[i + 1]))


@compiled
def take_lists(v: Words, data: Bytes, offsets: Ints, there: Flags, lists: Ints, nulls: Flags) -> None:
    """Take the number of values into each state, and each value.

    offsets: of the values in data, one more than there are values; there: values that are not NULL; lists: where the values of each list
    begin, and the end of the last; nulls: cells without a list.
    """
    for i in range(len(nulls)):
        first = lists[i]
        last = first if nulls[i] else lists[i + 1]
        state = _with(_state(v, i), _U(last - first))
        for n in range(first, last):
            state = _with_bytes(state, data, item(offsets, n), item(offsets, n + 1)) if item(there, n) else _with(state, _NULL)
        _keep(v, i, state)


@compiled
def finish(v: Words, out: Words) -> None:
    """Write the two words of each hash. The states cannot be used afterwards."""
    for i in range(len(v)):
        _finish(_state(v, i), out, i)


@inlined_step
def _finish(state: _State, out: Words, i: int) -> None:
    a, b, c, d = state
    state = a, b, _U(c ^ _U(0xEE)), d
    for _ in range(3):
        state = _round(state)
    a, b, c, d = state
    out[i, 0] = a ^ b ^ c ^ d
    state = a, _U(b ^ _SECOND), c, d
    for _ in range(3):
        state = _round(state)
    a, b, c, d = state
    out[i, 1] = a ^ b ^ c ^ d


@compiled
def hash_values(start: Words, data: Bytes, offsets: Ints, at: Longs, out: Words) -> None:
    """Write the two words of the hash of each value's length and bytes.

    start: the state before the first cell, one row; offsets: of the values in data, one more than there are values; at: the values' places.
    """
    for i in range(len(at)):
        n = at[i]
        _finish(_with_bytes(_state(start, 0), data, offsets[n], offsets[n + 1]), out, i)
