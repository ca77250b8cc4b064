"""Pieces of a buffer → an Arrow column, copied by compiled code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelake.wire.kernels.arrays import Bytes, Longs
from tidelake.wire.kernels.compiled import compiled, copy_bytes

NULL = -1  # as a size


def frozen(data: bytes | pa.Buffer) -> Bytes:
    """Bytes as compiled code sees them: never to be written, else numba recompiles everything for a mutable buffer."""
    found = np.frombuffer(data, np.uint8)
    found.flags.writeable = False
    return found


def column(buf: Bytes, starts: Longs, sizes: Longs) -> pa.Array:
    """A binary column; value i is buf[starts[i] : starts[i] + sizes[i]], null where the size is NULL. The pieces must lie inside."""
    count = len(sizes)
    offsets = np.zeros(count + 1, np.int32)
    total = int(np.maximum(sizes, 0).sum())
    if total >= 1 << 31:
        raise pa.ArrowInvalid(f"{total} bytes in one batch")
    data = np.empty(total, np.uint8)
    _gather(buf, np.ascontiguousarray(starts), np.ascontiguousarray(sizes), offsets, data)
    valid = None
    if count and sizes.min() < 0:
        valid = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), count, [valid, pa.py_buffer(offsets), pa.py_buffer(data)])


@compiled
def _gather(buf: Bytes, starts: Longs, sizes: Longs, offsets: npt.NDArray[np.int32], data: Bytes) -> None:
    at = 0
    for i in range(len(sizes)):
        size = sizes[i]
        if size > 0:
            copy_bytes(data, at, buf, starts[i], size)
            at += size
        offsets[i + 1] = at
