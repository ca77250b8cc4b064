"""Aiven's S3 connector, `format.output.type=csv` with ByteArrayConverter and base64 values (docs/reference/archives.md 2, 9).

    <base64 key>,<base64 value>,<offset>,<timestamp, epoch ms>[,<headers>]

One record per line, with the fields in this order, without a header line. Headers are `<base64 key>:<base64 value>;` repeated. Null and
empty are the same empty field, so an empty key, value or header value is read as null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from tidelake.archives.readers.base64_text import Base64Error, decode, is_base64
from tidelake.archives.readers.layout import OPTIONAL, Layout, SourceObject, damaged, message_batch, refused, sound
from tidelake.archives.readers.lines import Block, blocks
from tidelake.errors import OrderError
from tidelake.history.event import HEADERS

_NAME = "aiven-csv"
_COLUMNS = {"key": pa.string(), "value": pa.string(), "offset": pa.int64(), "timestamp": pa.int64(), "headers": pa.string()}
_COUNTS = (4, 5)
_OFFSET, _TIMESTAMP = re.compile(rb"\d{1,19}"), re.compile(rb"(-?\d{1,18})?")
_NULL = pa.scalar(None, pa.string())


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    columns = 0
    for block in blocks(path, source):
        columns = columns or _columns(block, source)
        yield _batch(block, columns, source)


def _columns(block: Block, source: SourceObject) -> int:
    """Return the number of columns of the object, from its first records."""
    counts = [line.count(b",") + 1 for line in block.sample() if not _problem(line)]
    if not counts:
        raise refused(
            source,
            _NAME,
            "its lines are not key,value,offset,timestamp[,headers]",
            'the connector needs format.output.fields = "key,value,offset,timestamp", in this order, and base64 values',
        )
    return counts[0]


def _batch(block: Block, columns: int, source: SourceObject) -> pa.RecordBatch:
    names = list(_COLUMNS)[:columns]
    try:
        rows = _parse(block.data, names)
        key, value = (decode(rows.column(name).combine_chunks()) for name in ("key", "value"))
        headers = _headers(rows.column("headers").combine_chunks()) if columns > 4 else None
    except (pa.ArrowInvalid, Base64Error) as e:
        raise _damage(block, source) or damaged(source, f"lines {block.first} to {block.first + block.lines - 1}", str(e)) from e
    offset = rows.column("offset").combine_chunks()
    if (len(rows) != block.lines or not sound(offset)) and (damage := _damage(block, source)):
        raise damage
    return message_batch(source, offset, value, timestamp_ms=rows.column("timestamp").combine_chunks(), key=key, headers=headers)


def _parse(data: bytes, names: list[str]) -> pa.Table:
    return pv.read_csv(
        pa.BufferReader(data),
        read_options=pv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        parse_options=pv.ParseOptions(quote_char=False, ignore_empty_lines=False),
        convert_options=pv.ConvertOptions(
            column_types=_COLUMNS, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=True
        ),
    )


def _headers(column: pa.Array) -> pa.Array:
    """Convert `k:v;k:v;` to HEADERS. An empty field is a record without headers."""
    text = pc.utf8_rtrim(pc.fill_null(column, ""), ";")
    filled = pc.not_equal(text, "")
    lists = pc.split_pattern(text.filter(filled), ";")
    pairs = pc.split_pattern(lists.flatten(), ":")
    keys, values = (pc.list_element(pairs, i) for i in (0, 1))
    values = pc.if_else(pc.equal(values, ""), _NULL, values)
    decoded = pa.StructArray.from_arrays([decode(keys).cast(pa.string()), decode(values)], names=["key", "value"])
    counts = np.zeros(len(column) + 1, np.int32)
    counts[1:][filled.to_numpy(zero_copy_only=False)] = pc.list_value_length(lists)
    return pa.ListArray.from_arrays(pa.array(np.cumsum(counts, dtype=np.int32)), decoded).cast(HEADERS)


def _damage(block: Block, source: SourceObject) -> OrderError | None:
    """Return the error for the first damaged line of a block; checks every line."""
    for number, line in enumerate(block.split(), block.first):
        if problem := _problem(line):
            return damaged(source, f"line {number}", problem)
    return None


def _problem(line: bytes) -> str:
    fields = line.split(b",")
    if len(fields) not in _COUNTS:
        return f"{len(fields)} fields instead of {_COUNTS[0]} or {_COUNTS[1]}"
    if not _OFFSET.fullmatch(fields[2]) or int(fields[2]) >= 1 << 63:
        return f"offset is {fields[2][:40]!r}"
    if not _TIMESTAMP.fullmatch(fields[3]):
        return f"timestamp is {fields[3][:40]!r}"
    headers = [header.split(b":") for header in fields[4].rstrip(b";").split(b";") if header] if len(fields) > _COUNTS[0] else []
    if any(len(header) != 2 for header in headers) or not all(map(is_base64, chain(fields[:2], *headers))):
        return "key, value or a header is not base64"
    return ""


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"csv"}),
    optional=OPTIONAL,
    losses={"LOSSY_LAYOUT": "null and empty keys and values are the same: both are read as null"},
)
