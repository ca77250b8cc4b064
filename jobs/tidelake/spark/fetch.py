"""Fetch the rows of a Spark frame to this machine's disk, wherever the executors run. Remote executors cannot write files here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tidelake.spark.application import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK_BYTES = 8 << 20  # approximate size of a chunk in memory; a chunk is one row for Spark


def fetched(frame: DataFrame, folder: Path) -> pa.RecordBatchReader:
    """Return all rows, as a stream over Parquet files. folder: empty, and kept until the stream is read."""
    path = folder / "rows"
    if _writes_here(frame):
        frame.write.parquet(path.as_uri())
    else:
        carry(frame, path)
    return ds.dataset(str(path), format="parquet").scanner().to_reader()


def carry(frame: DataFrame, path: Path) -> None:
    """Write the rows to a new folder on this machine, chunk by chunk. Executors keep them on their disks meanwhile."""
    from pyspark import StorageLevel
    from pyspark.sql.pandas.types import to_arrow_schema

    path.mkdir()
    schema = to_arrow_schema(frame.schema)
    pq.write_table(schema.empty_table(), path / "none.parquet")
    packed = frame.mapInArrow(_packed, "chunk binary").persist(StorageLevel.DISK_ONLY)
    try:
        packed.count()  # computes all partitions in parallel; the iterator would compute one after another
        for n, row in enumerate(packed.toLocalIterator()):
            with pa.ipc.open_stream(pa.py_buffer(row["chunk"])) as chunk:
                pq.write_table(chunk.read_all().cast(schema), path / f"{n}.parquet")
    finally:
        packed.unpersist()


def _writes_here(frame: DataFrame) -> bool:
    """Whether Spark writes local files on this machine."""
    elsewhere = os.environ.get("TIDELAKE_SPARK_REMOTE") and not os.environ.get("TIDELAKE_SPARK_SERVER")
    return not elsewhere and is_local(str(frame.sparkSession.conf.get("spark.master")))


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack rows, in a worker, into slices of about CHUNK_BYTES as Arrow streams."""
    for batch in batches:
        step = max(1, CHUNK_BYTES * batch.num_rows // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, step):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
                stream.write_batch(batch.slice(start, step))
            yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["chunk"])
