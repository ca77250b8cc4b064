"""Aiven's S3 connector, `format.output.type=jsonl` with JsonConverter (archives.md 2, 9).

    {"key":"k"|null,"value":{"data":[…],"id":0}|null,"offset":n,"timestamp":"2026-01-05T10:50:00.292Z"}

one a line. The value is a JSON object as the converter wrote it anew: members in another order, numbers in another form, and of a message
that holds several documents the first one only. Keys are text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tidelake.archives.aiven_records import JSON, batch_of, check_members
from tidelake.archives.lines import blocks
from tidelake.archives.shape import JSON_PROTOCOLS, Layout, SourceObject

_NAME = "aiven-jsonl-nested"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """MESSAGE batches. Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT)."""
    for block in blocks(path, source):
        if block.data.strip():
            if block.first == 1:
                check_members(_NAME, JSON, block, source)
            yield batch_of(JSON, block, source)


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"jsonl", "json", "ndjson"}),
    protocols=JSON_PROTOCOLS,
    losses={
        "REORDERED_JSON": "members in another order, numbers in another form, and of several documents in a message the first one only",
        "LOSSY_LAYOUT": "headers are not read",
    },
)
