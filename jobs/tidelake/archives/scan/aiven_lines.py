"""Read lines of Aiven's JSON records with base64 keys and values into columns, in one compiled pass (docs/reference/archives.md 2, 9).

    {"key":"<base64>"|null,"value":"<base64>"|null,"offset":n,"timestamp":"2026-01-05T10:50:00.292Z"|null,"headers":[]|null}

Members in any order, each at most once; 0 or 3 fraction digits. The connector writes this form for messages without headers. All other
lines, valid or not, are left to a reader of full JSON. For the lines read here, both readers give the same result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelake.history.event import HEADERS
from tidelake.wire.kernels.arrays import Bytes, Ints, Longs
from tidelake.wire.kernels.base64_kernels import TABLES, unquoted
from tidelake.wire.kernels.compiled import compiled, int64
from tidelake.wire.kernels.spans import frozen

_BAD = -1
_MARGIN = bytes(8)  # after the lines: no step accepts it, so none reads further
_QUOTE, _COMMA, _COLON, _OPEN, _CLOSE, _LIST, _LIST_END, _SPACE, _END, _ZERO, _NINE, _POINT, _Z, _N = b'",:{}[] \n09.Zn'
_NAMES = b"key\0value\0offset\0timestamp\0headers\0"  # in the order of the members below
_KEY, _VALUE, _OFFSET, _STAMP, _HEADERS = 1, 2, 4, 8, 16
_NEEDED = _OFFSET | _VALUE
_FORM = b"0000-00-00T00:00:00"
_FORM_SIZE = len(_FORM)
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Records:
    """One column per member; null where the member is null or missing."""

    offset: pa.Array
    timestamp_ms: pa.Array
    key: pa.Array
    value: pa.Array
    headers: pa.Array


def records(data: bytes, lines: int) -> Records | None:
    """Return the records of all lines, None if a line has another form. lines: their number."""
    numbers, there = np.empty((2, lines), np.int64), np.empty(lines, np.uint8)
    texts, starts = np.empty((2, len(data) // 4 * 3), np.uint8), np.zeros((2, lines + 1), np.int32)
    done = _scan(frozen(data + _MARGIN), len(data), TABLES, _WORDS, numbers, there, texts, starts, np.zeros(2, np.int64))
    if done != lines:
        return None
    return Records(
        pa.array(numbers[0]),
        pa.array(numbers[1], mask=_lacks(there, _STAMP)),
        _binary(texts[0], starts[0], _lacks(there, _KEY)),
        _binary(texts[1], starts[1], _lacks(there, _VALUE)),
        _headers(_lacks(there, _HEADERS)),
    )


def _lacks(there: Bytes, member: int) -> npt.NDArray[np.bool_]:
    lacks: npt.NDArray[np.bool_] = (there & member) == 0
    return lacks


def _binary(data: Bytes, starts: Ints, null: npt.NDArray[np.bool_]) -> pa.Array:
    valid = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    return pa.Array.from_buffers(pa.binary(), len(null), [valid, pa.py_buffer(starts), pa.py_buffer(data[: starts[-1]])])


def _headers(null: npt.NDArray[np.bool_]) -> pa.Array:
    """Return empty lists, or null."""
    if null.all():
        return pa.nulls(len(null), HEADERS)
    none = pa.array([], HEADERS.value_type)
    mask = pa.array(null) if null.any() else None
    return pa.ListArray.from_arrays(pa.array(np.zeros(len(null) + 1, np.int32)), none, type=HEADERS, mask=mask)


_WORDS = frozen(_NAMES + _FORM)


@compiled
def _scan(buf: Bytes, end: int, tables: Ints, words: Bytes, numbers: Longs, there: Bytes, texts: Bytes, starts: Ints, at: Longs) -> int:
    """Return the number of records; _BAD if one has another form, or there are more than fit. Fills all but the first four arguments.

    numbers: offsets and timestamps; texts, starts: of keys and values; at: how much of the texts is filled.
    """
    p, row = int64(0), int64(0)
    while p < end:
        if row == len(there) or buf[p] != _OPEN:
            return _BAD
        p = _record(buf, p + 1, tables, words, numbers, there, texts, at, row)
        if p == _BAD or (p != end and buf[p] != _END):
            return _BAD
        p += 1
        row += 1
        starts[0, row] = at[0]
        starts[1, row] = at[1]
    return row


@compiled
def _record(buf: Bytes, p: int, tables: Ints, words: Bytes, numbers: Longs, there: Bytes, texts: Bytes, at: Longs, row: int) -> int:
    """Read the object whose first member begins at p. Returns the position after it."""
    seen, full, more = int64(0), int64(0), True
    while more:
        p = _spaces(buf, p)
        member = _member(buf, p, words)
        if member == _BAD or seen & member:
            return _BAD
        seen |= member
        p = _value(buf, _past_name(buf, p))
        if p == _BAD:
            return _BAD
        if buf[p] == _N and member != _OFFSET:
            p = _null(buf, p)
        else:
            p = _content(buf, p, member, tables, words, numbers, texts, at, row)
            full |= member
        if p == _BAD:
            return _BAD
        p = _spaces(buf, p)
        more = buf[p] == _COMMA
        if not more and buf[p] != _CLOSE:
            return _BAD
        p += 1
    there[row] = full
    return p if seen & _NEEDED == _NEEDED else _BAD


@compiled
def _content(buf: Bytes, p: int, member: int, tables: Ints, words: Bytes, numbers: Longs, texts: Bytes, at: Longs, row: int) -> int:
    """Read a member's non-null value. Returns the position after it."""
    if member in (_VALUE, _KEY):
        side = 0 if member == _KEY else 1
        p, at[side] = unquoted(buf, p, tables, texts[side], at[side])
        return p
    if member == _OFFSET:
        return _long(buf, p, numbers[0], row)
    return _time(buf, p, words, numbers[1], row) if member == _STAMP else _empty_list(buf, p)


@compiled
def _spaces(buf: Bytes, p: int) -> int:
    while buf[p] == _SPACE:
        p += 1
    return p


@compiled
def _member(buf: Bytes, p: int, words: Bytes) -> int:
    """Return which member's name begins at p."""
    if buf[p] != _QUOTE:
        return _BAD
    at, member = int64(0), int64(1)
    while member <= _HEADERS:
        k = int64(0)
        while words[at + k] != 0 and buf[p + 1 + k] == words[at + k]:
            k += 1
        if words[at + k] == 0 and buf[p + 1 + k] == _QUOTE:
            return member
        while words[at] != 0:
            at += 1
        at += 1
        member *= 2
    return _BAD


@compiled
def _past_name(buf: Bytes, p: int) -> int:
    """Return the position after the name that begins at p."""
    p += 1
    while buf[p] != _QUOTE:
        p += 1
    return p + 1


@compiled
def _value(buf: Bytes, p: int) -> int:
    """Return the position of the value after the colon."""
    p = _spaces(buf, p)
    return _spaces(buf, p + 1) if buf[p] == _COLON else _BAD


@compiled
def _null(buf: Bytes, p: int) -> int:
    if buf[p + 1] != 0x75 or buf[p + 2] != 0x6C or buf[p + 3] != 0x6C:
        return _BAD
    return p + 4


@compiled
def _empty_list(buf: Bytes, p: int) -> int:
    if buf[p] != _LIST or buf[p + 1] != _LIST_END:
        return _BAD
    return p + 2


@compiled
def _long(buf: Bytes, p: int, out: Longs, row: int) -> int:
    begin, found = p, int64(0)
    while p - begin < _MOST_DIGITS and buf[p] >= _ZERO and buf[p] <= _NINE:
        found = 10 * found + (buf[p] - _ZERO)
        p += 1
    out[row] = found
    return p if p > begin and (buf[begin] != _ZERO or p == begin + 1) else _BAD


@compiled
def _time(buf: Bytes, p: int, words: Bytes, out: Longs, row: int) -> int:
    """Read the text of a moment from 1970 on, in UTC. Returns the position after it."""
    if buf[p] != _QUOTE or not _has_form(buf, p + 1, words, len(words) - _FORM_SIZE, _FORM_SIZE):
        return _BAD
    p += 1
    day, second = _day(buf, p), _second(buf, p + 11)
    if day == _BAD or second == _BAD:
        return _BAD
    p += _FORM_SIZE
    milliseconds = int64(0)
    if buf[p] == _POINT:
        if not _has_form(buf, p + 1, words, len(words) - 2, 2) or not _has_form(buf, p + 3, words, len(words) - 1, 1):
            return _BAD
        milliseconds = _digits(buf, p + 1, 3)
        p += 4
    out[row] = (day * 86_400 + second) * 1_000 + milliseconds
    return p + 2 if buf[p] == _Z and buf[p + 1] == _QUOTE else _BAD


@compiled
def _has_form(buf: Bytes, p: int, words: Bytes, form: int, size: int) -> bool:
    """Whether the text at p matches the form, in which 0 means any digit."""
    for i in range(size):
        wanted, found = words[form + i], buf[p + i]
        if (found < _ZERO or found > _NINE) if wanted == _ZERO else found != wanted:
            return False
    return True


@compiled
def _day(buf: Bytes, p: int) -> int:
    """Return the days since 1970; _BAD for an invalid date."""
    year, month, day = _digits(buf, p, 4), _digits(buf, p + 5, 2), _digits(buf, p + 8, 2)
    if year < 1970 or month < 1 or month > 12 or day < 1 or day > 28 + _more_days(year, month):
        return _BAD
    return _days(year, month, day)


@compiled
def _second(buf: Bytes, p: int) -> int:
    """Return the second of the day; _BAD for an invalid time."""
    hour, minute, second = _digits(buf, p, 2), _digits(buf, p + 3, 2), _digits(buf, p + 6, 2)
    return _BAD if hour > 23 or minute > 59 or second > 59 else (hour * 60 + minute) * 60 + second


@compiled
def _digits(buf: Bytes, p: int, count: int) -> int:
    found = int64(0)
    for i in range(count):
        found = 10 * found + (buf[p + i] - _ZERO)
    return found


@compiled
def _more_days(year: int, month: int) -> int:
    """Return by how many days a month exceeds 28."""
    if month == 2:
        return 1 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 0
    return 2 if month in (4, 6, 9, 11) else 3


@compiled
def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01. Here a year begins in March, so that a leap day is its last."""
    if month <= 2:
        year -= 1
        month += 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719_469
