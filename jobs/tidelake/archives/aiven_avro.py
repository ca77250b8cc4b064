"""Aiven's S3 connector, `format.output.type=avro`: Avro containers (docs/reference/archives.md 2, 9).

The codec is in the container; the object's name does not matter.

    connector_records { key: bytes, value: bytes, offset: long, timestamp: long (epoch ms), headers: map<bytes> }

Each member may be a union with null. `offset` and `value` are required; key, timestamp, headers are optional.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.avro_container import Wanted, read_columns
from tidelake.archives.readers.layout import OPTIONAL, Layout, SourceObject, check_offsets, message_batch
from tidelake.archives.scan.avro_columns import BYTES, LONG, PAIRS
from tidelake.history.event import HEADERS

_NAME = "aiven-avro"
_REMEDY = (
    'the connector needs format.output.fields = "key,value,offset,timestamp,headers" and ByteArrayConverter for keys, values and headers'
)
_WANTED: Wanted = {("key",): BYTES, ("value",): BYTES, ("offset",): LONG, ("timestamp",): LONG, ("headers",): PAIRS}
_NEEDED = (("offset",), ("value",))


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    done = 0
    for found in read_columns(_NAME, path, source, _WANTED, _NEEDED, _REMEDY):
        offset, headers = found["offset",], found.get(("headers",))
        check_offsets(offset, source, done)
        yield message_batch(
            source,
            offset,
            found["value",],
            timestamp_ms=found.get(("timestamp",)),
            key=found.get(("key",)),
            headers=None if headers is None else headers.cast(HEADERS),
        )
        done += len(offset)


LAYOUT = Layout(read=read, extensions=frozenset({"avro"}), optional=OPTIONAL)
