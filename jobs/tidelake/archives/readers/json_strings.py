"""Read objects with one JSON value per line, as Connect's JsonFormat writes them, as columns of bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from tidelake.archives.readers.base64_text import Base64Error, decode_run, is_base64
from tidelake.archives.readers.layout import SourceObject, damaged, refused
from tidelake.archives.readers.lines import Block, blocks
from tidelake.wire.kernels.arrays import Longs

_QUOTE, _END, _OPEN, _CLOSE = b'"\n{}'
JSON_FORMAT_LOSSES = {
    "TOMBSTONES_LOST": "a null value stops the connector, or is left out",
    "KEYS_LOST": "keys are archived with store.kafka.keys only",
    "LOSSY_LAYOUT": "no timestamps, and headers with store.kafka.headers only",
}
_WRAPPED = pa.schema([("v", pa.string())])


def base64_strings(layout: str, path: Path, source: SourceObject) -> Iterator[pa.Array]:
    """Yield JSON strings of base64 as bytes.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    remedy = "the connector needs JsonFormat and value.converter = ByteArrayConverter"
    for block in _checked(layout, path, source, is_string, "its lines are not JSON strings", remedy):
        yield _base64(block, source)


def text_strings(layout: str, path: Path, source: SourceObject) -> Iterator[pa.Array]:
    """Yield the text of JSON strings in UTF-8. Raises what `base64_strings` raises."""
    remedy = 'the connector needs JsonFormat and value.converter = StringConverter; for base64 set layout = "confluent-json"'
    for block in _checked(layout, path, source, _is_other_text, "its lines are not JSON strings of text", remedy):
        yield _texts(block, source)


def objects(layout: str, path: Path, source: SourceObject) -> Iterator[pa.Array]:
    """Yield the unchanged text of JSON objects. Raises what `base64_strings` raises."""
    remedy = 'the connector needs JsonFormat and value.converter = JsonConverter; for strings set layout = "confluent-json-string"'
    for block in _checked(layout, path, source, _is_object, "its lines are not JSON objects", remedy):
        yield _whole(block, source)


def _checked(layout: str, path: Path, source: SourceObject, fits: Callable[[bytes], bool], problem: str, remedy: str) -> Iterator[Block]:
    """Yield the object's lines. Refuses an object if none of its first lines fits."""
    for block in blocks(path, source):
        if block.first == 1 and not any(map(fits, block.sample())):
            raise refused(source, layout, problem, remedy)
        yield block


def _base64(block: Block, source: SourceObject) -> pa.Array:
    """Decode a block's lines. Their base64 text without quotes is one run of characters."""
    text, starts, ends = _lines(block)
    lengths = ends - starts - 2
    if (lengths < 0).any() or (text[starts] != _QUOTE).any() or (text[ends - 1] != _QUOTE).any():
        raise damaged(source, f"line {_first(block, lambda line: not is_string(line))}", "not a JSON string")
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


def _texts(block: Block, source: SourceObject) -> pa.Array:
    """Read a block's JSON strings. Every line is wrapped as member of an object, so that Arrow's reader of JSON lines accepts it."""
    wrapped = b'{"v":' + block.data.replace(b"\n", b'}\n{"v":') + b"}"
    try:
        rows = pj.read_json(
            pa.BufferReader(wrapped),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(wrapped) + 1),
            parse_options=pj.ParseOptions(explicit_schema=_WRAPPED, unexpected_field_behavior="error"),
        )
        column = rows.column("v").combine_chunks()
        column.validate(full=True)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        column = pa.nulls(0, pa.string())
    if len(column) != block.lines or column.null_count:
        raise damaged(source, f"line {_first(block, lambda line: not _is_text(line))}", "not a JSON string")
    return column.cast(pa.binary())


def _whole(block: Block, source: SourceObject) -> pa.Array:
    text, starts, ends = _lines(block)
    if (ends == starts).any() or (text[starts] != _OPEN).any() or (text[ends - 1] != _CLOSE).any():
        raise damaged(source, f"line {_first(block, lambda line: not _is_object(line))}", "not a JSON object")
    offsets = np.zeros(len(ends) + 1, np.int32)
    np.cumsum(ends - starts, out=offsets[1:])
    return pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text[text != _END])])


def _lines(block: Block) -> tuple[npt.NDArray[np.uint8], Longs, Longs]:
    """Return the block's bytes, and where its lines start and end."""
    text = np.frombuffer(block.data, np.uint8)
    ends = np.append(np.flatnonzero(text == _END), len(text))
    return text, np.append(0, ends[:-1] + 1), ends


def _first(block: Block, wrong: Callable[[bytes], bool]) -> int:
    """Return the number of the first wrong line; of the block's first line if none is wrong."""
    return next((number for number, line in enumerate(block.split(), block.first) if wrong(line)), block.first)


def is_string(line: bytes) -> bool:
    """Return whether a line looks like a JSON string."""
    return len(line) >= 2 and line.startswith(b'"') and line.endswith(b'"')


def _is_text(line: bytes) -> bool:
    try:
        value = json.loads(line)
        return isinstance(value, str) and value.encode() is not None  # half of a surrogate pair is not text
    except ValueError:
        return False


def _is_other_text(line: bytes) -> bool:
    return is_string(line) and not is_base64(line[1:-1])


def _is_object(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}")
