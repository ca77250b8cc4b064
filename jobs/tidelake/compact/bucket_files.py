"""Writes the rows of a fold to data files of one partition, sorted by key as far as they fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.io.object_store import Store
from tidelake.lake.columns.repeated import together, with_short_dictionaries
from tidelake.spark.parquet_files import OpenFile, footer, sha256_of

SORTED_BYTES = 96 << 20  # size in Arrow of rows that are sorted together
ROW_GROUP_BYTES = 32 << 20  # size of a row group in Arrow
FILE_BYTES = 192 << 20  # a file that has so many bytes is closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """A file below the table's location. size: bytes; sha256: in hex; footer: a Parquet metadata file."""

    path: str
    size: int
    sha256: str
    footer: bytes


class BucketFiles:
    """Data files that are being written.

    Args:
        store: Store of the table's location.
        uploaded: Receives the key of every uploaded object.
        folder: Folder of the files, below the location.
        scratch: Folder on this machine's disk.
        schema: The table's columns, with field ids.
        names: For each column of the schema its name in the rows, None for a column of NULLs.
        key: Columns of the rows to sort by.
    """

    def __init__(
        self,
        store: Store,
        uploaded: list[str],
        folder: str,
        scratch: Path,
        schema: pa.Schema,
        names: Sequence[str | None],
        key: Sequence[str],
    ) -> None:
        self._store, self._uploaded, self._folder, self._path = store, uploaded, folder, scratch / "written.parquet"
        self._schema, self._names, self._key = schema, names, key
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self._open: OpenFile | None = None

    def add(self, rows: pa.RecordBatch) -> Iterator[Uploaded]:
        """Add rows; yield the files that are complete."""
        self._waiting.append(with_short_dictionaries(rows))
        self._bytes += self._waiting[-1].nbytes
        if self._bytes >= SORTED_BYTES:
            yield from self._write()

    def close(self) -> Iterator[Uploaded]:
        """Write what is left; yield the files that are complete now."""
        yield from self._write()
        if self._open is not None:
            yield self._upload(self._open)

    def _write(self) -> Iterator[Uploaded]:
        if not self._waiting:
            return
        rows, size = together([pa.Table.from_batches([b]) for b in self._waiting]), self._bytes
        self._waiting, self._bytes = [], 0
        many, order = rows.num_rows, self._order(rows)
        step = max(1, ROW_GROUP_BYTES * many // max(size, 1))
        taken = [None if name is None else rows.column(name) for name in self._names]
        del rows  # so that each column is freed when it is sorted
        columns = self._sorted(taken, many, order)
        for first in range(0, many, step):
            if self._open is None:
                self._open = OpenFile(self._path, self._schema)
            self._open.write(columns.slice(first, step))
            if self._path.stat().st_size >= FILE_BYTES:
                yield self._upload(self._open)

    def _order(self, rows: pa.Table) -> pa.Array | None:
        if not self._key:
            return None
        return pc.sort_indices(rows.select(list(self._key)), sort_keys=[(k, "ascending") for k in self._key])

    def _sorted(self, taken: list[pa.ChunkedArray | None], rows: int, order: pa.Array | None) -> pa.Table:
        """Return the table's columns in order. The columns in `taken` are removed from it one by one."""
        out = []
        for n, field in enumerate(self._schema):
            cells, taken[n] = taken[n], None
            if cells is None:
                out.append(pa.nulls(rows, field.type))
                continue
            if order is None:
                out.append(cells)
                continue
            whole = cells.combine_chunks()
            del cells
            out.append(whole.take(order))
        return pa.Table.from_arrays(out, names=self._schema.names)

    def _upload(self, file: OpenFile) -> Uploaded:
        with file:
            self._open = None
        return uploaded(self._store, self._uploaded, f"{self._folder}/{uuid4()}.parquet", self._path)


def uploaded(store: Store, keys: list[str], key: str, path: Path) -> Uploaded:
    """Upload a Parquet file of this machine's disk. keys: receives the key."""
    keys.append(key)
    store.upload(key, path)
    return Uploaded(path=key, size=path.stat().st_size, sha256=sha256_of(path), footer=footer(path))
