"""Reads event files in workers and returns typed rows by table and share of a bucket, many in one row of Spark's shuffle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pydantic import BaseModel

from tidelake.io.storage import open_store
from tidelake.order.arrow.event_groups import HOUR, event_groups, joined
from tidelake.order.arrow.invalid_examples import Examples
from tidelake.order.arrow.placed_deletes import DeletesObject, PlacedDeletes
from tidelake.order.arrow.row_streams import sent, streams
from tidelake.order.arrow.rows_reading import READ, RowsReading
from tidelake.order.arrow.table_models import ArrowTable
from tidelake.order.repeated_offsets import Again
from tidelake.order.rows_aside import RowsAside
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets

# task: which one takes the rows; share: of a bucket; rows: Typed.rows as a stream of Arrow's IPC; told: WorkerFindings as JSON
SENT = pa.schema([("task", pa.int32()), ("table", pa.int32()), ("share", pa.int32()), ("rows", pa.binary()), ("told", pa.string())])


class WorkerFindings(BaseModel):
    """Findings of a worker for one table in its files. seen: row events by checksum word, '' counts all; examples: invalid values."""

    seen: dict[str, int] = {}
    examples: Examples = {}


class OrderJob(BaseModel):
    """What workers need to order a window's rows.

    Attributes:
        events: Location of the events table.
        parts: Keys of its files, by the task that reads them.
        after_ts: Start of the window (TSO), exclusive.
        until_ts: End of the window (TSO), inclusive.
        tables: Tables to order.
        tasks: Table → share of a bucket → the task that takes its rows.
        again: Offsets that do not count, because an earlier hour has them.
        aside: Rows that fit no schema.
        steps: Topic and partition → offsets at which the resolved ts went back (order.replay_epochs).
        deletes: Where the commit ts of deletes without one are; None if all messages have one.
        store: URI of the lake, for `deletes`.
    """

    events: str
    parts: list[list[str]]
    after_ts: int
    until_ts: int
    tables: list[ArrowTable]
    tasks: list[list[int]]
    again: list[Again]
    aside: list[RowsAside]
    steps: list[tuple[str, int, list[int]]]
    deletes: list[DeletesObject] | None = None
    store: str = ""


class RowsReader(PartReader[Sequence[str]]):
    """Reads rows of SENT; a part is some files."""

    def __init__(self, job: OrderJob) -> None:
        super().__init__(job.parts, SENT)
        self.job = job

    def rows(self, part: Sequence[str], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        job = self.job
        with TemporaryDirectory(prefix="tidelake-order-") as name:
            folder = Path(name)
            reading = RowsReading(
                job.tables,
                job.after_ts,
                job.until_ts,
                again=job.again,
                aside=job.aside,
                deletes=None if job.deletes is None else PlacedDeletes(open_store(job.store), job.deletes, folder),
                mask_key=secrets.mask_key.encode(),
            )
            for events in joined(event_groups(job.events, part, self._columns, self._may_hold)):
                for found in reading.typed(events):
                    for rows in streams(found.rows):
                        yield _sent(job, found.table, found.share, rows)
        for table, seen in reading.seen.items():
            told = WorkerFindings(seen=seen, examples=reading.examples.get(table, {}))
            yield _sent(job, table, 0, None, told.model_dump_json())

    @property
    def _columns(self) -> list[str]:
        return [*READ, *([HOUR] if self.job.again else [])]

    def _may_hold(self, low: int, high: int) -> bool:
        return low <= self.job.until_ts and high > self.job.after_ts


def _sent(job: OrderJob, table: int, share: int, rows: pa.BinaryArray | None, told: str | None = None) -> pa.RecordBatch:
    return sent(SENT, job.tasks[table][share], table, share, rows, told)  # the task of the last share for rows without a bucket
