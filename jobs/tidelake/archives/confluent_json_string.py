r"""Confluent's S3 connector, JsonFormat with StringConverter; also MSK Data Delivery with the same (docs/reference/archives.md 1, 9).

    "{\"id\":0,\"database\":\"test\"}"

One value per line: its text in a JSON string. The converter replaces bytes that are not UTF-8, so only protocols of text may be archived
this way. Offsets, keys and headers are as in layout confluent-json.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.json_strings import JSON_FORMAT_LOSSES, text_strings
from tidelake.archives.readers.layout import TEXT_PROTOCOLS, Layout, SourceObject
from tidelake.archives.readers.views import messages

_NAME = "confluent-json-string"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    return messages(_NAME, path, source, text_strings(_NAME, path, source), {"json": partial(text_strings, _NAME)})


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"json"}),
    number_is_first_offset=True,
    has_keys=False,
    has_siblings=True,
    protocols=TEXT_PROTOCOLS,
    losses={
        "NOT_BINARY_SAFE": "bytes that are not UTF-8 were replaced",
        **JSON_FORMAT_LOSSES,
    },
)
