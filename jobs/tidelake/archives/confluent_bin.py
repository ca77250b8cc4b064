"""Confluent's S3 connector, ByteArrayFormat, for protocols of text: one value per line (docs/reference/archives.md 1, 3, 9).

A message with a newline inside becomes several records, and the offsets after it are wrong. TiDB's Canal-JSON has no newlines inside,
messages of other writers may. Offsets, keys and headers are as in layout confluent-json; `format.bytearray.separator` must be its default.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.json_strings import base64_strings
from tidelake.archives.readers.layout import TEXT_PROTOCOLS, Layout, SourceObject
from tidelake.archives.readers.raw_records import lines
from tidelake.archives.readers.views import messages

_NAME = "confluent-bin"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    return messages(_NAME, path, source, lines(path, source), {"bin": lines, "json": partial(base64_strings, _NAME)})


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"bin"}),
    number_is_first_offset=True,
    has_keys=False,
    has_siblings=True,
    protocols=TEXT_PROTOCOLS,
    losses={
        "NOT_BINARY_SAFE": "a message with a newline inside is split, and the offsets after it are wrong",
        "TOMBSTONES_LOST": "a null value stops the connector, or is left out",
        "KEYS_LOST": "keys are archived with store.kafka.keys only",
        "LOSSY_LAYOUT": "no timestamps, and headers with store.kafka.headers only",
    },
)
