"""Compiled: cells of a column replaced by other values. What lies between two of them is copied at once."""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Bytes, Ints, Longs
from tidelake.wire.kernels.compiled import compiled, copy_bytes


def replaced(cells: tuple[Bytes, Ints], at: Longs, which: Longs, values: tuple[Bytes, Ints]) -> tuple[Bytes, Ints]:
    """Return the column with other cells. A column is its bytes, and where each cell begins, and the end of the last.

    Args:
        cells: The column.
        at: Places of the cells to replace, ascending.
        which: For each of them the place of its value; below 0 it has none.
        values: The values, a column as well.
    """
    (_, offsets), (_, ends) = cells, values
    wanted = which[which >= 0]
    old, new = (int((of[places + 1] - of[places]).sum(dtype=np.int64)) for of, places in ((offsets, at), (ends, wanted)))
    out = np.empty(int(offsets[-1] - offsets[0]) - old + new, np.uint8), np.empty(len(offsets), np.int32)
    _replace(*cells, at, which, *values, *out)
    return out


@compiled
def _replace(data: Bytes, offsets: Ints, at: Longs, which: Longs, new: Bytes, ends: Ints, out: Bytes, begins: Ints) -> None:
    cell, end = 0, 0
    for k in range(len(at) + 1):
        stop = at[k] if k < len(at) else len(offsets) - 1
        first = offsets[cell]
        for i in range(cell, stop):
            begins[i] = offsets[i] - first + end
        size = offsets[stop] - first
        if size:
            copy_bytes(out, end, data, first, size)
        end += size
        if k < len(at):
            begins[stop] = end
            value = which[k]
            if value >= 0:
                size = ends[value + 1] - ends[value]
                if size:
                    copy_bytes(out, end, new, ends[value], size)
                end += size
        cell = stop + 1
    begins[len(offsets) - 1] = end
