"""Confluent's S3 connector, ByteArrayFormat, for Open Protocol, whose values and keys contain their own lengths (docs/reference/archives.md
3).

The key objects must exist beside the values (store.kafka.keys), as `.bin` or JSON. Offsets and headers are as in layout confluent-json;
`format.bytearray.separator` must be its default.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.json_strings import base64_strings
from tidelake.archives.readers.layout import Layout, SourceObject
from tidelake.archives.readers.raw_records import open_keys, open_values
from tidelake.archives.readers.views import messages

_NAME = "confluent-bin-open"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    keys = {"bin": partial(open_keys, _NAME), "json": partial(base64_strings, _NAME)}
    return messages(_NAME, path, source, open_values(_NAME, path, source), keys)


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"bin"}),
    number_is_first_offset=True,
    has_keys=False,
    has_siblings=True,
    protocols=frozenset({"open"}),
    losses={
        "NOT_BINARY_SAFE": "a message that is not valid Open Protocol, or a claim check, makes its object unreadable",
        "TOMBSTONES_LOST": "a null value stops the connector, or is left out",
        "KEYS_LOST": "keys are archived with store.kafka.keys only",
        "LOSSY_LAYOUT": "no timestamps, and headers with store.kafka.headers only",
    },
)
