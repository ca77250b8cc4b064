"""The partition of a row in a TiDB table by KEY, from its columns in Arrow (history/partitions.py has the rule and the types)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidelake.wire.kernels.arrays import Longs
from tidelake.wire.kernels.crc32 import START, add_cells
from tidelake.wire.row_hashes import bytes_of, nulls_of, offsets_of


def key_partitions(columns: Sequence[pa.Array], partitions: int) -> Longs:
    """Return the number of each row's partition, from 0.

    Args:
        columns: The columns of the KEY, in its order: at least one, of whole numbers, of their texts, or of bytes.
        partitions: How many the table has.

    Source:
        ForKeyPruning.LocateKeyPartition of TiDB, pkg/table/tables/partition.go.
    """
    sums = np.full(len(columns[0]), START, np.uint64)
    for cells in columns:
        texts = cells if pa.types.is_binary(cells.type) else cells.cast(pa.string())
        add_cells(sums, bytes_of(texts.buffers()[2]), offsets_of(texts), nulls_of(texts))
    return ((sums ^ START) % np.uint64(partitions)).astype(np.int64)
