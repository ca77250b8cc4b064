"""Numbers and their texts in Arrow: decimals that are rounded, floats as Java prints them (docs/ddl.md, change type)."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.history.ddl.column_types import MAX_PRECISION

SPACES = "".join(map(chr, range(0x21)))  # characters that Java's String.trim removes
_PLAIN = r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$"
_EXPONENT = r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]{1,9}$"
_PARTS = r"^(?P<sign>[-+]?)0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?$"
_WIDEST = 76  # digits of a decimal256
_LONG = 19  # digits of an int64
_JAVA_PLAIN = (1e-3, 1e7)  # the range of values that Java prints without an exponent
_FEW_BITS = {pa.float32(): 1.4e-43, pa.float64(): 5e-322}  # below it, Java's two digits say more than the shortest text's one
_JAVA_EXPONENT = (
    (r"^(-?)inf$", r"\1Infinity"),
    (r"^nan$", "NaN"),
    (r"^(-?[0-9])(?:\.([0-9]+))?e\+?(-?[0-9]+)$", r"\1.\2E\3"),
    *((rf"^(-?[0-9])([0-9]{{{n}}})(?:\.([0-9]+))?$", rf"\1.\2\3E{n}") for n in (7, 8, 9)),
    *((rf"^(-?)0\.0{{{n}}}([1-9])([0-9]*)$", rf"\1\2.\3E-{n + 1}") for n in (3, 4, 5)),
    (r"\.E", ".0E"),
    (r"(\.[0-9]+?)0*E", r"\1E"),
)


def rounded(numbers: pa.Array, to: pa.Decimal128Type) -> pa.Array:
    """Return integers or decimals in a decimal type, rounded half away from zero; NULL where they do not fit.

    Args:
        numbers: Integers of at most 64 bits, decimals of at most 128, or of 256 with a digit to spare.
        to: The type of the result.

    Returns:
        An array of the type `to`.
    """
    if pa.types.is_integer(numbers.type):
        numbers = numbers.cast(pa.int64()).cast(pa.decimal128(_LONG, 0))
    precision, scale = numbers.type.precision + 1, numbers.type.scale
    wide = numbers.cast(pa.decimal256(precision, scale))
    if scale > to.scale:
        wide = pc.round(wide, ndigits=to.scale, round_mode="half_towards_infinity")
    whole = to.precision - to.scale
    if whole < precision - scale:
        limit = pa.scalar(Decimal(10) ** whole, wide.type)
        wide = pc.if_else(pc.less(pc.abs(wide), limit), wide, None)
    return wide.cast(pa.decimal256(_WIDEST, to.scale)).cast(to)


def decimals_of(text: pa.Array, to: pa.Decimal128Type) -> pa.Array:
    """Return the decimals that texts are, rounded half away from zero; NULL for other texts and where they do not fit.

    Args:
        text: Numbers as Java's BigDecimal reads them, with or without exponent, between spaces and control characters.
        to: The type of the result.

    Returns:
        An array of the type `to`.
    """
    text = _without_exponents(pc.utf8_trim(text, characters=SPACES))
    parts = pc.extract_regex(pc.if_else(pc.match_substring_regex(text, _PLAIN), text, None), pattern=_PARTS)
    sign, whole, fraction = (pc.if_else(parts.is_valid(), parts.field(name), None) for name in ("sign", "whole", "fraction"))
    fits = pc.less_equal(pc.binary_length(whole), to.precision - to.scale)
    deciding = pc.utf8_slice_codeunits(fraction, start=0, stop=to.scale + 1)  # the digit behind the last says how to round
    kept = pc.if_else(fits, pc.binary_join_element_wise(sign, "0", whole, ".", deciding, "0", ""), None)
    return rounded(kept.cast(pa.decimal256(to.precision + 3, to.scale + 2)), to)


def _without_exponents(text: pa.Array) -> pa.Array:
    """Write numbers with exponents in plain digits; NULL for those too large for any decimal."""
    found = pc.fill_null(pc.match_substring_regex(text, _EXPONENT), False)
    if not pc.any(found, min_count=0).as_py():
        return text
    coded = text.filter(found).dictionary_encode()
    plain = pa.array([_plain(t) for t in coded.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(text, found, plain.take(coded.indices))


def _plain(text: str) -> str | None:
    number = Decimal(text)
    if number.adjusted() >= MAX_PRECISION and number:
        return None
    return "0" if not number or number.adjusted() < -_WIDEST else f"{number:f}"


def digits_of(numbers: pa.Array) -> pa.Array:
    """Return decimals as text with all digits of their scale and no exponent: `0.0000000000`, never `0E-10`.

    Args:
        numbers: An array of a decimal128 type.

    Returns:
        An array of strings.
    """
    whole = pa.decimal128(MAX_PRECISION, 0)
    unscaled = pa.Array.from_buffers(whole, len(numbers), numbers.buffers(), offset=numbers.offset).cast(pa.string())
    scale = numbers.type.scale
    if not scale:
        return unscaled
    digits = pc.utf8_lpad(pc.utf8_ltrim(unscaled, characters="-"), width=scale + 1, padding="0")
    sign = pc.if_else(pc.starts_with(unscaled, "-"), "-", "")
    before, after = pc.utf8_slice_codeunits(digits, start=0, stop=-scale), pc.utf8_slice_codeunits(digits, start=-scale)
    return pc.binary_join_element_wise(sign, before, ".", after, "")


def java_texts(numbers: pa.Array) -> pa.Array:
    """Return floats as Java prints them: `1.0E10`, `0.001`, `4.9E-324`. The digits are the fewest that read back as the same number.

    Args:
        numbers: An array of float32 or float64.

    Returns:
        An array of strings.

    Source:
        https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/lang/Double.html#toString(double)
    """
    size, (low, high) = pc.abs(numbers), _JAVA_PLAIN
    short = pc.or_(pc.equal(size, 0), pc.and_(pc.greater_equal(size, low), pc.less(size, high)))
    text = pc.replace_substring_regex(numbers.cast(pa.string()), r"^(-?[0-9]+)$", r"\1.0")
    long = pc.invert(pc.fill_null(short, True))
    if not pc.any(long, min_count=0).as_py():
        return text
    written = numbers.filter(long).cast(pa.string())
    for form, by in _JAVA_EXPONENT:
        written = pc.replace_substring_regex(written, form, by)
    few = np.asarray(pc.less(size.filter(long), _FEW_BITS[numbers.type]))
    if few.any():
        coded = numbers.filter(long).filter(pa.array(few)).dictionary_encode()
        two = pa.array([f"{n:.1e}".replace("e", "E") for n in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)
        one_digit = pc.match_substring_regex(written, r"^-?[0-9]\.0E")
        written = pc.if_else(one_digit, pc.replace_with_mask(written, pa.array(few), two), written)
    return pc.replace_with_mask(text, long, written)
