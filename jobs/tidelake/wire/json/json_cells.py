"""Compiled: one JSON value to the bytes of a cell, by the kind of its column (docs/reference/protocols.md 2.4, 5.2).

A kind is what the protocol does to a value on top of JSON. Every step answers the position after the value and the end of the
cell, position BAD where the general reader must look.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.compiled import inlined_step, int64, step
from tidelake.wire.kernels.float_texts import large_fraction
from tidelake.wire.kernels.json_kernels import (
    BACKSLASH,
    BAD,
    EQUALS,
    HIGHS,
    NOTHING,
    QUOTE,
    below,
    byte,
    byte_count,
    copied,
    fraction,
    integer,
    item,
    put,
    put_byte,
    word,
)

# Kinds of columns. INTEGER and FLOAT are JSON numbers, all others JSON strings; VOID has no value but null.
INTEGER, FLOAT, TEXT, BASE64, BASE64_TEXT, QUOTED, LATIN1, VOID, LATIN1_TEXT = range(9)

_INVALID = 255
_BAD_SEXTET = np.uint32(1 << 31)


def _table(values: dict[str, int], missing: int) -> Bytes:
    table = np.full(256, missing, np.uint8)
    for character, value in values.items():
        table[ord(character)] = value
    return table


_HEX = _table({c: int(c, 16) for c in "0123456789abcdefABCDEF"}, _INVALID)
_JSON_ESCAPES = _table(dict(zip('"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True)), 0)
_GO_ESCAPES = _table(dict(zip('"\\abfnrtv', b'"\\\a\b\f\n\r\t\v', strict=True)), 0)
_GO_HEX = _table({"x": 2, "u": 4, "U": 8}, 0)
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SEXTET = _table({c: i for i, c in enumerate(_ALPHABET)}, _INVALID).astype(np.uint32)
_SEXTETS = np.where(_SEXTET == _INVALID, _BAD_SEXTET, _SEXTET << np.array([[18], [12], [6], [0]], np.uint32))
_SEXTETS_0, _SEXTETS_1, _SEXTETS_2, _SEXTETS_3 = _SEXTETS
# UTF-8 by first byte: length of the character (0 = none starts so), and the range of its second byte
_LENGTHS = np.repeat(np.array([1, 0, 2, 3, 4, 0], np.uint8), [0x80, 0x42, 0x1E, 0x10, 5, 11])
_LOWS, _TOPS = np.full(256, 0x80, np.uint8), np.full(256, 0xBF, np.uint8)
_LOWS[[0xE0, 0xF0]], _TOPS[[0xED, 0xF4]] = [0xA0, 0x90], [0x9F, 0x8F]


@inlined_step
def cell(kind: int, text: Bytes, p: int, end: int, out: Bytes, at: int) -> tuple[int, int]:
    """The value at p, which is not null."""
    if kind == TEXT:
        return string(text, p, end, out, at)
    if kind == INTEGER:
        stop = integer(text, p)
    elif kind == FLOAT:
        stop = fraction(text, p, 2)
        stop = large_fraction(text, p) if stop == BAD else stop
    else:
        return _encoded(kind, text, p, end, out, at)
    return (stop, at) if stop == BAD else (stop, put(text, p, stop - p, out, at))


@inlined_step
def _encoded(kind: int, text: Bytes, p: int, end: int, out: Bytes, at: int) -> tuple[int, int]:
    if kind in (BASE64, BASE64_TEXT):
        p, stop = _base64(text, p, end, out, at)
        return (BAD if kind == BASE64_TEXT and p != BAD and not is_utf8(out, at, stop) else p), stop
    if kind == VOID:
        return BAD, at
    return _transcribed(kind, text, p, end, out, at)


@inlined_step
def string(text: Bytes, p: int, end: int, out: Bytes, at: int) -> tuple[int, int]:
    """A JSON string as UTF-8."""
    if byte(text, p) != QUOTE:
        return BAD, at
    p, stop, bits = copied(text, p + 1, end, out, at)
    if p != BAD and byte(text, p) != QUOTE:
        p, stop = _unescaped(text, p, end, out, stop)
        bits = HIGHS
    if p == BAD or (bits & HIGHS != NOTHING and not is_utf8(out, at, stop)):
        return BAD, at
    return p + 1, stop


@step
def _unescaped(text: Bytes, p: int, end: int, out: Bytes, at: int) -> tuple[int, int]:
    """The rest of a string from its first escape on: where its quote stands."""
    while p != BAD and byte(text, p) == BACKSLASH:
        p, at = _escape(text, p + 1, out, at)
        if p != BAD:
            p, at, _ = copied(text, p, end, out, at)
    return (p if p != BAD and byte(text, p) == QUOTE else BAD), at


@inlined_step
def _escape(text: Bytes, p: int, out: Bytes, at: int) -> tuple[int, int]:
    """One JSON escape after its backslash. Surrogate pairs, which TiCDC never writes, are left to the general reader."""
    letter = byte(text, p)
    if letter == ord("u"):
        code = hexadecimal(text, p + 1, 4)
        if code < 0 or 0xD800 <= code < 0xE000:
            return BAD, at
        return p + 5, put_character(out, at, code)
    put_byte(out, at, _JSON_ESCAPES[letter])
    return (p + 1 if _JSON_ESCAPES[letter] else BAD), at + 1


@inlined_step
def hexadecimal(text: Bytes, p: int, count: int) -> int:
    """The number that `count` hexadecimal digits encode, BAD if they are none."""
    value = 0
    for i in range(count):
        digit = int64(_HEX[byte(text, p + i)])
        if digit == _INVALID:
            return BAD
        value = value << 4 | digit
    return value


@inlined_step
def put_character(out: Bytes, at: int, code: int) -> int:
    """A code point as UTF-8."""
    if code < 0x80:
        put_byte(out, at, code)
        return at + 1
    size = 2 + (code >= 0x800) + (code >= 0x10000)
    for i in range(size - 1, 0, -1):
        put_byte(out, at + i, 0x80 | code & 0x3F)
        code >>= 6
    put_byte(out, at, (0xF00 >> size) & 0xFF | code)
    return at + size


@step
def is_utf8(data: Bytes, p: int, end: int) -> bool:
    """Whether data[p:end] is UTF-8 as Python reads it: shortest forms, no surrogates, up to U+10FFFF."""
    while True:
        marks = word(data, p) & HIGHS
        p += 8 if marks == NOTHING else byte_count(below(marks))
        if p >= end:
            return True
        if marks == NOTHING:
            continue
        size = int64(_LENGTHS[data[p]])
        if size == 0 or p + size > end or (size > 1 and not _LOWS[data[p]] <= data[p + 1] <= _TOPS[data[p]]):
            return False
        for i in range(2, size):
            if data[p + i] & 0xC0 != 0x80:
                return False
        p += size


@inlined_step
def _base64(text: Bytes, p: int, end: int, out: Bytes, at: int) -> tuple[int, int]:
    """Standard base64 with padding, written without escapes."""
    if byte(text, p) != QUOTE:
        return BAD, at
    p += 1
    while p + 4 <= end:
        bits = _three_bytes(text, p)
        if bits & _BAD_SEXTET:
            break
        put_byte(out, at, int64(bits >> np.uint32(16)))
        put_byte(out, at + 1, int64(bits >> np.uint32(8)))
        put_byte(out, at + 2, int64(bits))
        p += 4
        at += 3
    return (p + 1, at) if byte(text, p) == QUOTE else _base64_end(text, p, out, at)


@inlined_step
def _three_bytes(text: Bytes, p: int) -> np.uint32:
    low = _SEXTETS_0[item(text, p)] | _SEXTETS_1[item(text, p + 1)]
    return np.uint32(low | _SEXTETS_2[item(text, p + 2)] | _SEXTETS_3[item(text, p + 3)])


@step
def _base64_end(text: Bytes, p: int, out: Bytes, at: int) -> tuple[int, int]:
    """`xx==` or `xxx=`. Unused bits are ignored, as in Go's and Python's decoders."""
    third, padding = byte(text, p + 2), byte(text, p + 3)
    bits = _SEXTETS_0[byte(text, p)] | _SEXTETS_1[byte(text, p + 1)]
    if third != EQUALS:
        bits |= _SEXTETS_2[third]
    if bits & _BAD_SEXTET or padding != EQUALS or byte(text, p + 4) != QUOTE:
        return BAD, at
    put_byte(out, at, int64(bits >> np.uint32(16)))
    put_byte(out, at + 1, int64(bits >> np.uint32(8)))
    return p + 5, at + 1 + (third != EQUALS)


@step
def _transcribed(kind: int, text: Bytes, p: int, end: int, out: Bytes, at: int) -> tuple[int, int]:
    """Strings that hold bytes: read as text, then undone in place, which never needs more room."""
    p, stop = string(text, p, end, out, at)
    if p == BAD:
        return BAD, at
    if kind == QUOTED:
        stop = _unquoted(out, at, stop)
    else:
        stop = _from_latin1(out, at, stop)
        if kind == LATIN1_TEXT and stop != BAD and not is_utf8(out, at, stop):
            stop = BAD
    return (p, stop) if stop != BAD else (BAD, at)


@inlined_step
def _from_latin1(out: Bytes, at: int, end: int) -> int:
    """Code points U+0000 to U+00FF to bytes, in place: Canal-JSON's binary columns."""
    p = at
    while p < end:
        first = byte(out, p)
        if first > 0xC3:
            return BAD
        wide = first >= 0xC0
        put_byte(out, at, (first & 3) << 6 | byte(out, p + 1) & 0x3F if wide else first)
        p += 1 + wide
        at += 1
    return at


@inlined_step
def _unquoted(out: Bytes, at: int, end: int) -> int:
    """Undoes Go's strconv.Quote in place: Open's binary strings (docs/reference/protocols.md 2.4). Octal is left to the general reader."""
    p = at
    while p < end:
        c = byte(out, p)
        if c == QUOTE or c == ord("\n"):
            return BAD
        if c != BACKSLASH:
            put_byte(out, at, c)
            p, at = p + 1, at + 1
            continue
        p, at = _go_escape(out, p + 1, end, at)
        if p == BAD:
            return BAD
    return at


@inlined_step
def _go_escape(out: Bytes, p: int, end: int, at: int) -> tuple[int, int]:
    letter = byte(out, p) if p < end else 0
    size = int64(_GO_HEX[letter])
    if size == 0:
        put_byte(out, at, _GO_ESCAPES[letter])
        return (p + 1 if _GO_ESCAPES[letter] else BAD), at + 1
    code = hexadecimal(out, p + 1, size) if p + size < end else BAD
    if code < 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return BAD, at
    if size == 2:
        put_byte(out, at, code)
        return p + 3, at + 1
    return p + 1 + size, put_character(out, at, code)
