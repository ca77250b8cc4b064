"""Parquet files that workers write below a table's location. They are nowhere until lake.data_files commits them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.io.object_store import Store

_DICTIONARY_BYTES = 64 << 10  # as of the tables' own property: cells hardly repeat


class OpenFile:
    """A Parquet file that is being written on this machine's disk; every write is a row group. Columns are cast to the schema's types.

    schema: with the ids that the table knows its columns by (data_files.file_schema); plain: columns that no dictionary is tried for.
    """

    def __init__(self, path: Path, schema: pa.Schema, plain: Sequence[str] = ()) -> None:
        self.path, self.rows = path, 0
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=[f.name for f in schema if f.name not in plain],
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            store_schema=False,
            store_decimal_as_integer=True,  # as Iceberg writes them (spec, appendix A)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._writer.close()

    def write(self, rows: pa.Table) -> None:
        schema = self._writer.schema
        columns = [rows.column(f.name).cast(f.type) for f in schema]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=max(rows.num_rows, 1))
        self.rows += rows.num_rows


@contextmanager
def kept_if_whole(store: Store) -> Iterator[list[str]]:
    """The keys of what the block uploads, which go again if it does not end."""
    keys = list[str]()
    try:
        yield keys
    except BaseException:
        for key in keys:
            store.delete(key)
        raise


def footer(path: Path) -> bytes:
    """A file's metadata, as a Parquet metadata file."""
    out = io.BytesIO()
    pq.read_metadata(path).write_metadata_file(out)
    return out.getvalue()


@contextmanager
def fetched(store: Store, key: str, folder: Path) -> Iterator[pq.ParquetFile]:
    """An object of the store, read from this machine's disk."""
    path = folder / "fetched.parquet"
    store.download(key, path)
    with ExitStack() as held:
        held.callback(path.unlink)
        yield held.enter_context(pq.ParquetFile(held.enter_context(pa.memory_map(str(path)))))
