"""Aiven's S3 connector, `format.output.type=jsonl` with StringConverter (archives.md 2, 9).

    {"key":"k"|null,"value":"{\\"id\\":0}"|null,"offset":n,"timestamp":"2026-01-05T10:50:00.292Z"}

one a line. Bytes that are not UTF-8 were replaced by the converter, so only protocols of text may be archived so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tidelake.archives.aiven_records import TEXT, batch_of, check_members
from tidelake.archives.lines import blocks
from tidelake.archives.shape import TEXT_PROTOCOLS, Layout, SourceObject

_NAME = "aiven-jsonl-string"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """MESSAGE batches. Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT)."""
    for block in blocks(path, source):
        if block.data.strip():
            if block.first == 1:
                check_members(_NAME, TEXT, block, source)
            yield batch_of(TEXT, block, source)


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"jsonl", "json", "ndjson"}),
    protocols=TEXT_PROTOCOLS,
    losses={
        "NOT_BINARY_SAFE": "bytes that are not UTF-8 were replaced",
        "LOSSY_LAYOUT": "headers are not read",
    },
)
