"""Find the ends of consecutive Open Protocol records, each followed by a newline, compiled (docs/reference/archives.md 3)."""

from __future__ import annotations

from tidelake.wire.kernels.arrays import Bytes, Longs
from tidelake.wire.kernels.compiled import compiled

_NEWLINE = 10
_LENGTH = 8


def record_ends(data: Bytes, head: int, ends: Longs) -> tuple[int, bool]:
    """Fill in the positions of the newlines after complete records. Returns their number, and whether the bytes after them are not a
    record.

    head: bytes before the first part of a record. A record that continues after the data's end is not wrong.
    """
    found, wrong = _ends(data, head, ends)
    return int(found), bool(wrong)


@compiled
def _ends(buf: Bytes, head: int, ends: Longs) -> tuple[int, bool]:
    found, start, end = 0, 0, len(buf)
    while start < end:
        p = start + head
        if p > start and buf[start] != 0:
            return found, True
        while p + _LENGTH <= end and buf[p] == 0:
            size = 0
            for k in range(1, _LENGTH):
                size = size << 8 | buf[p + k]
            p += _LENGTH + size
        if p >= end:
            return found, False
        if buf[p] != _NEWLINE:
            return found, buf[p] != 0
        ends[found] = p
        found += 1
        start = p + 1
    return found, False
