"""Lenses' S3 sink (Stream Reactor), `STOREAS AVRO` with `store.envelope = true` and ByteArrayConverter (docs/reference/archives.md 4).

    { key: bytes, value: bytes, headers: map, metadata: { timestamp: long (epoch ms), topic, partition, offset } }

Each member may be a union with null. The offset in an object's name is its last record's, so only the offsets in the records are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.avro_container import Wanted, read_columns
from tidelake.archives.readers.layout import Layout, SourceObject, check_offsets, check_place, message_batch
from tidelake.archives.scan.avro_columns import BYTES, LONG, PAIRS
from tidelake.history.event import HEADERS

_NAME = "lenses-avro"
_REMEDY = "the connector needs store.envelope = true, and ByteArrayConverter for keys and values"
_OFFSET, _STAMP, _TOPIC, _PARTITION = (("metadata", name) for name in ("offset", "timestamp", "topic", "partition"))
_WANTED: Wanted = {
    ("key",): BYTES,
    ("value",): BYTES,
    ("headers",): PAIRS,
    _OFFSET: LONG,
    _STAMP: LONG,
    _TOPIC: BYTES,
    _PARTITION: LONG,
}


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    done = 0
    for found in read_columns(_NAME, path, source, _WANTED, (("value",), _OFFSET, _TOPIC, _PARTITION), _REMEDY):
        offset, headers = found[_OFFSET], found.get(("headers",))
        check_offsets(offset, source, done)
        check_place(_NAME, found[_TOPIC], found[_PARTITION], source)
        headers = None if headers is None else headers.cast(HEADERS)
        yield message_batch(source, offset, found["value",], timestamp_ms=found.get(_STAMP), key=found.get(("key",)), headers=headers)
        done += len(offset)


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"avro"}),
    number_is_last_offset=True,
    losses={"LOSSY_LAYOUT": "headers that are written as a record instead of a map are not read"},
)
