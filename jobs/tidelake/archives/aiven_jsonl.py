"""Aiven's S3 connector, `format.output.type=jsonl` with ByteArrayConverter (docs/reference/archives.md 2, 9).

    {"key":"<base64>"|null,"value":"<base64>"|null,"offset":n,"timestamp":"2026-01-05T10:50:00.292Z","headers":[{"key":"k","value":"<base64>"}]}

One record per line, members in any order, 0 or 3 fraction digits. `offset` and `value` are required; key, timestamp, headers are optional.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.aiven_records import BASE64, batch_of, check_members
from tidelake.archives.readers.layout import OPTIONAL, Layout, SourceObject
from tidelake.archives.readers.lines import blocks

_NAME = "aiven-jsonl"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    for block in blocks(path, source):
        if block.data.strip():
            if block.first == 1:
                check_members(_NAME, BASE64, block, source)
            yield batch_of(BASE64, block, source)


LAYOUT = Layout(read=read, extensions=frozenset({"jsonl", "json", "ndjson"}), optional=OPTIONAL)
