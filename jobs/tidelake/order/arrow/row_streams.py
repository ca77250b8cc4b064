"""Rows as streams of Arrow's IPC: many in one row of Spark's shuffle, then one after another in a file on a worker's disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidelake.lake.columns.repeated import together
from tidelake.wire.kernels.arrays import Flags, Longs

STREAM_BYTES = 16 << 20  # of rows in memory; a stream is one value of the shuffle


def streams(rows: pa.Table) -> Iterator[pa.BinaryArray]:
    """Yield rows as streams of about STREAM_BYTES, one row at least."""
    step = max(1, STREAM_BYTES * rows.num_rows // max(rows.nbytes, 1))
    for first in range(0, rows.num_rows, step):
        yield stream(rows.slice(first, step))


def stream(rows: pa.Table) -> pa.BinaryArray:
    """Return rows as one stream, which is the only value of the array. Its size is determined first: a growing buffer is copied."""
    size = pa.MockOutputStream()
    _write(rows, size)
    buffer = pa.allocate_buffer(size.size())
    _write(rows, pa.FixedSizeBufferWriter(buffer))
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(np.array([0, buffer.size], np.int32)), buffer])


def _write(rows: pa.Table, out: pa.NativeFile) -> None:
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows)


def sent(schema: pa.Schema, *cells: object) -> pa.RecordBatch:
    """Return one row of the shuffle. cells: its values, streams as `stream` returns them."""
    columns = [c if isinstance(c, pa.Array) else pa.array([c], f.type) for c, f in zip(cells, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def received(column: pa.BinaryArray) -> Iterator[pa.Buffer]:
    """Yield the streams of a column of the shuffle, without copies; empty ones for NULL."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].tolist()
    for start, end in pairwise(ends):
        yield data.slice(start, end - start) if data else pa.py_buffer(b"")


def read_stream(data: bytes) -> pa.Table:
    """Return the rows of one stream."""
    return pa.ipc.open_stream(data).read_all()


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream in the file. at: where it begins, in bytes; first: number of its first row; count: number of its rows."""

    at: int
    first: int
    count: int


class SpilledRows:
    """Rows of streams in a file on a worker's disk. A stream is in memory only while rows of it are taken.

    Attributes:
        count: Number of rows.
        nbytes: Their bytes in memory.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._streams, self.count, self.nbytes = path, list[_Stream](), 0, 0
        self._stamps, self._end = [np.zeros(0, np.int64)], 0

    def add(self, stream: pa.Buffer) -> None:
        """Append a stream to the file."""
        rows = pa.ipc.open_stream(stream).read_all()
        with self._path.open("ab") as out:
            out.write(stream)
        self._streams.append(_Stream(self._end, self.count, rows.num_rows))
        self._stamps.append(rows.column("commit_ts").to_numpy().copy())  # a view would keep the stream in memory
        self.count, self.nbytes, self._end = self.count + rows.num_rows, self.nbytes + rows.nbytes, self._end + stream.size

    @cached_property
    def ts(self) -> Longs:
        """Commit ts of the rows, once all streams are added."""
        return np.concatenate(self._stamps)

    def remove(self) -> None:
        """Remove the file."""
        self._path.unlink()

    def take(self, wanted: Flags) -> pa.Table:
        """Return the wanted rows, in their order."""
        return together([rows for _, rows in self.parts(wanted)])

    def parts(self, wanted: Flags) -> Iterator[tuple[Longs, pa.Table]]:
        """Yield the wanted rows stream by stream, each with the numbers of its rows."""
        with pa.OSFile(str(self._path)) as source:
            for s in self._streams:
                mine = wanted[s.first : s.first + s.count]
                if mine.any():
                    source.seek(s.at)
                    yield s.first + np.flatnonzero(mine), pa.ipc.open_stream(source).read_all().filter(pa.array(mine))


def read_streams(path: Path) -> pa.Table:
    """Return the rows of all streams in a file. They stay on disk: the file is mapped into memory."""
    streams = list[pa.Table]()
    with pa.memory_map(str(path)) as source:
        while source.tell() < source.size():
            streams.append(pa.ipc.open_stream(source).read_all())
    return pa.concat_tables(streams, promote_options="default").unify_dictionaries()
