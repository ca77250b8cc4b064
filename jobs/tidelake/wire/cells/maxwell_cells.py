"""Values of Maxwell's own JSON (docs/reference/protocols.md 9.3) as they are kept until the column's type is known (decode.late_maxwell).

A number is its text, a string its text, an array or object its JSON text as MySQL prints it: `, ` and `: ` between the parts.
"""

from __future__ import annotations

import json
from typing import Any

from tidelake.errors import DecodeError
from tidelake.wire.cells.plain_cells import scalar
from tidelake.wire.json.json_text import Number

FORM = "maxwell"  # of SchemaColumn
MAX_DEPTH = 100  # MySQL's own limit for JSON


def sent(value: Any, where: str) -> bytes | None:
    """Return a value's text, None for NULL. Raises DecodeError."""
    match value:
        case bool():
            return b"true" if value else b"false"
        case list() | dict():
            return _json(value, where, MAX_DEPTH)
        case _:
            return scalar(value, where)


def _json(value: Any, where: str, depth: int) -> bytes:
    """JSON text as UTF-8, because a text with one wide letter takes four bytes a letter."""
    if depth == 0:
        raise DecodeError(f"{where} is nested deeper than {MAX_DEPTH} levels", code="BAD_VALUE")
    match value:
        case dict():
            return b"{" + b", ".join([_string(name) + b": " + _json(member, where, depth - 1) for name, member in value.items()]) + b"}"
        case list():
            return b"[" + b", ".join([_json(member, where, depth - 1) for member in value]) + b"]"
        case Number():
            return value.encode()
        case str():
            return _string(value)
        case _:
            return json.dumps(value).encode()


def _string(text: str) -> bytes:
    return json.dumps(str(text), ensure_ascii=False).encode()
