"""Values whose types are found late (docs/reference/protocols.md 9.2): the SQL of order and the Python of decode read by one rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lake import lakes
from tidelake.decode.late_types import late_text
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import SchemaColumn
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session
from tidelake.wire.cells.debezium_cells import DebeziumField, cell
from tidelake.wire.json.json_text import load

EPOCH = "1970-01-01T00:00:00Z"
VALUES: list[tuple[str, list[Any]]] = [
    ("date", [0, -1, 20_454, -719_528, 2_932_896, "2026-01-05"]),
    ("datetime", [0, -1_000, 1_703_680_043_000, -62_167_219_200_000, 253_402_300_799_000]),
    ("datetime(3)", [0, -1, 1_703_680_043_500, "2026-01-05 10:00:00.250"]),
    ("datetime(6)", [0, -1, 1_703_680_043_000_001, 253_402_300_799_999_999]),
    ("time", [0, 44_843_000_000, -3_020_399_000_000]),
    ("time(3)", [0, -1_000, 3_723_004_000, 3_020_399_000_000]),
    ("time(6)", [-1, 86_399_999_999]),
    ("timestamp", ["2024-03-11T08:51:01Z", "2024-07-11T22:51:01Z", EPOCH, "9999-12-30T23:59:59Z"]),
    ("timestamp(6)", ["2024-03-11T08:51:01.461270Z", "1970-01-01T00:00:01.000000Z"]),
    ("bit(1)", [True, False]),
    ("bit(10)", ["/wM=", "AAA="]),
    ("bit(64)", ["//////////8=", "AQAAAAAAAAA="]),
    ("varbinary(16)", ["", "/wA=", "AAECAwQ="]),
    ("bigint unsigned", [0, 1, -1, -9_223_372_036_854_775_808, 9_223_372_036_854_775_807]),
    ("bigint", [-1, 7]),
    ("decimal(30,2)", [0, 1.5, -123.45, 1.5e22]),
    ("double", [0.1, 1.5e-7]),
    ("year", [2026]),
    ("varchar(9)", ["/wA=", "-1", "2024-03-11T08:51:01Z"]),
    ("json", ['{"a": 1}']),
]


@pytest.mark.usefixtures("spark_app")
def test_a_value_whose_type_is_found_late_is_read_as_if_it_had_been_known(tmp_path: Path) -> None:
    sent = [(text, load(json.dumps({"x": v}).encode(), "it")["x"]) for text, values in VALUES for v in [*values, None]]
    with spark_session(lake_settings(lakes.feed(tmp_path)), "late types") as spark:
        rows = [(i, text, cell(v, DebeziumField(SchemaColumn("x")), "UTC", "x")) for i, (text, v) in enumerate(sent)]
        cells = ("NULL" if c is None else f"X'{c.hex()}'" for *_, c in rows)
        literals = (f"({i}, '{text}', {c})" for (i, text, _), c in zip(rows, cells, strict=True))
        # not createDataFrame, which leaves this session the active one for whatever test comes next
        frame = spark.sql(f"SELECT i, type, CAST(c AS BINARY) AS c FROM VALUES {', '.join(literals)} AS t(i, type, c)")
        for zone in ("UTC", "Asia/Shanghai", "America/New_York", "+05:30"):
            cases = " ".join(f"WHEN '{text}' THEN {late_text('c', MysqlType.parse(text), zone) or 'c'}" for text, _ in VALUES)
            found = frame.selectExpr("i", f"CASE type {cases} END AS c").orderBy("i").collect()
            got = [(text, None if r["c"] is None else bytes(r["c"])) for r, (text, _) in zip(found, sent, strict=True)]
            assert list(map(same, got)) == [same((text, cell(v, typed(text), zone, "x"))) for text, v in sent], zone


def typed(text: str) -> DebeziumField:
    """A column of which the type is known."""
    mysql = MysqlType.parse(text)
    return DebeziumField(SchemaColumn("x", mysql.name, full_type=mysql.sql))


def same(found: tuple[str, bytes | None]) -> object:
    """Decimals are compared as numbers: their scale is the lake's business."""
    text, said = found
    return float(said) if text.startswith("decimal") and said else said
