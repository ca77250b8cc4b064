"""Folds units in workers: reads data files of a snapshot and of a changelog, writes data files of the snapshot (lake.columns.fold).

With merge-on-read, the snapshot's files stay: their rows of changed keys are deleted by position, and the new rows are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pydantic import BaseModel

from tidelake.compact.bucket_files import BucketFiles, Uploaded, uploaded
from tidelake.io.object_store import Store
from tidelake.io.storage import open_store
from tidelake.lake.columns.fold import BucketFold
from tidelake.lake.columns.fold_rules import TableFold
from tidelake.lake.columns.image_findings import ImageFindings
from tidelake.lake.columns.survivors import KeyTwice
from tidelake.lake.folding.units import Unit, sides_of
from tidelake.spark.parquet_files import kept_if_whole
from tidelake.spark.position_deletes import write_position_deletes
from tidelake.spark.workers import all_cores

FOLDED = pa.schema(
    [
        ("table", pa.int32()),
        ("bucket", pa.int32()),
        ("path", pa.string()),  # a file below the table's location; NULL in the row with the unit's outcome
        ("size", pa.int64()),
        ("sha256", pa.string()),
        ("footer", pa.binary()),
        ("deletes", pa.bool_()),  # a position delete file
        ("outcome", pa.string()),  # JSON of UnitOutcome
    ]
)


class UnitOutcome(BaseModel):
    """Outcome of a unit.

    Attributes:
        changed: Whether the unit has changes; otherwise no file is written.
        missing: Number of deletes that met no row, in a table without key.
        compared: Number of keys whose old values were compared.
        found: Changes whose old values do not match.
        duplicate_keys: Keys that the snapshot has twice.
    """

    changed: bool = True
    missing: int = 0
    compared: int = 0
    found: ImageFindings = ImageFindings()
    duplicate_keys: list[str] = []


class TableJob(BaseModel, frozen=True):
    """A table to fold and to write.

    Attributes:
        fold: What to read, and how to fold it.
        location: Location of the table that is written.
        columns: Its columns with field ids, as hex of Arrow's IPC.
        names: For each of its columns the fold's column, None for one that will be dropped.
        bucketed: The table has buckets.
        only_changed: Units without changes write nothing, unless other units have rows of their bucket.
        compares_in: The only bucket whose old values are compared; None for all.
    """

    fold: TableFold
    location: str
    columns: str
    names: tuple[str | None, ...]
    bucketed: bool
    only_changed: bool
    compares_in: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return pa.ipc.read_schema(pa.BufferReader(bytes.fromhex(self.columns)))


def fold_units(tables: Mapping[int, TableJob], units: Sequence[Unit]) -> Iterator[pa.RecordBatch]:
    """Fold units and yield rows of FOLDED: one for each file, and one with the outcome of each unit.

    After an error the uploaded files are removed.

    Raises:
        OrderError: UNSUPPORTED_DDL: values of a column cannot be converted.
    """
    with ExitStack() as uploads:
        if any(unit.alone for unit in units):
            uploads.enter_context(all_cores())
        rows = list[dict[str, Any]]()
        for unit in units:
            store = open_store(tables[unit.table].location)
            keys = uploads.enter_context(kept_if_whole(store))
            of_unit = {"table": unit.table, "bucket": unit.bucket}
            rows += [of_unit | row for row in _folded(tables[unit.table], unit, store, keys)]
        yield pa.RecordBatch.from_pylist(rows, schema=FOLDED)


def _folded(table: TableJob, unit: Unit, store: Store, keys: list[str]) -> Iterator[dict[str, Any]]:
    rules = table.fold.rules
    if rules.images is not None and table.compares_in not in (None, unit.bucket):
        rules = rules.model_copy(update={"images": None})
    folder = f"data/bucket={'null' if unit.bucket is None else unit.bucket}" if table.bucketed else "data"
    with sides_of(table.fold, unit) as (files, base, changes), TemporaryDirectory(prefix="tidelake-fold-") as scratch:
        try:
            fold = BucketFold(base, changes, rules)
        except KeyTwice as e:
            yield {"outcome": UnitOutcome(duplicate_keys=e.keys).model_dump_json()}
            return
        if table.only_changed and unit.keys is None and not fold.counted:
            yield {"outcome": UnitOutcome(changed=False).model_dump_json()}
            return
        by = rules.key or ((unit.keys.column,) if unit.keys is not None else ())  # the next fold's ranges are in few row groups then
        out = BucketFiles(store, keys, folder, Path(scratch), table.schema, table.names, by)
        for rows in fold.rows():
            yield from (_row(f) for f in out.add(rows))
        yield from (_row(f) for f in out.close())
        if rules.merges and fold.gone.any():
            path = Path(scratch) / "deletes.parquet"
            write_position_deletes(path, files.positions(fold.gone))
            yield _row(uploaded(store, keys, f"{folder}/{uuid4()}-deletes.parquet", path)) | {"deletes": True}
        images = fold.images()
        told = UnitOutcome(missing=fold.missing)
        if images is not None:
            told = UnitOutcome(missing=fold.missing, compared=images.compared, found=images.found)
        yield {"outcome": told.model_dump_json()}


def _row(file: Uploaded) -> dict[str, Any]:
    return {"path": file.path, "size": file.size, "sha256": file.sha256, "footer": file.footer, "deletes": False}
