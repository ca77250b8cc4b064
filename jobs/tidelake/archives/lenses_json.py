"""Lenses' S3 sink (Stream Reactor), `STOREAS JSON` with `store.envelope = true` and ByteArrayConverter (docs/reference/archives.md 4).

    {"key":"<base64>"|null,"value":"<base64>"|null,"headers":{…},"metadata":{"timestamp":ms,"topic":"t","partition":n,"offset":n}}

One record per line. The offset in an object's name is its last record's, so only the offsets in the records are used. Headers are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.archives.readers.base64_text import Base64Error, decode
from tidelake.archives.readers.json_records import first_damage, parse, unlike
from tidelake.archives.readers.layout import Layout, SourceObject, check_place, damaged, message_batch, refused, sound
from tidelake.archives.readers.lines import Block, blocks

_NAME = "lenses-json"
_REMEDY = "the connector needs store.envelope = true, and ByteArrayConverter for keys and values"
_METADATA = pa.struct([("timestamp", pa.int64()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
_MEMBERS = pa.schema([("key", pa.string()), ("value", pa.string()), ("metadata", _METADATA)])


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    for block in blocks(path, source):
        if block.first == 1 and unlike(block, ("key", "value", "metadata")):
            raise refused(source, _NAME, "its lines are not records of key, value and metadata", _REMEDY)
        yield _batch(block, source)


def _batch(block: Block, source: SourceObject) -> pa.RecordBatch:
    try:
        rows = parse(block.data, _MEMBERS)
        key, value = (decode(rows.column(name).combine_chunks()) for name in ("key", "value"))
    except (pa.ArrowInvalid, Base64Error, UnicodeDecodeError) as e:
        raise damaged(source, *first_damage(block, ("metadata", "offset"), ("key", "value"), str(e))) from e
    metadata = rows.column("metadata").combine_chunks()
    offset, stamps, topic, partition = (pc.struct_field(metadata, name) for name in ("offset", "timestamp", "topic", "partition"))
    if len(rows) != block.lines or not sound(offset):
        raise damaged(source, *first_damage(block, ("metadata", "offset"), ("key", "value"), f"{len(rows)} records"))
    check_place(_NAME, topic, partition, source)
    return message_batch(source, offset, value, timestamp_ms=stamps, key=key)


LAYOUT = Layout(
    read=read, extensions=frozenset({"json", "jsonl"}), number_is_last_offset=True, losses={"LOSSY_LAYOUT": "headers are not read"}
)
