"""Cells of the protocols that send values as text or as JSON scalars, with or without saying their types."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any, Literal

from tidelake.errors import DecodeError
from tidelake.history.event import SchemaColumn
from tidelake.wire.json.json_text import Number, kind

Encoding = Literal["base64", "hex"]


def is_binary(column: SchemaColumn) -> bool:
    """Whether the column's cells are raw bytes rather than text."""
    return column.type is not None and ("binary" in column.type or "blob" in column.type)


def scalar(value: Any, where: str) -> bytes | None:
    """A JSON string or number as its text, null as NULL. Raises DecodeError."""
    match value:
        case None:
            return None
        case bool() | list() | dict():
            raise DecodeError(f"{where} is a JSON {kind(value)}, expected a string, a number or null", code="BAD_VALUE")
        case int() | Number():
            return number(value, where)
        case _:
            text: str = value
            return text.encode()


def number(value: int | Number, where: str) -> bytes:
    """A JSON number's own text: it is the shortest one already. Raises DecodeError for one that no column type holds."""
    if (isinstance(value, int) and value.bit_length() > 1023) or not math.isfinite(float(value)):
        raise DecodeError(f"{where}: a number beyond the largest double", code="BAD_VALUE")
    return str(value).encode()


def from_text(text: str, encoding: Encoding, where: str) -> bytes:
    """The bytes of a binary column. Raises DecodeError."""
    try:
        return base64.b64decode(text, validate=True) if encoding == "base64" else binascii.unhexlify(text)
    except (binascii.Error, ValueError) as e:
        raise DecodeError(f"{where}: {len(text)} characters are not {encoding}: {e}", code="BAD_VALUE") from e
