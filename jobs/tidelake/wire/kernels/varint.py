"""Varints and length-checked regions in plain Python: what the general readers of the binary protocols are made of.

uvarint = LEB128: 7 bits a byte, least significant first, top bit = more, at most 10 bytes (docs/reference/protocols.md 0).
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelake.errors import DecodeError

_MAX_BYTES = 10
_U64 = 1 << 64


@dataclass(slots=True)
class Region:
    """Bytes at..end of a message, read front to back. Every error names the region and where it ends."""

    data: bytes
    at: int
    end: int
    what: str

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return self.end - self.at

    def uvarint(self, what: str) -> int:
        """0 … 2^64−1."""
        value = 0
        for i in range(_MAX_BYTES):
            if self.at + i >= self.end:
                raise DecodeError(f"{what} at byte {self.at} runs beyond {self.what}, which ends at byte {self.end}", code="TRUNCATED")
            byte = self.data[self.at + i]
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                break
        if byte >= 0x80 or value >= _U64:
            raise DecodeError(f"{what} at byte {self.at} has more than 64 bits", code="BAD_LENGTH")
        self.at += i + 1
        return value

    def varint(self, what: str) -> int:
        """Zigzag: −2^63 … 2^63−1."""
        value = self.uvarint(what)
        return value >> 1 ^ -(value & 1)

    def uvarints(self, count: int, what: str) -> list[int]:
        """A uvarint chunk."""
        return [self.uvarint(what) for _ in range(count)]

    def deltas(self, count: int, what: str, *, signed: bool = True) -> list[int]:
        """A delta-varint chunk, or delta-uvarint chunk: the first value, then differences that wrap at 64 bits."""
        values, value = [], 0
        for _ in range(count):
            value = (value + (self.varint(what) if signed else self.uvarint(what))) % _U64
            values.append(value - _U64 if signed and value >> 63 else value)
        return values

    def count(self, what: str, *, least: int = 1) -> int:
        """A uvarint that counts elements of at least `least` bytes each; they must have room in what is left."""
        at, count = self.at, self.uvarint(what)
        if count * least > self.left:
            raise DecodeError(f"{what} at byte {at} is {count}, but only {self.left} bytes of {self.what} follow", code="BAD_LENGTH")
        return count

    def take(self, size: int, what: str) -> bytes:
        """The next bytes, as many as the message itself announces."""
        if not 0 <= size <= len(self.data):
            raise DecodeError(f"{what} at byte {self.at} has length {size}, the message has {len(self.data)} bytes", code="BAD_LENGTH")
        return self.fixed(size, what)

    def fixed(self, size: int, what: str) -> bytes:
        """The next bytes, always so many."""
        if size > self.left:
            raise DecodeError(f"{what} ends at byte {self.at + size}, {self.what} at byte {self.end}", code="TRUNCATED")
        self.at += size
        return self.data[self.at - size : self.at]

    def region(self, size: int, what: str) -> Region:
        """The next bytes as a region of their own."""
        if not 0 <= size <= self.left:
            raise DecodeError(f"{what} has {size} bytes, of {self.what} {self.left} are left at byte {self.at}", code="BAD_LENGTH")
        self.at += size
        return Region(self.data, self.at - size, self.at, what)

    def finish(self) -> None:
        """Raises DecodeError (TRAILING_BYTES) unless all was read."""
        if self.left:
            raise DecodeError(f"{self.what} should end at byte {self.at}, but ends at byte {self.end}", code="TRAILING_BYTES")


def reversed_uvarint(data: bytes) -> tuple[int, int]:
    """The uvarint written back to front at the message's end (docs/reference/protocols.md 3.1): its value, the byte where it starts."""
    mirror = Region(data[: -_MAX_BYTES - 1 : -1], 0, min(len(data), _MAX_BYTES), "the message read backwards")
    value = mirror.uvarint("the size of the size tables")
    return value, len(data) - mirror.at
