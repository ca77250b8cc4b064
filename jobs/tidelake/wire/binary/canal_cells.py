"""Compiled: what a Canal column's value is as a cell (docs/reference/protocols.md 5.2, 5.6)."""

from __future__ import annotations

import numpy as np

from tidelake.wire.json.json_cells import is_utf8
from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.binary_kernels import BAD
from tidelake.wire.kernels.compiled import compiled, inlined

RAW, LATIN1, LATIN1_TEXT = range(3)  # as it is; bytes as code points; UTF-8's bytes as code points


@compiled
def put_latin1(data: Bytes, text: int, buf: Bytes, pos: int, end: int, how: int) -> int:
    """Bytes that were written as the code points U+0000 to U+00FF in UTF-8; BAD if they are others, or LATIN1_TEXT and not UTF-8."""
    start = text
    while pos < end:
        byte = buf[np.uint64(pos)]
        if byte >= 128:
            pos += 1
            if (byte != 0xC2 and byte != 0xC3) or pos == end or buf[pos] & 0xC0 != 0x80:
                return BAD
            byte = (byte & 3) << 6 | buf[pos] & 0x3F
        data[np.uint64(text)] = byte
        text += 1
        pos += 1
    return text if how == LATIN1 or is_text(data, start, text) else BAD


@inlined
def is_text(data: Bytes, pos: int, end: int) -> bool:
    """Whether it is UTF-8; False, too, at the end of the array, behind which `is_utf8` would look."""
    return end + 8 <= len(data) and is_utf8(data, pos, end)
