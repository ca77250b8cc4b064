"""Find the records of a Hadoop SequenceFile without compression, or with compression inside each record, compiled."""

from __future__ import annotations

from tidelake.wire.kernels.arrays import Bytes, Longs
from tidelake.wire.kernels.compiled import compiled

_ESCAPE = 0xFFFFFFFF
_SYNC = 16


def records(data: Bytes, sync: Bytes, keys: Longs, starts: Longs, sizes: Longs) -> tuple[int, int, bool]:
    """Fill in the keys, 8 bytes each, and the places of the values. Returns the number of complete records, where they end, and whether the
    next bytes are not a record.

    A record is { length:int32 be, key length:int32 be = 8, key, value }; FFFFFFFF precedes a sync marker.
    """
    found, pos, wrong = _records(data, sync, keys, starts, sizes)
    return int(found), int(pos), bool(wrong)


@compiled
def _records(buf: Bytes, sync: Bytes, keys: Longs, starts: Longs, sizes: Longs) -> tuple[int, int, bool]:
    found, pos, end = 0, 0, len(buf)
    while pos + 4 <= end:
        size = number(buf, pos, 4)
        if size == _ESCAPE:
            if pos + 4 + _SYNC > end:
                break
            for k in range(_SYNC):
                if buf[pos + 4 + k] != sync[k]:
                    return found, pos, True
            pos += 4 + _SYNC
            continue
        if pos + 8 > end:
            break
        if size < 8 or size >= 1 << 31 or number(buf, pos + 4, 4) != 8:
            return found, pos, True
        if pos + 8 + size > end:
            break
        keys[found] = number(buf, pos + 8, 8)
        starts[found] = pos + 16
        sizes[found] = size - 8
        found += 1
        pos += 8 + size
    return found, pos, False


@compiled
def number(buf: Bytes, pos: int, size: int) -> int:
    """Return the number in big-endian bytes."""
    value = 0
    for k in range(size):
        value = value << 8 | buf[pos + k]
    return value
