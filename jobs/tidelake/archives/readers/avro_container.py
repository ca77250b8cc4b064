"""Read Avro object containers block by block (Avro 1.11 specification, Object Container Files).

    container := 'Obj' 01  metadata:map<bytes>  sync:16 bytes  block*
    block     := records:long  size:long  data  sync

The codec is in the container, independent of the object's name: null, deflate, snappy, zstandard, bzip2, xz.
"""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from tidelake.archives.readers.codecs import unpacked_block
from tidelake.archives.readers.layout import BATCH_BYTES, SourceObject, damaged, refused, unreadable
from tidelake.archives.scan import avro_columns
from tidelake.wire.kernels.spans import frozen

Wanted = Mapping[avro_columns.Path, int]
RecordColumns = dict[avro_columns.Path, pa.Array]

_MAGIC = b"Obj\x01"
_MAX_BLOCK = 256 << 20  # bytes, packed or not; Avro's writers begin a new block after some 16 to 64 KiB
_MAX_RECORDS = 4 << 20  # per block: empty records take a byte each, and many times as much as columns
_SYNC = 16


def read_columns(
    layout: str, path: Path, source: SourceObject, wanted: Wanted, needed: tuple[avro_columns.Path, ...], remedy: str
) -> Iterator[RecordColumns]:
    """Yield the wanted members of all records, in batches of about BATCH_BYTES. A member that the schema lacks is left out.

    Raises ConfigError (ARCHIVE_LAYOUT) if a needed member is missing or one has another type, OrderError (DAMAGED_OBJECT), StorageError
    (BAD_OBJECT).
    """
    done = 0
    with path.open("rb") as file:
        metadata, sync = _head(file, source)
        plan = _plan(layout, metadata, wanted, needed, remedy, source)
        unpack = _codec(layout, metadata, source)
        for rows, ends, data in _several(_unpacked(_blocks(file, sync, source), unpack, source)):
            try:
                found = avro_columns.read_blocks(frozen(data), np.cumsum(ends), np.cumsum(rows), plan, wanted)
            except pa.ArrowInvalid as e:
                raise damaged(source, f"records {done + 1} to {done + sum(rows)}", f"not readable as Avro: {e}") from e
            if isinstance(found, int):
                raise damaged(source, f"after record {done + found}", "not readable as Avro")
            yield dict(found.found)
            done += found.rows


def _several(blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[list[int], list[int], bytes]]:
    """Join blocks until they have BATCH_BYTES. Yields their record counts, their sizes and their bytes."""
    rows, parts, size = list[int](), list[bytes](), 0
    for count, data in blocks:
        rows.append(count)
        parts.append(data)
        size += len(data)
        if size >= BATCH_BYTES:
            yield rows, list(map(len, parts)), b"".join(parts)
            rows, parts, size = [], [], 0
    if parts:
        yield rows, list(map(len, parts)), b"".join(parts)


def _head(file: IO[bytes], source: SourceObject) -> tuple[dict[str, bytes], bytes]:
    metadata: dict[str, bytes] = {}
    try:
        if file.read(4) != _MAGIC:
            raise ValueError("it does not begin with Obj 01")
        while count := _long(file):
            if count < 0:
                count = -count
                _long(file)
            for _ in range(count):
                name = _bytes(file).decode()
                metadata[name] = _bytes(file)
        sync = file.read(_SYNC)
        if len(sync) < _SYNC:
            raise EOFError("it ends inside its header")
    except (ValueError, EOFError) as e:
        raise unreadable(source, f"not readable as an Avro container: {e}") from e
    return metadata, sync


def _plan(
    layout: str, metadata: dict[str, bytes], wanted: Wanted, needed: tuple[avro_columns.Path, ...], remedy: str, source: SourceObject
) -> avro_columns.ColumnsProgram:
    try:
        schema: Any = json.loads(metadata["avro.schema"])
    except (KeyError, ValueError) as e:
        raise unreadable(source, f"not readable as an Avro container: its schema is not JSON: {e}") from e
    try:
        plan = avro_columns.program(schema, wanted)
    except (avro_columns.UnsupportedError, KeyError, TypeError) as e:
        raise refused(source, layout, str(e), remedy) from e
    if missing := [path for path in needed if path not in plan.kinds]:
        names = [".".join(path) for path in missing]
        raise refused(
            source, layout, f"its records have no {' and no '.join(names)}" if all(names) else "its records are not bytes", remedy
        )
    return plan


def _codec(layout: str, metadata: dict[str, bytes], source: SourceObject) -> Callable[[bytes], bytes]:
    name = metadata.get("avro.codec", b"null").decode("ascii", "replace")
    if name not in _CODECS:
        raise refused(source, layout, f"its codec {name!r} is not read", f"set avro.codec to one of {', '.join(_CODECS)}")
    return _CODECS[name]


def _blocks(file: IO[bytes], sync: bytes, source: SourceObject) -> Iterator[tuple[int, bytes]]:
    """Yield the record count and the bytes of each block."""
    done = 0
    while (start := file.read(1)) != b"":
        file.seek(-len(start), 1)
        try:
            rows, size = _long(file), _long(file)
            if not 0 <= rows <= _MAX_RECORDS or not 0 <= size <= _MAX_BLOCK:
                raise ValueError(f"a block of {rows:,} records and {size:,} bytes; {_MAX_RECORDS:,} and {_MAX_BLOCK:,} are read at most")
            block, end = file.read(size), file.read(_SYNC)
        except EOFError as e:
            raise unreadable(source, f"cut short after record {done}: {e}") from e
        except ValueError as e:
            raise damaged(source, f"after record {done}", f"not readable as Avro: {e}") from e
        if len(end) < _SYNC:
            raise unreadable(source, f"cut short after record {done}: a block of {size} bytes ends early")
        if end != sync:
            raise damaged(source, f"after record {done}", "not readable as Avro: the block's sync marker is missing")
        yield rows, block
        done += rows


def _unpacked(blocks: Iterator[tuple[int, bytes]], unpack: Callable[[bytes], bytes], source: SourceObject) -> Iterator[tuple[int, bytes]]:
    """Yield the decompressed blocks. Every record has at least one byte, so a block that declares more records is damaged."""
    done = 0
    for rows, block in blocks:
        try:
            data = unpack(block)
            if rows > len(data):
                raise ValueError(f"{rows} records in {len(data)} bytes")
        except (ValueError, EOFError, OSError, zlib.error, lzma.LZMAError) as e:
            raise damaged(source, f"after record {done}", f"not readable as Avro: {e}") from e
        yield rows, data
        done += rows


def _long(file: IO[bytes]) -> int:
    """Read a zigzag varint."""
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise EOFError("it ends inside a number")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise ValueError("a number of more than 10 bytes")


def _bytes(file: IO[bytes]) -> bytes:
    size = _long(file)
    data = file.read(size) if 0 <= size <= _MAX_BLOCK else b""
    if len(data) != size:
        raise EOFError(f"it ends inside {size} bytes")
    return data


def _inflated(block: bytes) -> bytes:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    data = stream.decompress(block, _MAX_BLOCK)
    if not stream.eof:
        raise ValueError("a deflated block is cut short or too large")
    return data


def _unsnapped(block: bytes) -> bytes:
    data = unpacked_block(block[:-4])
    if zlib.crc32(data) != int.from_bytes(block[-4:], "big"):
        raise ValueError("a snappy block does not match its checksum")
    return data


def _unzstd(block: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        data: bytes = stream.read(_MAX_BLOCK + 1)
    return _limited(data)


def _limited(data: bytes) -> bytes:
    if len(data) > _MAX_BLOCK:
        raise ValueError(f"a block of more than {_MAX_BLOCK} bytes")
    return data


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda block: block,
    "deflate": _inflated,
    "snappy": _unsnapped,
    "zstandard": _unzstd,
    "bzip2": lambda block: _limited(bz2.BZ2Decompressor().decompress(block, _MAX_BLOCK + 1)),
    "xz": lambda block: _limited(lzma.LZMADecompressor().decompress(block, _MAX_BLOCK + 1)),
}
