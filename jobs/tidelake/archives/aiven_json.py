"""Aiven's S3 connector, `format.output.type=json` with ByteArrayConverter: jsonl's records as one array (docs/reference/archives.md 2).

    [
    {"key":"<base64>"|null,"value":"<base64>"|null,"offset":n,"timestamp":"…","headers":[…]},
    …
    ]

The connector writes one record per line. Other forms of the array are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tidelake.archives.readers.aiven_records import BASE64, batch_of, check_members
from tidelake.archives.readers.layout import OPTIONAL, Layout, SourceObject, refused, unreadable
from tidelake.archives.readers.lines import Block, blocks

_NAME = "aiven-json"


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    closed = False
    for block in blocks(path, source):
        data, first = block.data, block.first
        if first == 1:
            head, _, data = data.partition(b"\n")
            first = 2
            if head.strip() != b"[":
                raise refused(
                    source, _NAME, "its first line is not [", "the connector needs format.output.type = json; for lines set jsonl"
                )
        if closed and data.strip():
            raise unreadable(source, "data follows the end of the array")
        data, closed = _records(data, closed)
        if data:
            records = Block(data, first)
            if first == 2:
                check_members(_NAME, BASE64, records, source)
            yield batch_of(BASE64, records, source)
    if not closed:
        raise unreadable(source, "cut short: the array has no end")


def _records(data: bytes, closed: bool) -> tuple[bytes, bool]:
    """Return the lines of records without brackets and commas, and whether the array ended. JSON strings contain no line ends."""
    data = data.rstrip(b"\n")
    if data == b"]" or data.endswith(b"\n]"):
        data, closed = data[:-2], True
    return data.replace(b"},\n", b"}\n").removesuffix(b","), closed


LAYOUT = Layout(read=read, extensions=frozenset({"json"}), optional=OPTIONAL)
