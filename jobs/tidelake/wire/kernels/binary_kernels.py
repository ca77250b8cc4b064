"""Compiled steps that the scans of the binary protocols share: varints in, digits out.

Nothing here reads outside its arrays for any input, and nothing raises: a reader answers position BAD. All arithmetic on wire
numbers is uint64, because numba turns uint64 with int64 into float64. Hot stores index by np.uint64: a signed index costs a test
for Python's meaning of negative ones.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.compiled import compiled, copy_bytes, inlined, int64

BAD = -1  # as a position: the bytes cannot be read
LIMIT = (1 << 31) - 1  # Arrow's binary arrays end here

POWERS_OF_TEN = np.array([10**n for n in range(20)], np.uint64)
_PAIRS = np.frombuffer("".join(f"{n:02}" for n in range(100)).encode(), np.uint8)
_HUNDRED = np.uint64(100)


@inlined
def uvarint(buf: Bytes, pos: int, end: int) -> tuple[np.uint64, int]:
    """LEB128: the value and the position after it. A BAD position stays BAD, so that a chain of reads needs one test."""
    if 0 <= pos < end and buf[np.uint64(pos)] < 128:
        return np.uint64(buf[np.uint64(pos)]), pos + 1
    return _long_uvarint(buf, pos, end)


@compiled
def _long_uvarint(buf: Bytes, pos: int, end: int) -> tuple[np.uint64, int]:
    if pos < 0:
        return np.uint64(0), BAD
    value, shift = np.uint64(0), np.uint64(0)
    for i in range(pos, min(end, pos + 10)):
        byte = np.uint64(buf[np.uint64(i)])
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(128):
            return value, BAD if i == pos + 9 and byte > np.uint64(1) else i + 1
        shift += np.uint64(7)
    return np.uint64(0), BAD


@inlined
def varint(buf: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Zigzag LEB128."""
    value, pos = uvarint(buf, pos, end)
    return int64((value >> np.uint64(1)) ^ (np.uint64(0) - (value & np.uint64(1)))), pos


@compiled
def reversed_uvarint(buf: Bytes, start: int, end: int) -> tuple[np.uint64, int]:
    """LEB128 written back to front, ending at `end`: the value and the position where it starts."""
    value, shift = np.uint64(0), np.uint64(0)
    for i in range(end - 1, max(start, end - 10) - 1, -1):
        byte = np.uint64(buf[i])
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(128):
            return value, BAD if i == end - 10 and byte > np.uint64(1) else i
        shift += np.uint64(7)
    return np.uint64(0), BAD


@compiled
def skip_varints(buf: Bytes, pos: int, end: int, count: int) -> int:
    """The position after `count` varints, BAD if they do not end before `end`. Does not look at their values."""
    while count > 0:
        if not 0 <= pos < end:
            return BAD
        count -= buf[pos] < 128
        pos += 1
    return pos


@inlined
def word(buf: Bytes, pos: int) -> np.uint64:
    """Eight bytes as a little-endian number."""
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(buf[np.uint64(pos + i)]) << np.uint64(8 * i)
    return value


@inlined
def same(buf: Bytes, a: int, b: int, size: int) -> bool:
    """Whether buf[a:a+size] equals buf[b:b+size]; both lie inside."""
    i = 0
    while i + 8 <= size:
        if word(buf, a + i) != word(buf, b + i):
            return False
        i += 8
    while i < size and buf[np.uint64(a + i)] == buf[np.uint64(b + i)]:
        i += 1
    return i == size


@inlined
def put_bytes(out: Bytes, at: int, buf: Bytes, pos: int, size: int) -> int:
    """Copy; returns the position after it. The caller knows that there is room."""
    if size > 0:
        out[np.uint64(at + size - 1)] = buf[np.uint64(pos + size - 1)]  # if numba is set to check bounds, it checks these
        copy_bytes(out, at, buf, pos, size)
    return at + size


@compiled
def digits_of(value: np.uint64) -> int:
    """How many decimal digits the value has; 0 has one."""
    count = 1 if value < POWERS_OF_TEN[8] else 9 if value < POWERS_OF_TEN[16] else 17
    while count < 20 and value >= POWERS_OF_TEN[count]:
        count += 1
    return count


@compiled
def put_padded(out: Bytes, at: int, value: np.uint64, width: int) -> int:
    """The last `width` decimal digits of the value, with leading zeros."""
    i = at + width
    while i - at >= 2:
        i -= 2
        rest = value // _HUNDRED
        pair = (value - rest * _HUNDRED) << np.uint64(1)
        value = rest
        out[np.uint64(i)] = _PAIRS[pair]
        out[np.uint64(i + 1)] = _PAIRS[pair + np.uint64(1)]
    if i > at:
        out[np.uint64(at)] = np.uint8(np.uint64(48) + value % np.uint64(10))
    return at + width


@compiled
def put_unsigned(out: Bytes, at: int, value: np.uint64) -> int:
    """Decimal digits, at most 20."""
    return put_padded(out, at, value, digits_of(value))


@compiled
def put_signed(out: Bytes, at: int, value: int) -> int:
    """Decimal digits with a minus sign where needed, at most 20 bytes."""
    if value >= 0:
        return put_unsigned(out, at, np.uint64(value))
    out[at] = 45
    return put_unsigned(out, at + 1, np.uint64(0) - np.uint64(value))
