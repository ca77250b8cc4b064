"""Values between lake types in Arrow: as Spark's try_cast has them, except for the differences that the module lists."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal, localcontext
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake import lakes
from tests.lake.columns.conversion_cases import DEAL, dealt
from tests.lake.columns.spark_casts import converted as sql_converted
from tests.searches import examples
from tidelake.errors import OrderError
from tidelake.lake.columns.cells import DATES, arrow_type
from tidelake.lake.columns.conversions import converted
from tidelake.lake.columns.fold_columns import FoldColumn, Holder
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session

VALUES = dealt(17)
NUMBERS = ("int", "bigint", "float", "double", "decimal(5,2)", "decimal(20,0)", "decimal(38,10)", "decimal(38,38)")
TO_NUMBERS = ("int", "bigint", "float", "double", "decimal(3,0)", "decimal(10,4)", "decimal(20,0)", "decimal(38,0)", "decimal(38,38)")
TIMES = ("date", "timestamp", "timestamp_ntz")
PAIRS = [
    *((have, to) for have in NUMBERS for to in (*TO_NUMBERS, "string") if have != to),
    *(("string", to) for to in (*TO_NUMBERS, "binary")),
    *(("text", to) for to in TIMES),
    *((have, to) for have in TIMES for to in ("string", *TIMES) if have != to and (have, to) != ("date", "date")),
    ("binary", "string"),
    ("array<float>", "string"),
]
FORMS = {"date": DATES["date"], "timestamp": DATES["timestamp"], "timestamp_ntz": DATES["datetime"]}


def lake(name: str) -> str:
    return "string" if name == "text" else name


def array(name: str, values: list[Any]) -> pa.Array:
    return pa.array(values, arrow_type(lake(name)))


def shown(found: pa.Array) -> list[Any]:
    """Values to compare: times as numbers, because Python's do not have all of them, and floats with their sign."""
    if pa.types.is_temporal(found.type):
        found = found.cast(pa.int32() if found.type == pa.date32() else pa.int64())
    return [x.hex() if isinstance(x, float) else x for x in found.to_pylist()]


@pytest.fixture(scope="module")
def by_spark(spark_app: None, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[Any]]:
    """What Spark makes of all values, by pair of types."""
    with spark_session(lake_settings(lakes.feed(tmp_path_factory.mktemp("conversions"))), "conversions") as spark:
        names = {name: f"x{k}" for k, name in enumerate(VALUES)}
        rows = spark.createDataFrame(pa.table({"n": range(DEAL)} | {names[name]: array(name, v) for name, v in VALUES.items()}))
        sql = {pair: sql_converted(names[pair[0]], lake(pair[0]), pair[1]) for pair in PAIRS}
        sql["binary", "string"] = f"make_valid_utf8({sql['binary', 'string']})"  # Arrow does not take other text
        found = rows.selectExpr("n", *(f"{of} AS c{k}" for k, of in enumerate(sql.values()))).toArrow().sort_by("n")
    return {pair: shown(found.column(f"c{k}").combine_chunks()) for k, pair in enumerate(sql)}


def wanted(have: str, to: str, value: Any, theirs: Any) -> Any:
    """What should come out: Spark's answer, or what the module's docstring says instead."""
    if have in ("float", "double") and to in ("int", "bigint"):
        whole = int(Decimal(value).quantize(Decimal(1), ROUND_HALF_UP)) if abs(value) < 1e20 else 1 << 64
        bits = 31 if to == "int" else 63
        return whole if -(1 << bits) <= whole < 1 << bits else None
    if have in ("float", "double") and to.startswith("decimal"):
        return rounded(Decimal(repr(value)), to)
    if to in ("float", "double") and theirs is not None and not isfinite(float.fromhex(theirs)):
        return None
    if have == "string" and to in ("float", "double") and re.search("[dDfFxX]", value):
        return None
    if have == "text" and not re.fullmatch(FORMS[to], value):
        return None
    return theirs


def rounded(number: Decimal, to: str) -> Decimal | None:
    """The number in a decimal type, rounded half away from zero."""
    kind = arrow_type(to)
    with localcontext(prec=400, rounding=ROUND_HALF_UP):
        found = number.quantize(Decimal(1).scaleb(-kind.scale))
        return found if abs(found) < Decimal(10) ** (kind.precision - kind.scale) else None


def is_other_text(have: str, mine: Any, theirs: Any) -> bool:
    """Whether two texts are the same float, and mine has no more digits than Java's: before Java 19 it may print one too many."""
    if have == "array<float>":
        both = (text.strip("[]").split(", ") for text in (mine, theirs))
        return all(a == b or is_other_text("float", a, b) for a, b in zip(*both, strict=True))
    kind = {"float": np.float32, "double": np.float64}.get(have)
    return kind is not None and kind(mine) == kind(theirs) and len(mine) <= len(theirs)


def test_values_are_converted_as_spark_converts_them(by_spark: dict[tuple[str, str], list[Any]]) -> None:
    kept, differ = 0, list[Any]()
    for (have, to), theirs in by_spark.items():
        values = VALUES[have]
        found = converted(array(have, values), lake(have), to, "UTC")
        assert found.type == arrow_type(to)
        for value, mine, other in zip(values, shown(found), theirs, strict=True):
            want = wanted(have, to, value, other)
            kept += mine is not None
            if mine != want and not (to == "string" and is_other_text(have, mine, want)):
                differ.append((have, to, value, mine, other))
    assert differ == [], "\n".join(map(str, differ))
    assert kept > 0.6 * len(PAIRS) * DEAL


def test_java_prints_most_floats_with_the_same_digits(by_spark: dict[tuple[str, str], list[Any]]) -> None:
    for have, to in PAIRS:
        if have in ("float", "double") and (to == "string" or to.startswith("decimal")):
            both = list(zip(converted(array(have, VALUES[have]), have, to, "UTC").to_pylist(), by_spark[have, to], strict=True))
            assert sum(a == b for a, b in both) >= 0.8 * DEAL, (have, to, [pair for pair in both if pair[0] != pair[1]])


@pytest.mark.parametrize(
    ("have", "to", "value", "result"),
    [
        ("double", "int", -2.5, -3),
        ("double", "float", 1e39, None),
        ("double", "string", 1e10, "1.0E10"),
        ("double", "string", 9.99e-4, "9.99E-4"),
        ("double", "string", 5e-324, "4.9E-324"),
        ("float", "string", 1.401298464324817e-45, "1.4E-45"),
        ("float", "string", 16777216.0, "1.6777216E7"),
        ("decimal(5,2)", "int", Decimal("-2.50"), -3),
        ("decimal(5,2)", "decimal(3,0)", Decimal("999.50"), None),
        ("decimal(38,10)", "string", Decimal("1E-10"), "0.0000000001"),
        ("decimal(38,10)", "string", Decimal("-1.5"), "-1.5000000000"),
        ("string", "int", " 2147483647.4999999999 ", 2147483647),
        ("string", "int", "2147483647.49999999999", None),  # rounded twice, as in SQL: to decimal(38,10) first
        ("string", "int", "1e3", 1000),
        ("string", "int", "-0007", -7),
        ("string", "int", "2147483648", None),
        ("string", "bigint", "9223372036854775807", 9223372036854775807),
        ("string", "bigint", "9223372036854775808", None),
        ("string", "int", "１２", None),
        ("string", "double", "1e400", None),
        ("string", "double", "NaN", None),
        ("string", "decimal(10,4)", "999999.99995", None),
        ("string", "date", "2024-01-01 10:00:00", None),
        ("string", "array<float>", "[1, -2.5]", [1.0, -2.5]),
        ("string", "array<float>", "[1e39]", None),
        ("binary", "string", b"a\xff", "a�"),
        ("array<float>", "string", [1.0, -2.5, 1e10], "[1.0, -2.5, 1.0E10]"),
    ],
)
def test_one_value_is_converted(have: str, to: str, value: Any, result: Any) -> None:
    assert converted(array(have, [None, value]), have, to, "UTC").to_pylist() == [None, result]


@settings(max_examples=examples(200), deadline=None)
@given(have=st.sampled_from(sorted(VALUES)), data=st.data())
def test_any_part_of_a_column_is_converted_as_its_values_are(have: str, data: st.DataObject) -> None:
    to = data.draw(st.sampled_from([b for a, b in [*PAIRS, ("string", "array<float>"), ("double", "double")] if a == have]))
    values = data.draw(st.lists(st.one_of(st.none(), st.sampled_from(VALUES[have])), max_size=8))
    start = data.draw(st.integers(0, len(values)))
    found = converted(array(have, values)[start:], lake(have), to, "UTC")
    found.validate(full=True)
    assert shown(found) == [one for v in values[start:] for one in shown(converted(array(have, [v]), lake(have), to, "UTC"))]


ZONES = {name: ZoneInfo(name) for name in ("UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe")}
ZONES |= {"+08:00": timezone(timedelta(hours=8)), "-03:30": timezone(-timedelta(hours=3, minutes=30))}
CLOCKS = st.datetimes(datetime(1970, 1, 3), datetime(2037, 12, 30))  # noqa: DTZ001 - of any zone
NEAR_CHANGES = st.builds(
    lambda day, minutes: day + timedelta(minutes=minutes),
    st.sampled_from([datetime(2026, 3, 8), datetime(2026, 11, 1), datetime(2026, 4, 5), datetime(2026, 10, 4)]),  # noqa: DTZ001
    st.integers(0, 1500),
)


def printed(clock: datetime) -> str:
    """As texts of the lake are: no zeros at the end of the fraction."""
    text = str(clock.replace(tzinfo=None))
    return text.rstrip("0") if clock.microsecond else text


@settings(max_examples=examples(300), deadline=None)
@given(zone=st.sampled_from(sorted(ZONES)), moments=st.lists(st.one_of(CLOCKS, NEAR_CHANGES), min_size=1, max_size=5))
def test_an_instant_is_printed_as_clocks_of_the_feed_show_it(zone: str, moments: list[datetime]) -> None:
    instants = [m.replace(tzinfo=UTC) for m in moments]
    clocks = [i.astimezone(ZONES[zone]).replace(tzinfo=None) for i in instants]
    for to, wanted in {"string": list(map(printed, clocks)), "timestamp_ntz": clocks, "date": [c.date() for c in clocks]}.items():
        assert converted(array("timestamp", [None, *instants]), "timestamp", to, zone).to_pylist() == [None, *wanted]


@settings(max_examples=examples(300), deadline=None)
@given(zone=st.sampled_from(sorted(ZONES)), clocks=st.lists(st.one_of(CLOCKS, NEAR_CHANGES), min_size=1, max_size=5))
def test_a_clock_time_is_the_first_instant_at_which_clocks_of_the_feed_show_it(zone: str, clocks: list[datetime]) -> None:
    def instant(clock: datetime) -> datetime | None:
        there = clock.replace(tzinfo=ZONES[zone]).astimezone(UTC)
        return there if there.astimezone(ZONES[zone]).replace(tzinfo=None) == clock else None

    texts, days = [str(c) for c in clocks], [c.date() for c in clocks]
    midnights = [datetime(d.year, d.month, d.day) for d in days]  # noqa: DTZ001 - of any zone
    for have, values, wanted in (("string", texts, clocks), ("timestamp_ntz", clocks, clocks), ("date", days, midnights)):
        assert converted(array(have, values), have, "timestamp", zone).to_pylist() == list(map(instant, wanted)), have


def test_a_fold_prints_instants_in_the_zone_of_its_feed() -> None:
    column = FoldColumn(name="at", type="string", holders=(Holder(field_id=1, type="timestamp"),), zone="Asia/Shanghai")
    instants = array("timestamp", [datetime(2026, 1, 5, 10, tzinfo=UTC), None])
    assert column.cells([instants], 2, None).to_pylist() == ["2026-01-05 18:00:00", None]


@pytest.mark.parametrize(
    ("have", "to"),
    [
        *((have, to) for have in NUMBERS for to in ("timestamp", "timestamp_ntz", "date", "binary", "array<float>")),
        *((have, to) for have in TIMES for to in ("int", "bigint", "float", "double", "decimal(38,0)", "binary")),
        *(("binary", to) for to in (*TO_NUMBERS, *TIMES, "array<float>")),
        *(("array<float>", to) for to in (*TO_NUMBERS, *TIMES, "binary")),
        ("boolean", "string"),
        ("string", "boolean"),
    ],
)
def test_types_between_which_no_statement_converts_are_refused(have: str, to: str) -> None:
    with pytest.raises(OrderError, match=re.escape(f"cannot convert values of type {have} to {to}")) as e:
        converted(pa.nulls(1), have, to, "UTC")
    assert e.value.code == "UNSUPPORTED_DDL"
