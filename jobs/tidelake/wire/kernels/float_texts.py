"""Compiled: decimal text → float64, correctly rounded: Eisel and Lemire's method (Lemire, Number Parsing at a Gigabyte per Second, 2021).

Takes what the shortest texts of floats look like, with or without exponent: at most 19 digits that count. For those the method is exact
(Mushtak and Lemire, Fast Number Parsing Without Fallback, 2023).
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Bytes, Words
from tidelake.wire.kernels.compiled import inlined_step, int64, step
from tidelake.wire.kernels.json_kernels import BAD, fraction, item

_LOWEST, _HIGHEST = -342, 308  # powers of ten beyond which a float64 is zero or infinite
_DIGITS = 19  # of any that fit 64 bits
_INFINITY = 0x7FF
_MINUS, _PLUS, _POINT, _ZERO, _NINE, _E = 45, 43, 46, 48, 57, 101
_ONE, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
_MASK = np.uint64(0x1FF)  # bits of a product's upper word below the 55 that decide
_HIDDEN = np.uint64(1 << 52)
_SIGN = np.uint64(1 << 63)


def _powers() -> Words:
    """5^q by its 128 topmost bits, high word and low word in turn: cut off from 0 on, rounded up below."""
    table = np.empty((_HIGHEST - _LOWEST + 1, 2), np.uint64)
    for q in range(_LOWEST, _HIGHEST + 1):
        if q >= 0:
            number = 5**q
        else:
            size = (5**-q).bit_length()
            number = (1 << (size + 127 if q >= -27 else 2 * size + 128)) // 5**-q + 1
        shift = number.bit_length() - 128
        number = number >> shift if shift > 0 else number << -shift
        table[q - _LOWEST] = number >> 64, number & (1 << 64) - 1
    return table.ravel()


_POWERS = _powers()


@step
def float_bits(text: Bytes, p: int, end: int) -> tuple[np.uint64, bool]:
    """The bits of the number in text[p:end]; False if it is not a number, or has more digits than are taken."""
    negative = p < end and text[p] == _MINUS
    digits, exponent, p = _decimal(text, p + negative, end)
    if p != end:
        return np.uint64(0), False
    bits = _rounded(digits, exponent)
    return (bits | _SIGN if negative else bits), True


@step
def large_fraction(text: Bytes, p: int) -> int:
    """The position after a JSON number with a positive exponent of three digits that is a finite double, else BAD."""
    stop = fraction(text, p, 3)
    if stop == BAD:
        return BAD
    bits, taken = float_bits(text, p, stop)
    finite = int64(bits >> np.uint64(52)) & _INFINITY != _INFINITY
    return stop if taken and finite else BAD


@inlined_step
def _decimal(text: Bytes, p: int, end: int) -> tuple[np.uint64, int, int]:
    """Digits without a point, the power of ten they are multiplied with, and the position after them, `-1` if they are no number."""
    digits, count, exponent, seen, after_point = np.uint64(0), 0, 0, False, False
    while p < end:
        c = int64(item(text, p))
        if c == _POINT and not after_point:
            after_point = True
        elif _ZERO <= c <= _NINE:
            seen = True
            if count < _DIGITS:
                digits = digits * np.uint64(10) + np.uint64(c - _ZERO)
                count += digits != 0
                exponent -= after_point
            elif c != _ZERO:
                return digits, exponent, -1
            else:
                exponent += not after_point
        else:
            break
        p += 1
    if not seen:
        return digits, exponent, -1
    if p < end and (text[p] | 0x20) == _E:
        power, p = _exponent(text, p + 1, end)
        return digits, exponent + power, p
    return digits, exponent, p


@inlined_step
def _exponent(text: Bytes, p: int, end: int) -> tuple[int, int]:
    negative = p < end and text[p] == _MINUS
    p += p < end and (text[p] == _MINUS or text[p] == _PLUS)
    first, power = p, 0
    while p < end and _ZERO <= text[p] <= _NINE and p - first < 5:
        power = power * 10 + int64(text[p]) - _ZERO
        p += 1
    return (-power if negative else power), (p if p > first else -1)


@step
def _rounded(digits: np.uint64, q: int) -> np.uint64:
    """The float64 nearest to digits × 10^q, as bits."""
    if digits == 0 or q < _LOWEST:
        return np.uint64(0)
    if q > _HIGHEST:
        return np.uint64(_INFINITY) << np.uint64(52)
    zeros = _leading_zeros(digits)
    high, low = _product(digits << np.uint64(zeros), q)
    upper = int64(high >> np.uint64(63))
    shift = np.uint64(upper + 9)
    significand = high >> shift
    exponent = ((217706 * q) >> 16) + 1086 + upper - zeros
    if exponent <= 0:
        if exponent < -62:
            return np.uint64(0)
        significand >>= np.uint64(1 - exponent)
        return (significand + (significand & _ONE)) >> _ONE  # a carry makes the smallest normal number
    if low <= _ONE and -4 <= q <= 23 and significand & np.uint64(3) == _ONE and significand << shift == high:
        significand &= ~_ONE  # exactly in the middle: to the even one
    significand = (significand + (significand & _ONE)) >> _ONE
    if significand >= _HIDDEN << _ONE:
        significand = _HIDDEN
        exponent += 1
    if exponent >= _INFINITY:
        return np.uint64(_INFINITY) << np.uint64(52)
    return significand & ~_HIDDEN | np.uint64(exponent) << np.uint64(52)


@inlined_step
def _product(digits: np.uint64, q: int) -> tuple[np.uint64, np.uint64]:
    """The upper 128 bits of digits × 5^q, as far as they decide."""
    power = q - _LOWEST
    high, low = _times(digits, item(_POWERS, 2 * power))
    if high & _MASK == _MASK:
        carried, _ = _times(digits, item(_POWERS, 2 * power + 1))
        low += carried
        high += np.uint64(carried > low)
    return high, low


@inlined_step
def _times(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The upper and the lower half of a × b."""
    first = (a & _LOW) * (b & _LOW)
    second = (a >> _HALF) * (b & _LOW) + (first >> _HALF)
    third = (a & _LOW) * (b >> _HALF) + (second & _LOW)
    return (a >> _HALF) * (b >> _HALF) + (second >> _HALF) + (third >> _HALF), a * b


@inlined_step
def _leading_zeros(value: np.uint64) -> int:
    count = 0
    for size in (32, 16, 8, 4, 2, 1):
        if value >> np.uint64(64 - size) == 0:
            value <<= np.uint64(size)
            count += size
    return count
