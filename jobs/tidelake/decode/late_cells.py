"""Cells of messages without types (docs/reference/protocols.md 9.2) → canonical text in Arrow, once the types are known.

Debezium without schema writes a DATE as days, a DATETIME as milli- or microseconds, bytes as base64. Only the table's columns at the row's
commit ts show the type. The decoder leaves such cells as they were sent. wire/cells/debezium_cells.py is the same rule in Python, for
messages with types; it refuses a message whose value has another form. Here such a cell stays as it was sent: it may be the column's
default, sent for a NULL, and what is no value of the type is counted when cells become values (lake.columns.cells).

JSON's own types are lost by then. A text of digits in a date or time column is read as the number, and a BIT value of four or more
characters as base64. TiCDC sends neither digits as text for the first nor numbers for the second.

All differences from wire/cells/debezium_cells.py:

fractions       A fraction that the column's digits do not show is not cut. Where no digits are known, three or six are shown if needed.
out of range    Days, times and instants beyond MySQL's range stay as sent.
DECIMAL         Padded with zeros to the column's scale; an exponent is written out, too, and no digit is rounded away.
BIT             What is not base64 of 1 to 8 bytes stays as sent.
base64          Only the padded form. Python also accepts `AAAA=`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.archives.readers.base64_text import Base64Error, decode
from tidelake.history.ddl.column_types import MysqlType
from tidelake.wire.cells.debezium_cells import DAYS, ESCAPED_COMMA, MAX_DECIMAL, MAX_FSP, MAX_TIME, MILLI_DIGITS, YEAR_ZERO, ZERO
from tidelake.wire.kernels.arrays import Longs

PROTOCOLS = frozenset({"debezium"})  # protocols whose cells without a type are such values, unless the column says another form
Read = Callable[[pa.Array], pa.Array]  # cells without NULL → their texts, NULL for a cell that stays as it is
_INTEGER = "^-?[0-9]{1,18}$"
_NEGATIVE = "^-[1-9][0-9]{0,18}$"
_DECIMAL = r"^(?P<whole>-?[0-9]+)(?:\.(?P<fraction>[0-9]+))?$"
_EXPONENT = r"^-?[0-9]+(\.[0-9]+)?[eE][-+]?[0-9]{1,9}$"
_INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"
_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_BITS = "^([A-Za-z0-9+/]{4}){0,2}([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$"
_SECOND, _HOUR, _DAY = 1_000_000, 3_600_000_000, 86_400_000_000  # microseconds
_CLOCK = 19  # characters of a date and time without fraction
_CERTAIN = (0, 2_145_916_799)  # seconds of 1970 to 2037, beyond which Arrow knows no change of clocks
_ALL = (-62_135_596_800, 253_402_300_799)  # seconds of the years 1 to 9999
_UNSIGNED = pa.scalar(Decimal(1 << 64), pa.decimal128(20, 0))
_MAX_NEGATIVE = pa.scalar(Decimal(-(1 << 63)), pa.decimal128(20, 0))
_LONGEST = 8  # bytes of a BIT value


def canonical(cells: pa.Array, mysql: MysqlType, time_zone: str) -> pa.Array | None:
    """Return the canonical text, or the bytes of a binary column, of cells as sent; None if cells of the type are canonical as sent.

    Args:
        cells: Cells of type binary, as the decoder left them.
        mysql: The column's type at the rows' commit ts.
        time_zone: The feed's time zone, in which TIMESTAMP is printed: a name of the tz database, or an offset like +08:00.

    Returns:
        An array of type binary, as long as `cells`, with the same NULLs.

    Source:
        https://docs.pingcap.com/tidb/stable/ticdc-debezium
    """
    if mysql.is_binary:
        return from_base64(cells)
    if mysql.word == "decimal":
        return plain_decimals(cells, mysql.scale)
    found = _rule(mysql, time_zone)
    return None if found is None else _replaced(cells, *found)


def _rule(mysql: MysqlType, time_zone: str) -> tuple[str, Read] | None:
    """The form of cells that are no canonical text, and how they are read."""
    digits = mysql.fraction_digits
    digits = digits if digits is not None and digits <= MAX_FSP else None
    match mysql.word:
        case "date":
            return _INTEGER, _days
        case "datetime":
            return _INTEGER, lambda cells: _moments(cells, digits)
        case "time":
            return _INTEGER, lambda cells: _times(cells, digits)
        case "timestamp":
            return _INSTANT, lambda cells: _instants(cells, digits, time_zone)
        case "bit":
            return _BITS, _bits
        case "year":
            return f"^{YEAR_ZERO}$", lambda cells: pa.nulls(len(cells), pa.string()).fill_null("0")
        case "enum" if any("," in e for e in mysql.elements or ()):
            return re.escape(ESCAPED_COMMA), lambda cells: _names(cells, mysql.elements or ())
        case "bigint" if mysql.unsigned:
            return _NEGATIVE, _unsigned
        case _:
            return None


def plain_decimals(cells: pa.Array, scale: int | None) -> pa.Array:
    """Return decimals without exponents, padded with zeros to the scale."""
    return _replaced(_replaced(cells, _EXPONENT, _without_exponents), _DECIMAL, lambda found: _padded(found, scale))


def from_base64(cells: pa.Array) -> pa.Array:
    """Return bytes that are sent as base64. Cells are looked at one by one only if one of them is something else."""
    try:
        found = decode(cells.drop_null())
    except Base64Error:
        return _replaced(cells, _BASE64, decode)
    return pc.replace_with_mask(cells, cells.is_valid(), found) if cells.null_count else found


def _replaced(cells: pa.Array, form: str, read: Read) -> pa.Array:
    """The cells, those of a form replaced by what is read of them."""
    formed = pc.fill_null(pc.match_substring_regex(cells, form), False)
    if not pc.any(formed, min_count=0).as_py():
        return cells
    chosen = cells.filter(formed)
    texts = pc.coalesce(read(chosen).cast(pa.binary()), chosen)
    return texts if len(texts) == len(cells) else pc.replace_with_mask(cells, formed, texts)


def _integers(cells: pa.Array, low: int, high: int) -> tuple[Longs, pa.Array]:
    """Numbers, and which of them are between two others, both included; the rest are 0."""
    numbers = cells.cast(pa.string()).cast(pa.int64())
    held = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return np.asarray(pc.if_else(held, numbers, 0)), held


def _days(cells: pa.Array) -> pa.Array:
    days, held = _integers(cells, *DAYS)
    return pc.if_else(held, pa.array(days).cast(pa.int32()).cast(pa.date32()).cast(pa.string()), None)


def _moments(cells: pa.Array, digits: int | None) -> pa.Array:
    unit = 1 if digits is not None and digits > MILLI_DIGITS else 1000  # microseconds
    sent, held = _integers(cells, DAYS[0] * _DAY // unit, (DAYS[1] + 1) * _DAY // unit - 1)
    micros = sent * unit
    return pc.if_else(held, _shown(pa.array(micros).cast(pa.timestamp("us")).cast(pa.string()), micros, digits), None)


def _times(cells: pa.Array, digits: int | None) -> pa.Array:
    sent, held = _integers(cells, -MAX_TIME, MAX_TIME)
    micros = np.abs(sent)
    hours = pc.utf8_lpad(pa.array(micros // _HOUR).cast(pa.string()), width=2, padding="0")
    rest = pc.utf8_slice_codeunits(pa.array(micros % _HOUR).cast(pa.time64("us")).cast(pa.string()), start=2)
    sign = pc.if_else(pa.array(sent < 0), "-", "")
    return pc.if_else(held, _shown(pc.binary_join_element_wise(sign, hours, rest, ""), micros, digits), None)


def _shown(text: pa.Array, micros: Longs, digits: int | None) -> pa.Array:
    """Texts with six fraction digits, cut to the column's. If these do not show all: none, three or six."""
    fraction = micros % _SECOND
    shown = np.where(fraction == 0, 0, np.where(fraction % 1000 == 0, 3, MAX_FSP))
    if digits is not None:
        shown = np.where(fraction % 10 ** (MAX_FSP - digits) == 0, digits, shown)
    for n in range(MAX_FSP):
        if (chosen := shown == n).any():
            cut = pc.utf8_slice_codeunits(text, start=0, stop=n - MAX_FSP - (n == 0))
            text = cut if chosen.all() else pc.if_else(pa.array(chosen), cut, text)
    return text


def _instants(cells: pa.Array, digits: int | None, time_zone: str) -> pa.Array:
    """Instants in UTC as the feed's clocks show them, with the fraction as sent."""
    sent = pc.binary_replace_slice(pc.binary_slice(cells, start=0, stop=_CLOCK), start=10, stop=11, replacement=b" ").cast(pa.string())
    parsed = pc.strptime(sent, format="%Y-%m-%d %H:%M:%S", unit="s", error_is_null=True)
    parsed = pc.if_else(pc.equal(parsed.cast(pa.string()), sent), parsed, None)  # no 30 February
    clock = _in_zone(_between(parsed, _ALL), time_zone).cast(pa.string())
    fraction = pc.binary_slice(cells, start=_CLOCK, stop=-1).cast(pa.string())
    zero = "0000-00-00 00:00:00" + f".{'0' * (digits or 0)}".rstrip(".")
    return pc.if_else(pc.equal(cells, ZERO.encode()), zero, pc.binary_join_element_wise(clock, fraction, ""))


def _between(seconds: pa.Array, bounds: tuple[int, int]) -> pa.Array:
    """The times of day that are between two, both included; NULL for others."""
    low, high = (pa.scalar(n, pa.timestamp("s")) for n in bounds)
    return pc.if_else(pc.and_(pc.greater_equal(seconds, low), pc.less_equal(seconds, high)), seconds, None)


def _in_zone(utc: pa.Array, zone: str) -> pa.Array:
    """What clocks of the zone show. NULL beyond the years 1 to 9999."""
    if zone == "UTC":
        return utc
    if zone[0] in "+-":
        seconds = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        return _between(pc.add(utc, pa.scalar(-seconds if zone[0] == "-" else seconds, pa.duration("s"))), _ALL)
    certain = _between(utc, _CERTAIN)
    shown = pc.local_timestamp(certain.cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("s", zone)))
    if certain.null_count == utc.null_count:
        return shown
    coded = pc.if_else(certain.is_valid(), None, utc).dictionary_encode()
    others = pa.array([_clock(at, ZoneInfo(zone)) for at in coded.dictionary.to_pylist()], utc.type)
    return pc.coalesce(shown, others.take(coded.indices))


def _clock(utc: datetime, zone: ZoneInfo) -> datetime | None:
    """What clocks show in a year for which Arrow has no rules."""
    try:
        return utc.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        return None


def _bits(cells: pa.Array) -> pa.Array:
    """Numbers whose bytes are sent as base64, lowest first."""
    raw = decode(cells)
    sizes = np.asarray(pc.binary_length(raw))
    fit = np.repeat(sizes <= _LONGEST, sizes)
    rows, starts = np.repeat(np.arange(len(raw)), sizes), np.cumsum(sizes) - sizes
    places = np.arange(len(rows)) - np.repeat(starts, sizes)
    wide = np.zeros((len(raw), _LONGEST), np.uint8)
    wide[rows[fit], places[fit]] = np.frombuffer(raw.buffers()[2], np.uint8, len(rows))[fit]
    numbers = pa.array(wide.view("<u8").ravel().astype(np.uint64, copy=False))
    return pc.if_else(pa.array(sizes <= _LONGEST), numbers.cast(pa.string()), None)


def _names(cells: pa.Array, elements: tuple[str, ...]) -> pa.Array:
    """Names whose commas were escaped, where that makes a name of the column's."""
    sent, known = cells.cast(pa.string()), pa.array(elements)
    plain = pc.replace_substring(sent, ESCAPED_COMMA, ",")
    return pc.if_else(pc.and_not(pc.is_in(plain, known), pc.is_in(sent, known)), plain, None)


def _unsigned(cells: pa.Array) -> pa.Array:
    """Numbers of 64 bits that were sent with a sign."""
    numbers = cells.cast(pa.string()).cast(pa.decimal128(20, 0))
    held = pc.greater_equal(numbers, _MAX_NEGATIVE)
    return pc.if_else(held, pc.add(numbers, _UNSIGNED).cast(pa.string()), None)


def _without_exponents(cells: pa.Array) -> pa.Array:
    coded = cells.dictionary_encode()
    return pa.array([_plain(c.decode()) for c in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


def _plain(text: str) -> str | None:
    number = Decimal(text)
    return f"{number:f}" if -MAX_DECIMAL <= number.adjusted() <= MAX_DECIMAL else None


def _padded(cells: pa.Array, scale: int | None) -> pa.Array:
    """Decimals with the column's scale, where no other digit than zeros is beyond it."""
    text = cells.cast(pa.string())
    if scale is None:
        return text
    parts = pc.extract_regex(text, pattern=_DECIMAL)
    fraction = parts.field("fraction")
    kept = pc.utf8_rpad(pc.utf8_slice_codeunits(fraction, start=0, stop=scale), width=scale, padding="0")
    lossless = pc.equal(pc.utf8_rtrim(pc.utf8_slice_codeunits(fraction, start=scale), characters="0"), "")
    whole = parts.field("whole")
    return pc.if_else(lossless, pc.binary_join_element_wise(whole, kept, ".") if scale else whole, text)
