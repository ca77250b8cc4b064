"""The rules of docs/types.md as Spark SQL: an independent oracle for lake.columns.cells and lake.columns.conversions.

A value that cannot be read as its type without loss becomes NULL and is counted; nothing is rounded or guessed. Spark's own casts would
round decimals, cut fractions of a second, drop a DATE's time and a DATETIME's zone, and move clocks out of the hour that summer time skips.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from tidelake.history.ddl.column_types import MysqlType, lake_type
from tidelake.lake.columns.cells import DATES, CastRules, is_numbered
from tidelake.spark.sql_text import literal

_ZERO = r"^\\d{4}-(00-\\d{2}|\\d{2}-00)"
_LARGEST = {"float": "CAST(3.4028235E38 AS FLOAT)", "double": "1.7976931348623157E308D"}
_YEARS = (1970, 2039)  # years of TIMESTAMP
_IN_LAST_DAY = timedelta(days=1)


def cast(cell: str, mysql: MysqlType, rules: CastRules) -> str:
    """Return SQL that converts a cell (an expression of type binary) to its lake type; NULL where the text does not fit."""
    to, text = lake_type(mysql, rules.values), f"CAST({cell} AS STRING)"
    if to == "binary":
        return cell
    if rules.values.mask == "hash":
        return text
    if is_numbered(mysql, rules):
        names = _members(text, mysql)
        return f"coalesce({names}, make_valid_utf8({text}))" if rules.values.invalid_values == "string" else names
    if to == "string":
        valid = f"make_valid_utf8({text})"
        return _with_zeros(valid, mysql.scale) if mysql.word == "decimal" and mysql.scale and rules.values.mask is None else valid
    value = from_text(text, mysql, rules)
    if mysql.word in DATES:
        return f"IF({text} RLIKE '{DATES[mysql.word]}', {value}, NULL)"
    return value


def _with_zeros(text: str, scale: int) -> str:
    """SQL for a decimal that is kept as text, with all its fraction digits."""
    pointed = f"concat({text}, IF(instr({text}, '.') = 0, '.', ''))"
    padded = f"rpad({pointed}, greatest(length({pointed}), instr({pointed}, '.') + {scale}), '0')"
    return f"IF({text} RLIKE '^-?[0-9]+([.][0-9]*)?$', {padded}, {text})"


def from_text(text: str, mysql: MysqlType, rules: CastRules) -> str:
    """Return SQL that converts canonical text (type string) to the lake type; ENUM and SET are given as names, binary as hex digits."""
    to = lake_type(mysql, rules.values)
    if to == "binary":
        return f"unhex({text})"
    if to == "string":
        return text
    if to == "array<float>":
        finite = f"x BETWEEN -{_LARGEST['float']} AND {_LARGEST['float']}"
        return f"get(filter(array(from_json({text}, 'array<float>')), v -> forall(v, x -> coalesce({finite}, false))), 0)"
    if to == "timestamp":
        return _instant(text, rules.time_zone)
    if match := re.fullmatch(r"decimal\(\d+,(\d+)\)", to):
        return _decimal(text, to, int(match[1]))
    if to in _LARGEST:
        value = f"try_cast({text} AS {to})"
        return f"IF({value} BETWEEN -{_LARGEST[to]} AND {_LARGEST[to]}, {value}, NULL)"
    return f"try_cast({text} AS {to})"


def converted(value: str, have: str, to: str) -> str:
    """Return SQL that converts a value from one lake type to another, as MODIFY COLUMN does: numbers are rounded half away from zero."""
    if have == to:
        return value
    if to in ("int", "bigint") and have == "string":
        value, have = f"try_cast({value} AS decimal(38,10))", "decimal"
    return f"try_cast({f'round({value})' if to in ('int', 'bigint') and have.startswith('decimal') else value} AS {to})"


def losses(cell: str, typed: str, mysql: MysqlType, rules: CastRules) -> dict[str, str]:
    """Return SQL, boolean, for each kind of loss (of LOSSES) that this column may have: whether `typed`, the cell's value, has it.

    invalid_values: the type does not hold the value, which blocks publishing · nulled_values: the type does not hold it, NULL by policy ·
    nulled_zero_dates: a zero date that is NULL by policy · repaired: invalid UTF-8 became U+FFFD · ambiguous: another value reads the same
    in the lake.
    """
    to, values = lake_type(mysql, rules.values), rules.values
    if to == "binary" or values.mask in ("hash", "null"):
        return {}
    if to == "string" and not is_numbered(mysql, rules):
        return {"repaired": f"({cell} IS NOT NULL AND NOT is_valid_utf8(CAST({cell} AS STRING)))"}
    lost = f"{cell} IS NOT NULL AND {typed} IS NULL"
    kind = "invalid_values" if values.invalid_values == "reject" else "nulled_values"
    doubtful = _ambiguous(cell, typed, mysql, rules)
    out = {"ambiguous": f"coalesce({doubtful}, false)"} if doubtful else {}
    if mysql.word not in DATES:
        return {kind: f"({lost})"} | out
    zero = is_zero_date(cell)
    out[kind] = f"({lost} AND NOT {zero})"
    if values.zero_date == "null":
        return out | {"nulled_zero_dates": f"({lost} AND {zero})"}
    return out | {"invalid_values": f"({lost})" if kind == "invalid_values" else f"({lost} AND {zero})"}


def is_zero_date(cell: str) -> str:
    """Return SQL, boolean: whether month or day is zero."""
    return f"CAST({cell} AS STRING) RLIKE '{_ZERO}'"


def _decimal(text: str, to: str, scale: int) -> str:
    """Convert text to a decimal. Zeros after the scale are dropped; other digits there would be rounded. MySQL writes no exponents."""
    short = f"IF(contains({text}, '.'), rtrim('0', {text}), {text})"
    fits = f"length({short}) - instr(concat({short}, '.'), '.') <= {scale} AND NOT contains(lower({text}), 'e')"
    return f"IF({fits}, try_cast({short} AS {to}), NULL)"


def _instant(text: str, time_zone: str) -> str:
    """Convert text to an instant. NULL for a time that the zone's clocks skipped: Spark would use the hour after."""
    if not _named(time_zone):
        return f"try_cast(concat({text}, {literal('Z' if time_zone == 'UTC' else f' {time_zone}')}) AS TIMESTAMP)"
    value = f"try_cast(concat({text}, {literal(f' {time_zone}')}) AS TIMESTAMP)"
    return f"IF(from_utc_timestamp({value}, {literal(time_zone)}) = try_cast(concat({text}, 'Z') AS TIMESTAMP), {value}, NULL)"


def _named(time_zone: str) -> bool:
    return time_zone != "UTC" and time_zone[0] not in "+-"


@lru_cache(maxsize=64)
def repeated_minutes(time_zone: str) -> tuple[int, ...]:
    """Return by how many minutes the zone's clocks were set back, over the years of TIMESTAMP. Texts of such an hour mean two instants."""
    if not _named(time_zone):
        return ()
    zone, found = ZoneInfo(time_zone), set[timedelta]()
    day, end = (datetime(year, 1, 1, tzinfo=UTC) for year in _YEARS)
    before = day.astimezone(zone).utcoffset()
    while day < end:
        day += _IN_LAST_DAY
        after = day.astimezone(zone).utcoffset()
        if before is not None and after is not None and after < before:
            found.add(before - after)
        before = after
    return tuple(sorted(int(d.total_seconds()) // 60 for d in found))


def _ambiguous(cell: str, typed: str, mysql: MysqlType, rules: CastRules) -> str | None:
    """Return SQL, boolean, for ambiguous values. A time that clocks showed twice is read as the first of the two; the number 0 of ENUM and
    SET reads like a member ''.
    """
    if mysql.elements is not None and "" in mysql.elements:
        return f"{typed} = ''"
    zone = literal(rules.time_zone)
    if lake_type(mysql, rules.values) != "timestamp" or not (minutes := repeated_minutes(rules.time_zone)):
        return None
    shown = f"from_utc_timestamp({typed}, {zone})"
    again = (f"{shown} = from_utc_timestamp({typed} + INTERVAL {m} MINUTES, {zone})" for m in minutes)
    return f"({' OR '.join(again)})"


def _members(text: str, mysql: MysqlType) -> str:
    """Convert ENUM and SET numbers to names. 0 is the empty value of an ENUM and the empty SET; a number beyond the list is invalid."""
    names = f"array({', '.join(literal(e) for e in mysql.elements or ())})"
    if mysql.word == "enum":
        number = f"try_cast({text} AS INT)"
        return f"IF({number} = 0, '', IF({number} > 0, try_element_at({names}, {number}), NULL))"  # -1 would count from the end
    bits, count = f"try_cast({text} AS DECIMAL(20,0))", len(mysql.elements or ())
    wrapped = f"CAST(IF({bits} >= 9223372036854775808, {bits} - 18446744073709551616, {bits}) AS BIGINT)"
    chosen = f"filter({names}, (name, i) -> (shiftright({wrapped}, i) & 1) = 1)"
    return f"IF({bits} BETWEEN 0 AND {(1 << count) - 1}, array_join({chosen}, ','), NULL)"
