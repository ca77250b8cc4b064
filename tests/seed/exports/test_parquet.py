"""Parquet's values as the text that a server prints."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidelake.errors import ContractError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.seed.exports.export_cells import canonical
from tidelake.seed.exports.export_parquet import text_of

US = pa.timestamp("us")


@pytest.mark.parametrize(
    ("kind", "mysql", "values", "wanted"),
    [
        (
            pa.decimal128(12, 7),
            "decimal(12,7)",
            [Decimal("0.0000001"), Decimal("-12345.0000000"), None],
            ["0.0000001", "-12345.0000000", None],
        ),
        (pa.decimal256(65, 30), "decimal(65,30)", [Decimal("-0." + "0" * 29 + "1")], ["-0." + "0" * 29 + "1"]),
        (
            US,
            "datetime(3)",
            [0, 1_500_000, 1_000_001],
            ["1970-01-01 00:00:00.000", "1970-01-01 00:00:01.500", "1970-01-01 00:00:01.000001"],
        ),
        (pa.timestamp("s"), "datetime", [0], ["1970-01-01 00:00:00"]),
        (pa.timestamp("ms", "UTC"), "timestamp(2)", [10], ["1970-01-01 08:00:00.01"]),
        (pa.time64("us"), "time(1)", [500_000], ["00:00:00.5"]),
        (pa.bool_(), "tinyint(1)", [True, False], ["1", "0"]),
        (pa.uint64(), "bit(64)", [2**64 - 1, None], ["18446744073709551615", None]),
        (pa.bool_(), "bit(1)", [True, None], ["1", None]),
        (pa.dictionary(pa.int32(), pa.string()), "enum('a','b')", ["b", None, ""], ["2", None, "0"]),
        (pa.string(), "set('a','b')", ["a,b", "c"], ["3", "?"]),
        (pa.string(), "year", ["0000", "2024"], ["0", "2024"]),
    ],
)
def test_values_are_printed_as_the_server_does(kind: pa.DataType, mysql: str, values: list[Any], wanted: list[str | None]) -> None:
    t = MysqlType.parse(mysql)
    text = text_of(pa.array(values, kind), t, "Asia/Shanghai", "c")
    rows = pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), text)
    found = canonical(rows, [t], names_sent=False).flatten().to_pylist()
    assert [None if v is None else v.decode() for v in found] == wanted


@pytest.mark.parametrize(
    ("kind", "mysql"),
    [
        (pa.float64(), "decimal(10,2)"),
        (pa.timestamp("us", "UTC"), "datetime(6)"),
        (pa.int32(), "enum('a')"),
        (pa.int64(), "timestamp"),
        (US, "date"),
    ],
)
def test_what_would_lose_something_is_refused(kind: pa.DataType, mysql: str) -> None:
    with pytest.raises(ContractError, match="column c: "):
        text_of(pa.array([None], kind), MysqlType.parse(mysql), "UTC", "c")
