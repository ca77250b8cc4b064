"""The shortest decimal that gives the same float back: Schubfach (Raffaello Giulietti, 2020), laid out as Python's repr lays it out.

`double` and `single` in plain Python, the others compiled; both give the same text. Kernels work on the bits of a float as uint64,
because that is what stands on the wire.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Bytes, Words
from tidelake.wire.kernels.binary_kernels import digits_of, put_padded, put_unsigned
from tidelake.wire.kernels.compiled import compiled, int64

TEXT_BYTES = 24  # the longest: -2.2250738585072014e-308

_LOWEST, _HIGHEST = -292, 324  # powers of ten that float64 needs
_BIAS = 1075  # a float64 is significand × 2^(exponent − 1075)
_HIDDEN = 1 << 52
_NARROW_BIAS, _NARROW_HIDDEN = 150, 1 << 23  # the same of float32
_DROPPED = 29  # significand bits that float32 lacks
_INFINITY = 0x7FF


def double(value: float) -> bytes:
    """A float64's text."""
    return b"NaN" if value != value else repr(value).encode()


def single(value: float) -> bytes:
    """A float32's text; of a float64 that is no float32, the float64's text (Craft's FLOATs: docs/reference/protocols.md 3.8)."""
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    return double(float(str(narrow)) if float(narrow) == value else value)


def _powers() -> Words:
    """10^k as 128 bits, rounded up: high and low word."""
    table = np.empty((_HIGHEST - _LOWEST + 1, 2), np.uint64)
    for k in range(_LOWEST, _HIGHEST + 1):
        shift = 127 - (k * 1741647 >> 19)  # so that the topmost of 128 bits is set
        top, bottom = (10**k, 1) if k >= 0 else (1, 10**-k)
        number = -(-(top << shift) // bottom) if shift >= 0 else -(-top // (bottom << -shift))
        table[k - _LOWEST] = number >> 64, number & (1 << 64) - 1
    return table


_POWERS = _powers()


@compiled
def put_double(out: Bytes, at: int, bits: np.uint64) -> int:
    """The text of a float64 given by its bits, at most TEXT_BYTES."""
    exponent = int64(bits >> np.uint64(52)) & _INFINITY
    fraction = bits & np.uint64(_HIDDEN - 1)
    if exponent == _INFINITY:
        return _put_special(out, at, bits, fraction)
    at = _put_sign(out, at, bits)
    if exponent == 0:
        return _put_shortest(out, at, fraction, 1 - _BIAS, False)
    return _put_shortest(out, at, fraction | np.uint64(_HIDDEN), exponent - _BIAS, bool(fraction == 0 and exponent > 1))


@compiled
def put_float(out: Bytes, at: int, bits: np.uint64) -> int:
    """The text of a float32 given by its bits."""
    exponent = int64(bits >> np.uint64(23)) & 0xFF
    fraction = bits & np.uint64(_NARROW_HIDDEN - 1)
    bits <<= np.uint64(32)  # the sign where float64 has it
    if exponent == 0xFF:
        return _put_special(out, at, bits, fraction)
    at = _put_sign(out, at, bits)
    if exponent == 0:
        return _put_shortest(out, at, fraction, 1 - _NARROW_BIAS, False)
    return _put_shortest(out, at, fraction | np.uint64(_NARROW_HIDDEN), exponent - _NARROW_BIAS, bool(fraction == 0 and exponent > 1))


@compiled
def put_single(out: Bytes, at: int, bits: np.uint64) -> int:
    """The text of a float64 given by its bits; where the number is a float32, of that."""
    exponent = int64(bits >> np.uint64(52)) & _INFINITY
    below = max(897 - exponent, 0)  # bits that a subnormal float32 lacks in addition
    dropped = np.uint64(_DROPPED + below)
    significand = bits & np.uint64(_HIDDEN - 1) | np.uint64(_HIDDEN)
    if exponent > 1150 or below > 23 or significand & ((np.uint64(1) << dropped) - np.uint64(1)):
        return put_double(out, at, bits)
    at = _put_sign(out, at, bits)
    closer = bool(significand == np.uint64(_HIDDEN) and exponent > 897)
    return _put_shortest(out, at, significand >> dropped, exponent - _BIAS + _DROPPED + below, closer)


@compiled
def _put_sign(out: Bytes, at: int, bits: np.uint64) -> int:
    if bits >> np.uint64(63):
        out[at] = 45
        return at + 1
    return at


@compiled
def _put_special(out: Bytes, at: int, bits: np.uint64, fraction: np.uint64) -> int:
    if fraction == 0:
        at = _put_sign(out, at, bits)
    text = b"inf" if fraction == 0 else b"NaN"
    for i in range(3):
        out[at + i] = text[i]
    return at + 3


@compiled
def _put_shortest(out: Bytes, at: int, c: np.uint64, q: int, closer: bool) -> int:
    """c × 2^q. closer: the number below is only half as far away as the number above."""
    if c == 0:
        return _put_layout(out, at, np.uint64(0), 0)
    if -53 < q <= 0 and c & ((np.uint64(1) << np.uint64(-q)) - np.uint64(1)) == 0:
        return _put_layout(out, at, c >> np.uint64(-q), 0)  # a whole number
    digits, k = _shortest(c, q, closer)
    return _put_layout(out, at, digits, k)


@compiled
def _shortest(c: np.uint64, q: int, closer: bool) -> tuple[np.uint64, int]:
    """Digits and exponent. Names follow the paper: v = 4c × 2^q / 10^k between its neighbours' middles vl and vr, in quarters."""
    k = (q * 1262611 - (524031 if closer else 0)) >> 22
    h = np.uint64(q + (-k * 1741647 >> 19) + 1)
    high, low = _POWERS[-k - _LOWEST, 0], _POWERS[-k - _LOWEST, 1]
    four, odd = c << np.uint64(2), c & np.uint64(1)
    lower = _round_to_odd(high, low, (four - np.uint64(1 if closer else 2)) << h) + odd
    v = _round_to_odd(high, low, four << h)
    upper = _round_to_odd(high, low, (four + np.uint64(2)) << h) - odd
    s = v >> np.uint64(2)
    tens = s // np.uint64(10)
    below, above = lower <= tens * np.uint64(40), (tens + np.uint64(1)) * np.uint64(40) <= upper
    if s >= 10 and below != above:
        return tens + np.uint64(above), k + 1
    below, above = lower <= s * np.uint64(4), (s + np.uint64(1)) * np.uint64(4) <= upper
    if below != above:
        return s + np.uint64(above), k
    middle = s * np.uint64(4) + np.uint64(2)
    return s + np.uint64(v > middle or (v == middle and s & np.uint64(1) == 1)), k


@compiled
def _round_to_odd(high: np.uint64, low: np.uint64, factor: np.uint64) -> np.uint64:
    """(high:low × factor) >> 128, its last bit set if anything was cut off."""
    upper = high * factor
    rest = upper + _top(low, factor)
    result = _top(high, factor) + np.uint64(rest < upper)
    return result | np.uint64(rest > np.uint64(1))


@compiled
def _top(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper half of a × b."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    first = (a & mask) * (b & mask)
    second = (a >> half) * (b & mask) + (first >> half)
    third = (a & mask) * (b >> half) + (second & mask)
    return (a >> half) * (b >> half) + (second >> half) + (third >> half)


@compiled
def _put_layout(out: Bytes, at: int, digits: np.uint64, exponent: int) -> int:
    """digits × 10^exponent as repr writes it."""
    while digits >= 10 and digits % np.uint64(10) == 0:
        digits //= np.uint64(10)
        exponent += 1
    count = digits_of(digits)
    point = count + exponent
    if point > 16 or point <= -4:
        return _put_exponent(out, at, digits, count, point - 1)
    if point <= 0:
        begin = at
        at = put_padded(out, at, np.uint64(0), 2 - point)
        out[begin + 1] = 46
        return put_padded(out, at, digits, count)
    if point >= count:
        at = put_padded(out, put_unsigned(out, at, digits), np.uint64(0), point - count + 2)
        out[at - 2] = 46
        return at
    return _put_pointed(out, at, digits, point)


@compiled
def _put_pointed(out: Bytes, at: int, digits: np.uint64, point: int) -> int:
    """The digits with a point after the first `point` of them."""
    end = put_unsigned(out, at + 1, digits)
    for i in range(at, at + point):
        out[np.uint64(i)] = out[np.uint64(i + 1)]
    out[np.uint64(at + point)] = 46
    return end


@compiled
def _put_exponent(out: Bytes, at: int, digits: np.uint64, count: int, exponent: int) -> int:
    at = _put_pointed(out, at, digits, 1) if count > 1 else put_unsigned(out, at, digits)
    size = np.uint64(abs(exponent))
    out[at] = 101
    out[at + 1] = 45 if exponent < 0 else 43
    return put_padded(out, at + 2, size, max(2, digits_of(size)))
