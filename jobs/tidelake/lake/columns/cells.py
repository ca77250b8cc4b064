"""Canonical text to lake types in Arrow, and what is lost (docs/types.md).

A batch of cells is read at once. Only if some cell is not a value of its type are the distinct cells sorted out: those of another form
first, then, by halves, those that Arrow refuses. Such cells become NULL and count as lost; nothing is rounded, cut or guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.config.policy import PLAIN, ValueRules
from tidelake.history.ddl.column_types import MAX_PRECISION, MysqlType, lake_type
from tidelake.wire.hashes import hex_digits
from tidelake.wire.kernels.arrays import Flags
from tidelake.wire.masks import truncated

NAMES_SENT = frozenset({"avro", "csv", "debezium"})  # protocols that send ENUM and SET as names
LOSSES = ("invalid_values", "nulled_values", "nulled_zero_dates", "repaired", "ambiguous")
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?)?$"
DATES = {"date": _DAY, "datetime": _MOMENT, "timestamp": _MOMENT}
Codes = npt.NDArray[np.int8]  # loss of each cell: 0, or 1 + its index in LOSSES
INVALID, NULLED, ZERO_DATE, REPAIRED, AMBIGUOUS = range(1, len(LOSSES) + 1)
_INTEGERS = {"int": pa.int32(), "bigint": pa.int64()}
_FLOATS = {"float": pa.float32(), "double": pa.float64()}
_TEXTS = {"string": pa.string(), "binary": pa.binary()}
_TIMES = {"date": pa.date32(), "timestamp_ntz": pa.timestamp("us"), "timestamp": pa.timestamp("us", "UTC")}
_TYPES = {"boolean": pa.bool_()} | _INTEGERS | _FLOATS | _TEXTS | _TIMES | {"array<float>": pa.list_(pa.float32())}
_ONE_DATE, _ONE_MOMENT = 10, (19, 21, 26)  # characters of a date; of a datetime without and with fractions (from, to)
_MANY, _FIRST = 10_000, 256  # of so many cells, these are read first: each cell that Arrow refuses takes as long as ten that it reads
_YEARS = (1970, 2038)  # years in which all libraries have the same rules for time zones; Arrow knows no clock change later
_NUMBER = r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
_INTEGER = "^-?[0-9]+$"
_JSON_NUMBER = r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?"
_VECTOR = rf"^\[ *({_JSON_NUMBER}( *, *{_JSON_NUMBER})*)? *\]$"
_ZERO = r"^[0-9]{4}-(00-[0-9]{2}|[0-9]{2}-00)"


class NotPlain(Exception):
    """Raised if a batch has a cell that is not a value of its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRules:
    """Rules of a cast besides the types. names_sent: ENUM and SET are sent as names (protocols in NAMES_SENT) and not as numbers."""

    time_zone: str
    names_sent: bool
    values: ValueRules = PLAIN


class CellType(BaseModel, frozen=True):
    """How the cells of a column are read.

    Attributes:
        word: MySQL's word for the type, of dates and numbered members. All other types with one lake type are read alike.
        lake: The lake's type.
        zone: Time zone of a timestamp, else empty.
        names: Members, if the cells are numbers of members.
        mask: The column's mask, if any. Hashed cells are text.
        of_bytes: The cells are bytes and not text.
        invalid: What becomes of a cell that is no value of the type: it blocks publishing, is NULL, or is kept as text.
        zero_dates: Dates whose month or day is zero become NULL by policy; otherwise they are invalid.
        scale: Fraction digits of a decimal that is kept as text; Alibaba's Canal leaves out zeros at its end.
    """

    word: str
    lake: str
    zone: str
    names: tuple[str, ...] | None
    mask: str | None
    of_bytes: bool
    invalid: str
    zero_dates: bool
    scale: int = 0

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of the values."""
        return arrow_type(self.lake)


def cell_type(mysql: MysqlType, rules: CastRules) -> CellType:
    """Return how cells of a column are read."""
    lake, names = lake_type(mysql, rules.values), mysql.elements if is_numbered(mysql, rules) and rules.values.mask != "hash" else None
    return CellType(
        word=mysql.word if names or mysql.word in DATES else "",
        lake=lake,
        zone=rules.time_zone if lake == "timestamp" else "",
        names=names,
        mask=rules.values.mask,
        of_bytes=mysql.is_binary,
        invalid=rules.values.invalid_values,
        zero_dates=rules.values.zero_date == "null",
        scale=(mysql.scale or 0) if mysql.word == "decimal" and lake == "string" and rules.values.mask is None else 0,
    )


def is_numbered(mysql: MysqlType, rules: CastRules) -> bool:
    """Return whether cells are numbers of known names."""
    return mysql.elements is not None and not rules.names_sent


@cache
def arrow_type(lake: str) -> pa.DataType:
    """Return the Arrow type of a lake type."""
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", lake):
        return pa.decimal128(int(match[1]), int(match[2]))
    return _TYPES[lake]


def values(cells: pa.Array, kind: CellType) -> tuple[pa.Array, Codes | None]:
    """Convert binary cells to values. Return (values, the loss of each cell; None if nothing is lost)."""
    if kind.mask == "null":
        return pa.nulls(len(cells), kind.arrow), None
    if kind.mask is not None and kind.mask.startswith("truncate"):
        cells = truncated(cells, kind.mask, kind.of_bytes)
    if kind.mask == "hash":
        return hex_digits(cells), None
    if kind.lake == "binary":
        return cells, None
    try:
        found, lost = _read(cells, kind), None
    except NotPlain:
        coded = cells.dictionary_encode()
        distinct, of_distinct = _apart(coded.dictionary, kind)
        found = distinct.take(coded.indices)
        lost = np.append(of_distinct, np.int8(0))[np.asarray(coded.indices.fill_null(len(of_distinct)))]
    doubtful = _ambiguous(found, kind)
    if doubtful is None or not doubtful.any():
        return found, lost
    return found, np.where(doubtful, np.int8(AMBIGUOUS), np.zeros(len(found), np.int8) if lost is None else lost)


def _apart(cells: pa.Array, kind: CellType) -> tuple[pa.Array, Codes]:
    """Read distinct cells, some of which are no values."""
    if kind.lake == "string" and kind.names is None:
        found = _decoded(cells)
        repaired = np.asarray(pc.not_equal(found.cast(pa.binary()), cells))
        return _with_zeros(found, kind.scale), np.where(repaired, np.int8(REPAIRED), np.int8(0))
    zero = _matches(cells, _ZERO) if kind.word in DATES else np.zeros(len(cells), np.bool_)
    formed = np.logical_and.reduce([~zero, *(_matches(cells, form) for form in _forms(kind))])
    fit = cells.filter(pa.array(formed))
    found = _decimals(fit, kind.arrow) if pa.types.is_decimal(kind.arrow) else _halved(fit, kind)
    found = found.take(pa.array(np.cumsum(formed) - 1, mask=~formed))
    gone = np.asarray(found.is_null())
    if kind.names is not None and kind.invalid == "string":
        return pc.coalesce(found, pa.array([c.decode(errors="replace") for c in cells.to_pylist()], pa.string())), np.zeros(
            len(cells), np.int8
        )
    of_zero = ZERO_DATE if kind.zero_dates else INVALID
    of_other = INVALID if kind.invalid == "reject" else NULLED
    return found, np.where(gone, np.where(zero, np.int8(of_zero), np.int8(of_other)), np.int8(0))


def _decoded(cells: pa.Array) -> pa.Array:
    """Text, with U+FFFD for what is not UTF-8."""
    return pa.array([c.decode(errors="replace") for c in cells.to_pylist()], pa.string())


def _halved(cells: pa.Array, kind: CellType) -> pa.Array:
    """Read cells; NULL for those that are no values. Many are read at once unless one of them is none."""
    try:
        return _read(cells, kind)
    except NotPlain:
        if len(cells) == 1:
            return pa.nulls(1, kind.arrow)
        half = len(cells) // 2
        return pa.concat_arrays([_halved(part, kind) for part in (cells[:half], cells[half:])])


def _matches(cells: pa.Array, form: str) -> Flags:
    return np.asarray(pc.match_substring_regex(cells, form))


def _forms(kind: CellType) -> tuple[str, ...]:
    """The regular expressions that the values of a type match, each of them."""
    if kind.names is not None:
        return (_INTEGER,)
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind.lake):
        return _digits(int(match[1]), int(match[2])), "[0-9]"
    if kind.word in DATES:
        return (DATES[kind.word],)
    return ({"array<float>": _VECTOR, "float": f"^{_NUMBER}$", "double": f"^{_NUMBER}$"}.get(kind.lake, _INTEGER),)


def _digits(precision: int, scale: int) -> str:
    """Decimals that fit their type; zeros at both ends do not count. The groups are the sign, and the digits on both sides of the point."""
    whole, fraction = f"([0-9]{{0,{precision - scale}}})", f"([0-9]{{0,{scale}}})"
    return rf"^([-+]?)0*{whole}(?:\.{fraction}0*)?$"


def _decimals(cells: pa.Array, to: pa.Decimal128Type) -> pa.Array:
    """Read decimals that match `_digits`."""
    return pc.replace_substring_regex(cells.cast(pa.string()), _digits(to.precision, to.scale), r"\10\2.\3").cast(to)


def _read(cells: pa.Array, kind: CellType) -> pa.Array:
    """Read cells, all of which are values. Raises NotPlain if that is not certain."""
    try:
        if len(cells) > _MANY:
            _value_of(cells[:_FIRST].cast(pa.string()), kind)
        return _value_of(cells.cast(pa.string()), kind)
    except pa.ArrowInvalid as e:
        raise NotPlain(str(e)) from e


def _value_of(text: pa.Array, kind: CellType) -> pa.Array:
    to = kind.arrow
    if kind.names is not None:
        return _members(text, kind.names) if kind.word == "set" else _member(text, kind.names)
    if kind.lake == "string":
        return _with_zeros(text, kind.scale)
    if kind.lake == "array<float>":
        return _vectors(text)
    if kind.word in DATES:
        _refuse_unless(_of_length(text, kind.lake))
    if kind.lake in _INTEGERS:
        _refuse_if(text, "x", "X")  # Arrow reads hex
    elif pa.types.is_decimal(to):
        _refuse_if(text, "e", "E", "-.", "+.")
        _refuse_unless(_fits(text, to))
    if kind.lake == "timestamp":
        return _instants(text.cast(pa.timestamp("us")), kind.zone)
    found = text.cast(to)
    if kind.lake in _FLOATS:
        _refuse_unless(pc.is_finite(found))
    return found


def _with_zeros(text: pa.Array, scale: int) -> pa.Array:
    """Decimals as MySQL prints them, with all fraction digits. What is no decimal stays."""
    if scale == 0:
        return text
    point = pc.find_substring(text, ".")
    lacking = pc.subtract(pc.add(point, scale + 1), pc.binary_length(text))
    lacking = pc.if_else(pc.less(point, 0), scale, lacking)
    short = pc.and_(pc.greater(lacking, 0), pc.match_substring_regex(text, r"^-?[0-9]+(\.[0-9]*)?$"))
    if not pc.any(short, min_count=0).as_py():
        return text
    dot = pc.if_else(pc.less(point, 0), ".", "")
    zeros = pa.array(["0" * n for n in range(scale + 1)]).take(pc.if_else(short, lacking, 0))
    return pc.if_else(short, pc.binary_join_element_wise(text, dot, zeros, ""), text)


def _of_length(text: pa.Array, lake: str) -> pa.Array:
    length = pc.binary_length(text)
    day = pc.equal(length, _ONE_DATE)
    if lake == "date":
        return day
    plain, low, high = _ONE_MOMENT
    exact = pc.and_(pc.greater_equal(length, low), pc.less_equal(length, high))
    return pc.or_(pc.or_(day, pc.equal(length, plain)), exact)


def _instants(moments: pa.Array, zone: str) -> pa.Array:
    """Read clock times of a zone; of a time that its clocks showed twice, the first. Raises NotPlain if its clocks skipped one."""
    first, end = (datetime(year, 1, 1) for year in _YEARS)  # noqa: DTZ001 - of any zone
    certain = pc.and_(pc.greater_equal(moments, first), pc.less(moments, end))
    if not pc.all(certain, min_count=0).as_py():
        if len(moments) > 1:
            raise NotPlain("a year without certain rules")
        return _instant(moments[0], zone)
    found = pc.assume_timezone(moments, zone, ambiguous="earliest", nonexistent="earliest")
    _refuse_unless(pc.equal(pc.local_timestamp(found), moments))
    return found.cast(_TIMES["timestamp"])


def _instant(moment: pa.Scalar, zone: str) -> pa.Array:
    """A clock time of a year for which Arrow has no rules."""
    try:
        there = (
            datetime.fromisoformat(f"{moment.as_py().isoformat()}{zone}")
            if zone[0] in "+-"
            else moment.as_py().replace(tzinfo=ZoneInfo(zone))
        )
        return pa.array([there.astimezone(UTC)], _TIMES["timestamp"])
    except (ValueError, OverflowError) as e:
        raise NotPlain("a year that no instant has") from e


def _fits(text: pa.Array, to: pa.Decimal128Type) -> pa.Array:
    """Whether decimals fit their type. Arrow does not report overflow of its 128 bits, so the digits are counted."""
    sign = pc.or_(pc.starts_with(text, "-"), pc.starts_with(text, "+")).cast(pa.int32())
    length, point = pc.subtract(pc.binary_length(text), sign), pc.find_substring(text, ".")
    dotted = pc.greater_equal(point, 0)
    whole = pc.if_else(dotted, pc.subtract(point, sign), length)
    digits = pc.subtract(length, dotted.cast(pa.int32()))
    one_before = pc.not_equal(point, 0)
    return pc.and_(pc.and_(pc.less_equal(whole, to.precision - to.scale), pc.less_equal(digits, MAX_PRECISION)), one_before)


def _refuse_if(text: pa.Array, *parts: str) -> None:
    """Raise NotPlain if one of these is in a cell."""
    for part in parts:
        if pc.any(pc.match_substring(text, part), min_count=0).as_py():
            raise NotPlain("a cell of another form")


def _refuse_unless(held: pa.Array) -> None:
    """Raise NotPlain unless all values are true or NULL."""
    if not pc.all(held, min_count=0).as_py():
        raise NotPlain("a cell of another form")


def _member(text: pa.Array, names: tuple[str, ...]) -> pa.Array:
    """Names of an ENUM's members by number. 0 is the empty value."""
    numbers = text.cast(pa.int32())
    _refuse_unless(pc.and_(pc.greater_equal(numbers, 0), pc.less_equal(numbers, len(names))))
    return pa.array(["", *names], pa.string()).take(numbers)


def _members(text: pa.Array, names: tuple[str, ...]) -> pa.Array:
    """Names of a SET's members by bits. 0 is the empty set."""
    coded = text.cast(pa.uint64()).dictionary_encode()
    bits: list[int] = coded.dictionary.to_pylist()
    if any(b >> len(names) for b in bits):
        raise NotPlain("a bit of no member")
    known = pa.array([",".join(n for i, n in enumerate(names) if b >> i & 1) for b in bits], pa.string())
    return known.take(coded.indices)


def _vectors(text: pa.Array) -> pa.Array:
    """Lists of float32 from JSON arrays of numbers."""
    _refuse_unless(pc.match_substring_regex(text, _VECTOR))
    inner = pc.utf8_trim(text, "[] ")
    parts = pc.split_pattern(inner, ",")
    empty = np.asarray(pc.fill_null(pc.equal(inner, ""), False))
    numbers = pc.utf8_trim(parts.flatten(), " ")
    held = pc.not_equal(numbers, "")
    found = numbers.filter(held).cast(pa.float32())
    _refuse_unless(pc.is_finite(found))
    sizes = np.where(empty, 0, np.asarray(pc.fill_null(pc.list_value_length(parts), 0)))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), found, mask=text.is_null() if text.null_count else None)


def _ambiguous(found: pa.Array, kind: CellType) -> Flags | None:
    """Values that another value reads like: a time that clocks showed twice, the number 0 beside a member ''."""
    if kind.names is not None and "" in kind.names:
        return np.asarray(pc.fill_null(pc.equal(found, ""), False))
    if kind.lake != "timestamp" or kind.zone == "UTC" or kind.zone[0] in "+-":
        return None
    return _shown_twice(found, kind.zone)


def _shown_twice(found: pa.Array, zone: str) -> Flags:
    local = pc.local_timestamp(found.cast(pa.timestamp("us", zone)))
    later = pc.assume_timezone(local, zone, ambiguous="latest", nonexistent="latest")
    return np.asarray(pc.fill_null(pc.not_equal(later.cast(pa.int64()), found.cast(pa.int64())), False))
