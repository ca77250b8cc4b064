"""Aiven's S3 connector, `format.output.type=parquet` (archives.md 2, 9).

    connector_records { key: binary, value: binary, offset: int64, timestamp: int64 (epoch ms), headers: map<string, binary> }

`offset` and `value` must be there. `headers` is there only if the object's first record had some. `.parquet.gz` is Parquet, too: the
codec is inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.archives.shape import BATCH_BYTES, Layout, SourceObject, damaged, first_unsound, message_batch, refused, sound, unreadable
from tidelake.event import HEADERS

_NAME = "aiven-parquet"
_MEMBERS = ("key", "value", "offset", "timestamp", "headers")
_BYTES = (pa.binary(), pa.string())
_REMEDY = (
    'the connector needs format.output.fields = "key,value,offset,timestamp,headers" and ByteArrayConverter for keys, values and headers'
)


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """MESSAGE batches. Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT)."""
    record = 0
    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            columns = _columns(file.schema_arrow, source)
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(_rows(file.metadata.row_group(group)), [group], columns, use_threads=False):
                    yield _batch(batch, record, source)
                    record += len(batch)
    except (pa.ArrowInvalid, OSError) as e:
        if record == 0:
            raise unreadable(source, f"not readable as Parquet: {e}") from e
        raise damaged(source, f"after record {record}", f"not readable as Parquet: {e}") from e


def _columns(schema: pa.Schema, source: SourceObject) -> list[str]:
    """The columns to read."""
    missing = [name for name in ("offset", "value") if name not in schema.names]
    if missing:
        raise refused(source, _NAME, f"it has no column {' and no column '.join(missing)}", _REMEDY)
    for name in ("key", "value"):
        if name in schema.names and schema.field(name).type not in _BYTES:
            raise refused(source, _NAME, f"column {name} is {schema.field(name).type}, not bytes", _REMEDY)
    if "headers" in schema.names and not _are_headers(schema.field("headers").type):
        raise refused(source, _NAME, f"column headers is {schema.field('headers').type}, not map<string, bytes>", _REMEDY)
    return [name for name in _MEMBERS if name in schema.names]


def _are_headers(found: pa.DataType) -> bool:
    return pa.types.is_map(found) and found.key_type == pa.string() and found.item_type in _BYTES


def _rows(group: pq.RowGroupMetaData) -> int:
    """How many rows of a group make up a batch."""
    rows, size = int(group.num_rows), int(group.total_byte_size)
    return max(1, min(rows, BATCH_BYTES * rows // max(size, 1)))


def _batch(batch: pa.RecordBatch, before: int, source: SourceObject) -> pa.RecordBatch:
    found = {name: batch.column(name) for name in batch.schema.names}
    offset = found["offset"].cast(pa.int64())
    if not sound(offset):
        raise damaged(source, f"record {before + 1 + first_unsound(offset)}", "no offset, or one below 0")
    return message_batch(
        source,
        offset,
        found["value"].cast(pa.binary()),
        timestamp_ms=found["timestamp"].cast(pa.int64()) if "timestamp" in found else None,
        key=found["key"].cast(pa.binary()) if "key" in found else None,
        headers=_headers(found["headers"]) if "headers" in found else None,
    )


def _headers(maps: pa.Array) -> pa.Array:
    pairs = pa.StructArray.from_arrays([maps.keys, maps.items.cast(pa.binary())], names=["key", "value"])
    return pa.ListArray.from_arrays(maps.offsets, pairs, mask=maps.is_null() if maps.null_count else None).cast(HEADERS)


LAYOUT = Layout(read=read, extensions=frozenset({"parquet"}))
