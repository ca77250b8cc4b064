"""Confluent's S3 connector, JsonFormat with ByteArrayConverter; also MSK Data Delivery with the same (docs/reference/archives.md 1, 9).

    "<base64 of the value>"

One value per line. The object holds values only, and no timestamps; objects with keys and headers may exist beside it. Record i has the
offset number in the name + i. The connector guarantees this only if it neither drops records nor sorts late ones into other hours. Every
such hour therefore has a finding, and objects that contradict each other block.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.json_strings import JSON_FORMAT_LOSSES, base64_strings
from tidelake.archives.readers.layout import Layout, SourceObject
from tidelake.archives.readers.views import messages

_NAME = "confluent-json"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    return messages(_NAME, path, source, base64_strings(_NAME, path, source), {"json": partial(base64_strings, _NAME)})


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"json"}),
    number_is_first_offset=True,
    has_keys=False,
    has_siblings=True,
    losses=JSON_FORMAT_LOSSES,
)
