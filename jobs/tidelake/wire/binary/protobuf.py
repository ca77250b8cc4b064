"""Protocol Buffers in plain Python: a message's fields by number; fields not asked for are skipped.

message := (tag value)*      tag = uvarint of field number << 3 | wire type
value   := uvarint (0) | eight bytes (1) | length bytes (2) | four bytes (5)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelake.errors import DecodeError
from tidelake.wire.kernels.varint import Region

NUMBER, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types; 3 and 4, groups, are not written any more
MAX_TAG = (1 << 32) - 1
_LARGEST_LENGTH = (1 << 31) - 1
_WIDTHS = {FIXED64: 8, FIXED32: 4}


@dataclass(frozen=True, slots=True)
class WireField:
    """A field that is wanted. What is no number is given as a region. most: of a repeated one, which is given as a list."""

    name: str
    wire: int
    most: int | None = None


def fields(message: Region, wanted: Mapping[int, WireField]) -> dict[str, Any]:
    """The wanted fields that are there, by name. Raises DecodeError, also for a second occurrence of what stands once."""
    found: dict[str, Any] = {}
    while message.at < message.end:
        at, byte = message.at, message.data[message.at]
        if byte < 0x80:
            tag, message.at = byte, at + 1
        else:
            tag = message.uvarint("a field's tag")
        if not 8 <= tag <= MAX_TAG:
            raise DecodeError(f"tag {tag} at byte {at} is no field of {message.what}", code="BAD_STRUCTURE")
        field = wanted.get(tag >> 3)
        if field is None:
            _skip(message, tag, at)
        elif tag & 7 != field.wire:
            raise DecodeError(f"{field.name} at byte {at} has wire type {tag & 7}, expected {field.wire}", code="BAD_STRUCTURE")
        else:
            value = message.uvarint(field.name) if field.wire == NUMBER else _part(message, field.name)
            if field.most is not None:
                _append(found.setdefault(field.name, []), value, field, message.what)
            elif field.name in found:
                raise DecodeError(f"a second {field.name} at byte {at} of {message.what}", code="BAD_STRUCTURE")
            else:
                found[field.name] = value
    return found


def _append(values: list[Any], value: Any, field: WireField, what: str) -> None:
    if len(values) == field.most:
        raise DecodeError(f"{what} has {field.name} more than {field.most} times", code="TOO_LARGE")
    values.append(value)


def _skip(message: Region, tag: int, at: int) -> None:
    wire = tag & 7
    if wire == NUMBER:
        message.uvarint("a number")
    elif wire == BYTES:
        _part(message, "a field")
    elif wire in _WIDTHS:
        message.fixed(_WIDTHS[wire], "a field")
    else:
        raise DecodeError(f"field {tag >> 3} at byte {at} of {message.what} has wire type {wire}", code="BAD_STRUCTURE")


def _part(message: Region, name: str) -> Region:
    """The bytes of a field. A length that runs out at the end of all is a message cut short, any other one is wrong."""
    at, size = message.at, message.uvarint(f"the length of {name}")
    if size > message.left:
        cut = message.end == len(message.data) and size <= _LARGEST_LENGTH
        raise DecodeError(
            f"{name} at byte {at} has {size} bytes, of {message.what} {message.left} are left", code="TRUNCATED" if cut else "BAD_LENGTH"
        )
    message.at += size
    return Region(message.data, message.at - size, message.at, name)
