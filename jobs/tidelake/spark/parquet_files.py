"""Write Parquet files below a table's location, in workers. They belong to no table until lake.data_files commits them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.io.object_store import Store

_DICTIONARY_BYTES = 64 << 10  # as in the tables' property: cells hardly repeat


class OpenFile:
    """A Parquet file being written on this machine's disk. Every write is a row group; columns are cast to the schema's types.

    A column that is a dictionary in the first rows is written with whole dictionaries, of any size.

    schema: with the table's field ids (data_files.file_schema); plain: columns without dictionary encoding.
    """

    def __init__(self, path: Path, schema: pa.Schema, plain: Sequence[str] = ()) -> None:
        self.path, self.rows = path, 0
        self._schema, self._plain = schema, plain
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._opened(self._schema).close()

    def write(self, rows: pa.Table) -> None:
        writer = self._opened(rows.schema)
        columns = [_cast(rows.column(f.name), f.type) for f in writer.schema]
        writer.write_table(pa.Table.from_arrays(columns, schema=writer.schema), row_group_size=max(rows.num_rows, 1))
        self.rows += rows.num_rows

    def _opened(self, first: pa.Schema) -> pq.ParquetWriter:
        """Return the writer. first: of the first rows."""
        if self._writer is None:
            coded = [f.name for f in self._schema if pa.types.is_dictionary(first.field(f.name).type)]
            self._writer = pq.ParquetWriter(
                self.path,
                pa.schema([f.with_type(pa.dictionary(pa.int32(), f.type)) if f.name in coded else f for f in self._schema]),
                compression="zstd",
                use_dictionary=[f.name for f in self._schema if f.name not in self._plain],
                dictionary_pagesize_limit=_DICTIONARY_BYTES,
                store_schema=False,
                store_decimal_as_integer=True,  # as Iceberg writes them (spec, appendix A)
            )
        return self._writer


def _cast(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(to) and not pa.types.is_dictionary(column.type):
        return column.cast(to.value_type).dictionary_encode()
    return column.cast(to)


@contextmanager
def kept_if_whole(store: Store) -> Iterator[list[str]]:
    """Yield a list for the keys of uploaded objects; delete these objects if the block raises."""
    keys = list[str]()
    try:
        yield keys
    except BaseException:
        for key in keys:
            store.delete(key)
        raise


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def footer(path: Path) -> bytes:
    """Return a file's metadata, as a Parquet metadata file."""
    out = io.BytesIO()
    pq.read_metadata(path).write_metadata_file(out)
    return out.getvalue()


@contextmanager
def fetched(store: Store, key: str, folder: Path) -> Iterator[pq.ParquetFile]:
    """Yield an object as an open Parquet file; delete a copy in the folder afterwards."""
    copy = folder / "fetched.parquet"
    with ExitStack() as held:
        held.callback(copy.unlink, missing_ok=True)
        yield held.enter_context(pq.ParquetFile(held.enter_context(pa.memory_map(str(store.fetch(key, copy))))))
