"""Convert values from one lake type to another in Arrow, as MODIFY COLUMN does (docs/ddl.md, change type).

Values are what Spark's `try_cast` gives, but for a few that docs/types.md and docs/ddl.md promise otherwise:

float to integer     1.5 becomes 2: rounded half away from zero, as decimals are. Spark cuts the fraction.
infinite, NaN        A double beyond the range of float is NULL, and so are the texts `1e400`, `NaN` and `Infinity`. Spark returns them.
text to float        Only decimal digits are read. Spark also reads `1d` and `0x1p3`.
text to number       Only ASCII digits are read. Spark also reads digits of other scripts.
text to date, time   Only the forms of cells are read: a date, or a date with a time and at most 6 fraction digits. A date with a time is no
                     date. Spark also reads `2024`, `2024-1-1`, a time with a zone and `10:00` (of today), and drops a 7th digit.
text to vector       JSON arrays of numbers are read. Spark refuses the statement.
bytes to text        What is not UTF-8 becomes U+FFFD. Spark keeps the bytes.
number and timestamp Refused in both directions. Spark counts seconds since 1970; MySQL uses digits such as 20260105100000.
float to text        The fewest digits that read back as the same number, as in Java 19 and newer. Older versions of Java print a digit more
                     for some numbers (4.9189919E9 for the float 4.918992E9). A decimal is made from the same digits.
years after 9999     No `+` before the year in texts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.errors import OrderError
from tidelake.lake.columns import cells
from tidelake.lake.columns.cells import arrow_type
from tidelake.lake.columns.numbers import SPACES, decimals_of, digits_of, java_texts, rounded

Rule = Callable[[pa.Array, str, str], pa.Array]
_FAMILIES = {"int": "integer", "bigint": "integer", "float": "float", "double": "float"}
_WORDS = {"date": "date", "timestamp": "timestamp", "timestamp_ntz": "datetime"}  # types whose texts MySQL's word tells how to read
_SHORT = "^-?[0-9]{1,18}$"  # text that certainly is an integer of 64 bits
_BETWEEN = pa.decimal128(38, 10)  # text becomes an integer by way of this type


def converted(values: pa.Array, have: str, to: str, zone: str) -> pa.Array:
    """Return the values in another lake type; NULL where it does not hold them, numbers rounded half away from zero.

    Args:
        values: Values of the lake type `have`, in its Arrow type (cells.arrow_type). Times are microseconds, timestamps in UTC.
        have: The lake type of the values.
        to: The lake type of the result.
        zone: Time zone of the feed. Its clocks read and print timestamps (docs/types.md).

    Returns:
        An array of the Arrow type of `to`, as long as `values`; `values` itself if the types are the same.

    Raises:
        OrderError: UNSUPPORTED_DDL for types between which no statement converts values.

    Source:
        https://spark.apache.org/docs/latest/sql-ref-ansi-compliance.html#cast
    """
    if have == to:
        return values
    rule = _RULES.get((_family(have), _family(to)))
    if rule is None:
        raise OrderError(
            f"the lake cannot convert values of type {have} to {to}",
            code="UNSUPPORTED_DDL",
            remedy="load the table again as of a TSO after the statement, in a feed of its own",
        )
    return rule(values, to, zone)


def _family(lake: str) -> str:
    return "decimal" if lake.startswith("decimal(") else _FAMILIES.get(lake, lake)


def _integer(values: pa.Array, to: str, zone: str) -> pa.Array:
    """Integers or decimals as integers."""
    whole = rounded(values, pa.decimal128(38, 0)) if pa.types.is_decimal(values.type) else values
    kind = arrow_type(to)
    if whole.type == pa.int32():
        return whole.cast(kind)
    end = 2 ** (kind.bit_width - 1)
    low, high = (pa.scalar(n, whole.type) for n in (-end, end - 1))
    return pc.if_else(pc.and_(pc.greater_equal(whole, low), pc.less_equal(whole, high)), whole, None).cast(kind)


def _integer_of_float(values: pa.Array, to: str, zone: str) -> pa.Array:
    kind = arrow_type(to)
    whole = pc.round(values.cast(pa.float64()), round_mode="half_towards_infinity")
    end = float(2 ** (kind.bit_width - 1))
    return pc.if_else(pc.and_(pc.greater_equal(whole, -end), pc.less(whole, end)), whole, None).cast(kind)


def _integer_of_text(values: pa.Array, to: str, zone: str) -> pa.Array:
    if pc.all(pc.match_substring_regex(values, _SHORT), min_count=0).as_py():
        return _integer(values.cast(pa.int64()), to, zone)
    return _integer(decimals_of(values, _BETWEEN), to, zone)


def _float(values: pa.Array, to: str, zone: str) -> pa.Array:
    found = values.cast(arrow_type(to), safe=False)
    return pc.if_else(pc.is_finite(found), found, None)


def _float_of_decimal(values: pa.Array, to: str, zone: str) -> pa.Array:
    """Arrow's own conversion multiplies, and rounds twice."""
    return digits_of(values).cast(arrow_type(to))


def _float_of_text(values: pa.Array, to: str, zone: str) -> pa.Array:
    return _of_text(pc.utf8_trim(values, characters=SPACES), to, zone)


def _decimal(values: pa.Array, to: str, zone: str) -> pa.Array:
    return rounded(values, arrow_type(to))


def _decimal_of_float(values: pa.Array, to: str, zone: str) -> pa.Array:
    return decimals_of(values.cast(pa.float64()).cast(pa.string()), arrow_type(to))


def _decimal_of_text(values: pa.Array, to: str, zone: str) -> pa.Array:
    return decimals_of(values, arrow_type(to))


def _of_text(values: pa.Array, to: str, zone: str) -> pa.Array:
    """Text, or bytes of text, read as cells of the type are."""
    kind = cells.CellType(
        word=_WORDS.get(to, ""),
        lake=to,
        zone=zone,
        names=None,
        mask=None,
        of_bytes=False,
        invalid="null",
        zero_dates=True,
    )
    return cells.values(values.cast(pa.binary()), kind)[0]


def _instant_of_text(values: pa.Array, to: str, zone: str) -> pa.Array:
    """A date, or date and time."""
    return _instant(_of_text(values, "timestamp_ntz", zone), to, zone)


def _plain(values: pa.Array, to: str, zone: str) -> pa.Array:
    """By Arrow's own conversion, which loses nothing."""
    return values.cast(arrow_type(to))


def _digits(values: pa.Array, to: str, zone: str) -> pa.Array:
    return digits_of(values)


def _java(values: pa.Array, to: str, zone: str) -> pa.Array:
    return java_texts(values)


def _vector_text(values: pa.Array, to: str, zone: str) -> pa.Array:
    """Lists of numbers as `[1.0, -2.5]`."""
    offsets = np.concatenate([[0], np.cumsum(np.asarray(pc.fill_null(pc.list_value_length(values), 0)))])
    numbers = pc.fill_null(java_texts(values.flatten()), "null")
    inner = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), numbers), ", ")
    return pc.if_else(values.is_valid(), pc.binary_join_element_wise("[", inner, "]", ""), None)


def _text_of_clock(values: pa.Array, to: str, zone: str) -> pa.Array:
    """`2026-01-05 10:00:00.25`, without zeros at the end of the fraction."""
    return pc.utf8_rtrim(pc.utf8_rtrim(values.cast(pa.string()), characters="0"), characters=".")


def _text_of_instant(values: pa.Array, to: str, zone: str) -> pa.Array:
    return _text_of_clock(_clock(values, to, zone), to, zone)


def _clock(values: pa.Array, to: str, zone: str) -> pa.Array:
    """What the zone's clocks show at instants."""
    local = pa.timestamp("us")
    if zone == "UTC":
        return values.cast(pa.int64()).cast(local)
    return pc.local_timestamp(values.cast(pa.timestamp("us", zone))).cast(local)


def _instant(values: pa.Array, to: str, zone: str) -> pa.Array:
    """The instants at which the zone's clocks show these times, read as cells are: the first of two, NULL for none."""
    if zone == "UTC":
        return values.cast(pa.int64()).cast(arrow_type(to))
    return _of_text(values.cast(pa.string()), to, zone)


def _clock_of_date(values: pa.Array, to: str, zone: str) -> pa.Array:
    return values.cast(pa.timestamp("us"))


def _instant_of_date(values: pa.Array, to: str, zone: str) -> pa.Array:
    return _instant(_clock_of_date(values, to, zone), to, zone)


def _date_of_clock(values: pa.Array, to: str, zone: str) -> pa.Array:
    return values.cast(pa.date32(), safe=False)


def _date_of_instant(values: pa.Array, to: str, zone: str) -> pa.Array:
    return _date_of_clock(_clock(values, to, zone), to, zone)


_RULES: dict[tuple[str, str], Rule] = {
    ("integer", "integer"): _integer,
    ("integer", "float"): _float,
    ("integer", "decimal"): _decimal,
    ("integer", "string"): _plain,
    ("float", "integer"): _integer_of_float,
    ("float", "float"): _float,
    ("float", "decimal"): _decimal_of_float,
    ("float", "string"): _java,
    ("decimal", "integer"): _integer,
    ("decimal", "float"): _float_of_decimal,
    ("decimal", "decimal"): _decimal,
    ("decimal", "string"): _digits,
    ("string", "integer"): _integer_of_text,
    ("string", "float"): _float_of_text,
    ("string", "decimal"): _decimal_of_text,
    ("string", "binary"): _plain,
    ("string", "date"): _of_text,
    ("string", "timestamp"): _instant_of_text,
    ("string", "timestamp_ntz"): _of_text,
    ("string", "array<float>"): _of_text,
    ("binary", "string"): _of_text,
    ("date", "string"): _plain,
    ("date", "timestamp"): _instant_of_date,
    ("date", "timestamp_ntz"): _clock_of_date,
    ("timestamp", "string"): _text_of_instant,
    ("timestamp", "date"): _date_of_instant,
    ("timestamp", "timestamp_ntz"): _clock,
    ("timestamp_ntz", "string"): _text_of_clock,
    ("timestamp_ntz", "date"): _date_of_clock,
    ("timestamp_ntz", "timestamp"): _instant,
    ("array<float>", "string"): _vector_text,
}
