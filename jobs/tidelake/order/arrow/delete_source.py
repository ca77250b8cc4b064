"""Computes the commit ts of deletes that were sent without one (`deletes`), in workers: one task takes a partition of a topic.

The result is one object per partition below `lake_paths.placed_deletes`. The workers that read the rows look the commit ts up there, so
they pass neither the driver nor a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel

from tidelake.io.storage import open_store
from tidelake.order.arrow.deletes import MARKS, DeleteRules, births, place
from tidelake.order.arrow.event_groups import HOUR, any_of, event_groups
from tidelake.order.arrow.placed_deletes import DeletesObject
from tidelake.order.arrow.row_streams import read_streams, received, sent, stream
from tidelake.order.repeated_offsets import Again
from tidelake.spark.part_reader import PartReader
from tidelake.spark.run_parts import Workers
from tidelake.spark.worker_secrets import Handed, Secrets
from tidelake.spark.workers import worker
from tidelake.wire.row_hashes import row_hashes

# task: which one takes the partition; marks: rows of deletes.MARKS as a stream of Arrow's IPC
_SENT = pa.schema([("task", pa.int32()), ("topic", pa.string()), ("partition", pa.int32()), ("marks", pa.binary())])
_FOUND = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("key", pa.string())])
_READ = ("topic", "partition", "offset", "ordinal", "op", "commit_ts", "timestamp_ms", "database", "table", "after")


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


class MarksReader(PartReader[Sequence[str]]):
    """Reads what is needed of rows to place deletes; a part is some files."""

    def __init__(self, job: DeletesJob) -> None:
        super().__init__(job.parts, _SENT)
        self.job = job

    def rows(self, part: Sequence[str], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        for events in event_groups(self.job.events, part, [*_READ, *([HOUR] if self.job.again else [])]):
            yield from _marks(events.filter(pa.array(~any_of(self.job.again, events))), self.job)


def _marks(events: pa.Table, job: DeletesJob) -> Iterator[pa.RecordBatch]:
    """Yield what is needed of these events, by partition."""
    topics, images = events.column("topic").cast(pa.string()), events.column("after").combine_chunks().cast(pa.list_(pa.binary()))
    marks = pa.table(
        [
            *(events.column(c).cast(pa.int64()) for c in ("offset", "ordinal", "commit_ts", "timestamp_ms")),
            pa.array(births(events, job.rules)),
            pa.array(np.ascontiguousarray(row_hashes([images], job.rules.hash_key)[:, 0]).view(np.int64)),
            pc.equal(events.column("op").cast(pa.string()), "delete"),
        ],
        schema=MARKS,
    )
    for topic in pc.unique(topics).to_pylist():
        for partition in pc.unique(events.column("partition").filter(pc.equal(topics, topic))).to_pylist():
            mine = marks.filter(pc.and_(pc.equal(topics, topic), pc.equal(events.column("partition"), partition)))
            task = crc32(f"{topic}/{partition}".encode()) % job.tasks
            yield sent(_SENT, task, topic, partition, stream(mine))


@dataclass(frozen=True, slots=True)
class Placer:
    """The function that Spark calls in a worker: places the deletes of the partitions that it gets, and writes an object for each."""

    job: DeletesJob
    handed: Handed

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with worker(self.handed.secrets()), TemporaryDirectory(prefix="tidelake-order-") as folder:
            parts, store = dict[tuple[str, int], Path](), open_store(self.job.store)
            for batch in batches:
                places = (batch.column(c).to_pylist() for c in ("topic", "partition"))
                for topic, partition, marks in zip(*places, received(batch.column("marks")), strict=True):
                    with parts.setdefault((topic, partition), Path(folder) / f"{len(parts)}").open("ab") as out:
                        out.write(marks)
            for (topic, partition), path in sorted(parts.items()):
                placed = place(read_streams(path), self.job.rules)
                if placed.num_rows:
                    key = f"{self.job.folder}{topic}-{partition}.parquet"
                    pq.write_table(placed, path, compression="zstd")
                    store.upload(key, path)
                    yield pa.RecordBatch.from_pylist([{"topic": topic, "partition": partition, "key": key}], schema=_FOUND)


def place_deletes(workers: Workers, job: DeletesJob) -> list[DeletesObject]:
    """Place the deletes of a window. Return the objects that hold their commit ts."""
    found = workers.exchanged(MarksReader(job), job.tasks, partial(Placer, job), _FOUND)
    return [DeletesObject(topic=r["topic"], partition=r["partition"], key=r["key"]) for r in found]
