"""Canonical text → lake types as Spark SQL, run in the JVM (design section 6). Builds expressions only; strings are quoted here.

A value that cannot be read as its type becomes NULL and is counted; nothing is rounded or guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidelake.policy import ZeroDate
from tidelake.values import MysqlType, lake_type

NAMES_SENT = frozenset({"avro", "csv", "debezium"})  # protocols that send ENUM and SET as names
_ZERO = r"^\\d{4}-(00-\\d{2}|\\d{2}-00)"


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRules:
    """What a cast must know besides the types. names_sent: ENUM and SET come as names (of the protocols in NAMES_SENT), not numbers."""

    time_zone: str
    zero_date: ZeroDate
    names_sent: bool


def quote(name: str) -> str:
    """A column's name in SQL."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A string in SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def cast(cell: str, mysql: MysqlType, rules: CastRules) -> str:
    """SQL for a cell (an expression of type binary) as its type's lake type; NULL where the text does not fit."""
    to = lake_type(mysql, rules.zero_date)
    if mysql.is_binary:
        return cell
    if mysql.word in ("enum", "set"):
        return f"try_cast(CAST({cell} AS STRING) AS {to})" if to != "string" else _members(f"CAST({cell} AS STRING)", mysql, rules)
    if mysql.word in ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"):
        return f"make_valid_utf8(CAST({cell} AS STRING))"
    return from_text(f"CAST({cell} AS STRING)", mysql, rules)


def from_text(text: str, mysql: MysqlType, rules: CastRules) -> str:
    """SQL for canonical text (an expression of type string) as the lake type; ENUM and SET as names, binary as hex digits."""
    to = lake_type(mysql, rules.zero_date)
    if to == "binary":
        return f"unhex({text})"
    if to == "string":
        return text
    if to == "array<float>":
        return f"from_json({text}, 'array<float>')"
    if to == "timestamp":
        zone = "Z" if rules.time_zone == "UTC" else f" {rules.time_zone}"
        return f"try_cast(concat({text}, {literal(zone)}) AS TIMESTAMP)"
    if match := re.fullmatch(r"decimal\(\d+,(\d+)\)", to):
        fits = f"length({text}) - instr(concat({text}, '.'), '.') <= {match[1]}"  # digits after the point: a cast would round
        return f"IF({fits}, try_cast({text} AS {to}), NULL)"
    return f"try_cast({text} AS {to})"


def converted(value: str, have: str, to: str) -> str:
    """SQL for a value of one lake type as another, as MODIFY COLUMN converts it: numbers are rounded half away from zero."""
    if have == to:
        return value
    if to in ("int", "bigint") and have == "string":
        value, have = f"try_cast({value} AS decimal(38,10))", "decimal"
    return f"try_cast({f'round({value})' if to in ('int', 'bigint') and have.startswith('decimal') else value} AS {to})"


def unfit(cell: str, typed: str, mysql: MysqlType, rules: CastRules) -> str | None:
    """SQL, boolean: the cell holds something that `typed` lost, beyond what the zero date policy accepts. None if that cannot be."""
    to = lake_type(mysql, rules.zero_date)
    if mysql.is_binary or (to == "string" and mysql.word not in _UTF8 and mysql.word not in ("enum", "set")):
        return None
    if mysql.word in _UTF8:
        return f"({cell} IS NOT NULL AND NOT is_valid_utf8(CAST({cell} AS STRING)))"
    lost = f"{cell} IS NOT NULL AND {typed} IS NULL"
    accepted = f" AND NOT {is_zero_date(cell)}" if _is_date(mysql) and rules.zero_date == "null" else ""
    return f"({lost}{accepted})"


def nulled(cell: str, mysql: MysqlType, rules: CastRules) -> str | None:
    """SQL, boolean: a zero date that the policy turns into NULL. None if that cannot be."""
    if not _is_date(mysql) or rules.zero_date != "null":
        return None
    return f"({cell} IS NOT NULL AND {is_zero_date(cell)})"


def is_zero_date(cell: str) -> str:
    """SQL, boolean: month or day is zero."""
    return f"CAST({cell} AS STRING) RLIKE '{_ZERO}'"


_UTF8 = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"})


def _is_date(mysql: MysqlType) -> bool:
    return mysql.word in ("date", "datetime", "timestamp")


def _members(text: str, mysql: MysqlType, rules: CastRules) -> str:
    """ENUM and SET numbers as names. 0 is the empty value of an ENUM and the empty SET; a number beyond the list fits nothing."""
    if rules.names_sent:
        return text
    names = f"array({', '.join(literal(e) for e in mysql.elements or ())})"
    if mysql.word == "enum":
        number = f"try_cast({text} AS INT)"
        return f"IF({number} = 0, '', IF({number} > 0, try_element_at({names}, {number}), NULL))"  # -1 would count from the end
    bits = f"CAST(try_cast({text} AS DECIMAL(20,0)) AS DECIMAL(20,0))"
    wrapped = f"CAST(IF({bits} >= 9223372036854775808, {bits} - 18446744073709551616, {bits}) AS BIGINT)"
    chosen = f"filter({names}, (name, i) -> (shiftright({wrapped}, i) & 1) = 1)"
    beyond = f"shiftrightunsigned({wrapped}, {len(mysql.elements or ())}) != 0" if len(mysql.elements or ()) < 64 else "false"
    return f"IF({text} IS NULL OR {bits} IS NULL OR {beyond}, NULL, array_join({chosen}, ','))"
