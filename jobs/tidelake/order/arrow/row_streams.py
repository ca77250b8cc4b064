"""Rows as streams of Arrow's IPC: many in one row of Spark's shuffle, then one after another in a file on a worker's disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa


def stream(rows: pa.Table) -> bytes:
    """Return rows as one stream."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(out.getvalue().to_pybytes())


def read_streams(path: Path) -> pa.Table:
    """Return the rows of all streams in a file. They stay on disk: the file is mapped into memory."""
    streams = list[pa.Table]()
    with pa.memory_map(str(path)) as source:
        while source.tell() < source.size():
            streams.append(pa.ipc.open_stream(source).read_all())
    return pa.concat_tables(streams, promote_options="default").unify_dictionaries()
