"""Aiven's JSON records, whose keys and values are base64, text or JSON, depending on the converter (docs/reference/archives.md 2, 9).

    {"key":…,"value":…,"offset":n,"timestamp":"2026-01-05T10:50:00.292Z","headers":[{"key":"k","value":"<base64>"}]}

Members are in any order, timestamps have 0 or 3 fraction digits. `offset` and `value` are required.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidelake.archives.readers.base64_text import Base64Error, decode, is_base64
from tidelake.archives.readers.json_records import parse, record_of
from tidelake.archives.readers.layout import SourceObject, damaged, message_batch, refused, sound
from tidelake.archives.readers.lines import Block, blocks
from tidelake.archives.readers.views import header_lists
from tidelake.archives.scan import aiven_lines
from tidelake.archives.scan.json_members import member
from tidelake.errors import OrderError
from tidelake.wire.kernels.spans import column, frozen

BASE64, TEXT, JSON = "base64", "text", "JSON"
_CONVERTERS = {BASE64: "ByteArrayConverter for keys, values and headers", TEXT: "StringConverter", JSON: "JsonConverter for values"}
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
_TIMES = [("offset", pa.int64()), ("timestamp", pa.timestamp("ms", "UTC"))]
_MEMBERS = {
    BASE64: pa.schema([("key", pa.string()), ("value", pa.string()), *_TIMES, ("headers", _HEADERS)]),
    TEXT: pa.schema([("key", pa.string()), ("value", pa.string()), *_TIMES]),
    JSON: pa.schema([("key", pa.string()), *_TIMES]),
}


def lines_of(layout: str, form: str, path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's lines as MESSAGE batches, one record per line.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    for block in blocks(path, source):
        if block.data.strip():
            if block.first == 1:
                check_members(layout, form, block, source)
            batch = batch_of(form, block, source)
            del block  # not held while the caller works on the messages
            yield batch


def check_members(layout: str, form: str, block: Block, source: SourceObject) -> None:
    """Raise ConfigError (ARCHIVE_LAYOUT) if all first records of an object show that the connector has other settings."""
    lines = block.sample()
    if lines[0].strip() == b"[":
        raise refused(source, layout, "it is one JSON array", 'set layout = "aiven-json", or the connector\'s format.output.type = jsonl')
    records = [record for line in lines if (record := record_of(line)) is not None]
    problems = [_unusable(record, form) for record in records]
    if problems and all(problems):
        fields = "key,value,offset,timestamp" + (",headers" if form == BASE64 else "")
        remedy = f'the connector needs format.output.fields = "{fields}" and {_CONVERTERS[form]}'
        raise refused(source, layout, str(problems[0]), remedy)


def batch_of(form: str, block: Block, source: SourceObject) -> pa.RecordBatch:
    """Return the block's records as a MESSAGE batch. Raises OrderError (DAMAGED_OBJECT)."""
    if form == BASE64 and (plain := aiven_lines.records(block.data, block.lines)) is not None:
        members = {"timestamp_ms": plain.timestamp_ms, "key": plain.key, "headers": plain.headers}
        return message_batch(source, plain.offset, plain.value, **members)
    try:
        rows = parse(block.data, _MEMBERS[form])
        columns = {name: rows.column(name).combine_chunks() for name in _MEMBERS[form].names}
        key = _bytes(columns["key"], form)
        value = _raw_values(block, source) if form == JSON else _bytes(columns["value"], form)
        headers = header_lists(columns["headers"]) if form == BASE64 else None
    except (pa.ArrowInvalid, Base64Error, UnicodeDecodeError) as e:
        raise _damage(block, source, form) or damaged(source, f"lines {block.first} to {block.first + block.lines - 1}", str(e)) from e
    if (len(rows) != block.lines or not sound(columns["offset"])) and (damage := _damage(block, source, form)):
        raise damage
    timestamp_ms = columns["timestamp"].cast(pa.int64())
    return message_batch(source, columns["offset"], value, timestamp_ms=timestamp_ms, key=key, headers=headers)


def _bytes(texts: pa.Array, form: str) -> pa.Array:
    if form == BASE64:
        return decode(texts)
    texts.validate(full=True)
    return texts.cast(pa.binary())


def _raw_values(block: Block, source: SourceObject) -> pa.Array:
    """Return the values' JSON text unchanged."""
    data = frozen(block.data)
    ends = np.append(np.flatnonzero(data == ord("\n")), len(data))
    starts = np.append(0, ends[:-1] + 1)
    filled = ends > starts
    found = member(data, starts[filled], ends[filled], b"value")
    if isinstance(found, int):
        raise damaged(source, f"line {block.first + int(np.flatnonzero(filled)[found])}", "not a JSON object")
    return column(data, *found)


def _unusable(record: Any, form: str) -> str:
    """Return why a record shows other settings than needed; empty if it does not."""
    if not isinstance(record, dict):
        return "a line holds a bare value, not a record"
    missing = [name for name in ("offset", "value") if name not in record]
    if missing:
        return f"its records have no {' and no '.join(missing)}"
    value, texts = record["value"], [record.get("key"), record["value"]]
    if form == BASE64:
        texts += [header.get("value") for header in record.get("headers") or []]
        if any(text is not None and (not isinstance(text, str) or text[:1] in ("{", "[")) for text in texts):
            return "keys, values or headers are not base64"
    if form == TEXT and not (value is None or (isinstance(value, str) and (not value or not is_base64(value.encode())))):
        return "values are not text"
    if form == JSON and not isinstance(value, dict | None):
        return "values are not JSON objects"
    return ""


def _damage(block: Block, source: SourceObject, form: str) -> OrderError | None:
    """Return the error for the first damaged line of a block; checks every line."""
    for number, line in enumerate(block.split(), block.first):
        if line.strip() and (problem := _problem(record_of(line), form)):
            return damaged(source, f"line {number}", problem)
    return None


def _problem(record: Any, form: str) -> str:
    if not isinstance(record, dict):
        return "not a JSON object"
    offset = record.get("offset")
    if not isinstance(offset, int) or not 0 <= offset < 1 << 63:
        return f"offset is {offset!r}"
    texts = [record.get("key")] if form == JSON else [record.get("key"), record.get("value")]
    if form == BASE64:
        texts += [header.get("value") for header in record.get("headers") or []]
        if any(text is not None and not (isinstance(text, str) and is_base64(text.encode())) for text in texts):
            return "key, value or a header is not base64"
    return "key or value is not text" if any(not isinstance(text, str | None) for text in texts) else ""
