"""Text of a row that the source and the lake compute alike, whatever either of them prints by default.

A cell is never NULL: NULL is `~`, which is no value's text, because free text begins with its length (`2:it`). So different rows have
different texts; neither an empty cell nor a separator inside a cell can hide a difference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidelake.history.ddl.column_types import MysqlType
from tidelake.io.duckdb_door import identifier

NULL = "~"
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_FREE = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_DATES = frozenset({"date", "datetime", "timestamp"})
_DIGITS = 8  # digits after the first one that tell any two float32 apart
_BITS = 60  # a float's mantissa as an integer: 53 bits of it may be set, the lowest are 0


class SourceCell(StrEnum):
    """Kind of source: decides how to read as of a TSO, and which texts JSON and VECTOR have."""

    tidb = "tidb"
    mysql = "mysql"
    mariadb = "mariadb"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeCell:
    """A column as the lake holds it. name: in the source; zero_is_null: the feed's policy made zero dates NULL."""

    name: str
    lake_name: str
    type: MysqlType
    lake_type: str
    zero_is_null: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CellText:
    """A column's text in the source's SQL (upstream) and in DuckDB's (here), over batches whose instants are local times of UTC."""

    name: str
    type: MysqlType
    upstream: str
    here: str

    def shown(self, text: str) -> str | None:
        """Return a cell's text for people."""
        if text == NULL:
            return None
        if self.type.word in ("float", "double"):
            return repr(_number(text))
        return text.partition(":")[2] if _has_length(self.type) else text

    def same(self, a: str, b: str) -> bool:
        """Whether two texts mean the same value. JSON members may be in another order, and a float's exponent may be chosen differently."""
        if a == b:
            return True
        if NULL in (a, b):
            return False
        if self.type.word == "json":
            return _same_json(a, b)
        return self.type.word in ("float", "double") and _number(a) == _number(b)


def cell_text(cell: LakeCell, source: SourceCell, time_zone: str) -> CellText | str:
    """Return how a column is compared, or why it cannot be compared.

    Args:
        cell: The column.
        source: Kind of source.
        time_zone: The feed's time zone, in which TIMESTAMPs that are kept as text were written.
    """
    up, here = quoted(cell.name), identifier(cell.lake_name)
    found = _texts(cell, source, time_zone)
    if isinstance(found, str):
        return found
    return CellText(
        name=cell.name,
        type=cell.type,
        upstream=f"IFNULL({found[0](up)},'{NULL}')",
        here=f"coalesce({found[1](here)}, '{NULL}')",
    )


def row_text(texts: Sequence[CellText]) -> tuple[str, str]:
    """Return a row's text as SQL for (source, DuckDB)."""
    return f"CONCAT_WS('|',{','.join(t.upstream for t in texts)})", f"concat_ws('|', {', '.join(t.here for t in texts)})"


def quoted(name: str) -> str:
    """Quote a name for MySQL."""
    return "`" + name.replace("`", "``") + "`"


_Texts = tuple[Callable[[str], str], Callable[[str], str]]


def _texts(cell: LakeCell, source: SourceCell, time_zone: str) -> _Texts | str:
    word = cell.type.word
    if word in _INTEGERS:
        return lambda c: f"({c}+0)", _plain  # without ZEROFILL's zeros; YEAR 0000 is 0
    if word == "bit" or (word in ("enum", "set") and cell.type.elements is None):
        return lambda c: f"CAST({c} AS UNSIGNED)", _plain
    if word in _FREE or word in ("enum", "set"):
        return lambda c: _with_length_up(c, f"CONVERT({c} USING utf8mb4)"), _with_length
    if word == "json":
        return _json(source)
    if cell.type.is_binary:
        return _binary(cell.type)
    if word in ("float", "double"):
        return _float_up, _float
    if word in _DATES:
        return _date(cell, time_zone)
    if word == "vector":
        return (lambda c: f"VEC_AS_TEXT({c})", _vector) if source is SourceCell.tidb else f"{source} has no text of a VECTOR that TiDB has"
    return _decimal(cell.type) if word == "decimal" else (lambda c: f"CAST({c} AS CHAR)", _plain)  # TIME


def _plain(c: str) -> str:
    return f"CAST({c} AS VARCHAR)"


def _has_length(mysql: MysqlType) -> bool:
    return mysql.word in _FREE or mysql.word == "json" or mysql.elements is not None


def _with_length_up(c: str, text: str) -> str:
    return f"CONCAT(CHAR_LENGTH({c}),':',{text})"


def _with_length(c: str) -> str:
    return f"(length({c}) || ':' || {c})"


def _json(source: SourceCell) -> _Texts | str:
    """TiCDC sends TiDB's text of JSON, MariaDB keeps the text that it got; MySQL orders members in its own way."""
    if source is SourceCell.mysql:
        return "MySQL writes the members of JSON in its own order"
    return lambda c: _with_length_up(f"CAST({c} AS CHAR)", f"CAST({c} AS CHAR)"), _with_length


def _binary(mysql: MysqlType) -> _Texts:
    """Hexadecimal digits; BINARY(n) with the trailing zeros, which a binlog leaves out."""
    if mysql.word != "binary":
        return lambda c: f"HEX({c})", lambda c: f"hex({c})"
    digits = 2 * (mysql.length or 1)
    return lambda c: f"HEX({c})", lambda c: f"hex({c}) || repeat('0', {digits} - 2 * octet_length({c}))"


def _decimal(mysql: MysqlType) -> _Texts:
    if mysql.length is None:
        return lambda c: f"CAST({c} AS CHAR)", _plain
    return lambda c: f"CAST({c} AS DECIMAL({mysql.length},{mysql.scale or 0}))", _plain  # without ZEROFILL's zeros


def _date(cell: LakeCell, time_zone: str) -> _Texts | str:
    if cell.lake_type == "string":
        if cell.type.word == "timestamp" and time_zone != "UTC":
            return f"kept as text of {time_zone}"
        return lambda c: f"CAST({c} AS CHAR)", _plain
    up, own = ("%Y-%m-%d", "%Y-%m-%d") if cell.type.word == "date" else ("%Y-%m-%d %H:%i:%s.%f", "%Y-%m-%d %H:%M:%S.%f")

    def upstream(c: str) -> str:
        text = f"DATE_FORMAT({c},'{up}')"
        return f"IF(MONTH({c})=0 OR DAYOFMONTH({c})=0,NULL,{text})" if cell.zero_is_null else text

    return upstream, lambda c: f"strftime({c}, '{own}')"


def _float_up(c: str) -> str:
    """SQL for a float's sign, mantissa and exponent of two. All three are exact, whereas servers print floats differently.

    The logarithm gets a quarter added, so that no common number lies where its error crosses an integer.
    """
    e = f"CAST(FLOOR(LOG2(ABS({c}))+0.25) AS SIGNED)"
    mantissa = f"CAST(ABS({c})/POW(2,{e} DIV 2)/POW(2,{e}-{e} DIV 2)*POW(2,{_BITS}) AS UNSIGNED)"
    return f"IF({c}=0,'0',CONCAT(IF({c}<0,'-',''),{mantissa},'p',{e}))"


def _float(c: str) -> str:
    x = f"CAST({c} AS DOUBLE)"
    e = f"CAST(floor(log2(abs({x})) + 0.25) AS BIGINT)"
    mantissa = f"CAST(abs({x}) / pow(2, {e} // 2) / pow(2, {e} - {e} // 2) * pow(2, {_BITS}) AS UBIGINT)"
    return f"CASE WHEN {x} = 0 THEN '0' WHEN {x} IS NOT NULL THEN if({x} < 0, '-', '') || {mantissa} || 'p' || {e} END"


def _vector(c: str) -> str:
    """SQL for a vector as TiDB writes it: the fewest digits that read back as the float32, without an exponent (VectorFloat32.String)."""
    tried = " ".join(f"WHEN CAST(format('{{:.{n}e}}', y) AS FLOAT) = CAST(y AS FLOAT) THEN format('{{:.{n}e}}', y)" for n in range(_DIGITS))
    short = f"lambda y: CASE {tried} ELSE format('{{:.{_DIGITS}e}}', y) END"
    digits, power = "replace(split_part(t, 'e', 1), '.', '')", "CAST(split_part(t, 'e', 2) AS INTEGER)"
    small = f"'0.' || repeat('0', -{power} - 1) || {digits}"
    large = f"{digits} || repeat('0', {power} - length({digits}) + 1)"
    between = f"{digits}[:{power} + 1] || '.' || {digits}[{power} + 2:]"
    plain = f"lambda t: CASE WHEN {power} < 0 THEN {small} WHEN {power} >= length({digits}) - 1 THEN {large} ELSE {between} END"
    texts = f"list_transform(list_transform(list_transform({c}, lambda x: CAST(abs(x) AS DOUBLE)), {short}), {plain})"
    return f"'[' || array_to_string(list_transform({c}, lambda x, i: if(signbit(x), '-', '') || {texts}[i]), ',') || ']'"


def _number(text: str) -> float:
    mantissa, _, exponent = text.partition("p")
    return math.ldexp(int(mantissa), int(exponent or _BITS) - _BITS)


def _same_json(a: str, b: str) -> bool:
    try:
        return bool(json.loads(a.partition(":")[2]) == json.loads(b.partition(":")[2]))
    except (ValueError, RecursionError):
        return False
