"""Confluent's S3 connector, JsonFormat with ByteArrayConverter; also MSK Data Delivery with the same (archives.md 1, 9).

    "<base64 of the value>"

one a line. The object holds values only: no key, no timestamp; record i has the offset number in the name + i. That is the
connector's promise only where it neither drops records nor sorts late ones into other hours, so every such hour carries a finding,
and objects that contradict each other block.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidelake.archives.base64text import Base64Error, decode_run
from tidelake.archives.lines import Block, blocks
from tidelake.archives.shape import Layout, SourceObject, damaged, message_batch, refused

_NAME = "confluent-json"
_QUOTE, _END = ord('"'), ord("\n")


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """MESSAGE batches. Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT)."""
    for block in blocks(path, source):
        if block.first == 1 and not any(_is_string(line) for line in block.sample()):
            raise refused(
                source, _NAME, "its lines are not JSON strings", "the connector needs JsonFormat and value.converter = ByteArrayConverter"
            )
        first = source.number + block.first - 1
        values = _values(block, source)
        yield message_batch(source, pa.array(np.arange(first, first + len(values), dtype=np.int64)), values)


def _values(block: Block, source: SourceObject) -> pa.Array:
    """The lines' base64 text without quotes is one run of characters."""
    text = np.frombuffer(block.data, np.uint8)
    ends = np.append(np.flatnonzero(text == _END), len(text))
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts - 2
    if (lengths < 0).any() or (text[starts] != _QUOTE).any() or (text[ends - 1] != _QUOTE).any():
        raise damaged(source, f"line {block.first + _first_other(block)}", "not a JSON string")
    run = text[(text != _QUOTE) & (text != _END)]
    offsets = np.zeros(len(ends) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    try:
        if offsets[-1] != len(run):
            raise Base64Error(next(i for i, line in enumerate(block.split()) if line.count(b'"') != 2))
        buffers = decode_run(run, offsets)
    except Base64Error as e:
        raise damaged(source, f"line {block.first + e.row}", "not base64") from e
    return pa.Array.from_buffers(pa.binary(), len(ends), [None, *buffers])


def _first_other(block: Block) -> int:
    return next(i for i, line in enumerate(block.split()) if not _is_string(line))


def _is_string(line: bytes) -> bool:
    return len(line) >= 2 and line.startswith(b'"') and line.endswith(b'"')


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"json"}),
    number_is_first_offset=True,
    has_keys=False,
    losses="no keys, timestamps and headers, and a null value cannot be archived",
)
