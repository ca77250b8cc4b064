"""Compiled: CRC-32 (IEEE 802.3, as zlib's crc32), a word or a byte at a time, and of many cells at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidelake.wire.kernels.arrays import Bytes, Flags, Longs, Words
from tidelake.wire.kernels.compiled import compiled, inlined_step
from tidelake.wire.kernels.json_kernels import item, word

START = np.uint64(0xFFFFFFFF)  # of a sum; its end is inverted by it
_BYTE = np.uint64(0xFF)


def _tables() -> npt.NDArray[np.uint32]:
    """Eight tables of 256 behind one another: what a byte adds that has 0 to 7 bytes after it."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = rest >> 1 ^ (0xEDB88320 if rest & 1 else 0)
        tables[0, byte] = rest
    for i in range(1, 8):
        tables[i] = tables[i - 1] >> 8 ^ tables[0, tables[i - 1] & 0xFF]
    return tables.ravel()


_TABLES = _tables()


@inlined_step
def byte_sum(after: int, value: np.uint64) -> np.uint64:
    """What the lowest byte adds that has so many bytes after it."""
    return np.uint64(_TABLES[np.uint64(after << 8) | value & _BYTE])


@inlined_step
def four(crc: np.uint64, value: np.uint64) -> np.uint64:
    """Four bytes more."""
    value ^= crc
    return (
        byte_sum(3, value) ^ byte_sum(2, value >> np.uint64(8)) ^ byte_sum(1, value >> np.uint64(16)) ^ byte_sum(0, value >> np.uint64(24))
    )


@inlined_step
def eight(crc: np.uint64, value: np.uint64) -> np.uint64:
    """Eight bytes more."""
    value ^= crc
    low = (
        byte_sum(7, value) ^ byte_sum(6, value >> np.uint64(8)) ^ byte_sum(5, value >> np.uint64(16)) ^ byte_sum(4, value >> np.uint64(24))
    )
    value >>= np.uint64(32)
    return (
        low
        ^ byte_sum(3, value)
        ^ byte_sum(2, value >> np.uint64(8))
        ^ byte_sum(1, value >> np.uint64(16))
        ^ byte_sum(0, value >> np.uint64(24))
    )


@inlined_step
def add_bytes(crc: np.uint64, data: Bytes, p: int, end: int) -> np.uint64:
    """The bytes from p up to before end more."""
    while p + 8 <= end:
        crc = eight(crc, word(data, p))
        p += 8
    if p + 4 <= end:
        crc = four(crc, word(data, p) & START)
        p += 4
    while p < end:
        crc = crc >> np.uint64(8) ^ byte_sum(0, crc ^ np.uint64(item(data, p)))
        p += 1
    return crc


@compiled
def add_cells(sums: Words, data: Bytes, offsets: Longs, nulls: Flags) -> None:
    """Add the bytes of a cell to each sum, of NULL one byte 0. offsets: of the cells in data, one more than there are cells."""
    for i in range(len(sums)):
        if nulls[i]:
            sums[i] = sums[i] >> np.uint64(8) ^ byte_sum(0, sums[i])
        else:
            sums[i] = add_bytes(sums[i], data, offsets[i], offsets[i + 1])
