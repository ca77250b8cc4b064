"""Fetch rows to this machine's disk, wherever the executors run. Remote executors cannot write files here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tidelake.spark.application import is_local
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHUNK_BYTES = 8 << 20  # approximate size of a chunk in memory; a chunk is one row for Spark


class PartsInFiles(PartReader[tuple[Path, Any]]):
    """Writes the rows of each part to a file on this machine's disk, and returns none. folder: empty."""

    def __init__(self, reader: PartReader[Any], folder: Path) -> None:
        super().__init__([(folder / f"{n}.arrow", part) for n, part in enumerate(reader.parts)], reader.schema)
        self._reader = reader

    def rows(self, part: tuple[Path, Any], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        path, mine = part
        with pa.ipc.new_stream(str(path), self.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
            for batch in self._reader.rows(mine, secrets):
                file.write_batch(batch)
        yield from ()

    def written(self) -> pa.RecordBatchReader:
        """Return the rows, part after part, once they are written. The files are kept until the stream is read."""
        return pa.RecordBatchReader.from_batches(self.schema, _read(path for path, _ in self.parts))


def _read(paths: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as rows:
            yield from rows


def fetched(frame: DataFrame, folder: Path) -> pa.RecordBatchReader:
    """Return all rows of a frame, as a stream over Parquet files. folder: empty, and kept until the stream is read."""
    path = folder / "rows"
    if writes_here(frame.sparkSession):
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


def writes_here(spark: SparkSession) -> bool:
    """Return whether Spark's workers write local files on this machine."""
    elsewhere = os.environ.get("TIDELAKE_SPARK_REMOTE") and not os.environ.get("TIDELAKE_SPARK_SERVER")
    return not elsewhere and is_local(str(spark.conf.get("spark.master")))


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack rows, in a worker, into slices of about CHUNK_BYTES as Arrow streams."""
    for batch in batches:
        step = max(1, CHUNK_BYTES * batch.num_rows // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, step):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
                stream.write_batch(batch.slice(start, step))
            yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["chunk"])
