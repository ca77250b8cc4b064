"""Computes the commit ts of deletes that were sent without one (`deletes`), in workers: one task takes a partition of a topic.

The result is one object per partition below `lake_paths.placed_deletes`. The workers that read the rows look the commit ts up there, so
they pass neither the driver nor a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidelake.io.storage import open_store
from tidelake.order.arrow.deletes import MARKS, DeleteRules, place
from tidelake.order.arrow.event_groups import HOUR, any_of, event_groups
from tidelake.order.arrow.keyless_rows import image_texts
from tidelake.order.arrow.placed_deletes import DeletesObject
from tidelake.order.arrow.row_streams import read_streams, stream
from tidelake.order.repeated_offsets import Again
from tidelake.spark.buckets import buckets_of
from tidelake.spark.data_source import EventReader, EventSource, read_source
from tidelake.spark.worker_errors import errors_of_workers
from tidelake.spark.worker_secrets import NONE, Handed, Secrets, handed
from tidelake.spark.workers import worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# task: which one takes the partition; marks: rows of deletes.MARKS as a stream of Arrow's IPC
_SENT = pa.schema([("task", pa.int32()), ("topic", pa.string()), ("partition", pa.int32()), ("marks", pa.binary())])
_FOUND = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("key", pa.string())])
_READ = ("topic", "partition", "offset", "ordinal", "op", "commit_ts", "timestamp_ms", "database", "table", "after")
_HASHES = (1 << 31) - 1  # number of buckets; with it a value's bucket is its whole hash
_OTHER = b"tide"  # before a text, for a second hash of it


class DeletesJob(BaseModel):
    """What to place.

    Attributes:
        events: Location of the events table.
        parts: Keys of its files, by the task that reads them.
        again: Offsets that do not count, because an earlier hour has them.
        rules: The window.
        store: URI of the lake.
        folder: Folder for the objects, with a slash at its end.
        tasks: Number of tasks that place.
    """

    events: str
    parts: list[list[str]]
    again: list[Again]
    rules: DeleteRules
    store: str
    folder: str
    tasks: int


class MarksSource(EventSource):
    """Data source with rows of _SENT: `read_source(spark, MarksSource, job=DeletesJob)`."""

    FORMAT = "tidelake_marks"

    def schema(self) -> StructType:
        return from_arrow_schema(_SENT)

    def reader(self, schema: StructType) -> MarksReader:
        return MarksReader(DeletesJob.model_validate_json(self.options["job"]), self.secrets)


class MarksReader(EventReader[Sequence[str]]):
    """Reader with one partition per part."""

    def __init__(self, job: DeletesJob, secrets: Secrets = NONE) -> None:
        super().__init__(job.parts, secrets)
        self.job = job

    def rows(self, part: Sequence[str]) -> Iterator[pa.RecordBatch]:
        store = open_store(self.job.events)
        with TemporaryDirectory(prefix="tidelake-order-") as folder:
            for key in part:
                for events in event_groups(store, key, Path(folder), [*_READ, *([HOUR] if self.job.again else [])]):
                    yield from _marks(events.filter(pa.array(~any_of(self.job.again, events))), self.job.tasks)


def _marks(events: pa.Table, tasks: int) -> Iterator[pa.RecordBatch]:
    """Yield what is needed of these events, by partition."""
    topics = events.column("topic").cast(pa.string())
    marks = pa.table(
        [
            *(events.column(c).cast(f.type) for c, f in zip(MARKS.names[:6], MARKS, strict=False)),
            _contents(events.column("after").combine_chunks()),
            pc.equal(events.column("op").cast(pa.string()), "delete"),
        ],
        schema=MARKS,
    )
    for topic in pc.unique(topics).to_pylist():
        for partition in pc.unique(events.column("partition").filter(pc.equal(topics, topic))).to_pylist():
            mine = marks.filter(pc.and_(pc.equal(topics, topic), pc.equal(events.column("partition"), partition)))
            task = crc32(f"{topic}/{partition}".encode()) % tasks
            yield pa.RecordBatch.from_pylist([dict(zip(_SENT.names, (task, topic, partition, stream(mine)), strict=True))], schema=_SENT)


def _contents(images: pa.ListArray) -> pa.Array:
    """A hash of 62 bits of each row."""
    texts = image_texts(images)
    low, high = (buckets_of(t, _HASHES) for t in (texts, pc.binary_join_element_wise(pa.scalar(_OTHER), texts, b"")))
    return pa.array(np.left_shift(high, 31) | low)


@dataclass(frozen=True, slots=True)
class Placer:
    """The function that Spark calls in a worker: places the deletes of the partitions that it gets, and writes an object for each."""

    job: DeletesJob
    handed: Handed

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with worker(self.handed.secrets()), TemporaryDirectory(prefix="tidelake-order-") as folder:
            parts, store = dict[tuple[str, int], Path](), open_store(self.job.store)
            for row in (r for b in batches for r in b.to_pylist()):
                path = parts.setdefault((row["topic"], row["partition"]), Path(folder) / f"{len(parts)}")
                with path.open("ab") as out:
                    out.write(row["marks"])
            for (topic, partition), path in sorted(parts.items()):
                placed = place(read_streams(path), self.job.rules)
                if placed.num_rows:
                    key = f"{self.job.folder}{topic}-{partition}.parquet"
                    pq.write_table(placed, path, compression="zstd")
                    store.upload(key, path)
                    yield pa.RecordBatch.from_pylist([{"topic": topic, "partition": partition, "key": key}], schema=_FOUND)


def place_deletes(spark: SparkSession, job: DeletesJob) -> list[DeletesObject]:
    """Place the deletes of a window. Return the objects that hold their commit ts."""
    marks = read_source(spark, MarksSource, job=job).repartitionById(job.tasks, "task")
    with errors_of_workers():
        found = marks.mapInArrow(Placer(job, handed(spark)), from_arrow_schema(_FOUND)).collect()
    return [DeletesObject(topic=r["topic"], partition=r["partition"], key=r["key"]) for r in found]
