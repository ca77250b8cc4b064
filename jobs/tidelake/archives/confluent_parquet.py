"""Confluent's S3 connector, ParquetFormat (docs/reference/archives.md 1). It writes records only, so bytes must be wrapped in one first.

    { value: binary, offset: int64, timestamp?: timestamp[ms] or int64 (epoch ms) }

    transforms = hoist,place
    transforms.hoist.type = org.apache.kafka.connect.transforms.HoistField$Value     transforms.hoist.field = value
    transforms.place.type = org.apache.kafka.connect.transforms.InsertField$Value    transforms.place.offset.field = offset
                                                                                     transforms.place.timestamp.field = timestamp

with ByteArrayConverter. The records contain the offsets, and a null value is a record like any other. Decoded rows are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.layout import Layout, SourceObject, check_offsets, message_batch
from tidelake.archives.readers.parquet_rows import check_columns, row_batches

_NAME = "confluent-parquet"
_REMEDY = (
    "the connector needs value.converter = ByteArrayConverter, and the transforms HoistField (field = value) and InsertField "
    "(offset.field = offset, timestamp.field = timestamp)"
)


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    for before, batch in row_batches(path, source, lambda schema: _columns(schema, source)):
        offset = batch.column("offset").cast(pa.int64())
        check_offsets(offset, source, before)
        stamps = batch.column("timestamp").cast(pa.timestamp("ms")).cast(pa.int64()) if "timestamp" in batch.schema.names else None
        yield message_batch(source, offset, batch.column("value").cast(pa.binary()), timestamp_ms=stamps)


def _columns(schema: pa.Schema, source: SourceObject) -> list[str]:
    check_columns(_NAME, schema, source, ("value", "offset"), _REMEDY)
    return [name for name in ("value", "offset", "timestamp") if name in schema.names]


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"parquet"}),
    has_keys=False,
    losses={"KEYS_LOST": "the records hold no keys", "LOSSY_LAYOUT": "no headers"},
)
