"""Writes the changelogs' data files from rows of SENT, in the workers that Spark's shuffle gave them to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pyarrow as pa
from pydantic import BaseModel

from tidelake.io.object_store import Store
from tidelake.io.storage import open_store
from tidelake.order.arrow.bucket_changes import BucketChanges, BucketPart
from tidelake.order.arrow.invalid_examples import Examples, merge
from tidelake.order.arrow.row_streams import SpilledRows, received
from tidelake.order.arrow.rows_reader import OrderJob, WorkerFindings
from tidelake.order.arrow.table_models import ArrowTable
from tidelake.spark.parquet_files import OpenFile, footer, kept_if_whole, sha256_of
from tidelake.spark.worker_secrets import Handed
from tidelake.spark.workers import worker

# A file if path is not NULL, else the outcome of a table's events, as JSON of TableOutcome.
STAGED = pa.schema(
    [
        ("table", pa.int32()),
        ("bucket", pa.int32()),
        ("day", pa.int32()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("sha256", pa.string()),
        ("footer", pa.binary()),
        ("outcome", pa.string()),
    ]
)


class TableOutcome(BaseModel):
    """Outcome for a table.

    Attributes:
        seen: Row events by checksum word; '' counts all.
        counted: Events by outcome (BucketChanges.counted).
        examples: Values that do not fit their type, by column.
    """

    seen: dict[str, int] = {}
    counted: dict[str, int] = {}
    examples: Examples = {}

    def add(self, other: TableOutcome | WorkerFindings) -> None:
        """Add what another task found."""
        self.seen = dict(Counter(self.seen) + Counter(other.seen))
        merge(self.examples, other.examples)
        if isinstance(other, TableOutcome):
            self.counted = dict(Counter(self.counted) + Counter(other.counted))


@dataclass(frozen=True, slots=True)
class Writer:
    """The function that Spark calls in a worker."""

    job: OrderJob
    handed: Handed

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with worker(self.handed.secrets()), TemporaryDirectory(prefix="tidelake-order-") as folder:
            outcomes = dict[int, TableOutcome]()
            groups = _received(batches, Path(folder), outcomes)
            for table, share in sorted(groups):
                rows = groups.pop((table, share))
                yield from _written(
                    self.job, table, share, rows, Path(folder) / "changes.parquet", outcomes.setdefault(table, TableOutcome())
                )
                rows.remove()
            for table, outcome in sorted(outcomes.items()):
                yield _row(table=table, outcome=outcome.model_dump_json())


def _received(batches: Iterable[pa.RecordBatch], folder: Path, outcomes: dict[int, TableOutcome]) -> dict[tuple[int, int], SpilledRows]:
    """Write the rows to this machine's disk, one file of streams for each table and share."""
    groups = dict[tuple[int, int], SpilledRows]()
    for batch in batches:
        cells = (batch.column(c).to_pylist() for c in ("table", "share", "told"))
        for table, share, said, stream in zip(*cells, received(batch.column("rows")), strict=True):
            if said is not None:
                outcomes.setdefault(table, TableOutcome()).add(WorkerFindings.model_validate_json(said))
                continue
            groups.setdefault((table, share), SpilledRows(folder / f"{table}-{share}")).add(stream)
    return groups


def _written(job: OrderJob, number: int, share: int, rows: SpilledRows, path: Path, outcome: TableOutcome) -> Iterator[pa.RecordBatch]:
    """Write a file for each day, and for each bucket that rows moved away from. path: for the file that is open."""
    table = job.tables[number]
    changes = BucketChanges(table, table.bucket_of(share), rows, job.steps)
    store = open_store(table.location)
    with kept_if_whole(store) as keys:
        files = _Files(store, table, keys, path)
        for part in changes.parts():
            yield from files.add(number, part)
        yield from files.close(number)
    outcome.counted = dict(Counter(outcome.counted) + changes.counted)


@dataclass(slots=True)
class _Files:
    """Writes one file after another; adjacent parts of the same bucket and day share a file."""

    store: Store
    table: ArrowTable
    keys: list[str]
    path: Path
    open: OpenFile | None = None
    of: tuple[int, int] = (-1, -1)

    def add(self, number: int, part: BucketPart) -> Iterator[pa.RecordBatch]:
        bucket, day, changes = part
        if self.of != (bucket, day):
            yield from self.close(number)
        if self.open is None:
            self.open, self.of = OpenFile(self.path, self.table.schema), (bucket, day)
        self.open.write(changes)

    def close(self, number: int) -> Iterator[pa.RecordBatch]:
        if self.open is None:
            return
        with self.open:
            self.open = None
        bucket, day = self.of
        self.keys.append(f"data/bucket={bucket}/day={day}/{uuid4()}.parquet")
        self.store.upload(self.keys[-1], self.path)
        size = self.path.stat().st_size
        digest = sha256_of(self.path)
        yield _row(table=number, bucket=bucket, day=day, path=self.keys[-1], size=size, sha256=digest, footer=footer(self.path))


def _row(**cells: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([cells], schema=STAGED)
