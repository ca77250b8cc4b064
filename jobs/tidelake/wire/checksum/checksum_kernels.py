"""Compiled: TiDB's column-level checksum of row images (docs/reference/protocols.md 4.2), from their canonical cells.

CRC-32 (IEEE), continued over the columns; NULL adds nothing. Numbers add their 64 bits, FLOAT those of the float64 of the same value,
texts and bytes their length (u32) before them, all little-endian; TIMESTAMP the text in UTC; VECTOR its count (u32) and float32s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelake.wire.checksum.checksum_zones import Zones
from tidelake.wire.kernels.arrays import Bytes, Flags, Ints, Longs
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import compiled, inlined_step, int64, step
from tidelake.wire.kernels.crc32 import add_bytes, eight, four
from tidelake.wire.kernels.float_texts import float_bits
from tidelake.wire.kernels.json_kernels import item

# How a cell adds to the sum. MENDED: text of a protocol that replaces invalid UTF-8; NAME, NAMES: members of ENUM and SET as texts
UNKNOWN, NUMBER, TEXT, MENDED, FLOAT, DOUBLE, TIMESTAMP, VECTOR, NAME, NAMES = range(10)
# What a sum is worth. DOUBTFUL: the sent one may be right where it differs; UNREADABLE: there is none
CLEAR, DOUBTFUL, UNREADABLE = range(3)
# The content of a message, a row of four numbers: a mark, the sums of the images after and before, the place of the times' zone
MARK, CURRENT, PREVIOUS, ZONE = range(4)
NOT_SENT, SENT, CORRUPTED = range(3)
NOT_A_SUM = -1  # in place of a number that is none: no row adds up to it

_U32 = np.uint64(0xFFFFFFFF)
_INFINITY = np.uint64(0x7FF0000000000000)
_NOT_SIGN = np.uint64((1 << 63) - 1)
_MINUS, _PLUS, _ZERO, _COMMA, _POINT = 45, 43, 48, 44, 46
_LARGEST = np.uint64((1 << 64) - 1)
_TEN = np.uint64(10)
_DIGITS = 20  # of the largest
_SECONDS = 19  # characters of a time without fraction
_MARKS = np.frombuffer(b"0000-00-00 00:00:00", np.uint8)
_REPLACEMENT = np.frombuffer("\ufffd".encode(), np.uint8)
SCRATCH_BYTES = 32


class ChecksumCells(NamedTuple):
    """One side of a batch (columnar.Cells)."""

    starts: Ints
    offsets: Ints
    present: Flags
    data: Bytes


class ChecksumProgram(NamedTuple):
    """How the images of each schema are summed. Schema i has the columns first[i] to first[i+1]; column c the members element[c] to
    element[c+1], member e the bytes ends[e] to ends[e+1] of names. doubtful: by schema."""

    first: Ints
    doubtful: Bytes
    code: Bytes
    element: Ints
    ends: Ints
    names: Bytes


@compiled
def sum_images(
    cells: ChecksumCells,
    program: ChecksumProgram,
    which: Ints,
    zone: Ints,
    zones: Zones,
    again: bool,
    sums: Longs,
    worth: Bytes,
    scratch: Bytes,
) -> None:
    """The checksum of each event's image, and what it is worth. which: by event, the schema in the program, or NONE; zone: the place in
    zones. again: read what can be read in two ways the other way, for sums that differ."""
    for i in range(len(which)):
        if which[i] != NONE:
            place = int64(zone[i])
            worth[i], sums[i] = _image(
                cells, int64(cells.starts[i]), int64(cells.starts[i + 1]), program, which[i], place, zones, again, scratch
            )


@inlined_step
def _image(
    cells: ChecksumCells, start: int, stop: int, program: ChecksumProgram, schema: int, zone: int, zones: Zones, again: bool, scratch: Bytes
) -> tuple[int, int]:
    crc, worth, first = _U32, int64(program.doubtful[schema]), int64(program.first[schema])
    if program.first[schema + 1] - first != stop - start:
        return UNREADABLE, 0
    for i in range(start, stop):
        if not cells.present[i]:
            continue
        column = first + i - start
        crc, found = _cell(
            crc, cells.data, int64(cells.offsets[i]), int64(cells.offsets[i + 1]), program, column, zone, zones, again, scratch
        )
        if found == UNREADABLE:
            return UNREADABLE, 0
        worth = max(worth, found)
    return worth, int64(crc ^ _U32)


@inlined_step
def _cell(
    crc: np.uint64,
    data: Bytes,
    p: int,
    end: int,
    program: ChecksumProgram,
    column: int,
    zone: int,
    zones: Zones,
    again: bool,
    scratch: Bytes,
) -> tuple[np.uint64, int]:
    """The sum after a cell, and what that is worth."""
    code = program.code[column]
    if code == NUMBER:
        value, read = _number(data, p, end)
        return eight(crc, value), CLEAR if read else UNREADABLE
    if code in (TEXT, MENDED):
        return _text(crc, data, p, end), DOUBTFUL if again and code == MENDED and _has_replacement(data, p, end) else CLEAR
    if code in (FLOAT, DOUBLE):
        value, read = _float(data, p, end, code == FLOAT)
        return eight(crc, value), CLEAR if read else UNREADABLE
    if code == TIMESTAMP:
        return _timestamp(crc, data, p, end, zone, zones, again, scratch)
    if code == VECTOR:
        return _vector(crc, data, p, end)
    if code in (NAME, NAMES):
        value, read = _members(data, p, end, program, column, code == NAMES)
        return eight(crc, value), CLEAR if read else UNREADABLE
    return crc, UNREADABLE


@inlined_step
def _text(crc: np.uint64, data: Bytes, p: int, end: int) -> np.uint64:
    return add_bytes(four(crc, np.uint64(end - p)), data, p, end)


@inlined_step
def sum_of_text(data: Bytes, p: int, end: int) -> int:
    """A checksum as decimal digits, NOT_A_SUM if it is none."""
    value, read = _number(data, p, end)
    return int64(value) if read and data[p] != _MINUS and value <= _U32 else NOT_A_SUM


@inlined_step
def _number(data: Bytes, p: int, end: int) -> tuple[np.uint64, bool]:
    """Decimal digits, perhaps after a minus sign, as 64 bits of two's complement."""
    negative = p < end and data[p] == _MINUS
    p += negative
    if not 0 < end - p <= _DIGITS:
        return np.uint64(0), False
    value, wrong, before = np.uint64(0), np.uint64(0), np.uint64(0)
    for i in range(p, end):
        digit = np.uint64(item(data, i)) - np.uint64(_ZERO)
        wrong |= np.uint64(digit > np.uint64(9))
        before, value = value, value * _TEN + digit
    if end - p == _DIGITS and (before > _LARGEST // _TEN or value < before):
        return np.uint64(0), False
    return (np.uint64(0) - value if negative else value), wrong == np.uint64(0)


@step
def _float(data: Bytes, p: int, end: int, narrow: bool) -> tuple[np.uint64, bool]:
    """The float64 of the value, narrow: as rounded to float32. Infinity and NaN, which TiCDC writes as 0, are 0."""
    bits, read = float_bits(data, p, end)
    if not read:
        at = p + (p < end and data[p] == _MINUS)
        return np.uint64(0), end - at == 3 and data[at] | 0x20 in (ord("n"), ord("i"))
    if narrow:
        bits = np.float64(np.float32(np.uint64(bits).view(np.float64))).view(np.uint64)
    return (np.uint64(0) if bits & _NOT_SIGN >= _INFINITY else bits), True


@step
def _vector(crc: np.uint64, data: Bytes, p: int, end: int) -> tuple[np.uint64, int]:
    """`[1,2.5]`."""
    if end - p < 2 or data[p] != ord("[") or data[end - 1] != ord("]"):
        return crc, UNREADABLE
    p, end, count = p + 1, end - 1, 0
    for i in range(p, end):
        count += data[i] == _COMMA
    count += end > p
    crc = four(crc, np.uint64(count))
    for _ in range(count):
        stop = p
        while stop < end and data[stop] != _COMMA:
            stop += 1
        while p < stop and data[p] == 0x20:
            p += 1
        bits, read = float_bits(data, p, stop)
        if not read:
            return crc, UNREADABLE
        crc = four(crc, np.uint64(np.float32(np.uint64(bits).view(np.float64)).view(np.uint32)))
        p = stop + 1
    return crc, CLEAR


@step
def _members(data: Bytes, p: int, end: int, program: ChecksumProgram, column: int, several: bool) -> tuple[np.uint64, bool]:
    """An ENUM's index from 1 on, or a SET's bits; the empty text is 0 where no member is empty."""
    value, first, last = np.uint64(0), int64(program.element[column]), int64(program.element[column + 1])
    if p == end and (several or _member(data, p, end, program, first, last) == NONE):
        return value, True
    while p <= end:
        stop = p
        while stop < end and (not several or data[stop] != _COMMA):
            stop += 1
        place = _member(data, p, stop, program, first, last)
        if place == NONE or (place > 63 and several):
            return value, False
        value |= np.uint64(1) << np.uint64(place) if several else np.uint64(place + 1)
        p = stop + 1
    return value, True


@step
def _member(data: Bytes, p: int, end: int, program: ChecksumProgram, first: int, last: int) -> int:
    """The place of the member that data[p:end] names."""
    for e in range(first, last):
        start, size = int64(program.ends[e]), int64(program.ends[e + 1] - program.ends[e])
        if size == end - p:
            i = 0
            while i < size and program.names[start + i] == data[p + i]:
                i += 1
            if i == size:
                return e - first
    return NONE


@step
def _has_replacement(data: Bytes, p: int, end: int) -> bool:
    for i in range(p, end - 2):  # noqa: SIM110  numba has no any()
        if data[i] == _REPLACEMENT[0] and data[i + 1] == _REPLACEMENT[1] and data[i + 2] == _REPLACEMENT[2]:
            return True
    return False


@step
def _timestamp(
    crc: np.uint64, data: Bytes, p: int, end: int, zone: int, zones: Zones, again: bool, scratch: Bytes
) -> tuple[np.uint64, int]:
    """A local time of the zone, summed as UTC. again: of two instants that the clocks showed so, the later one."""
    if not _is_time(data, p, end):
        return crc, UNREADABLE
    year, month, day = _digits(data, p, 4), _digits(data, p + 5, 2), _digits(data, p + 8, 2)
    first, last = (int64(zones.first[zone]), int64(zones.first[zone + 1])) if zone != NONE else (0, 0)
    if year == 0 or (last - first == 1 and zones.seconds[first] == 0):
        return _text(crc, data, p, end), CLEAR  # a zero date stays as it is
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return crc, UNREADABLE
    local = _days(year, month, day) * 86400 + _digits(data, p + 11, 2) * 3600 + _digits(data, p + 14, 2) * 60 + _digits(data, p + 17, 2)
    found, instant = 0, 0
    for i in range(last - 1, first - 1, -1):
        utc = local - zones.seconds[i]
        if utc >= zones.start[i] and (i + 1 == last or utc < zones.start[i + 1]):
            found += 1
            if found == 1 or not again:
                instant = utc
        if utc >= zones.start[i] + 2 * 86400:
            break
    if found == 0:
        return crc, UNREADABLE
    size = _put_time(scratch, instant)
    for i in range(p + _SECONDS, end):
        scratch[size] = data[i]
        size += 1
    return _text(crc, scratch, 0, size), DOUBTFUL if found > 1 else CLEAR


@inlined_step
def _is_time(data: Bytes, p: int, end: int) -> bool:
    """`2024-01-02 03:04:05`, perhaps with a point and up to six digits."""
    if end - p < _SECONDS or end - p == _SECONDS + 1 or end - p > _SECONDS + 7:
        return False
    for i in range(end - p):
        mark = int64(_MARKS[i]) if i < _SECONDS else _POINT if i == _SECONDS else _ZERO
        if (mark == _ZERO and not _ZERO <= data[p + i] <= _ZERO + 9) or (mark != _ZERO and data[p + i] != mark):
            return False
    return True


@inlined_step
def _digits(data: Bytes, p: int, count: int) -> int:
    value = 0
    for i in range(p, p + count):
        value = value * 10 + int64(data[i]) - _ZERO
    return value


@inlined_step
def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01; years counted from March, so that the leap day is the last."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@inlined_step
def _put_time(out: Bytes, instant: int) -> int:
    days, second = instant // 86400, instant % 86400
    days += 719468
    era = days // 146097
    of_era = days - era * 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += era * 400 + (month <= 2)
    for i in range(_SECONDS):
        out[i] = _MARKS[i]
    _put_digits(out, 0, 4, year)
    _put_digits(out, 5, 2, month)
    _put_digits(out, 8, 2, day)
    _put_digits(out, 11, 2, second // 3600)
    _put_digits(out, 14, 2, second // 60 % 60)
    _put_digits(out, 17, 2, second % 60)
    return _SECONDS


@inlined_step
def _put_digits(out: Bytes, at: int, count: int, value: int) -> None:
    for i in range(at + count - 1, at - 1, -1):
        out[i] = np.uint8(_ZERO + value % 10)
        value //= 10
