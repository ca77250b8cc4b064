"""Read the values of one object, with the keys and headers of its sibling objects (docs/reference/archives.md 1: `.keys`, `.headers`).

All three have the same records in the same order and are joined by position. Their formats are independent of each other; the extension
gives the format. Header values are base64 text in every format.

    headers, JSON   {"headers":[{"key":"k","value":"<base64>"}]}
    headers, Avro   array of records {key: string, value: string|null}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tidelake.archives.readers.avro_container import read_columns
from tidelake.archives.readers.base64_text import Base64Error, decode
from tidelake.archives.readers.layout import Sibling, SourceObject, beside, damaged, message_batch, refused
from tidelake.archives.readers.lines import blocks
from tidelake.archives.scan.avro_columns import PAIRS
from tidelake.history.event import HEADERS

ReadColumn = Callable[[Path, SourceObject], Iterator[pa.Array]]

_HEADERS = pa.schema([("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))])


def messages(
    layout: str, path: Path, source: SourceObject, values: Iterator[pa.Array], readers: Mapping[str, ReadColumn]
) -> Iterator[pa.RecordBatch]:
    """Yield MESSAGE batches with offsets that count up from the number in the name. readers: of keys, by extension.

    Raises what the readers raise, OrderError (DAMAGED_OBJECT) if a sibling has more or fewer records.
    """
    forms: dict[str, Mapping[str, ReadColumn]] = {"keys": readers, "headers": {"json": _headers, "avro": partial(_avro_headers, layout)}}
    streams = {s.view: _Stream(s, path, source, layout, forms[s.view]) for s in source.siblings}
    first = source.number
    for value in values:
        members = {view: stream.take(len(value)) for view, stream in streams.items()}
        offset = pa.array(np.arange(first, first + len(value), dtype=np.int64))
        yield message_batch(source, offset, value, key=members.get("keys"), headers=members.get("headers"))
        first += len(value)
    for stream in streams.values():
        stream.finish()


class _Stream:
    """The records of a sibling, read in portions of the size of the object's batches."""

    def __init__(self, sibling: Sibling, path: Path, source: SourceObject, layout: str, readers: Mapping[str, ReadColumn]) -> None:
        self._values_key = source.key
        self._source = replace(source, key=sibling.key, size=sibling.size, etag=sibling.etag, siblings=())
        extensions = sibling.key.rpartition(f".{sibling.view}")[2].lower().split(".")
        form = next((name for name in readers if name in extensions), None)
        if form is None:
            known = " or ".join(f".{sibling.view}.{name}" for name in readers)
            raise refused(self._source, layout, f"{sibling.view} of that format are not read", f"write them as {known}")
        self._batches = readers[form](beside(path, sibling.view), self._source)
        self._rest = list[pa.Array]()
        self._done = 0

    def take(self, count: int) -> pa.Array:
        """Return the next `count` records."""
        parts, missing = list[pa.Array](), count
        while missing:
            if not self._rest and (batch := next(self._batches, None)) is not None:
                self._rest.append(batch)
                continue
            if not self._rest:
                raise damaged(self._source, f"record {self._done + count - missing + 1}", f"it is missing, {self._values_key} has it")
            batch = self._rest.pop()
            if len(batch) > missing:
                self._rest.append(batch.slice(missing))
            parts.append(batch.slice(0, missing))
            missing -= len(parts[-1])
        self._done += count
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def finish(self) -> None:
        """Raise OrderError if records are left."""
        if any(map(len, self._rest)) or any(map(len, self._batches)):
            raise damaged(self._source, f"record {self._done + 1}", f"{self._values_key} has {self._done} records only")


def _headers(path: Path, source: SourceObject) -> Iterator[pa.Array]:
    for block in blocks(path, source):
        try:
            rows = pj.read_json(
                pa.BufferReader(block.data),
                read_options=pj.ReadOptions(use_threads=False, block_size=len(block.data) + 1),
                parse_options=pj.ParseOptions(explicit_schema=_HEADERS, unexpected_field_behavior="error"),
            )
            headers = header_lists(rows.column("headers").combine_chunks())
        except (pa.ArrowInvalid, Base64Error) as e:
            raise damaged(source, f"lines {block.first} to {block.first + block.lines - 1}", f"not headers: {e}") from e
        if len(headers) != block.lines:
            raise damaged(source, f"lines {block.first} to {block.first + block.lines - 1}", f"{len(headers)} records")
        yield headers


def _avro_headers(layout: str, path: Path, source: SourceObject) -> Iterator[pa.Array]:
    done, remedy = 0, "set headers.format.class to JsonFormat or AvroFormat, with ByteArrayConverter for headers"
    for found in read_columns(layout, path, source, {(): PAIRS}, ((),), remedy):
        headers = found[()]
        try:
            yield header_lists(headers)
        except (Base64Error, pa.ArrowInvalid) as e:
            raise damaged(source, f"after record {done}", f"not headers: {e}") from e
        done += len(headers)


def header_lists(column: pa.Array) -> pa.Array:
    """Convert lists of {key, base64 value} to HEADERS. Raises Base64Error, and ArrowInvalid for names that are not UTF-8."""
    if column.null_count == len(column):
        return pa.nulls(len(column), HEADERS)
    pairs = column.values
    pc.struct_field(pairs, "key").validate(full=True)
    decoded = pa.StructArray.from_arrays([pc.struct_field(pairs, "key"), decode(pc.struct_field(pairs, "value"))], names=["key", "value"])
    return pa.ListArray.from_arrays(column.offsets, decoded, mask=column.is_null()).cast(HEADERS)
