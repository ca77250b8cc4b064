"""Aiven's S3 connector, `format.output.type=jsonl` with ByteArrayConverter (archives.md 2, 9).

    {"key":"<base64>"|null,"value":"<base64>"|null,"offset":n,"timestamp":"2026-01-05T10:50:00.292Z","headers":[{"key":"k","value":"<base64>"}]}

one a line, members in any order, 0 or 3 fraction digits. `offset` and `value` must be there; key, timestamp, headers may be left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tidelake.archives.base64text import Base64Error, decode, is_base64
from tidelake.archives.lines import Block, blocks
from tidelake.archives.shape import Layout, SourceObject, damaged, message_batch, refused, sound
from tidelake.errors import OrderError
from tidelake.event import HEADERS

_NAME = "aiven-jsonl"
_REMEDY = (
    'the connector needs format.output.fields = "key,value,offset,timestamp,headers" and ByteArrayConverter for keys, values and headers'
)
_MEMBERS = pa.schema(
    [
        ("key", pa.string()),
        ("value", pa.string()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))),
    ]
)


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """MESSAGE batches. Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT)."""
    for block in blocks(path, source):
        if block.data.strip():
            if block.first == 1:
                _check_members(block, source)
            yield _batch(block, source)


def _batch(block: Block, source: SourceObject) -> pa.RecordBatch:
    try:
        rows = _parse(block.data)
        columns = {name: rows.column(name).combine_chunks() for name in _MEMBERS.names}
        key, value, headers = decode(columns["key"]), decode(columns["value"]), _headers(columns["headers"])
    except (pa.ArrowInvalid, Base64Error, UnicodeDecodeError) as e:
        raise _damage(block, source) or damaged(source, f"lines {block.first} to {block.first + block.lines - 1}", str(e)) from e
    if (len(rows) != block.lines or not sound(columns["offset"])) and (damage := _damage(block, source)):
        raise damage
    timestamp_ms = columns["timestamp"].cast(pa.int64())
    return message_batch(source, columns["offset"], value, timestamp_ms=timestamp_ms, key=key, headers=headers)


def _parse(data: bytes) -> pa.Table:
    return pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pj.ParseOptions(explicit_schema=_MEMBERS, unexpected_field_behavior="ignore"),
    )


def _headers(column: pa.Array) -> pa.Array:
    """List of {key, base64 value} → HEADERS."""
    if column.null_count == len(column):
        return pa.nulls(len(column), HEADERS)
    pairs = column.values
    decoded = pa.StructArray.from_arrays([pc.struct_field(pairs, "key"), decode(pc.struct_field(pairs, "value"))], names=["key", "value"])
    return pa.ListArray.from_arrays(column.offsets, decoded, mask=column.is_null()).cast(HEADERS)


def _check_members(block: Block, source: SourceObject) -> None:
    """Refuse an object whose first records show that the connector was set up otherwise."""
    lines = block.sample()
    if lines[0].strip() == b"[":
        raise refused(source, _NAME, "it is one JSON array", "the connector needs format.output.type = jsonl")
    records = [record for line in lines if (record := _record(line)) is not None]
    problems = [_unusable(record) for record in records]
    if problems and all(problems):
        raise refused(source, _NAME, str(problems[0]), _REMEDY)


def _unusable(record: Any) -> str:
    """Why a record shows other settings than we need; empty if it does not."""
    if not isinstance(record, dict):
        return "a line holds a bare value, not a record"
    missing = [name for name in ("offset", "value") if name not in record]
    if missing:
        return f"its records have no {' and no '.join(missing)}"
    texts = [record.get("key"), record["value"], *(header.get("value") for header in record.get("headers") or [])]
    if any(text is not None and (not isinstance(text, str) or text[:1] in ("{", "[")) for text in texts):
        return "keys, values or headers are not base64"
    return ""


def _damage(block: Block, source: SourceObject) -> OrderError | None:
    """The first damaged line of a block, by looking at every one."""
    for number, line in enumerate(block.split(), block.first):
        if line.strip() and (problem := _problem(_record(line))):
            return damaged(source, f"line {number}", problem)
    return None


def _record(line: bytes) -> Any:
    """The line's JSON value, None where it is not JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def _problem(record: Any) -> str:
    if not isinstance(record, dict):
        return "not a JSON object"
    offset = record.get("offset")
    if not isinstance(offset, int) or not 0 <= offset < 1 << 63:
        return f"offset is {offset!r}"
    headers = record.get("headers") or []
    texts = [record.get("key"), record.get("value"), *(header.get("value") for header in headers)]
    if any(text is not None and not (isinstance(text, str) and is_base64(text.encode())) for text in texts):
        return "key, value or a header is not base64"
    return ""


LAYOUT = Layout(read=read, extensions=frozenset({"jsonl", "json", "ndjson"}))
