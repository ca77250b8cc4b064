"""Standard base64 (RFC 4648, padded) of many values → their bytes one behind another, compiled.

Each of a quad's four characters has a table of its own, which holds its six bits where they belong, so that a quad is four loads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidelake.wire.kernels.arrays import Bytes, Ints
from tidelake.wire.kernels.compiled import compiled, int64

ALL = -1
BAD = -1
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PAD, _ZERO, _QUOTE = b'=A"'


def _tables() -> Ints:
    """4 × 256: the bits of a character at each place of a quad; negative where it is none of the alphabet."""
    six = np.full(256, -1, np.int32)
    six[np.frombuffer(_ALPHABET, np.uint8)] = np.arange(64, dtype=np.int32)
    return np.stack([np.where(six < 0, six, six << shift) for shift in (18, 12, 6, 0)])


TABLES = _tables()


def decode(text: Bytes, offsets: Ints, out: npt.NDArray[np.uint8], starts: Ints) -> int:
    """Decode value i, text[offsets[i]:offsets[i+1]], into out[starts[i]:starts[i+1]], which is filled in.

    ALL, or the first row that is not padded base64. out: has room for 3 bytes for every 4 characters.
    """
    return int(_decode(text, offsets, TABLES, out, starts))


@compiled
def _decode(text: Bytes, offsets: Ints, tables: Ints, out: npt.NDArray[np.uint8], starts: Ints) -> int:
    at = int64(0)
    starts[0] = 0
    for row in range(len(offsets) - 1):
        p, end = int64(offsets[row]), int64(offsets[row + 1])
        if (end - p) & 3:
            return row
        if end > p:
            wrong = np.int32(0)
            while p < end - 4:
                bits = tables[0, text[p]] | tables[1, text[p + 1]] | tables[2, text[p + 2]] | tables[3, text[p + 3]]
                wrong |= bits
                out[at] = bits >> 16
                out[at + 1] = bits >> 8
                out[at + 2] = bits
                p += 4
                at += 3
            size = _last_quad(text, p, tables, out, at)
            if size == BAD or wrong < 0:
                return row
            at += size
        starts[row + 1] = at
    return ALL


@compiled
def unquoted(text: Bytes, p: int, tables: Ints, out: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Decode the JSON string that begins at p into out[at:]: past its end, and past what was written; BAD twice if it is not base64.

    8 bytes that are neither of the alphabet nor quotes must stand behind the text.
    """
    if text[p] != _QUOTE:
        return BAD, BAD
    p += 1
    bits = tables[0, text[p]] | tables[1, text[p + 1]] | tables[2, text[p + 2]] | tables[3, text[p + 3]]
    while bits >= 0:
        out[at] = bits >> 16
        out[at + 1] = bits >> 8
        out[at + 2] = bits
        p += 4
        at += 3
        bits = tables[0, text[p]] | tables[1, text[p + 1]] | tables[2, text[p + 2]] | tables[3, text[p + 3]]
    if text[p] == _QUOTE:
        return p + 1, at
    if text[p + 3] != _PAD or text[p + 4] != _QUOTE:
        return BAD, BAD
    size = _last_quad(text, p, tables, out, at)
    return (BAD, BAD) if size == BAD else (p + 5, at + size)


@compiled
def _last_quad(text: Bytes, p: int, tables: Ints, out: npt.NDArray[np.uint8], at: int) -> int:
    """How many bytes a quad is that may end in padding."""
    third, fourth, size = int64(text[p + 2]), int64(text[p + 3]), int64(3)
    if fourth == _PAD:
        fourth = int64(_ZERO)
        size = int64(2)
        if third == _PAD:
            third = int64(_ZERO)
            size = int64(1)
    bits = tables[0, text[p]] | tables[1, text[p + 1]] | tables[2, third] | tables[3, fourth]
    if bits < 0:
        return BAD
    out[at] = bits >> 16
    if size > 1:
        out[at + 1] = bits >> 8
    if size > 2:
        out[at + 2] = bits
    return size
