"""Folds buckets in workers: reads data files of a snapshot and of a changelog, writes one data file of the snapshot (arrow_fold.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from tidelake.compact.arrow_fold import TOO_LARGE, FoldRules, KeyTwice, LeftToSpark, fold
from tidelake.io.storage import open_store
from tidelake.spark.parquet_files import OpenFile, fetched, footer, kept_if_whole
from tidelake.wire.kernels.arrays import Longs

MOST_BYTES = 384 << 20  # maximum size of a unit's encoded columns, and of its Arrow result: a worker then stays below 1 GiB
ROW_GROUP_BYTES = 32 << 20  # size of a row group in Arrow

FOLDED = pa.schema(
    [
        ("table", pa.int32()),
        ("bucket", pa.int32()),
        ("path", pa.string()),  # NULL if no row is left or the unit is refused
        ("size", pa.int64()),
        ("footer", pa.binary()),
        ("compared", pa.int64()),
        ("suspects", pa.int64()),
        ("refused", pa.string()),
        ("duplicate_keys", pa.list_(pa.string())),
    ]
)


class FoldSide(BaseModel, frozen=True):
    """Location of a table's files, and the columns to read with the snapshot's names and the table's ids, as hex of Arrow's IPC."""

    location: str
    columns: str

    @property
    def schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.BufferReader(bytes.fromhex(self.columns)))


def side(location: str, columns: pa.Schema) -> FoldSide:
    """Return the FoldSide of a schema."""
    return FoldSide(location=location, columns=columns.serialize().to_pybytes().hex())


class TableFold(BaseModel, frozen=True):
    """A table to fold. base: its snapshot, which is also written; changes: its changelog."""

    base: FoldSide
    changes: FoldSide
    rules: FoldRules


class Unit(BaseModel, frozen=True):
    """A bucket of a table. base, changes: keys of their files below the tables' locations."""

    table: int
    bucket: int
    base: list[str]
    changes: list[str]


def fold_units(tables: Mapping[int, TableFold], units: Sequence[Unit]) -> Iterator[pa.RecordBatch]:
    """Fold units and yield one row of FOLDED for each. After an error the uploaded files are removed."""
    with ExitStack() as uploads:
        rows = []
        for unit in units:
            table = tables[unit.table]
            uploaded = uploads.enter_context(kept_if_whole(open_store(table.base.location)))
            rows.append({"table": unit.table, "bucket": unit.bucket} | _folded(table, unit, uploaded))
        yield pa.RecordBatch.from_pylist(rows, schema=FOLDED)


def _folded(table: TableFold, unit: Unit, uploaded: list[str]) -> dict[str, Any]:
    with _opened(table.base, unit.base) as base, _opened(table.changes, unit.changes) as changes:
        try:
            if base.encoded + changes.encoded > MOST_BYTES:
                raise LeftToSpark(TOO_LARGE)
            found = fold(base, changes, table.rules, table.base.schema.names, MOST_BYTES)
        except LeftToSpark as e:
            return {"refused": str(e)}
        except KeyTwice as e:
            return {"duplicate_keys": e.keys}
    counts = {"compared": found.compared, "suspects": found.suspects}
    return counts | (_written(found.rows, table.base, unit.bucket, uploaded) if found.rows.num_rows else {})


def _written(rows: pa.Table, place: FoldSide, bucket: int, uploaded: list[str]) -> dict[str, Any]:
    store = open_store(place.location)
    with TemporaryDirectory(prefix="tidelake-fold-") as folder:
        path = Path(folder) / "bucket.parquet"
        with OpenFile(path, place.schema) as file:
            step = max(1, ROW_GROUP_BYTES * rows.num_rows // max(rows.nbytes, 1))
            for first in range(0, rows.num_rows, step):
                file.write(rows.slice(first, step))
        uploaded.append(f"data/bucket={bucket}/{uuid4()}.parquet")
        store.upload(uploaded[-1], path)
        return {"path": uploaded[-1], "size": path.stat().st_size, "footer": footer(path)}


class FileRows:
    """The rows of data files, concatenated.

    A column is read by its id, not by its name in the file. A column that a file lacks is NULL; a narrower type is widened (Iceberg spec,
    column projection).
    """

    def __init__(self, files: Sequence[pq.ParquetFile], schema: pa.Schema) -> None:
        self._files, self._schema = files, schema
        self._names = [{_id(f): f.name for f in file.schema_arrow} for file in files]
        self._whole: dict[str, pa.Array] = {}
        self.count = sum(f.metadata.num_rows for f in files)

    @property
    def encoded(self) -> int:
        """Encoded size of all columns that may be read, in bytes."""
        groups = (f.metadata.row_group(g) for f in self._files for g in range(f.num_row_groups))
        return sum(g.total_byte_size for g in groups)

    def whole(self, column: str) -> pa.Array:
        """Return a column of all rows and cache it: the fold requests keys several times."""
        if column not in self._whole:
            self._whole[column] = pa.concat_arrays([self._none(column), *(cells for _, cells in self._groups(column))])
        return self._whole[column]

    def cells(self, column: str, *rows: Longs) -> list[pa.Array]:
        """Return a column for each of several sets of ascending row numbers. One row group is in memory at a time."""
        groups = [(0, self._whole[column])] if column in self._whole else self._groups(column)
        parts = [[self._none(column)] for _ in rows]
        for first, cells in groups:
            for part, wanted in zip(parts, rows, strict=True):
                low, high = np.searchsorted(wanted, [first, first + len(cells)])
                part.append(cells if high - low == len(cells) else cells.take(pa.array(wanted[low:high] - first)))
        return [pa.concat_arrays(part) for part in parts]

    def _groups(self, column: str) -> Iterator[tuple[int, pa.Array]]:
        """Yield (first row, column) of each row group."""
        field, first = self._schema.field(column), 0
        for file, names in zip(self._files, self._names, strict=True):
            for group in range(file.num_row_groups):
                cells = _cells(file, group, names.get(_id(field)), field.type)
                yield first, cells
                first += len(cells)

    def _none(self, column: str) -> pa.Array:
        return pa.array([], self._schema.field(column).type)


def _cells(file: pq.ParquetFile, group: int, name: str | None, kind: pa.DataType) -> pa.Array:
    if name is None:
        return pa.nulls(file.metadata.row_group(group).num_rows, kind)
    return file.read_row_group(group, columns=[name], use_threads=False).column(name).cast(kind).combine_chunks()


def _id(field: pa.Field) -> int:
    return int((field.metadata or {}).get(b"PARQUET:field_id", -1))


@contextmanager
def _opened(files: FoldSide, keys: Sequence[str]) -> Iterator[FileRows]:
    store = open_store(files.location)
    with ExitStack() as held:
        folders = [Path(held.enter_context(TemporaryDirectory(prefix="tidelake-fold-"))) for _ in keys]
        yield FileRows([held.enter_context(fetched(store, k, f)) for k, f in zip(keys, folders, strict=True)], files.schema)
