"""Lenses' S3 sink (Stream Reactor), `STOREAS PARQUET` with `store.envelope = true` and ByteArrayConverter (docs/reference/archives.md 4).

    { key: binary, value: binary, headers: map or record, metadata: { timestamp: int64 (epoch ms), topic, partition, offset } }

The offset in an object's name is its last record's, so only the offsets in the records are used. A null member of a record of headers is
read as a missing header.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.archives.readers.layout import Layout, SourceObject, check_offsets, check_place, message_batch, refused
from tidelake.archives.readers.parquet_rows import are_headers, check_columns, headers_of_maps, headers_of_structs, row_batches

_NAME = "lenses-parquet"
_REMEDY = "the connector needs store.envelope = true, and ByteArrayConverter for keys and values"
_METADATA = ("timestamp", "topic", "partition", "offset")


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    for before, batch in row_batches(path, source, lambda schema: _columns(schema, source)):
        metadata = {name: pc.struct_field(batch.column("metadata"), name) for name in _METADATA}
        offset = metadata["offset"].cast(pa.int64())
        check_offsets(offset, source, before)
        check_place(_NAME, metadata["topic"], metadata["partition"], source)
        key, value = (batch.column(name).cast(pa.binary()) for name in ("key", "value"))
        stamps = metadata["timestamp"].cast(pa.int64())
        yield message_batch(source, offset, value, timestamp_ms=stamps, key=key, headers=_headers(batch))


def _columns(schema: pa.Schema, source: SourceObject) -> list[str]:
    check_columns(_NAME, schema, source, ("key", "value", "metadata"), _REMEDY)
    found = schema.field("metadata").type
    if not pa.types.is_struct(found) or any(found.get_field_index(name) < 0 for name in _METADATA):
        raise refused(source, _NAME, f"column metadata is {found}, not a record of {', '.join(_METADATA)}", _REMEDY)
    return [name for name in ("key", "value", "metadata", "headers") if name in schema.names]


def _headers(batch: pa.RecordBatch) -> pa.Array | None:
    if "headers" not in batch.schema.names:
        return None
    headers = batch.column("headers")
    if are_headers(headers.type):
        return headers_of_maps(headers)
    return headers_of_structs(headers) if pa.types.is_struct(headers.type) else None


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"parquet"}),
    number_is_last_offset=True,
    losses={"LOSSY_LAYOUT": "headers whose value is null are not read"},
)
