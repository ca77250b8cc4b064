"""Compiled: the fields of Protocol Buffers messages, as wire/binary/protobuf.py reads them in plain Python.

Masks of field numbers, `numbers` and `texts`, select the fields that a kernel needs. Other fields are skipped.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Bytes, Longs
from tidelake.wire.kernels.binary_kernels import BAD, uvarint
from tidelake.wire.kernels.compiled import compiled, inlined, int64

MOST = 16  # field numbers below this can be wanted
_MAX_TAG = np.uint64((1 << 32) - 1)
_OTHER = 62  # in masks: all larger numbers


@inlined
def field(buf: Bytes, pos: int, end: int) -> tuple[int, int, int, int]:
    """The next field: its tag, where its bytes begin, how many they are or its number, the position after it; BAD if it is none."""
    tag, at = uvarint(buf, pos, end)
    wire, number = tag & np.uint64(7), np.uint64(0)
    if at == BAD or tag < np.uint64(8) or tag > _MAX_TAG:
        return 0, 0, 0, BAD
    if wire == np.uint64(2):
        number, at = uvarint(buf, at, end)
        if at == BAD or number > np.uint64(end - at):
            return 0, 0, 0, BAD
        return int64(tag), at, int64(number), at + int64(number)
    if wire == np.uint64(0):
        number, at = uvarint(buf, at, end)
        return int64(tag), at, int64(number), at
    size = 8 if wire == np.uint64(1) else 4
    if (wire != np.uint64(1) and wire != np.uint64(5)) or size > end - at:
        return 0, 0, 0, BAD
    return int64(tag), at, size, at + size


@compiled
def fields(buf: Bytes, pos: int, end: int, numbers: int, texts: int, repeated: int, parts: Longs) -> int:
    """Put the wanted fields into parts; the mask of all there are. BAD for a wrong wire type or a second one that is not `repeated`."""
    seen = 0
    while pos < end:
        tag, at, number, pos = field(buf, pos, end)
        this = 1 << min(tag >> 3, _OTHER)
        if pos == BAD:
            return BAD
        if this & (numbers | texts):
            if seen & this & ~repeated or tag & 7 != (2 if this & texts else 0):
                return BAD
            parts[tag >> 3, 0], parts[tag >> 3, 1] = at, number
        seen |= this
    return seen
