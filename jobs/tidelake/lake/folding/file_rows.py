"""Data files as one side of a fold (lake.columns.pieces.Rows): columns by their id, rows that are deleted by position marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from tidelake.errors import StorageError
from tidelake.io.object_store import RangedObject
from tidelake.io.storage import open_store
from tidelake.lake.columns.cells import arrow_type
from tidelake.lake.columns.fold_columns import FoldColumn, Holder
from tidelake.lake.columns.pieces import CHANGE_TYPE, COMMIT_TS, Piece
from tidelake.lake.columns.repeated import as_dictionary
from tidelake.spark.position_deletes import deleted_positions
from tidelake.wire.hashes import HASH_DIGITS
from tidelake.wire.kernels.arrays import Flags, Longs

PIECE_BYTES = 16 << 20  # maximum encoded size of a piece
PIECE_ROWS = 1 << 18  # maximum rows of a piece
_BUFFER = 1 << 20  # bytes of a column that are read at once
ORDERED = frozenset({"int", "bigint", "date", "timestamp", "timestamp_ntz"})  # types whose statistics are used


class FileRef(BaseModel, frozen=True):
    """A data file. path: as the table's metadata spells it; uri: as io.storage reads it; deletes: URIs of its position delete files."""

    path: str
    uri: str
    deletes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _File:
    """An open file.

    Attributes:
        ref: Where it is.
        parquet: The file.
        names: Column names by field id.
        leaves: Numbers of the Parquet columns of each column.
        first: Number of its first row.
        alive: Rows that are not deleted by position, None for all.
    """

    ref: FileRef
    parquet: pq.ParquetFile
    names: dict[int, str]
    leaves: dict[str, list[int]]
    first: int
    alive: Flags | None


class FileRows:
    """The rows of files, concatenated.

    A column is read by its id, not by its name in the file. A column that a file lacks is NULL; a narrower type is widened (Iceberg spec,
    column projection).
    """

    def __init__(self, files: Sequence[_File], columns: Sequence[FoldColumn], *, threads: bool) -> None:
        self._files, self._columns, self._threads = files, {c.name: c for c in columns}, threads
        self.count = self.reached = sum(f.parquet.metadata.num_rows for f in files)

    def pieces(self, columns: Sequence[str], wanted: Flags | None = None) -> Iterator[Piece]:
        """Yield the rows in order (lake.columns.pieces.Rows.pieces)."""
        chosen = [self._columns[c] for c in columns]
        timed = [self._columns[COMMIT_TS]] if any(c.needs_ts for c in chosen) else []
        ids = {h.field_id for c in (*chosen, *timed) for h in c.holders}
        for file in self._files:
            names = [file.names[i] for i in ids if i in file.names]
            first = file.first
            for group in range(file.parquet.num_row_groups):
                rows = file.parquet.metadata.row_group(group).num_rows
                if wanted is None or wanted[first : first + rows].any():
                    yield from self._group(file, group, first, names, chosen, wanted)
                first += rows

    def may_hold(self, column: str, values: pa.Array) -> Flags:
        """Return which rows may have one of the values (lake.columns.pieces.Rows.may_hold)."""
        if self._columns[column].type not in ORDERED:
            return np.ones(self.count, np.bool_)
        numbers = numbers_of(values)
        return self._where(column, lambda low, high: bool(np.searchsorted(numbers, low) < np.searchsorted(numbers, high, "right")))

    def may_lie(self, column: str, low: int | None, high: int | None) -> Flags:
        """Return which rows may have a value from low up to below high (None: no limit), as far as statistics of files tell."""
        return self._where(column, lambda least, most: (high is None or least < high) and (low is None or most >= low))

    def _where(self, column: str, holds: Callable[[int, int], bool]) -> Flags:
        """Return the rows of those row groups for whose lowest and highest value this holds, or that have no such statistics."""
        out, c = np.ones(self.count, np.bool_), self._columns[column]
        if c.type not in ORDERED or [h.type for h in c.holders] != [c.type]:
            return out
        for file in self._files:
            first = file.first
            for group in range(file.parquet.num_row_groups):
                rows = file.parquet.metadata.row_group(group).num_rows
                bounds = _bounds(file, group, c.holders[0])
                if bounds is not None:
                    out[first : first + rows] = holds(int(bounds[0]), int(bounds[1]))
                first += rows
        return out

    def positions(self, rows: Flags) -> Iterator[tuple[str, Longs]]:
        """Yield (path of a file, positions in it) of some rows, for files that have any, in the order of their paths."""
        for file in sorted(self._files, key=lambda f: f.ref.path):
            found = np.flatnonzero(rows[file.first : file.first + file.parquet.metadata.num_rows])
            if len(found):
                yield file.ref.path, found

    def _group(
        self, file: _File, group: int, first: int, names: Sequence[str], chosen: Sequence[FoldColumn], wanted: Flags | None
    ) -> Iterator[Piece]:
        for batch in _batches(file, group, names, threads=self._threads):
            rows = batch.num_rows
            if wanted is None or wanted[first : first + rows].any():
                here = None if file.alive is None else file.alive[first - file.first : first - file.first + rows]
                yield Piece(first, self._projected(file, batch, chosen), None if here is None or here.all() else here)
            first += rows

    def _projected(self, file: _File, batch: pa.RecordBatch, chosen: Sequence[FoldColumn]) -> pa.RecordBatch:
        ts = self._held(file, batch, self._columns[COMMIT_TS])[0] if any(c.needs_ts for c in chosen) else None
        columns = [c.cells(self._held(file, batch, c), batch.num_rows, ts) for c in chosen]
        columns = [as_dictionary(cells) if c.coded else cells for c, cells in zip(chosen, columns, strict=True)]
        if not columns:
            return batch
        return pa.RecordBatch.from_arrays(columns, names=[c.name for c in chosen])

    def _held(self, file: _File, batch: pa.RecordBatch, column: FoldColumn) -> list[pa.Array]:
        return [_cells(batch, file.names.get(h.field_id), arrow_type(h.type)) for h in column.holders]


def _cells(batch: pa.RecordBatch, name: str | None, kind: pa.DataType) -> pa.Array:
    if name is None:
        return pa.nulls(batch.num_rows, kind)
    cells = batch.column(name)
    return cells if pa.types.is_dictionary(cells.type) or cells.type == kind else cells.cast(kind)


def _batches(file: _File, group: int, names: Sequence[str], *, threads: bool) -> Iterator[pa.RecordBatch]:
    """Read a row group in batches of limited size."""
    facts = file.parquet.metadata.row_group(group)
    if not names:
        yield pa.RecordBatch.from_arrays([pa.nulls(facts.num_rows)], names=["none"])
        return
    size = sum(facts.column(n).total_uncompressed_size for name in names for n in file.leaves[name])
    step = min(PIECE_ROWS, max(1, facts.num_rows * PIECE_BYTES // max(size, 1)))
    yield from file.parquet.iter_batches(step, [group], list(names), use_threads=threads)


def _leaves(file: pq.ParquetFile) -> dict[str, list[int]]:
    """Numbers of the Parquet columns of each column. Their paths begin with its name, which may have dots."""
    out: dict[str, list[int]] = {name: [] for name in file.schema_arrow.names}
    for n in range(len(file.schema)):
        starts = accumulate(file.schema.column(n).path.split("."), "{}.{}".format)
        out[[name for name in starts if name in out][-1]].append(n)
    return out


def _bounds(file: _File, group: int, holder: Holder) -> Longs | None:
    """(lowest, highest) value of a column in a row group; None if unknown, or if there are NULLs."""
    if (name := file.names.get(holder.field_id)) is None:
        return None
    chunk = file.parquet.metadata.row_group(group).column(file.leaves[name][0])
    if chunk.statistics is None or not chunk.statistics.has_min_max or chunk.statistics.null_count:
        return None
    return numbers_of(pa.array([chunk.statistics.min, chunk.statistics.max], arrow_type(holder.type)))


def numbers_of(values: pa.Array) -> Longs:
    """Return values of a type of ORDERED without NULL as int64: dates in days, times in microseconds."""
    plain = values.cast(pa.int32()) if pa.types.is_date32(values.type) else values
    return np.asarray(plain.cast(pa.int64()))


@contextmanager
def opened(refs: Sequence[FileRef], columns: Sequence[FoldColumn], *, whole: bool = True, threads: bool = False) -> Iterator[FileRows]:
    """Yield the rows of files.

    Args:
        refs: The files.
        columns: The columns that may be read.
        whole: Most of the files will be read: copy them to this machine's disk, and remove the copies afterwards. Otherwise only the
            ranges are transferred that are read.
        threads: Read several columns at a time.
    """
    with ExitStack() as held, TemporaryDirectory(prefix="tidelake-fold-") as folder:
        files, first = list[_File](), 0
        coded = {h.field_id for c in columns if c.coded for h in c.holders}
        for n, ref in enumerate(refs):
            parquet = held.enter_context(_parquet(ref, Path(folder) / f"{n}.parquet" if whole else None, coded))
            names = {_id(f): f.name for f in parquet.schema_arrow}
            files.append(_File(ref, parquet, names, _leaves(parquet), first, _alive(ref, parquet.metadata.num_rows)))
            first += parquet.metadata.num_rows
        yield FileRows(files, columns, threads=threads)


def _parquet(ref: FileRef, copy: Path | None, coded: Set[int]) -> pq.ParquetFile:
    """The file. coded: ids of columns with hashes."""
    root, _, key = ref.uri.rpartition("/")
    store = open_store(root)
    if copy is None:
        found = store.head(key)
        if found is None:
            raise StorageError(f"{ref.uri} does not exist", code="NOT_FOUND")
        return pq.ParquetFile(pa.PythonFile(RangedObject(store, key, found.size), "r"), buffer_size=_BUFFER)
    path = store.fetch(key, copy)
    facts = pq.read_metadata(path)
    names = [f.name for f in facts.schema.to_arrow_schema() if f.name == CHANGE_TYPE or (_id(f) in coded and _repeats(facts, f.name))]
    return pq.ParquetFile(path, metadata=facts, read_dictionary=names, buffer_size=_BUFFER)


def _repeats(facts: pq.FileMetaData, name: str) -> bool:
    """Whether a column of hashes takes less than half of what different ones would take."""
    at = facts.schema.names.index(name)
    size: int = sum(facts.row_group(n).column(at).total_uncompressed_size for n in range(facts.num_row_groups))
    rows: int = facts.num_rows
    return 2 * size < HASH_DIGITS * rows


def _alive(ref: FileRef, rows: int) -> Flags | None:
    if not ref.deletes:
        return None
    out = np.ones(rows, np.bool_)
    for uri in ref.deletes:
        root, _, key = uri.rpartition("/")
        out[deleted_positions(open_store(root), [key], ref.path)] = False
    return out


def _id(field: pa.Field) -> int:
    return int((field.metadata or {}).get(b"PARQUET:field_id", -1))
