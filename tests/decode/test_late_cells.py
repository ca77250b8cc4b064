"""Cells whose types are found late, in Arrow: as the decoder's plain Python reads values of known types."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.searches import examples
from tidelake.decode.late_cells import canonical
from tidelake.errors import DecodeError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import SchemaColumn
from tidelake.wire.cells.debezium_cells import DAYS, MAX_TIME, DebeziumField, cell
from tidelake.wire.json.json_text import load

ZONES = ("UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe", "+05:30", "-03:00")
DAY_US = 86_400_000_000
TEXT = st.text("abcZT:-+/ .é", max_size=12)  # without =: Python reads `AAAA=`
FRACTION = st.sampled_from(("", ".5", ".250", ".000001", ".000000"))


def integers(low: int, high: int) -> st.SearchStrategy[str]:
    """Numbers of a range and around its ends, as JSON."""
    ends = st.sampled_from([low - 1, low, -1, 0, 1, high, high + 1, 10**17, -(10**18) + 1])
    return st.one_of(st.integers(low, high), ends).map(str)


def quoted(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return texts.map(json.dumps)


def encoded(size: int) -> st.SearchStrategy[str]:
    return quoted(st.binary(min_size=1, max_size=size).map(lambda raw: base64.b64encode(raw).decode()))


MOMENTS = {unit: integers(DAYS[0] * DAY_US // unit, (DAYS[1] + 1) * DAY_US // unit - 1) for unit in (1, 1000)}
INSTANTS = st.builds(
    "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z".format,
    st.one_of(st.integers(1969, 2040), st.sampled_from((0, 1, 1883, 9999))),
    *(st.integers(0, n) for n in (13, 31, 24, 60, 60)),
    FRACTION,
)
KNOWN = st.sampled_from(
    ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z", "2026-03-08T07:00:00Z", "2026-11-01T05:30:00Z", "9999-12-31T23:59:59Z")
)
DECIMALS = st.from_regex(r"\A-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?([eE][-+]?[0-9]{1,2})?\Z")
SENT: dict[str, st.SearchStrategy[str]] = {
    "date": st.one_of(integers(*DAYS), quoted(st.dates().map(str)), quoted(TEXT)),
    **{f"datetime({n})": st.one_of(MOMENTS[1 if n > 3 else 1000], quoted(st.just("2026-01-05 10:00:00"))) for n in range(7)},
    "datetime": MOMENTS[1000],
    **{f"time({n})": st.one_of(integers(-MAX_TIME, MAX_TIME), quoted(st.just("-838:59:59"))) for n in range(7)},
    "time": integers(-MAX_TIME, MAX_TIME),
    **{f"timestamp({n})": quoted(st.one_of(INSTANTS, KNOWN, TEXT)) for n in (0, 3, 6)},
    "timestamp": quoted(st.one_of(INSTANTS, KNOWN)),
    "bit(1)": st.sampled_from(("true", "false")),
    "bit(64)": st.one_of(encoded(9), quoted(TEXT)),
    "blob": st.one_of(encoded(20), quoted(TEXT), quoted(st.just(""))),
    "year": integers(1900, 2155),
    "enum('a,b','c\\\\,','d')": quoted(st.sampled_from(("a,b", "a\\,b", "c,", "c\\,", "c\\\\,", "d", "x\\,y", ""))),
    "bigint unsigned": integers(-(1 << 63), (1 << 64) - 1),
    "decimal(30,4)": DECIMALS,
    "decimal(65,30)": DECIMALS,
    "decimal(10)": DECIMALS,
    "decimal": DECIMALS,
}
CASES = st.sampled_from(sorted(SENT)).flatmap(
    lambda text: st.tuples(st.just(text), st.lists(st.one_of(st.just("null"), SENT[text]), max_size=9))
)


def typed(text: str) -> DebeziumField:
    """A column of which the type is known."""
    mysql = MysqlType.parse(text)
    return DebeziumField(SchemaColumn("x", mysql.name, full_type=mysql.sql, elements=mysql.elements))


def as_sent(value: Any) -> bytes | None:
    """The cell that the decoder leaves where the type is unknown."""
    return cell(value, DebeziumField(SchemaColumn("x")), "UTC", "x")


def by_oracle(value: Any, text: str, zone: str) -> bytes | None:
    """The canonical cell; what the decoder would refuse stays as sent."""
    try:
        return cell(value, typed(text), zone, "x")
    except DecodeError:
        return as_sent(value)


def read(cells: list[bytes | None], text: str, zone: str = "UTC") -> list[bytes | None]:
    sent = pa.array(cells, pa.binary())
    found = canonical(sent, MysqlType.parse(text), zone)
    if found is None:
        return cells
    found.validate(full=True)
    assert found.type == pa.binary()
    return list(found.to_pylist())


@settings(max_examples=examples(800), deadline=None)
@given(case=CASES, zone=st.sampled_from(ZONES))
def test_late_cells_are_read_as_if_their_type_had_been_known(case: tuple[str, list[str]], zone: str) -> None:
    text, sent = case
    values = [load(f'{{"x": {v}}}'.encode(), "it")["x"] for v in sent]
    assert read([as_sent(v) for v in values], text, zone) == [by_oracle(v, text, zone) for v in values]


def test_a_part_of_a_column_of_bytes_is_read_alone() -> None:
    sent = pa.array([b"not base64", b"AAAA", None, b"/wA=", b"AQ=="], pa.binary())
    found = canonical(sent[1:4], MysqlType.parse("blob"), "UTC")
    assert found is not None
    assert found.to_pylist() == [bytes(3), None, b"\xff\x00"]


def test_many_cells_of_a_type_are_read_as_one_by_one() -> None:
    chance = random.Random(5)
    sent = {
        "date": [b"%d" % chance.randint(*DAYS) for _ in range(4000)],
        "datetime(6)": [b"%d" % chance.randint(0, 4_000_000_000_000_000) for _ in range(4000)],
        "time(3)": [b"%d" % chance.randint(-MAX_TIME, MAX_TIME) for _ in range(4000)],
        "bit(64)": [base64.b64encode(chance.randbytes(chance.randint(1, 8))) for _ in range(4000)],
        "blob": [base64.b64encode(chance.randbytes(chance.randint(0, 40))) for _ in range(4000)],
    }
    for text, cells in sent.items():
        number = text not in ("bit(64)", "blob")
        assert read([None, *cells], text) == [None, *(by_oracle(int(c) if number else c.decode(), text, "UTC") for c in cells)]


@pytest.mark.parametrize(
    ("text", "zone", "sent", "wanted"),
    [
        ("date", "UTC", b"20454", b"2026-01-01"),
        ("date", "UTC", b"2932897", b"2932897"),  # 10000-01-01
        ("datetime(3)", "+08:00", b"-1", b"1969-12-31 23:59:59.999"),
        ("datetime", "UTC", b"1703680043500", b"2023-12-27 12:27:23.500"),
        ("datetime(6)", "UTC", b"1703680043000001", b"2023-12-27 12:27:23.000001"),
        ("time(6)", "UTC", b"-1", b"-00:00:00.000001"),
        ("time", "UTC", b"3020399000000", b"838:59:59"),
        ("time(1)", "UTC", b"3020399100000", b"838:59:59.1"),
        ("timestamp(6)", "America/New_York", b"2026-03-08T07:00:00.500000Z", b"2026-03-08 03:00:00.500000"),
        ("timestamp", "America/New_York", b"1883-11-18T12:00:00Z", b"1883-11-18 07:03:58"),
        ("timestamp", "America/New_York", b"2038-04-01T00:00:00Z", b"2038-03-31 20:00:00"),
        ("timestamp(3)", "Asia/Shanghai", b"1970-01-01T00:00:00Z", b"0000-00-00 00:00:00.000"),
        ("timestamp", "UTC", b"2023-02-29T00:00:00Z", b"2023-02-29T00:00:00Z"),
        ("bit(10)", "UTC", b"/wM=", b"1023"),
        ("bit(64)", "UTC", b"//////////8=", b"18446744073709551615"),
        ("bit(64)", "UTC", b"AAAAAAAAAAAA", b"AAAAAAAAAAAA"),  # nine bytes
        ("bit(1)", "UTC", b"1", b"1"),
        ("varbinary(9)", "UTC", b"/wA=", b"\xff\x00"),
        ("varbinary(9)", "UTC", b"a default", b"a default"),
        ("varbinary(9)", "UTC", b"AAAA=", b"AAAA="),
        ("varbinary(9)", "UTC", b"A===", b"A==="),
        ("bigint unsigned", "UTC", b"-1", b"18446744073709551615"),
        ("bigint unsigned", "UTC", b"-9223372036854775809", b"-9223372036854775809"),
        ("decimal(30,2)", "UTC", b"1.5e22", b"15000000000000000000000.00"),
        ("decimal(30,2)", "UTC", b"-1.2500", b"-1.25"),
        ("decimal(30,2)", "UTC", b"1.255", b"1.255"),
    ],
)
def test_one_cell_is_read(text: str, zone: str, sent: bytes, wanted: bytes) -> None:
    assert read([sent, None, b"\xff"], text, zone) == [wanted, None, b"\xff"]


@pytest.mark.parametrize("text", ["bigint", "int unsigned", "double", "float", "varchar(9)", "json", "enum('a')", "set('a')", "vector(2)"])
def test_types_whose_cells_are_canonical_as_sent_are_not_read(text: str) -> None:
    assert canonical(pa.array([b"-1", b"AAAA"]), MysqlType.parse(text), "UTC") is None
