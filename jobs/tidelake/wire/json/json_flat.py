r"""JSON of many MB as text of one byte a letter: UTF-8 read as Latin-1, with `\uXXXX` of all but ASCII written out before.

Python's text takes four bytes a letter as soon as one is beyond U+FFFF, and while JSON is read there are two such texts. All that JSON
itself says is ASCII, so it is read as well from this text; the strings in it are put right afterwards, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tidelake.wire.json.json_cells import hexadecimal, put_character
from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.compiled import compiled, inlined_step
from tidelake.wire.kernels.json_kernels import BACKSLASH, BAD, byte, put_byte
from tidelake.wire.kernels.utf8_text import check_utf8, text_of

LOWER_U = 0x75
MAX_MEMBER_BYTES = 1 << 10  # of a member's name that is not ASCII
HALF_PAIR = -1  # instead of a size
_ESCAPE = 6  # characters of \uXXXX
_HIGH, _LOW, _AFTER = 0xD800, 0xDC00, 0xE000  # surrogates


def flat_text(payload: bytes) -> str:
    """The payload's bytes as characters. Raises UnicodeDecodeError for what is no UTF-8, UnicodeEncodeError for half of a pair."""
    check_utf8(payload)
    if b"\\u" not in payload:
        return payload.decode("latin-1")
    out = np.empty(len(payload), np.uint8)
    size = _written_out(np.frombuffer(payload, np.uint8), out)
    if size == HALF_PAIR:
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
    return str(out[:size].data, "latin-1")


def restored(value: Any) -> Any:
    """What was read from a flat text, with its strings put right, in place. Raises ValueError for names that no column has."""
    root = [value]
    waiting: list[Any] = [root]
    while waiting:
        holder = waiting.pop()
        is_object = isinstance(holder, dict)
        items: Iterable[tuple[Any, Any]] = holder.items() if is_object else enumerate(holder)
        names = [name for name in holder if not name.isascii()] if is_object else ()
        for at, found in items:  # which stay as many
            if isinstance(found, (dict, list)):
                waiting.append(found)
            elif isinstance(found, str) and not found.isascii():
                holder[at] = text_of(found.encode("latin-1"))
        if any(len(name) > MAX_MEMBER_BYTES for name in names):
            raise ValueError(f"a member's name has {max(map(len, names))} bytes, at most {MAX_MEMBER_BYTES} are expected")
        if names:
            renamed = [(name if name.isascii() else name.encode("latin-1").decode(), found) for name, found in holder.items()]
            holder.clear()
            holder.update(renamed)
    return root[0]


@compiled
def _written_out(text: Bytes, out: Bytes) -> int:
    """Copy text to out, escapes of all but ASCII as UTF-8, which is never longer. The size, or HALF_PAIR. len(out) >= len(text)."""
    p, at = 0, 0
    while p < len(text):
        if byte(text, p) != BACKSLASH:
            put_byte(out, at, byte(text, p))
            p, at = p + 1, at + 1
            continue
        code = _code(text, p)
        if code < 0x80:  # it stays as it is, and so does an escape of another form
            size = min(2 if code == BAD else _ESCAPE, len(text) - p)
            for i in range(size):
                put_byte(out, at + i, byte(text, p + i))
            p, at = p + size, at + size
            continue
        p += _ESCAPE
        if _HIGH <= code < _AFTER:
            second = _code(text, p)
            if code >= _LOW or not _LOW <= second < _AFTER:
                return HALF_PAIR
            code = 0x10000 + ((code - _HIGH) << 10) + second - _LOW
            p += _ESCAPE
        at = put_character(out, at, code)
    return at


@inlined_step
def _code(text: Bytes, p: int) -> int:
    """The character of the escape at p, BAD where there is none of this form."""
    return hexadecimal(text, p + 2, 4) if byte(text, p) == BACKSLASH and byte(text, p + 1) == LOWER_U else BAD
