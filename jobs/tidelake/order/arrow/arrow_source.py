"""Python Data Source `tidelake_rows`: reads event files and returns typed rows by table and bucket, many in one row of Spark's shuffle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidelake.io.storage import open_store
from tidelake.order.arrow.arrow_rows import HOUR, READ, REPEATED, RowsReading
from tidelake.order.arrow.arrow_tables import ArrowTable
from tidelake.order.repeated_offsets import Again
from tidelake.spark.data_source import EventReader, EventSource
from tidelake.spark.worker_secrets import NONE, Secrets

# task: which one takes the rows; rows: Typed.rows as a stream of Arrow's IPC; told: WorkerFindings as JSON
SENT = pa.schema([("task", pa.int32()), ("table", pa.int32()), ("bucket", pa.int32()), ("rows", pa.binary()), ("told", pa.string())])


class WorkerFindings(BaseModel):
    """Findings of a worker for one table in one file. seen: row events by checksum word; '' counts all."""

    refused: str = ""
    seen: dict[str, int] = {}


class OrderJob(BaseModel):
    """What workers need to order a window's rows.

    Attributes:
        events: Location of the events table.
        parts: Keys of its files, by the task that reads them.
        after_ts: Start of the window (TSO), exclusive.
        until_ts: End of the window (TSO), inclusive.
        tables: Tables to order.
        tasks: Table → bucket → the task that takes its rows.
        again: Offsets that do not count, because an earlier hour has them.
        steps: Topic and partition → offsets at which the resolved ts went back (order.replay_epochs).
    """

    events: str
    parts: list[list[str]]
    after_ts: int
    until_ts: int
    tables: list[ArrowTable]
    tasks: list[list[int]]
    again: list[Again]
    steps: list[tuple[str, int, list[int]]]


class RowsSource(EventSource):
    """Data source with rows of SENT: `read_source(spark, RowsSource, job=OrderJob)`."""

    FORMAT = "tidelake_rows"

    def schema(self) -> StructType:
        return from_arrow_schema(SENT)

    def reader(self, schema: StructType) -> RowsReader:
        return RowsReader(OrderJob.model_validate_json(self.options["job"]), self.secrets)


class RowsReader(EventReader[Sequence[str]]):
    """Reader with one partition per part."""

    def __init__(self, job: OrderJob, secrets: Secrets = NONE) -> None:
        super().__init__(job.parts, secrets)
        self.job = job

    def rows(self, part: Sequence[str]) -> Iterator[pa.RecordBatch]:
        job = self.job
        reading = RowsReading(job.tables, job.after_ts, job.until_ts, job.again)
        with TemporaryDirectory(prefix="tidelake-order-") as folder:
            for key in part:
                for events in _events(job, key, Path(folder)):
                    for found in reading.typed(events):
                        yield _sent(job, found.table, found.bucket, _stream(found.rows))
        for table in {*reading.seen, *reading.refused}:
            told = WorkerFindings(refused=reading.refused.get(table, ""), seen=reading.seen.get(table, {}))
            yield _sent(job, table, 0, None, told.model_dump_json())


def _events(job: OrderJob, key: str, folder: Path) -> Iterator[pa.Table]:
    """Yield the row groups of a file that may have rows of the window."""
    path = folder / "events.parquet"
    open_store(job.events).download(key, path)
    with pq.ParquetFile(path, memory_map=True, read_dictionary=list(REPEATED)) as file:
        leaf = next(n for n in range(len(file.schema)) if file.schema.column(n).path == "commit_ts")
        for group in range(file.num_row_groups):
            known = file.metadata.row_group(group).column(leaf).statistics
            if known is None or not known.has_min_max or (known.min <= job.until_ts and known.max > job.after_ts):
                found = file.read_row_group(group, columns=[*READ, *([HOUR] if job.again else [])], use_threads=False)
                yield found.unify_dictionaries().combine_chunks()


def _stream(rows: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(out.getvalue().to_pybytes())


def _sent(job: OrderJob, table: int, bucket: int, rows: bytes | None, told: str | None = None) -> pa.RecordBatch:
    task = job.tasks[table][bucket]
    return pa.RecordBatch.from_arrays(
        [pa.array([x], f.type) for x, f in zip((task, table, bucket, rows, told), SENT, strict=True)], schema=SENT
    )
