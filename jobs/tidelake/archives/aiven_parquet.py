"""Aiven's S3 connector, `format.output.type=parquet` (docs/reference/archives.md 2, 9).

    connector_records { key: binary, value: binary, offset: int64, timestamp: int64 (epoch ms), headers: map<string, binary> }

`offset` and `value` are required. `headers` exists only if the object's first record had some. `.parquet.gz` is Parquet, too: the codec is
in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.layout import OPTIONAL, Layout, SourceObject, check_offsets, message_batch, refused
from tidelake.archives.readers.parquet_rows import are_headers, check_columns, headers_of_maps, row_batches

_NAME = "aiven-parquet"
_MEMBERS = ("key", "value", "offset", "timestamp", "headers")
_REMEDY = (
    'the connector needs format.output.fields = "key,value,offset,timestamp,headers" and ByteArrayConverter for keys, values and headers'
)


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    for before, batch in row_batches(path, source, lambda schema: _columns(schema, source)):
        yield _batch(batch, before, source)


def _columns(schema: pa.Schema, source: SourceObject) -> list[str]:
    """Return the columns to read."""
    check_columns(_NAME, schema, source, ("offset", "value"), _REMEDY)
    if "headers" in schema.names and not are_headers(schema.field("headers").type):
        raise refused(source, _NAME, f"column headers is {schema.field('headers').type}, not map<string, bytes>", _REMEDY)
    return [name for name in _MEMBERS if name in schema.names]


def _batch(batch: pa.RecordBatch, before: int, source: SourceObject) -> pa.RecordBatch:
    found = {name: batch.column(name) for name in batch.schema.names}
    offset = found["offset"].cast(pa.int64())
    check_offsets(offset, source, before)
    return message_batch(
        source,
        offset,
        found["value"].cast(pa.binary()),
        timestamp_ms=found["timestamp"].cast(pa.int64()) if "timestamp" in found else None,
        key=found["key"].cast(pa.binary()) if "key" in found else None,
        headers=headers_of_maps(found["headers"]) if "headers" in found else None,
    )


LAYOUT = Layout(read=read, extensions=frozenset({"parquet"}), optional=OPTIONAL)
