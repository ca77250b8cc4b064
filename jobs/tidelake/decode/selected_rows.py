"""Select rows of a batch without copying them where they stand together, as the rows of a kind mostly do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_RUN = 64  # rows; many shorter runs cost more as slices than as a copy


def selected(batch: pa.RecordBatch, mask: pa.BooleanArray) -> list[pa.RecordBatch]:
    """Return the selected rows, in order: slices of the batch where they are most of it and stand in long runs, else one copy.

    A slice keeps its whole batch in memory. So few rows are always copied.

    Args:
        batch: The rows.
        mask: Whether a row is selected, without NULL.
    """
    edges = np.flatnonzero(np.diff(np.asarray(mask), prepend=False, append=False))
    begins, sizes = edges[::2], edges[1::2] - edges[::2]
    found = int(sizes.sum())
    if 2 * found <= batch.num_rows or found < _RUN * len(begins):
        return [batch.filter(mask)]
    return [batch.slice(begin, size) for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True)]


def in_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of all batches in one; a single batch as it is."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
