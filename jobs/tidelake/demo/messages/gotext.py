"""Text as Go prints it: JSON strings of encoding/json, easyjson and json-iterator, strconv.Quote, shortest floats."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

_ODD = re.compile('[\x00-\x1f"\\\\<>&\u2028\u2029\udc80-\udcff]')
_ESCAPES = (
    {chr(c): f"\\u{c:04x}" for c in (*range(32), *map(ord, "<>&\u2028\u2029"))}
    | {chr(c): "\\ufffd" for c in range(0xDC80, 0xDD00)}  # bytes that are not UTF-8
    | {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
)
_QUOTED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def _writer(escapes: dict[str, str]) -> Callable[[str | bytes], str]:
    def escaped(match: re.Match[str]) -> str:
        return escapes[match[0]]

    def write(text: str | bytes) -> str:
        plain = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
        return f'"{_ODD.sub(escaped, plain)}"' if _ODD.search(plain) else f'"{plain}"'

    return write


json_string = _writer(_ESCAPES | {"\b": "\\b", "\f": "\\f"})
"""A string with its quotes as encoding/json writes it; text that is not UTF-8 is given as bytes."""

easyjson_string = _writer(_ESCAPES)
"""JSON text as easyjson writes it: without short forms of U+0008 and U+000C."""


raw_string = _writer(_ESCAPES | {c: c for c in "<>&\u2028\u2029"})
"""JSON text as json-iterator writes it, without HTML escapes."""


def quote(data: bytes) -> str:
    """Return the bytes as strconv.Quote writes them, without the outer quotes (docs/reference/protocols.md 2.4)."""
    return "".join(map(_quoted, data.decode("utf-8", "surrogateescape")))


def _quoted(char: str) -> str:
    code = ord(char)
    if code in _QUOTED:
        return _QUOTED[code]
    if char.isprintable():
        return char
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_number(number: float) -> str:
    """Format a float like encoding/json: shortest digits, exponents below 1e-6 and from 1e21."""
    if number == 0 or 1e-6 <= abs(number) < 1e21:
        return plain_number(number)
    return repr(number).replace("e-0", "e-")


def plain_number(number: float) -> str:
    """Format a float with shortest digits and without exponent (Go's 'f')."""
    text = repr(number)
    return (f"{Decimal(text):f}" if "e" in text else text).removesuffix(".0")
