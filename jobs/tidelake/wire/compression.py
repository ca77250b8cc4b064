"""large-message-handle-compression (docs/reference/protocols.md 1.5): snappy raw blocks and LZ4 frames, up to the caller's cap."""

from __future__ import annotations

import pyarrow as pa

from tidelake.config.options import Compression
from tidelake.errors import DecodeError

LZ4_MAGIC = b"\x04\x22\x4d\x18"
CHUNK = 1 << 16
SNAPPY_RATIO = 22  # three bytes of a snappy block encode 64 at most


def decompress(value: bytes, method: Compression, cap: int, what: str) -> bytes:
    """The plain value. One that is JSON already is taken as it is. Raises DecodeError (BAD_COMPRESSION, TOO_LARGE)."""
    match method:
        case "snappy" if not _plain_beside_snappy(value):
            return _snappy(value, cap, what)
        case "lz4" if not value.startswith(b"{"):
            return _lz4(value, cap, what)
        case _:
            return value


def _plain_beside_snappy(value: bytes) -> bool:
    """`{` is also snappy's announcement of 123 bytes; what follows there is a literal (low bits 00), never so `"` or `}`."""
    return value.startswith(b"{") and (len(value) == 1 or value[1] & 3 != 0)


def _snappy(value: bytes, cap: int, what: str) -> bytes:
    size = _announced(value, what)
    if size > cap:
        raise DecodeError(f"{what} announces {size} bytes decompressed, the cap is {cap}", code="TOO_LARGE")
    if size > SNAPPY_RATIO * len(value):
        raise DecodeError(f"{what} announces {size} bytes, more than {len(value)} bytes of snappy can hold", code="BAD_COMPRESSION")
    try:
        return bytes(pa.Codec("snappy").decompress(value, decompressed_size=size, asbytes=True))
    except (OSError, pa.ArrowException) as e:
        raise DecodeError(f"{what} of {len(value)} bytes is not a snappy block: {e}", code="BAD_COMPRESSION") from e


def _announced(value: bytes, what: str) -> int:
    size = 0
    for i, byte in enumerate(value[:5]):
        size |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return size
    raise DecodeError(f"{what} does not begin with the length of a snappy block", code="BAD_COMPRESSION")


def _lz4(value: bytes, cap: int, what: str) -> bytes:
    if not value.startswith(LZ4_MAGIC):
        raise DecodeError(f"{what} begins with {value[:4].hex() or 'nothing'}, not with the mark of an LZ4 frame", code="BAD_COMPRESSION")
    parts, size = [], 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(value), "lz4") as stream:
            while part := stream.read(CHUNK):
                size += len(part)
                if size > cap:
                    raise DecodeError(f"{what} is larger than {cap} bytes decompressed", code="TOO_LARGE")
                parts.append(part)
    except (OSError, pa.ArrowException) as e:
        raise DecodeError(f"{what} of {len(value)} bytes is not an LZ4 frame: {e}", code="BAD_COMPRESSION") from e
    return b"".join(parts)
