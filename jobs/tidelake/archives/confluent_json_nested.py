"""Confluent's S3 connector, JsonFormat with JsonConverter; also MSK Data Delivery with the same (docs/reference/archives.md 1, 9).

    {"data":[…],"database":"test","id":0}

One value per line: a JSON object as the converter rewrote it, with members in another order, numbers in another form, and only the first
document of a message with several documents. Offsets, keys and headers are as in layout confluent-json; keys are JSON strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.json_strings import JSON_FORMAT_LOSSES, objects, text_strings
from tidelake.archives.readers.layout import JSON_PROTOCOLS, Layout, SourceObject
from tidelake.archives.readers.views import messages

_NAME = "confluent-json-nested"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    return messages(_NAME, path, source, objects(_NAME, path, source), {"json": partial(text_strings, _NAME)})


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"json"}),
    number_is_first_offset=True,
    has_keys=False,
    has_siblings=True,
    protocols=JSON_PROTOCOLS,
    losses={
        "REORDERED_JSON": "members in another order, numbers in another form, and of several documents in a message the first one only",
        **JSON_FORMAT_LOSSES,
    },
)
