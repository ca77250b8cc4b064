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

    schema: with the table's field ids (data_files.file_schema); plain: columns without dictionary encoding.
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
    """Download an object and yield it as an open Parquet file; delete the copy afterwards."""
    path = folder / "fetched.parquet"
    store.download(key, path)
    with ExitStack() as held:
        held.callback(path.unlink)
        yield held.enter_context(pq.ParquetFile(held.enter_context(pa.memory_map(str(path)))))
