"""Values of Debezium's JSON (docs/reference/protocols.md 9.2) → canonical text, by the column's type.

integers        number, BIGINT UNSIGNED wrapped to int64         DATE       days since 1970-01-01
BIT(1)          boolean, BIT(n): base64, little-endian           DATETIME   milli- or microseconds since 1970, as if UTC
DECIMAL         double; of connectors: below                     TIMESTAMP  RFC 3339 text in UTC; second 0 = the zero timestamp
binary          base64                                           TIME       microseconds
YEAR            number; 1900 is the year 0000

Debezium's own connectors say in the schema's `name` how a value is written: in which unit of time (UNITS), as an ISO text, or, for DECIMAL
and Decimal, as base64 of an unscaled big-endian number whose scale the schema has.

Where a NULL was replaced by the column's default, the default's text stands instead: digits, a date, the raw text of a binary column.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

import numpy as np

from tidelake.errors import DecodeError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import SchemaColumn
from tidelake.wire.cells.plain_cells import is_binary, number, scalar
from tidelake.wire.json.json_text import Number, kind

DECIMAL = "org.apache.kafka.connect.data.Decimal"
UNITS = {  # meaning of a DATETIME or TIME → nanoseconds of its unit
    "io.debezium.time.Timestamp": 1_000_000,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1,
    "org.apache.kafka.connect.data.Timestamp": 1_000_000,
    "io.debezium.time.Time": 1_000_000,
    "io.debezium.time.MicroTime": 1_000,
    "io.debezium.time.NanoTime": 1,
    "org.apache.kafka.connect.data.Time": 1_000_000,
}
TIMES = frozenset(  # meanings of a TIME
    f"{of}Time"
    for of in (
        "io.debezium.time.",
        "io.debezium.time.Micro",
        "io.debezium.time.Nano",
        "io.debezium.time.Iso",
        "org.apache.kafka.connect.data.",
    )
)
YEAR_ZERO = 1900  # how connectors write the year 0000: 1900 itself is no YEAR
ESCAPED_COMMA = "\\,"
MAX_FSP, MILLI_DIGITS = 6, 3  # a DATETIME of more fraction digits is sent in microseconds
DAYS = (-719_528, 2_932_896)  # 0000-01-01 to 9999-12-31
MAX_TIME = (838 * 3600 + 59 * 60 + 59) * 1_000_000 + 999_999
MAX_DECIMAL = 65  # digits
MAX_UNSCALED = 28  # bytes of 65 digits
_EXACT = Context(prec=99)
ZERO = "1970-01-01T00:00:00Z"
_INTEGER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,65}(\.[0-9]{1,30})?", re.ASCII)
_INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,6})?Z", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATETIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?", re.ASCII)
_TIME = re.compile(r"-?[0-9]{2,3}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?", re.ASCII)
_ISO_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})Z", re.ASCII)
_ISO_DATETIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?)Z", re.ASCII)
_ISO_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,9})?Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class DebeziumField:
    """A column and its schema's description of the values.

    Attributes:
        column: The column.
        meaning: Debezium's name for the form of the values.
        default: Text that TiCDC sends for a NULL.
        scale: Fraction digits of values with the meaning DECIMAL.
    """

    column: SchemaColumn
    meaning: str = ""
    default: str | None = None
    scale: int = 0


def cell(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes | None:
    """The canonical text, or the bytes of a binary column. Raises DecodeError."""
    if value is None:
        return None
    if isinstance(value, dict):
        raise DecodeError(
            f"{where}: a struct of Debezium's ({field.meaning or 'without a name'}), which has no column type here; "
            "leave the column out with column.exclude.list",
            code="BAD_VALUE",
        )
    if field.meaning == DECIMAL and isinstance(value, str) and not isinstance(value, Number):
        return _unscaled(value, field, where)
    if field.column.type is None and field.meaning in TIMES:
        return b"%d" % _time_micros(value, field, where)
    if field.column.type is None:
        return b"%d" % value if isinstance(value, bool) else scalar(value, where)  # BIT(1) is the only boolean
    if is_binary(field.column):
        return _binary(value, field, where)
    word = field.column.type.removesuffix(" unsigned")
    return _READERS.get(word, _text)(value, field, time_zone, where)


def _refuse(value: Any, field: DebeziumField, where: str) -> NoReturn:
    said = repr(value) if isinstance(value, str) else str(value) if isinstance(value, int) and value.bit_length() < 99 else "one"
    raise DecodeError(f"{where}: a JSON {kind(value)}, {said[:60]}, for type {field.column.type}", code="BAD_VALUE")


def _text(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    if isinstance(value, Number) or not isinstance(value, str):
        _refuse(value, field, where)
    return value.encode()


def _enum(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    r"""A name. Connectors write a comma in a name of the binlog as `\\,`, in a name of a snapshot as it is."""
    text = _text(value, field, time_zone, where)
    elements = field.column.elements or ()
    plain = text.replace(ESCAPED_COMMA.encode(), b",")
    return plain if text.decode() not in elements and plain.decode() in elements else text


def _integer(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    if isinstance(value, str) and not isinstance(value, Number) and _INTEGER.fullmatch(value):
        return value.encode()
    if type(value) is not int or not -(1 << 63) <= value < 1 << 64:
        _refuse(value, field, where)
    return b"%d" % (value + (1 << 64) if value < 0 and field.column.type == "bigint unsigned" else value)


def _float(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    if isinstance(value, str) and not isinstance(value, Number) and _DECIMAL.fullmatch(value):
        return value.encode()
    if type(value) is not int and not isinstance(value, Number):
        _refuse(value, field, where)
    return number(value, where)


def _decimal(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    """Plain digits, with the column's scale where that is known: none is dropped, the column may have a larger scale by now."""
    try:
        plain = Decimal(_float(value, field, time_zone, where).decode())
    except ArithmeticError:  # an exponent beyond all bounds
        _refuse(value, field, where)
    if plain.adjusted() > MAX_DECIMAL or plain.adjusted() < -MAX_DECIMAL:
        _refuse(value, field, where)
    scale = _parsed(field.column.full_type).scale if field.column.full_type else None
    padded = f"{plain:f}" if scale is None else f"{plain:.{scale}f}"
    return (padded if Decimal(padded) == plain else f"{plain:f}").encode()


def _unscaled(value: str, field: DebeziumField, where: str) -> bytes:
    raw = _from_base64(value)
    if not raw or len(raw) > MAX_UNSCALED:
        _refuse(value, field, where)
    return f"{Decimal(int.from_bytes(raw, 'big', signed=True)).scaleb(-field.scale, _EXACT):f}".encode()


def _year(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    return b"0" if value == YEAR_ZERO else _integer(value, field, time_zone, where)


def _bit(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    if isinstance(value, bool) or (type(value) is int and 0 <= value < 1 << 64):
        return b"%d" % value
    if isinstance(value, Number) or not isinstance(value, str):
        _refuse(value, field, where)
    raw = _from_base64(value)
    if raw is None or not 0 < len(raw) <= 8:
        _refuse(value, field, where)
    return b"%d" % int.from_bytes(raw, "little")


def _binary(value: Any, field: DebeziumField, where: str) -> bytes:
    if isinstance(value, Number) or not isinstance(value, str):
        _refuse(value, field, where)
    raw = None if value == field.default else _from_base64(value)
    if raw is None and field.default is not None and value != field.default:
        raise DecodeError(f"{where}: {len(value)} characters are neither base64 nor the column's default", code="BAD_VALUE")
    return value.encode() if raw is None else raw


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _date(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    if isinstance(value, str) and not isinstance(value, Number):
        if _DATE.fullmatch(value):
            return value.encode()
        if iso := _ISO_DATE.fullmatch(value):
            return iso[1].encode()
    if type(value) is not int or not DAYS[0] <= value <= DAYS[1]:
        _refuse(value, field, where)
    return _day(value).encode()


def _datetime(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    if isinstance(value, str) and not isinstance(value, Number):
        if _DATETIME.fullmatch(value):
            return value.encode()
        if iso := _ISO_DATETIME.fullmatch(value):
            return f"{iso[1]} {_fraction(iso[2])}".encode()
    if type(value) is not int:
        _refuse(value, field, where)
    digits = _digits(field)
    unit = 1_000 if digits is not None and digits > MILLI_DIGITS else 1_000_000
    days, micros = divmod(_micros(value, field, unit, where), 86_400_000_000)
    if not DAYS[0] <= days <= DAYS[1]:
        _refuse(value, field, where)
    return f"{_day(days)} {_clock(micros, digits)}".encode()


def _time(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    if isinstance(value, str) and not isinstance(value, Number) and _TIME.fullmatch(value):
        return value.encode()
    micros = _time_micros(value, field, where)
    return f"{'-' if micros < 0 else ''}{_clock(abs(micros), _digits(field))}".encode()


def _time_micros(value: Any, field: DebeziumField, where: str) -> int:
    """A TIME as microseconds."""
    if isinstance(value, str) and not isinstance(value, Number) and (iso := _ISO_TIME.fullmatch(value)):
        hours, minutes, seconds, fraction = iso.groups(default="")
        return (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 1_000_000 + int(fraction[1:7].ljust(6, "0"))
    if type(value) is not int:
        _refuse(value, field, where)
    micros = _micros(value, field, 1_000, where)
    if abs(micros) > MAX_TIME:
        _refuse(value, field, where)
    return micros


def _micros(value: int, field: DebeziumField, unit: int, where: str) -> int:
    """A number of units as microseconds. unit: nanoseconds of one, where the schema does not say it."""
    micros, rest = divmod(value * UNITS.get(field.meaning, unit), 1_000)
    if rest:
        _refuse(value, field, where)
    return micros


def _fraction(clock: str) -> str:
    """A time of day with the fraction digits that an ISO text shows, six at most: MySQL has no more."""
    return clock[: len("00:00:00.000000")]


def _timestamp(value: Any, field: DebeziumField, time_zone: str, where: str) -> bytes:
    """In the changefeed's time zone, as every other protocol prints it."""
    match = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        _refuse(value, field, where)
    day, clock, fraction = match[1], match[2], match[3] or ""
    if value == ZERO:
        day, clock = "0000-00-00", "00:00:00"
        fraction = f".{'0' * (_digits(field) or 0)}".rstrip(".")
    else:
        try:
            at = datetime.fromisoformat(f"{day}T{clock}+00:00").astimezone(_zone(time_zone))
        except (ValueError, OverflowError):
            _refuse(value, field, where)
        day, clock = f"{at.year:04}-{at.month:02}-{at.day:02}", f"{at.hour:02}:{at.minute:02}:{at.second:02}"
    return f"{day} {clock}{fraction}".encode()


def _day(days: int) -> str:
    return str(np.datetime64(days, "D"))


def _clock(micros: int, digits: int | None) -> str:
    """Hours may pass 99. Where the column's fraction digits are unknown or too few: none, three or six, whichever shows all."""
    seconds, fraction = divmod(micros, 1_000_000)
    shown = 0 if fraction == 0 else 6 if fraction % 1000 else 3
    if digits is not None and fraction % 10 ** (6 - digits) == 0:
        shown = digits
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}"[: len(text) + 1 + shown] if shown else text


def _digits(field: DebeziumField) -> int | None:
    """The fraction digits, where the table's columns have them."""
    digits = _parsed(field.column.full_type).fraction_digits if field.column.full_type else None
    return digits if digits is not None and digits <= MAX_FSP else None


@lru_cache(maxsize=4096)
def _parsed(full_type: str) -> MysqlType:
    return MysqlType.parse(full_type)


@lru_cache(maxsize=16)
def _zone(name: str) -> tzinfo:
    """A name of the tz database, or an offset like +08:00."""
    if name == "UTC":
        return UTC
    if name[0] in "+-":
        minutes = int(name[1:3]) * 60 + int(name[4:6])
        return timezone(timedelta(minutes=-minutes if name[0] == "-" else minutes))
    return ZoneInfo(name)


_READERS: dict[str, Callable[[Any, DebeziumField, str, str], bytes]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _integer),
    "year": _year,
    "enum": _enum,
    **dict.fromkeys(("float", "double"), _float),
    "decimal": _decimal,
    "bit": _bit,
    "date": _date,
    "datetime": _datetime,
    "timestamp": _timestamp,
    "time": _time,
}
