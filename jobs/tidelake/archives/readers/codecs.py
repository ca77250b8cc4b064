"""Detect file codecs by the object's first bytes. A name with another codec is an error (docs/reference/archives.md 0).

Arrow reads gzip, zstd and lz4 frames and checks their checksums and ends. xerial snappy, which Java's SnappyOutputStream writes, is

    file  := 82 'SNAPPY' 00  version:int32  compatible:int32  chunk*
    chunk := length:int32  raw snappy block
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import IO

import pyarrow as pa

from tidelake.archives.readers.layout import SourceObject, unreadable

_OF_EXTENSION = {"gz": "gzip", "gzip": "gzip", "zst": "zstd", "zstd": "zstd", "snappy": "snappy", "lz4": "lz4"}
EXTENSIONS = frozenset(_OF_EXTENSION)

_ENDING = re.compile(r"(\.\w+)*$")
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4", b"\x82SNAPPY\x00": "snappy"}
_SNAPPY_HEADER = 16
_SNAPPY_CHUNK = 64 << 20  # Java's writer makes chunks of 32 KiB


@contextmanager
def decompressed(path: Path, source: SourceObject) -> Iterator[IO[bytes]]:
    """Yield the object's decompressed bytes, as a forward-only stream.

    Raises StorageError (BAD_OBJECT), here or while reading: cut short, damaged, or of another codec than the name has.
    """
    with path.open("rb") as file:
        codec = _codec(file.read(8), source)
        file.seek(0)
        if codec == "none":
            yield file
        elif codec == "snappy":
            yield _XerialSnappy(file)  # type: ignore[misc]  # reads like a file
        else:
            with pa.CompressedInputStream(file, codec) as stream:
                yield stream


@contextmanager
def naming(source: SourceObject) -> Iterator[None]:
    """Raise errors of codecs as StorageError (BAD_OBJECT) that names the object. The block may only read the stream."""
    try:
        yield
    except (OSError, EOFError, ValueError) as e:
        raise unreadable(source, f"cannot be decompressed: {e}") from e


def _codec(start: bytes, source: SourceObject) -> str:
    found = next((codec for magic, codec in _MAGIC.items() if start.startswith(magic)), "none")
    promised = {_OF_EXTENSION[e] for e in _ENDING.search(source.key.lower())[0].split(".") if e in _OF_EXTENSION}  # type: ignore[index]
    if promised and found not in promised:
        raise unreadable(
            source, f"the name says {' and '.join(sorted(promised))}, the first bytes are {start.hex(' ') or 'none'} ({found})"
        )
    return found


class _XerialSnappy(BufferedIOBase):
    """Reads the chunks of a xerial snappy file one by one."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._rest = b""
        if len(file.read(_SNAPPY_HEADER)) < _SNAPPY_HEADER:
            raise EOFError("the snappy header is cut short")

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        parts, wanted = [self._rest], float("inf") if size is None or size < 0 else size
        have = len(self._rest)
        while have < wanted and (chunk := self._chunk()) is not None:
            parts.append(chunk)
            have += len(chunk)
        data = b"".join(parts)
        taken = have if wanted == float("inf") else min(have, int(wanted))
        self._rest = data[taken:]
        return data[:taken]

    def _chunk(self) -> bytes | None:
        head = self._file.read(4)
        if not head:
            return None
        length = int.from_bytes(head, "big")
        block = self._file.read(length) if length <= _SNAPPY_CHUNK else b""
        if len(head) < 4 or len(block) < length:
            raise EOFError(f"a snappy chunk of {length} bytes is cut short")
        return unpacked_block(block)


def unpacked_block(block: bytes) -> bytes:
    """Decompress a raw snappy block. Raises ValueError, EOFError or OSError."""
    size = _snappy_length(block)
    if size > _SNAPPY_CHUNK:
        raise ValueError(f"a snappy chunk says it unpacks to {size} bytes")
    data: bytes = pa.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True)
    return data


def _snappy_length(block: bytes) -> int:
    """Return the unpacked size at the start of a raw snappy block, a varint."""
    value = shift = 0
    for byte in block[:5]:
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    raise EOFError("a snappy chunk is cut short")
