"""Convert values of messages without types (docs/reference/protocols.md 9.2) to canonical text, as Spark SQL, once the types are known.

Debezium without schema writes a DATE as days, a DATETIME as milli- or microseconds, bytes as base64. Only the table's columns at the row's
commit ts show the type. The decoder leaves such cells as they were sent. wire/cells/debezium_cells.py is the same rule in Python, for
messages with types.
"""

from __future__ import annotations

from tidelake.history.ddl.column_types import MysqlType
from tidelake.spark.sql_casts import literal

PROTOCOLS = frozenset({"debezium"})  # protocols whose cells without a type are such values
_INTEGER = literal("^-?[0-9]{1,18}$")
_DAY_US, _SECOND_US = 86_400_000_000, 1_000_000
_MILLI_DIGITS = 3  # a DATETIME with more fraction digits is sent in microseconds
_ZERO_INSTANT = "1970-01-01T00:00:00Z"


def late_text(cell: str, mysql: MysqlType, time_zone: str) -> str | None:
    """Return SQL, binary, for the canonical text of a cell as sent, in a column of this type. None if the cell is that text.

    Text of another form stays: it is the column's default, sent for a NULL.
    """
    if mysql.is_binary:
        return f"coalesce(try_to_binary(CAST({cell} AS STRING), 'base64'), {cell})"
    text = _text(f"CAST({cell} AS STRING)", mysql, time_zone)
    return None if text is None else f"CAST({text} AS BINARY)"


def _text(t: str, mysql: MysqlType, time_zone: str) -> str | None:
    number, digits = f"CAST({t} AS BIGINT)", mysql.fraction_digits or 0
    match mysql.word:
        case "date":
            return _if_integer(t, _day(number))
        case "datetime":
            micros = number if digits > _MILLI_DIGITS else f"({number} * 1000)"
            in_day = f"pmod({micros}, {_DAY_US}L)"
            day = _day(f"(({micros} - {in_day}) div {_DAY_US}L)")
            return _if_integer(t, f"concat({day}, ' ', {_clock(in_day, digits)})")
        case "time":
            return _if_integer(t, f"concat(IF({number} < 0, '-', ''), {_clock(f'abs({number})', digits)})")
        case "timestamp":
            return _timestamp(t, digits, time_zone)
        case "bit":
            return _bits(t)
        case "bigint" if mysql.unsigned:
            return f"IF({t} LIKE '-%', CAST(CAST({t} AS DECIMAL(20,0)) + 18446744073709551616 AS STRING), {t})"
        case "decimal":
            return f"IF({t} LIKE '%e%', coalesce(CAST(try_cast({t} AS DECIMAL(38,{min(mysql.scale or 0, 38)})) AS STRING), {t}), {t})"
        case _:
            return None


def _if_integer(t: str, text: str) -> str:
    return f"IF({t} RLIKE {_INTEGER}, {text}, {t})"


def _day(days: str) -> str:
    return f"CAST(date_add(DATE'1970-01-01', CAST({days} AS INT)) AS STRING)"


def _clock(micros: str, digits: int) -> str:
    """Return SQL for a clock text. Hours may exceed 99."""
    seconds = f"({micros} div {_SECOND_US}L)"
    clock = f"format_string('%02d:%02d:%02d', {seconds} div 3600L, {seconds} div 60L % 60L, {seconds} % 60L)"
    return f"concat({clock}, substring(format_string('.%06d', {micros} % {_SECOND_US}L), 1, {digits + 1}))" if digits else clock


def _timestamp(t: str, digits: int, time_zone: str) -> str:
    """Return SQL for the instant's text in the feed's time zone, with the fraction as sent."""
    zero = "0000-00-00 00:00:00" + f".{'0' * digits}".rstrip(".")
    clock = f"replace(substring({t}, 1, 19), 'T', ' ')"
    if time_zone != "UTC":
        clock = f"CAST(convert_timezone('UTC', {literal(time_zone)}, CAST({clock} AS TIMESTAMP_NTZ)) AS STRING)"
    said = f"concat({clock}, substring({t}, 20, length({t}) - 20))"
    return f"CASE WHEN {t} = {literal(_ZERO_INSTANT)} THEN {literal(zero)} WHEN {t} LIKE '%T%Z' THEN {said} ELSE {t} END"


def _bits(t: str) -> str:
    """Return SQL for a BIT value. BIT(1) is sent as a boolean, more bits as base64 of their bytes, lowest first."""
    pairs = f"regexp_extract_all(hex(try_to_binary({t}, 'base64')), '..', 0)"
    return f"IF(length({t}) < 4, {t}, conv(array_join(reverse({pairs}), ''), 16, 10))"
