"""Values of every lake type: hard ones by hand, and random ones that are nearly right."""

from __future__ import annotations

import random
import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

DEAL = 240  # values of each type
_LETTERS = "0123456789+-.eE \t:TZxd"
_EPOCH, _FIRST_DAY, _DAYS = datetime(1970, 1, 1), date(1, 1, 1).toordinal(), date(9999, 12, 31).toordinal()  # noqa: DTZ001 - a clock time
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
_WHOLE = [0, 1, -1, 9, -10, 99, 127, 2**24 + 1, 2**31 - 1, -(2**31)]
_LARGE = [2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), 10**18, 9_007_199_791_611_905]
_FLOATS = [
    0.0,
    -0.0,
    0.1,
    -0.5,
    1.5,
    2.5,
    0.001,
    0.00099,
    1e-5,
    1e7,
    9999999.0,
    12345678.0,
    1e10,
    16777216.0,
    3.4028234663852886e38,
    1.4e-45,
]
_DOUBLES = [
    *_FLOATS,
    *(1e15, 1e16, 1e22, 1e23, 2e23, 1.7976931348623157e308, 5e-324, 1e-323, 2.5e-323, 4.9e-322, 2.2250738585072014e-308),
    *(0.49999999999999994, -2.5, 2147483647.5, -2147483648.5, 9.2e18, 9.3e18, 4503599627370497.5, 1e38, 1e39, 123.455, 0.00005, -1e-11),
]
_NUMBERS = (
    "0|1| 1 |\t-7\n|1e3|1E+2|+1|-1.5|1.5|2.5|.5|5.|-.5|1e-3|25e-1|1e38|1e39|1e400|1e-400|-0|00012|0.00005|1_0|1 2|.|-|+|e1|1e||x"
    "|2147483647|2147483647.49999999999|2147483647.4999999999|-2147483648.5|9223372036854775807|9223372036854775808|18446744073709551615"
    "|99999999999999999999999999999999999999|0.99999999999999999999999999999999999999|0.123456789012345678901234567890123456789"
    "|999999.99995|999999.99994|3.4028236e38|1.7976931348623159e308|123456789.123456789|0x10|NaN|1d"
).split("|")
_TIMES = (
    "2024-01-01|0000-01-01|1582-10-10|9999-12-31|2024-02-29|2023-02-29|0000-00-00|2024-00-10|2024|2024-1-1|2024-01-01 10:00:00"
    "|2024-01-01T10:00:00|2024-01-01 10:00:00.5|2024-01-01 10:00:00.123456|2024-01-01 10:00:00.1234567|2024-01-01 10:00:00Z"
    "|2024-01-01 10:00:00+08:00|2024-01-01 24:00:00|2024-01-01 23:59:60|10:00|x||1969-12-31 23:59:59.999999|9999-12-31 23:59:59.999999"
).split("|")


def dealt(seed: int) -> dict[str, list[Any]]:
    """DEAL values by lake type; one list of text has numbers, one times."""
    chance = random.Random(seed)
    fixed: dict[str, list[Any]] = {
        "int": _WHOLE,
        "bigint": _WHOLE + _LARGE,
        "float": [_single(x) for x in (*_FLOATS, 1.4e-45, 1e-44, 1e-38)],
        "double": _DOUBLES,
        "decimal(5,2)": [Decimal(t) for t in ("0.00", "0.50", "1.50", "-2.50", "999.99", "-999.99", "0.49", "1.25")],
        "decimal(20,0)": [Decimal(n) for n in (0, 2**64 - 1, 2**63, 2**63 - 1, -(2**63) - 1, 2**31)],
        "decimal(38,10)": [Decimal(t) for t in ("0.5", "2147483647.4999999999", "2147483647.5", "1E-10", "9" * 28 + "." + "9" * 10)],
        "decimal(38,38)": [Decimal(t) for t in ("0", "0.5", "-0." + "9" * 38, "1E-38")],
        "string": _NUMBERS,
        "text": _TIMES,
        "binary": [b"", b"a", "中".encode(), b"a\xffb", b"\x00"],
        "date": [date(1, 1, 1), date(1582, 10, 10), date(1970, 1, 1), date(1969, 12, 31), date(9999, 12, 31)],
        "timestamp_ntz": [
            _moment(us) for us in (0, -1, 1, 500_000, 1_704_070_923_120_000, 253_402_300_799_999_999, -62_135_596_800_000_000)
        ],
        "array<float>": [[], [1.0], [1.0, -2.5, 1e10], [_single(0.1), 0.0]],
    }
    fixed["timestamp"] = fixed["timestamp_ntz"]
    return {lake: (values + [_random(lake, values, chance) for _ in range(DEAL)])[:DEAL] for lake, values in fixed.items()}


def _random(lake: str, values: list[Any], chance: random.Random) -> Any:
    match lake:
        case "int" | "bigint":
            bits = chance.randint(1, 31 if lake == "int" else 63)
            return chance.randint(-(1 << bits), (1 << bits) - 1)
        case "float" | "double":
            return _random_float(lake == "float", chance)
        case "string" | "text":
            return _nearly(chance.choice(values), chance)
        case "binary":
            return chance.randbytes(chance.randint(0, 6))
        case "date":
            return date.fromordinal(chance.randint(_FIRST_DAY, _DAYS))
        case "timestamp" | "timestamp_ntz":
            return _moment(chance.randint(-62_135_596_800, 253_402_300_799) * 1_000_000 + chance.choice((0, 1, 120_000, 999_999)))
        case "array<float>":
            return [_random_float(True, chance) for _ in range(chance.randint(0, 4))]
        case _:
            precision, scale = map(int, lake.removeprefix("decimal(").removesuffix(")").split(","))
            return Decimal(chance.randint(-(10**precision) + 1, 10**precision - 1) // 10 ** chance.randint(0, precision - 1)).scaleb(-scale)


def _random_float(single: bool, chance: random.Random) -> float:
    if chance.random() < 0.5:
        found = round(chance.uniform(-1, 1) * 10 ** chance.randint(-6, 12), chance.randint(0, 6))
        return _single(found) if single else found
    found = struct.unpack("<f" if single else "<d", chance.randbytes(4 if single else 8))[0]
    return found if isfinite(found) else 0.5


def _single(number: float) -> float:
    """The nearest float32."""
    found: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return found


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _nearly(text: str, chance: random.Random) -> str:
    """The text with one or two other characters."""
    for _ in range(chance.randint(1, 2)):
        at = chance.randint(0, len(text))
        text = text[:at] + chance.choice(_LETTERS) + text[at + chance.randint(0, 1) :]
    return text
