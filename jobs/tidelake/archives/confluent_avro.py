"""Confluent's S3 connector, AvroFormat with ByteArrayConverter: Avro containers of bytes (docs/reference/archives.md 1, 9).

    container of union {null, bytes}

Offsets, keys and headers are as in layout confluent-json; key objects are Avro or JSON. Containers of decoded rows, which AvroFormat writes
with AvroConverter, are refused, because the bytes of the messages are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.avro_container import read_columns
from tidelake.archives.readers.json_strings import base64_strings
from tidelake.archives.readers.layout import Layout, SourceObject
from tidelake.archives.readers.views import messages
from tidelake.archives.scan.avro_columns import BYTES

_NAME = "confluent-avro"
_REMEDY = "the connector needs AvroFormat and value.converter = ByteArrayConverter (key.converter, too, with store.kafka.keys)"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    return messages(_NAME, path, source, _values(path, source), {"avro": _values, "json": partial(base64_strings, _NAME)})


def _values(path: Path, source: SourceObject) -> Iterator[pa.Array]:
    for found in read_columns(_NAME, path, source, {(): BYTES}, ((),), _REMEDY):
        yield found[()]


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"avro"}),
    number_is_first_offset=True,
    has_keys=False,
    has_siblings=True,
    losses={
        "TOMBSTONES_LOST": "a null value stops the connector, or is left out",
        "KEYS_LOST": "keys are archived with store.kafka.keys only",
        "LOSSY_LAYOUT": "no timestamps, and headers with store.kafka.headers only",
    },
)
