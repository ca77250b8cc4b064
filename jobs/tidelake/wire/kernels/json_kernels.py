"""Compiled steps over JSON text: find the end of a string while copying it, judge numbers, compare eight bytes at a time.

Nothing here reads outside its arrays for any input, and nothing raises: a step answers position BAD for everything that it does not
understand, valid or not, and the general reader judges. A position may run past the end of its message by the length of one
constant piece, never past the array's; whoever walks a message compares the last position with the message's end. Indices are
made unsigned before use: numba then leaves out Python's counting from the end. Wire numbers are uint64 throughout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.compiled import inlined_step, int64, step

BAD = -1  # as a position: not understood

QUOTE, COMMA, MINUS, PLUS, POINT, ZERO, COLON, EQUALS = 0x22, 0x2C, 0x2D, 0x2B, 0x2E, 0x30, 0x3A, 0x3D
OPEN_BRACKET, BACKSLASH, CLOSE_BRACKET, LOWER_N, OPEN_BRACE, CLOSE_BRACE = 0x5B, 0x5C, 0x5D, 0x6E, 0x7B, 0x7D
LOWER_E, UPPER_E = 0x65, 0x45
OVERSHOOT = 8  # bytes that a copy may write after its end
MAX_FLOAT = 48  # characters; with exponents below 100 that is far from the largest double

NOTHING, ONE = np.uint64(0), np.uint64(1)
_ONES = np.uint64(0x0101010101010101)
HIGHS = np.uint64(0x8080808080808080)
_BLANKS = _ONES * np.uint64(0x20)
_QUOTES = _ONES * np.uint64(QUOTE)
_BACKSLASHES = _ONES * np.uint64(BACKSLASH)
_ZEROS = _ONES * np.uint64(ZERO)
_ABOVE_NINE = _ONES * np.uint64(0x80 - 10)
_NULL = np.uint64(int.from_bytes(b"null", "little"))
_LARGEST = np.frombuffer(b"18446744073709551615", np.uint8)
_SMALLEST = np.frombuffer(b"9223372036854775808", np.uint8)


@inlined_step
def item(array: npt.NDArray[Any], i: int) -> Any:
    """array[i] for an i that is never negative."""
    return array[np.uint64(i)]


@inlined_step
def byte(text: Bytes, p: int) -> int:
    """The byte at p, 0 after the end."""
    return int64(item(text, p)) if p < len(text) else 0


@inlined_step
def word(text: Bytes, p: int) -> np.uint64:
    """Eight bytes as a little-endian number, zeros after the end. The compiler makes one load of it."""
    value, start = NOTHING, np.uint64(p)
    if p + 8 <= len(text):
        for i in range(8):
            value |= np.uint64(text[start + np.uint64(i)]) << np.uint64(8 * i)
    else:
        for i in range(max(len(text) - p, 0)):
            value |= np.uint64(text[start + np.uint64(i)]) << np.uint64(8 * i)
    return value


@inlined_step
def put_word(out: Bytes, at: int, value: np.uint64) -> None:
    """Eight bytes, lowest first: one store."""
    start = np.uint64(at)
    for i in range(8):
        out[start + np.uint64(i)] = np.uint8(value >> np.uint64(8 * i) & np.uint64(0xFF))


@inlined_step
def put_byte(out: Bytes, at: int, value: int) -> None:
    """One byte."""
    out[np.uint64(at)] = np.uint8(value)


@inlined_step
def below(marks: np.uint64) -> np.uint64:
    """Ones in all bytes below the lowest byte whose top bit is marked; some byte is."""
    return ((marks & (NOTHING - marks)) >> np.uint64(7)) - ONE


@inlined_step
def byte_count(mask: np.uint64) -> int:
    """How many of the lowest bytes a mask of `below` covers."""
    return int64((mask & _ONES) * _ONES >> np.uint64(56))


@inlined_step
def special(w: np.uint64) -> np.uint64:
    """Marks the first byte that is a quote, a backslash or a control character; what is marked above it means nothing."""
    quotes, backslashes = w ^ _QUOTES, w ^ _BACKSLASHES
    return ((quotes - _ONES) & ~quotes | (backslashes - _ONES) & ~backslashes | (w - _BLANKS) & ~w) & HIGHS


@inlined_step
def copied(text: Bytes, p: int, end: int, out: Bytes, at: int) -> tuple[int, int, np.uint64]:
    """Copies characters up to the first quote, backslash or control character: where that stands, the end of the copy, and
    all bits that copied bytes had; BAD if the message ends first. Writes up to OVERSHOOT bytes more."""
    bits = NOTHING
    while p < end:
        w = word(text, p)
        put_word(out, at, w)
        stop = special(w)
        if stop != NOTHING:
            mask = below(stop)
            k = byte_count(mask)
            return (p + k if p + k < end else BAD), at + k, bits | w & mask
        bits |= w
        p += 8
        at += 8
    return BAD, at, bits


@inlined_step
def raw_end(text: Bytes, p: int, end: int) -> int:
    """The quote that ends the string whose content starts at p, escapes not looked at; BAD if there is none."""
    while p < end:
        stop = special(word(text, p))
        if stop == NOTHING:
            p += 8
            continue
        p += byte_count(below(stop))
        if byte(text, p) != BACKSLASH:
            return p if p < end and byte(text, p) == QUOTE else BAD
        p += 2
    return BAD


@inlined_step
def put(text: Bytes, p: int, size: int, out: Bytes, at: int) -> int:
    """Copies `size` bytes; the end of the copy. Writes up to OVERSHOOT bytes more."""
    for i in range(0, size, 8):
        put_word(out, at + i, word(text, p + i))
    return at + size


@inlined_step
def digits(text: Bytes, p: int) -> int:
    """The position after the decimal digits at p."""
    while True:
        other = word(text, p) ^ _ZEROS
        marks = (other + _ABOVE_NINE | other) & HIGHS
        if marks != NOTHING:
            return p + byte_count(below(marks))
        p += 8


@inlined_step
def whole(text: Bytes, p: int) -> int:
    """The position after the integer at p, of any size; BAD for none and for leading zeros."""
    start = p + (byte(text, p) == MINUS)
    stop = digits(text, start)
    if stop == start or (stop - start > 1 and byte(text, start) == ZERO):
        return BAD
    return stop


@inlined_step
def integer(text: Bytes, p: int) -> int:
    """The position after an integer from -2^63 to 2^64 - 1; BAD for -0, whose text is not canonical."""
    stop = whole(text, p)
    if byte(text, p) == MINUS and byte(text, p + 1) == ZERO:
        return BAD
    return stop if stop - p <= 18 or _fits(text, p, stop) else BAD


@step
def _fits(text: Bytes, p: int, stop: int) -> bool:
    limit, start = (_SMALLEST, p + 1) if byte(text, p) == MINUS else (_LARGEST, p)
    if stop - start != len(limit):
        return stop - start < len(limit)
    for i in range(len(limit)):
        if text[start + i] != limit[i]:
            return bool(text[start + i] < limit[i])
    return True


@inlined_step
def fraction(text: Bytes, p: int, most: int) -> int:
    """The position after a number that may have a fraction and an exponent, of `most` digits where it is positive: with two the number
    is small enough to be a finite double."""
    stop = whole(text, p)
    if stop != BAD and byte(text, stop) == POINT:
        start = stop + 1
        stop = digits(text, start)
        stop = stop if stop > start else BAD
    if stop != BAD and (byte(text, stop) == LOWER_E or byte(text, stop) == UPPER_E):
        stop = _exponent(text, stop + 1, most)
    return stop if stop - p <= MAX_FLOAT else BAD


@step
def _exponent(text: Bytes, p: int, most: int) -> int:
    sign = byte(text, p)
    start = p + (sign in (MINUS, PLUS))
    stop = digits(text, start)
    return stop if start < stop <= start + (3 if sign == MINUS else most) else BAD


@inlined_step
def eight_digits(w: np.uint64) -> np.uint64:
    """The number that eight digits encode: pairs, fours, eight at once."""
    w = (w & np.uint64(0x0F0F0F0F0F0F0F0F)) * np.uint64(2561) >> np.uint64(8)
    w = (w & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601) >> np.uint64(16)
    return (w & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001) >> np.uint64(32)


@inlined_step
def unsigned(text: Bytes, p: int) -> tuple[np.uint64, int]:
    """An integer without sign of at most 19 digits, and the position after it."""
    stop, value = whole(text, p), NOTHING
    if stop == BAD or byte(text, p) == MINUS or stop - p > 19:
        return value, BAD
    while stop - p >= 8:
        value = value * np.uint64(100000000) + eight_digits(word(text, p))
        p += 8
    while p < stop:
        value = value * np.uint64(10) + np.uint64(byte(text, p) - ZERO)
        p += 1
    return value, stop


@inlined_step
def is_null(text: Bytes, p: int) -> bool:
    """Whether null is at p."""
    return byte(text, p) == LOWER_N and word(text, p) & np.uint64(0xFFFFFFFF) == _NULL
