"""Lake values come out as the canonical text they went in with (docs/architecture.md 6)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelake.history.ddl.column_types import MysqlType
from tidelake.io import duckdb_door as duck
from tidelake.query.render import Rendered, expressions, flat, local

NOON = datetime(2026, 1, 5, 12, 30, 45, 123456)  # noqa: DTZ001  # DATETIME has no zone
INSTANT = NOON.replace(tzinfo=UTC)
ZONED, LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")


def printed(tmp_path: Path, mysql: str | None, kind: pa.DataType, values: list[Any], zone: str = "UTC", name: str = "c") -> list[Any]:
    """The values of a column as `--format jsonl` prints them."""
    column = Rendered(name=name, type=MysqlType.parse(mysql) if mysql else None)
    path = tmp_path / "rows.jsonl"
    assert duck.write_jsonl(local(reader(name, kind, values), zone), expressions([column]), path) == len(values)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(list(row) == [name] for row in rows)
    return [row[name] for row in rows]


def reader(name: str, kind: pa.DataType, values: list[Any]) -> pa.RecordBatchReader:
    schema = pa.schema([(name, kind)])
    return pa.RecordBatchReader.from_batches(schema, [pa.record_batch([pa.array(values, kind)], schema=schema)])


@pytest.mark.parametrize(
    ("mysql", "kind", "value", "text"),
    [
        ("int", pa.int32(), -2147483648, "-2147483648"),
        ("int unsigned", pa.int64(), 4294967295, "4294967295"),
        ("bigint", pa.int64(), -(1 << 63), "-9223372036854775808"),
        ("bigint unsigned", pa.decimal128(20, 0), Decimal(2**64 - 1), "18446744073709551615"),
        ("year", pa.int32(), 0, "0"),
        ("bit(63)", pa.int64(), 2**63 - 1, "9223372036854775807"),
        ("bit(64)", pa.decimal128(20, 0), Decimal(2**64 - 1), "18446744073709551615"),
        ("decimal(10,4)", pa.decimal128(10, 4), Decimal("1.5000"), "1.5000"),
        ("decimal(10,0)", pa.decimal128(10, 0), Decimal("-12"), "-12"),
        ("decimal(38,30)", pa.decimal128(38, 30), Decimal("0." + "0" * 29 + "1"), "0." + "0" * 29 + "1"),
        ("decimal(65,30)", pa.string(), "1." + "0" * 30, "1." + "0" * 30),
        ("float", pa.float32(), 0.1, "0.1"),
        ("float", pa.float32(), 123456.789, "123456.79"),
        ("date", pa.date32(), date(2026, 1, 5), "2026-01-05"),
        ("date", pa.date32(), date(1, 1, 1), "0001-01-01"),
        ("date", pa.date32(), date(9999, 12, 31), "9999-12-31"),
        ("datetime", LOCAL, NOON, "2026-01-05 12:30:45.123456"),  # the protocol did not say how many digits
        ("datetime(0)", LOCAL, NOON.replace(microsecond=0), "2026-01-05 12:30:45"),
        ("datetime(1)", LOCAL, NOON.replace(microsecond=100000), "2026-01-05 12:30:45.1"),
        ("datetime(3)", LOCAL, NOON.replace(microsecond=0), "2026-01-05 12:30:45.000"),
        ("datetime(6)", LOCAL, NOON, "2026-01-05 12:30:45.123456"),
        ("datetime(6)", LOCAL, NOON.replace(year=1), "0001-01-05 12:30:45.123456"),
        ("datetime(6)", LOCAL, NOON.replace(year=9999), "9999-01-05 12:30:45.123456"),
        ("timestamp(2)", ZONED, INSTANT.replace(microsecond=120000), "2026-01-05 12:30:45.12"),
        ("time(3)", pa.string(), "-838:59:59.000", "-838:59:59.000"),
        ("varchar(9)", pa.string(), 'it\'s "¼" \\ \n\t\x00', 'it\'s "¼" \\ \n\t\x00'),
        ("text", pa.string(), "", ""),
        ("json", pa.string(), '{"b": 1, "a": [1.0]}', '{"b": 1, "a": [1.0]}'),
        ("enum('a','b')", pa.string(), "b", "b"),
        ("enum", pa.int64(), 2, "2"),
        ("set", pa.decimal128(20, 0), Decimal(2**64 - 1), "18446744073709551615"),
        ("vector(3)", pa.list_(pa.float32()), [1.0, -2.5, 0.0], "[1,-2.5,0]"),
        ("vector", pa.list_(pa.float32()), [], "[]"),
        ("varbinary(9)", pa.binary(), b"\x00\xffa", {"hex": "00ff61"}),
        ("blob", pa.binary(), b"", {"hex": ""}),
    ],
)
def test_a_value_is_printed_as_canonical_text(tmp_path: Path, mysql: str, kind: pa.DataType, value: Any, text: Any) -> None:
    assert printed(tmp_path, mysql, kind, [value, None]) == [text, None]


@pytest.mark.parametrize("mysql", ["date", "datetime", "datetime(0)", "datetime(6)", "timestamp(3)"])
@pytest.mark.parametrize("text", ["0000-00-00", "0000-00-00 00:00:00", "2026-00-01 00:00:00.000000"])
def test_a_zero_date_that_is_kept_as_text_is_printed_as_it_is(tmp_path: Path, mysql: str, text: str) -> None:
    assert printed(tmp_path, mysql, pa.string(), [text]) == [text]


def test_a_date_in_a_column_of_text_keeps_its_fraction_digits(tmp_path: Path) -> None:
    texts = ["2026-01-05 12:30:45.120", "0000-00-00 00:00:00.000"]
    assert printed(tmp_path, "timestamp(3)", pa.string(), texts, "Asia/Shanghai") == texts


@settings(max_examples=20)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=30, max_size=60))
def test_a_float_s_text_gives_the_same_float32_back(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    """Not always the shortest such text: 4143248.75, where 4143248.8 would do."""
    texts = printed(tmp_path_factory.getbasetemp(), "float", pa.float32(), values)
    assert pa.array(map(float, texts), pa.float32()) == pa.array(values, pa.float32())


@settings(max_examples=20)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=30, max_size=60))
def test_a_double_s_text_gives_the_same_double_back(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    assert [float(t) for t in printed(tmp_path_factory.getbasetemp(), "double", pa.float64(), values)] == values


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "2026-01-05 12:30:45"),
        ("Asia/Shanghai", "2026-01-05 20:30:45"),
        ("America/New_York", "2026-01-05 07:30:45"),
        ("+05:30", "2026-01-05 18:00:45"),
        ("-09:00", "2026-01-05 03:30:45"),
    ],
)
def test_a_timestamp_is_printed_in_the_feed_s_zone_and_a_datetime_is_not_moved(tmp_path: Path, zone: str, text: str) -> None:
    assert printed(tmp_path, "timestamp(0)", ZONED, [INSTANT, None], zone) == [text, None]
    assert printed(tmp_path, "datetime(0)", LOCAL, [NOON, None], zone) == ["2026-01-05 12:30:45", None]


def test_both_instants_of_an_hour_that_clocks_show_twice_are_printed_alike(tmp_path: Path) -> None:
    twice = [datetime(2026, 11, 1, hour, 30, tzinfo=UTC) for hour in (5, 6)]
    assert printed(tmp_path, "timestamp(0)", ZONED, twice, "America/New_York") == ["2026-11-01 01:30:00"] * 2


def test_tidelake_s_own_columns_are_printed_as_they_are(tmp_path: Path) -> None:
    assert printed(tmp_path, None, pa.int64(), [(1 << 62) + 1, None], name="_commit_ts") == [(1 << 62) + 1, None]
    assert printed(tmp_path, None, pa.string(), ["INSERT"], name="_change_type") == ["INSERT"]


@pytest.mark.parametrize("name", ['a"b', "select", "a b", "`", "é", "a.b", "'; DROP TABLE rows; --"])
def test_any_name_of_a_column_is_a_name_and_no_sql(tmp_path: Path, name: str) -> None:
    assert printed(tmp_path, "int", pa.int32(), [1], name=name) == ["1"]
    assert printed(tmp_path, "blob", pa.binary(), [b"1"], name=name) == [{"hex": "31"}]


def test_people_see_binary_as_hex_digits_and_everything_else_alike() -> None:
    schema = pa.schema([("b", pa.binary()), ("n", pa.int32()), ("_commit_ts", pa.int64())])
    rows = pa.RecordBatchReader.from_batches(schema, [pa.record_batch([[b"\x0a\xff", None], [1, None], [7, 8]], schema=schema)])
    columns = [
        Rendered(name="b", type=MysqlType("blob")),
        Rendered(name="n", type=MysqlType("int")),
        Rendered(name="_commit_ts", type=None),
    ]
    assert duck.to_text(local(rows, "UTC"), flat(columns), 9) == [("0x0aff", "1", 7), (None, None, 8)]


def test_batches_stay_batches_and_only_instants_change_their_type() -> None:
    schema = pa.schema([("a", ZONED), ("b", LOCAL), ("c", pa.string())])
    batches = [pa.record_batch([[INSTANT], [NOON], ["x"]], schema=schema)] * 3
    rows = local(pa.RecordBatchReader.from_batches(schema, batches), "Asia/Shanghai")
    assert [f.type for f in rows.schema] == [LOCAL, LOCAL, pa.string()]
    assert [b.num_rows for b in rows] == [1, 1, 1]
