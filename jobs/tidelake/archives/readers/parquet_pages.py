"""Compute how many rows of a Parquet row group may be decoded at once, from its page headers, before any page is decoded.

A row group's metadata contains the size of its pages, but not the size of their decoded values. A dictionary holds a value once and rows
repeat it (RLE_DICTIONARY), and a value may repeat the one before it (DELTA_BYTE_ARRAY). A file of a few KB may therefore hold many GB. The
largest decoded size of a page follows from its header (Parquet format, PageHeader, in Thrift's compact protocol):

    plain      the page's plain size                     of each value at most that
    dictionary number of values × the dictionary's largest value
    delta      number of values × the page's plain size
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MAX_DECODED = 64 << 20  # approximate bytes of a batch
MAX_PAGE = 512 << 20  # plain bytes of one page, which is held in memory as a whole
MAX_NESTED = 1 << 30  # bytes of headers in a row group: one record may have all of them
_FIXED = 8  # bytes of a number, and of an offset or index beside a value
_ENTRIES = 1 << 18  # largest dictionary whose entries are checked one by one
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_PLAIN, _PLAIN_DICTIONARY, _DELTA, _RLE_DICTIONARY = 0, 2, 7, 8
_CODECS = {"SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "BROTLI": "brotli", "LZ4_RAW": "lz4_raw"}
_HEAD = 64 << 10  # statistics in a page's header hold a smallest and a largest value

Struct = dict[int, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPage:
    """A page of a column. size: its plain bytes; values: their number, NULLs included; encoding: of the values; start: its content in the
    file.
    """

    kind: int
    size: int
    values: int
    encoding: int
    start: int
    packed: int


def most_rows(data: memoryview, group: pq.RowGroupMetaData, columns: Collection[str]) -> int:
    """Return how many rows of the group decode to at most about MAX_DECODED bytes. data: the file; columns: top-level names.

    Raises ValueError for pages that are damaged, or larger than MAX_PAGE or MAX_NESTED when decoded.
    """
    most = max(1, int(group.num_rows))
    for number in range(group.num_columns):
        chunk = group.column(number)
        name, _, nested = str(chunk.path_in_schema).partition(".")
        if name in columns and chunk.physical_type == "BYTE_ARRAY":
            most = min(most, _of_nested(data, chunk, group.num_rows) if nested else _of_values(data, chunk))
    return most


def _of_values(data: memoryview, chunk: pq.ColumnChunkMetaData) -> int:
    """Return the number of rows for a column with one value per row."""
    largest, most = 0, MAX_DECODED
    for page in pages(data, chunk):
        if page.kind == _DICTIONARY:
            largest = _largest(data, chunk, page)
        elif page.values:
            most = min(most, MAX_DECODED // max(1, _a_value(page, largest)))
    return max(1, most)


def _a_value(page: DataPage, largest: int) -> int:
    """Return the bytes of a value: the average for plain pages, because a batch decodes no more than the page has; else the maximum."""
    if page.encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY):
        return largest
    return page.size if page.encoding == _DELTA else page.size // page.values


def _of_nested(data: memoryview, chunk: pq.ColumnChunkMetaData, rows: int) -> int:
    """Return the number of rows for a column with any number of values per row, from all values of the group."""
    largest = total = 0
    for page in pages(data, chunk):
        if page.kind == _DICTIONARY:
            largest = _largest(data, chunk, page)
        else:
            total += page.size if page.encoding == _PLAIN else page.values * _a_value(page, largest)
            total += page.values * _FIXED
    if total > MAX_NESTED:
        raise ValueError(f"column {chunk.path_in_schema} of a row group decodes to up to {total:,} bytes, more than {MAX_NESTED:,}")
    return max(1, rows * MAX_DECODED // max(total, 1))


def _largest(data: memoryview, chunk: pq.ColumnChunkMetaData, page: DataPage) -> int:
    """Return the size of a dictionary's largest value; the size of the whole dictionary if its codec or its size make that too slow."""
    codec = _CODECS.get(chunk.compression)
    if page.values > _ENTRIES or (codec is None and chunk.compression != "UNCOMPRESSED"):
        return page.size
    packed = data[page.start : page.start + page.packed]
    plain = packed if codec is None else pa.Codec(codec).decompress(packed, decompressed_size=page.size, asbytes=True)
    at = largest = 0
    for _ in range(page.values):
        if at + 4 > len(plain):
            raise ValueError("a dictionary ends early")
        (size,) = struct.unpack_from("<I", plain, at)
        at, largest = at + 4 + size, max(largest, size)
    return largest


def pages(data: memoryview, chunk: pq.ColumnChunkMetaData) -> Iterator[DataPage]:
    """Yield the pages of a column in a row group, the dictionary first. Raises ValueError."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        at = min(at, chunk.dictionary_page_offset)
    end, left = at + chunk.total_compressed_size, chunk.num_values
    if not 0 <= at <= end <= len(data):
        raise ValueError(f"column {chunk.path_in_schema} lies outside of the file")
    while left > 0 and at < end:
        header, at = _struct(data, at, min(end, at + _HEAD))
        page = _page(header, at)
        if not 0 <= page.packed <= end - at or not 0 <= page.size <= MAX_PAGE or page.values < 0:
            raise ValueError(f"a page of {page.size:,} bytes and {page.values:,} values; at most {MAX_PAGE:,} bytes are read")
        at += page.packed
        left -= page.values if page.kind in (_DATA, _DATA_V2) else 0
        if page.kind in (_DATA, _DATA_V2, _DICTIONARY):
            yield page


def _page(header: Struct, start: int) -> DataPage:
    kind = header.get(1, -1)
    said: Struct = header.get({_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}.get(kind, 0), {})
    encoding = said.get(4 if kind == _DATA_V2 else 2, -1)
    return DataPage(kind=kind, size=header.get(2, -1), values=said.get(1, 0), encoding=encoding, start=start, packed=header.get(3, -1))


# The part of Thrift's compact protocol that page headers use


def _struct(data: memoryview, at: int, end: int) -> tuple[Struct, int]:
    """Return a struct's members by number, and where it ends. Binary members are skipped."""
    out, number = Struct(), 0
    while True:
        head, at = _byte(data, at, end)
        if not head:
            return out, at
        if head >> 4:
            number += head >> 4
        else:
            raw, at = _varint(data, at, end)
            number = _signed(raw)
        out[number], at = _value(data, at, end, head & 15)


def _value(data: memoryview, at: int, end: int, kind: int) -> tuple[Any, int]:
    match kind:
        case 1 | 2:
            return kind == 1, at
        case 3:
            return _byte(data, at, end)
        case 4 | 5 | 6:
            raw, at = _varint(data, at, end)
            return _signed(raw), at
        case 7:
            return None, at + 8
        case 8:
            size, at = _varint(data, at, end)
            return None, at + size
        case 12:
            return _struct(data, at, end)
    raise ValueError(f"a page header with a member of type {kind}")


def _byte(data: memoryview, at: int, end: int) -> tuple[int, int]:
    if at >= end:
        raise ValueError("a page header ends early")
    return data[at], at + 1


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte, at = _byte(data, at, end)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a page header with a number of more than 10 bytes")


def _signed(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)
