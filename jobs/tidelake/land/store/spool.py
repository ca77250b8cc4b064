"""Spool messages of one partition on local disk, so that memory does not grow with their number.

Batches are appended to one uncompressed Arrow IPC file, which is then mapped into memory. After each use the mapped pages are released, so
that they count as the system's cache and not as this process's memory.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.history.event import MESSAGE
from tidelake.wire.kernels.arrays import Longs

CONTENT = pa.schema([field for field in MESSAGE if field.name not in ("topic", "partition")])


class Spool:
    """The spooled messages, numbered from 0 in the order of appending."""

    def __init__(self, mapped: mmap.mmap, batches: Sequence[pa.RecordBatch]) -> None:
        self._mapped = mapped
        self._batches = batches
        self._starts = np.cumsum([0, *(len(b) for b in batches)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def batches(self) -> Sequence[pa.RecordBatch]:
        """The batches as they were appended."""
        return self._batches

    def longs(self, of: Callable[[pa.RecordBatch], pa.Array]) -> Longs:
        """Return one number per message, computed batch by batch."""
        parts = [of(batch).to_numpy(zero_copy_only=False).astype(np.int64) for batch in self._batches]
        self.release()
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def take(self, wanted: Longs) -> pa.Table:
        """Return the messages with these numbers, in this order, as CONTENT. Copies only these messages."""
        home = np.searchsorted(self._starts, wanted, side="right") - 1
        order = np.argsort(home, kind="stable")
        used, begins = np.unique(home[order], return_index=True)
        parts = [
            self._of_batch(batch, wanted[rows] - self._starts[batch])
            for batch, rows in zip(used.tolist(), np.split(order, begins[1:]), strict=True)
        ]
        table = pa.Table.from_batches(parts, CONTENT)
        return table if (np.diff(order) > 0).all() else table.combine_chunks().take(pa.array(np.argsort(order)))

    def _of_batch(self, batch: int, rows: Longs) -> pa.RecordBatch:
        if rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return self._batches[batch].slice(int(rows[0]), len(rows))
        return self._batches[batch].take(pa.array(rows))

    def release(self) -> None:
        """Release the mapped pages to the system; they are read again when needed."""
        self._mapped.madvise(mmap.MADV_DONTNEED)


@contextmanager
def spooled(folder: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[Spool]:
    """Write MESSAGE batches to a file in the folder and map it. The file is removed afterwards, also if the process is killed."""
    path = folder / "spool.arrow"
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, CONTENT) as writer:
        for batch in batches:
            writer.write_batch(batch.select(CONTENT.names))
    yield mapped(path)


def mapped(path: Path) -> Spool:
    """Map an Arrow IPC file of CONTENT batches into memory, and unlink it."""
    with path.open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    path.unlink()
    reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(memory)))
    return Spool(memory, [reader.get_batch(i) for i in range(reader.num_record_batches)])


def payload(batch: pa.RecordBatch) -> pa.Array:
    """Return the bytes of each message's key and value."""
    key, value = (pc.fill_null(pc.binary_length(batch.column(name)), 0) for name in ("key", "value"))
    return pc.add(key, value)
