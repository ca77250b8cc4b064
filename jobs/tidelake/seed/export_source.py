"""Reads files of an export as rows of the lake in workers, a task per file.

Rows are read like a decoder's events: inserts at the export's TSO, masked, then typed as order types them. Rows that cannot be read are not
passed on: a report per file, written into the lake when the file is read to its end, counts them, and the values that are lost, with the
places of the first ones. The report has no values, so it cannot leak what a mask hides.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from tidelake.config.lake_paths import seed_report_key
from tidelake.decode.masker import MaskNames, masker
from tidelake.errors import StorageError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import EVENT, RowSchema, schema_rows
from tidelake.io.storage import open_store
from tidelake.lake.columns.cells import INVALID, LOSSES, Codes
from tidelake.order.arrow.table_models import ArrowColumn
from tidelake.order.arrow.typed_columns import RowImages
from tidelake.seed.exports.dialect import Dialect
from tidelake.seed.exports.export_files import ExportFile
from tidelake.seed.exports.export_rows import ExportBatch, ExportReading, FileReport, read_rows
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets
from tidelake.tso import wrap
from tidelake.wire.kernels.arrays import Longs

MOST_EXAMPLES = 5  # rows that a report names for each column
_COMMIT_TS = "_commit_ts"


class ExportJob(BaseModel):
    """What a worker needs to read a table's files.

    Attributes:
        row_schema: As JSON.
        first: Number of the first file.
        columns: Columns of the lake, in order.
        key: Ids of the key's columns.
    """

    export_uri: str
    lake_uri: str
    feed: str
    run: str
    ts: int
    database: str
    table: str
    row_schema: str
    may_lack: list[str]
    files: list[ExportFile]
    first: int
    dialect: Dialect
    time_zone: str
    names_sent: bool
    columns: list[ArrowColumn]
    key: list[int]
    masks: MaskNames = MaskNames()

    @property
    def arrow(self) -> pa.Schema:
        """The schema of the rows."""
        fields = [pa.field(c.name, c.type.arrow) for c in self.columns]
        return pa.schema([*fields, pa.field(_COMMIT_TS, pa.int64())])


class ExportReader(PartReader[int]):
    """Reads typed rows; a part is a file."""

    def __init__(self, job: ExportJob) -> None:
        super().__init__(range(len(job.files)), job.arrow)
        self.job = job

    def rows(self, part: int, secrets: Secrets) -> Iterator[pa.RecordBatch]:
        return _rows(self.job, part, secrets.mask_key.encode())


def _rows(job: ExportJob, number: int, key: bytes) -> Iterator[pa.RecordBatch]:
    file, row_schema = job.files[number], RowSchema.from_json(job.row_schema)
    masked = masker(job.masks, key)
    report = FileReport(key=file.key)
    with tempfile.TemporaryDirectory(prefix="tidelake-seed-") as folder:
        path = Path(folder) / "file"
        report.sha256 = open_store(job.export_uri).download(file.key, path)
        report.size = path.stat().st_size
        if report.size != file.size:
            raise _changed(job, file)
        for batch in read_rows(path, file, reading_of(job), report):
            events = masked(pa.concat_batches([_events(job, row_schema, job.first + number, batch), schema_rows([row_schema])]))
            yield _typed(job, pa.Table.from_batches([events.slice(0, len(batch.cells))]), report)
    store = open_store(job.lake_uri)
    store.write(seed_report_key(job.feed, job.run, job.first + number), report.model_dump_json(indent=1).encode())


def _typed(job: ExportJob, events: pa.Table, report: FileReport) -> pa.RecordBatch:
    """The rows' values. Adds what is lost to the report."""
    images, arrays, null = RowImages(events, "after"), list[pa.Array](), np.zeros(events.num_rows, np.bool_)
    for c in job.columns:
        found = images.column(c, job.time_zone)
        arrays.append(found.values)
        if c.id in job.key:
            null |= np.asarray(found.values.is_null())
        if found.lost is not None:
            _add_losses(report, c, found.lost, np.asarray(events.column("offset")))
    report.null_keys += int(null.sum())
    return pa.RecordBatch.from_arrays([*arrays, events.column("commit_ts").combine_chunks()], schema=job.arrow)


def _add_losses(report: FileReport, column: ArrowColumn, lost: Codes, rows: Longs) -> None:
    for kind, n in zip(LOSSES, np.bincount(lost, minlength=len(LOSSES) + 1)[1:].tolist(), strict=True):
        if n:
            known = report.losses.setdefault(kind, {})
            known[column.shown] = known.get(column.shown, 0) + n
    if len(first := rows[lost == INVALID][:MOST_EXAMPLES]):
        shown = report.invalid_rows.setdefault(column.shown, [])
        shown += first.tolist()[: MOST_EXAMPLES - len(shown)]


def reading_of(job: ExportJob) -> ExportReading:
    """Return how the files of the job's table are read."""
    return ExportReading(
        columns=[(c.name, MysqlType.parse(c.full_type or "text")) for c in RowSchema.from_json(job.row_schema).columns],
        may_lack=frozenset(name.lower() for name in job.may_lack),
        dialect=job.dialect,
        time_zone=job.time_zone,
        names_sent=job.names_sent,
    )


def _events(job: ExportJob, row_schema: RowSchema, number: int, batch: ExportBatch) -> pa.RecordBatch:
    """The rows as inserts at the export's TSO."""
    n = len(batch.cells)
    said = {"topic": "", "partition": number, "ordinal": 0, "kind": "row", "op": "insert", "commit_ts": wrap(job.ts)}
    said |= {"database": job.database, "table": job.table, "row_schema": row_schema.id, "handle_only": False}
    columns = {name: pa.repeat(pa.scalar(v, EVENT.field(name).type), n) for name, v in said.items()}
    columns |= {"offset": batch.numbers, "after": _in_order(batch, [c.name for c in row_schema.columns])}
    arrays = [columns[f.name] if f.name in columns else pa.nulls(n, f.type) for f in EVENT]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENT)


def _in_order(batch: ExportBatch, names: Sequence[str]) -> pa.ListArray:
    """The cells in the table's column order; NULL if the file lacks the column."""
    if list(batch.columns) == list(names):
        return batch.cells
    n, width = len(batch.cells), len(batch.columns)
    places = np.array([batch.columns.index(name) if name in batch.columns else -1 for name in names])
    source = np.arange(n)[:, None] * width + places
    chosen = pa.array(source.ravel(), pa.int64(), mask=np.broadcast_to(places < 0, source.shape).ravel())
    starts = pa.array(np.arange(n + 1) * len(names), pa.int32())
    return pa.ListArray.from_arrays(starts, batch.cells.flatten().take(chosen))


def _changed(job: ExportJob, file: ExportFile) -> StorageError:
    uri = open_store(job.export_uri).uri_of(file.key)
    return StorageError(f"{uri} changed its size since it was listed", code="CHANGED", remedy="is the export still being written?")
