"""Tidelake's canonical objects, as `land` writes them, so that an archive can be landed from another lake (docs/architecture.md 7).

    { topic, partition, offset, timestamp_ms | ts_ms, key, value, headers: list<struct<key|k, value|v>> }, value null = tombstone

below source.uri: <topic>/hour=YYYY-MM-DDTHH/partition=N/<first>-<last>-<hash>.parquet. Other columns are ignored.
The footer of objects of `tidelake archive` (COVERS) gives the range of offsets of which they have all messages that the log held.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelake.archives.readers.layout import Layout, SourceObject, check_offsets, check_place, message_batch, refused
from tidelake.archives.readers.parquet_rows import check_columns, row_batches
from tidelake.history.event import HEADERS

COVERS = "tidelake.covers"  # `<first>-<last>` in the Parquet file's key-value metadata

_NAME = "canonical"
_NEEDED = ("topic", "partition", "offset", "key", "value")
_STAMPS = ("timestamp_ms", "ts_ms")
_SPAN = re.compile(rb"(\d{1,19})-(\d{1,19})")
_REMEDY = "write it with Tidelake, or set the layout that the archiver writes"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    for before, batch in row_batches(path, source, lambda schema: _columns(schema, source)):
        found = {name: batch.column(name) for name in batch.schema.names}
        offset = found["offset"].cast(pa.int64())
        check_offsets(offset, source, before)
        check_place(_NAME, found["topic"], found["partition"], source)
        stamps = next((found[name].cast(pa.int64()) for name in _STAMPS if name in found), None)
        headers = _headers(found["headers"]) if "headers" in found else None
        key, value = (found[name].cast(pa.binary()) for name in ("key", "value"))
        yield message_batch(source, offset, value, timestamp_ms=stamps, key=key, headers=headers)


def covers(path: Path) -> tuple[int, int] | None:
    """Return the first and last offset of which an object has all messages that the log held; None if it does not record them."""
    with pq.ParquetFile(path) as file:
        found = _SPAN.fullmatch((file.metadata.metadata or {}).get(COVERS.encode(), b""))
    return (int(found[1]), int(found[2])) if found else None


def _columns(schema: pa.Schema, source: SourceObject) -> list[str]:
    check_columns(_NAME, schema, source, _NEEDED, _REMEDY)
    if "headers" in schema.names and not _are_pairs(schema.field("headers").type):
        raise refused(source, _NAME, f"column headers is {schema.field('headers').type}, not a list of key and value", _REMEDY)
    return [name for name in (*_NEEDED, *_STAMPS, "headers") if name in schema.names]


def _are_pairs(found: pa.DataType) -> bool:
    return bool(pa.types.is_list(found) and pa.types.is_struct(found.value_type) and found.value_type.num_fields == 2)


def _headers(column: pa.Array) -> pa.Array:
    """Convert lists of pairs to HEADERS, whatever the names of their members."""
    pair = column.type.value_type
    if [pair.field(i).name for i in range(pair.num_fields)] == ["key", "value"]:
        return column.cast(HEADERS)
    pairs = pa.StructArray.from_arrays([pc.struct_field(column.values, i) for i in (0, 1)], names=["key", "value"])
    return pa.ListArray.from_arrays(column.offsets, pairs, mask=column.is_null() if column.null_count else None).cast(HEADERS)


LAYOUT = Layout(
    read=read,
    covers=covers,
    extensions=frozenset({"parquet"}),
    templates=("{topic}/hour={yyyy}-{MM}-{dd}T{HH}/partition={partition}/{start_offset}-{any}",),
)
