"""Canonical text to lake types in Arrow, for cells that need no special treatment (docs/types.md).

spark.sql_casts defines what a cell becomes. This module reads only cells for which that rule loses, nulls and repairs nothing, and refuses
all others. A table with other cells is read by spark.sql_casts. So this module counts no losses.
"""

from __future__ import annotations

import re
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.history.ddl.column_types import MAX_PRECISION, MysqlType, lake_type
from tidelake.spark.sql_casts import DATES, CastRules, is_numbered

_INTEGERS = {"int": pa.int32(), "bigint": pa.int64()}
_FLOATS = {"float": pa.float32(), "double": pa.float64()}
_SIMPLE = _INTEGERS | _FLOATS | {"string": pa.string(), "binary": pa.binary(), "date": pa.date32(), "timestamp_ntz": pa.timestamp("us")}
_ONE_DATE, _ONE_MOMENT = 10, (19, 21, 26)  # characters of a date; of a datetime without and with fractions (from, to)
_YEARS = (1970, 2039)
_MOST_SETS = 10_000  # distinct values of one SET column in a batch


class NotPlain(Exception):
    """Raised for cells that spark.sql_casts must read."""


class CellType(BaseModel, frozen=True):
    """Target type of cells.

    Attributes:
        lake: The lake's type.
        dated: A MySQL date or time, whose texts have fixed lengths.
        zone: Time zone of a timestamp, else empty.
        names: Members, if the cells are numbers of members.
        several: The numbers are bit sets of members.
    """

    lake: str
    dated: bool
    zone: str
    names: tuple[str, ...] | None
    several: bool


def cell_type(mysql: MysqlType, rules: CastRules) -> CellType | None:
    """Return how cells of a column are read; None if only spark.sql_casts can read them."""
    lake = lake_type(mysql, rules.values)
    if rules.values.mask is not None or (mysql.elements is not None and "" in mysql.elements) or arrow_type(lake) is None:
        return None
    return CellType(
        lake=lake,
        dated=mysql.word in DATES and lake != "string",
        zone=rules.time_zone if lake == "timestamp" else "",
        names=mysql.elements if is_numbered(mysql, rules) else None,
        several=mysql.word == "set",
    )


def arrow_type(lake: str) -> pa.DataType | None:
    """Return the Arrow type of a lake type; None if this module does not read cells of it."""
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", lake):
        return pa.decimal128(int(match[1]), int(match[2]))
    return pa.timestamp("us", "UTC") if lake == "timestamp" else _SIMPLE.get(lake)


def values(cells: pa.Array, kind: CellType) -> pa.Array:
    """Convert binary cells to values. Raises NotPlain."""
    if kind.lake == "binary":
        return cells
    try:
        text = cells.cast(pa.string())
        return text if kind.lake == "string" and kind.names is None else _read(text, kind)
    except pa.ArrowInvalid as e:
        raise NotPlain(f"values that are not plain {kind.lake}") from e


def _read(text: pa.Array, kind: CellType) -> pa.Array:
    if kind.names is not None:
        return _named(text, kind.names, kind.several)
    to = arrow_type(kind.lake)
    if kind.dated:
        _refuse_unless(_of_length(text, kind.lake), "a date or time that is written otherwise")
    if kind.lake in _INTEGERS:
        _refuse_if(text, ("x", "X"), "a number in hex")
    elif pa.types.is_decimal(to):
        _refuse_if(text, ("e", "E", "-.", "+."), "a decimal that is written otherwise")
        _refuse_unless(_fits(text, to), "a decimal with more digits than its type")
    if kind.lake == "timestamp":
        moments = text.cast(pa.timestamp("us"))
        _refuse_unless(_in_years(moments), "a time that no TIMESTAMP has")
        return pc.assume_timezone(moments, kind.zone, ambiguous="raise", nonexistent="raise").cast(to)
    found = text.cast(to)
    if kind.lake in _FLOATS:
        _refuse_unless(pc.is_finite(found), "a number that is not finite")
    return found


def _of_length(text: pa.Array, lake: str) -> pa.Array:
    length = pc.binary_length(text)
    day = pc.equal(length, _ONE_DATE)
    if lake == "date":
        return day
    plain, low, high = _ONE_MOMENT
    exact = pc.and_(pc.greater_equal(length, low), pc.less_equal(length, high))
    return pc.or_(pc.or_(day, pc.equal(length, plain)), exact)


def _in_years(moments: pa.Array) -> pa.Array:
    """Whether a TIMESTAMP is in the years for which time zone rules are certain; libraries predict others differently."""
    first, end = (datetime(year, 1, 1) for year in _YEARS)  # noqa: DTZ001 - of any zone
    return pc.and_(pc.greater_equal(moments, first), pc.less(moments, end))


def _fits(text: pa.Array, to: pa.Decimal128Type) -> pa.Array:
    """Whether decimals fit their type. Arrow does not report overflow of its 128 bits, so the digits are counted."""
    sign = pc.or_(pc.starts_with(text, "-"), pc.starts_with(text, "+")).cast(pa.int32())
    length, point = pc.subtract(pc.binary_length(text), sign), pc.find_substring(text, ".")
    dotted = pc.greater_equal(point, 0)
    whole = pc.if_else(dotted, pc.subtract(point, sign), length)
    digits = pc.subtract(length, dotted.cast(pa.int32()))
    one_before = pc.not_equal(point, 0)
    return pc.and_(pc.and_(pc.less_equal(whole, to.precision - to.scale), pc.less_equal(digits, MAX_PRECISION)), one_before)


def _refuse_if(text: pa.Array, parts: tuple[str, ...], why: str) -> None:
    for part in parts:
        _refuse_unless(pc.invert(pc.match_substring(text, part)), why)


def _refuse_unless(held: pa.Array, why: str) -> None:
    """Raise NotPlain unless all values are true or NULL."""
    if not pc.all(held, min_count=0).as_py():
        raise NotPlain(why)


def _named(text: pa.Array, names: tuple[str, ...], several: bool) -> pa.Array:
    """Names of members by number, or of a SET by bits. 0 is the empty value of both."""
    if not several:
        numbers = text.cast(pa.int32())
        _refuse_unless(pc.and_(pc.greater_equal(numbers, 0), pc.less_equal(numbers, len(names))), "a number of no member")
        return pa.array(["", *names], pa.string()).take(numbers)
    coded = text.cast(pa.uint64()).dictionary_encode()
    if len(coded.dictionary) > _MOST_SETS:
        raise NotPlain("too many different sets")
    bits: list[int] = coded.dictionary.to_pylist()
    if any(b >> len(names) for b in bits):
        raise NotPlain("a bit of no member")
    known = pa.array([",".join(n for i, n in enumerate(names) if b >> i & 1) for b in bits], pa.string())
    return known.take(coded.indices)
