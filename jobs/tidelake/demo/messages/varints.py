"""LEB128 and zigzag numbers of Craft and Avro (docs/reference/protocols.md 0)."""

from __future__ import annotations

from tidelake.tso import wrap

_LOW_64 = (1 << 64) - 1


def _uvarint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


_SMALL = [_uvarint(n) for n in range(1 << 12)]


def uvarint(n: int) -> bytes:
    """Encode a number in [0, 2^64)."""
    return _SMALL[n] if n < 1 << 12 else _uvarint(n)


def zigzag(n: int) -> bytes:
    """Encode a number in [-2^63, 2^63)."""
    return uvarint((n << 1 ^ n >> 63) & _LOW_64)


def delta_uvarints(numbers: list[int]) -> bytes:
    """Encode the first number, then the differences mod 2^64."""
    return b"".join([uvarint((b - a) & _LOW_64) for a, b in zip([0, *numbers], numbers, strict=False)])


def delta_varints(numbers: list[int]) -> bytes:
    """Encode the first number, then the differences wrapped in int64, all as zigzag."""
    return b"".join([zigzag(wrap((b - a) & _LOW_64)) for a, b in zip([0, *numbers], numbers, strict=False)])
