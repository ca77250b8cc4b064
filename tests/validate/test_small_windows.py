"""Rules that pandas judges in place of Spark: both give the same check with the same rows, and regular expressions find the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.searches import examples
from tests.validate.test_frames import rule
from tidelake.history.contract import Expectation
from tidelake.spark.lake_settings import LakeSettings
from tidelake.spark.session import spark_session
from tidelake.validate.own_rules import _by_pandas, _by_spark
from tidelake.validate.quality.evidence import PLACE
from tidelake.validate.quality.small_windows import _PLAIN, _RULES, as_on_spark, is_plain
from tidelake.validate.written import as_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPRESSED = [HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]
NAMES = ["BZ-0F", "BZ-0F\n", "größe", "١٢", "𝒳𝒳", "", "a|b", "A", None, "x" * 300, "\r", "BZ-0F", "n'1", "-5"]
ROWS = pa.table(
    {
        "_change_type": ["INSERT"] * 12 + ["UPDATE_AFTER", "UPDATE_BEFORE"],
        "id": pa.array(range(14), pa.int64()),
        "twice": pa.array([n // 2 for n in range(14)], pa.int32()),
        "n": pa.array([None, -1, 0, 1, 2**53, 2**53 + 1, 2**62, -(2**62), 7, None, 7, 8, 9, 10], pa.int64()),
        "price": pa.array([None, *(Decimal(n) / 10 for n in range(-3, 10))], pa.decimal128(10, 2)),
        "huge": pa.array([Decimal(10) ** 20 + n for n in range(14)], pa.decimal128(38, 0)),
        "name": NAMES,
        "at": pa.array([datetime(2026, 1, 5, 10, n, 0, 123456, tzinfo=UTC) for n in range(14)], pa.timestamp("us", "UTC")),
        "raw": pa.array([b"\x00\xff", None] * 7),
        "share": pa.array([float("nan"), None, 1.5, *range(11)], pa.float64()),
        "_commit_ts": pa.array(range(1000, 1014), pa.int64()),
        "_topic": ["t"] * 14,
        "_kafka_partition": pa.array([0] * 14, pa.int32()),
        "_offset": pa.array(range(14), pa.int64()),
        "_ordinal": pa.array([0] * 14, pa.int32()),
    }
)
SAME = [  # type, arguments
    ("expect_column_to_exist", {"column": "share"}),
    ("expect_column_value_lengths_to_be_between", {"column": "name", "min_value": 1, "max_value": 5}),
    ("expect_column_value_lengths_to_be_between", {"column": "name", "max_value": 5, "strict_max": True, "mostly": 0.5}),
    ("expect_column_value_lengths_to_equal", {"column": "name", "value": 2}),
    ("expect_column_values_to_be_between", {"column": "n", "min_value": 0, "max_value": 2**53 - 1}),
    ("expect_column_values_to_be_between", {"column": "price", "min_value": 0, "strict_min": True}),
    ("expect_column_values_to_be_between", {"column": "huge", "max_value": 7}),
    ("expect_column_values_to_be_between", {"column": "twice", "min_value": 0}),
    ("expect_column_values_to_be_in_set", {"column": "name", "value_set": ["A", "größe", "", "-5"]}),
    ("expect_column_values_to_be_in_set", {"column": "n", "value_set": [7, -1], "mostly": 0.2}),
    ("expect_column_values_to_not_be_in_set", {"column": "twice", "value_set": [3]}),
    ("expect_column_values_to_be_null", {"column": "raw"}),
    ("expect_column_values_to_be_null", {"column": "price"}),
    ("expect_column_values_to_not_be_null", {"column": "n"}),
    ("expect_column_values_to_not_be_null", {"column": "at"}),
    ("expect_column_values_to_not_be_null", {"column": "name", "mostly": 0.9}),
    ("expect_column_values_to_be_unique", {"column": "name"}),
    ("expect_column_values_to_be_unique", {"column": "twice"}),
    ("expect_compound_columns_to_be_unique", {"column_list": ["twice", "name"]}),
    ("expect_compound_columns_to_be_unique", {"column_list": ["id", "twice"]}),
    ("expect_column_values_to_match_regex", {"column": "name", "regex": "^BZ-[0-9A-F]{2}"}),
    ("expect_column_values_to_not_match_regex", {"column": "name", "regex": "[^a-z]|ö"}),
]
LEFT_TO_SPARK = [
    ("expect_column_values_to_not_be_null", {"column": "share"}),
    ("expect_column_values_to_be_between", {"column": "price", "min_value": 0.1}),
    ("expect_column_values_to_be_between", {"column": "at", "min_value": "2026-01-05"}),
    ("expect_column_values_to_be_between", {"column": "share", "min_value": 0}),
    ("expect_column_values_to_be_between", {"column": "n", "max_value": 2**53}),
    ("expect_column_values_to_be_between", {"column": "n", "min_value": 0, "row_condition": "id > 3"}),
    ("expect_column_values_to_be_in_set", {"column": "name", "value_set": []}),
    ("expect_column_values_to_be_in_set", {"column": "name", "value_set": ["A", 5]}),
    ("expect_column_values_to_be_in_set", {"column": "n", "value_set": [True]}),
    ("expect_column_values_to_match_regex", {"column": "name", "regex": r"^\d+$"}),
    ("expect_column_values_to_match_regex", {"column": "n", "regex": "5"}),
    ("expect_column_values_to_not_be_null", {"column": "missing"}),
    ("expect_column_median_to_be_between", {"column": "n", "min_value": 0}),
]


@pytest.fixture(scope="module")
def spark(spark_app: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    nowhere = LakeSettings(warehouse=str(tmp_path_factory.mktemp("lake")), spark={}, iceberg={})
    with spark_session(nowhere, "engines") as session:
        yield session


def index() -> list[str]:
    return ["id", "at", *PLACE]


def rules(listed: list[tuple[str, dict[str, Any]]]) -> list[Expectation]:
    return [rule(kind, **arguments) for kind, arguments in listed]


@pytest.mark.spark
def test_both_engines_give_the_same_checks_and_rows(spark: SparkSession) -> None:
    asked = rules(SAME)
    assert all(as_on_spark(e, ROWS.schema) for e in asked)
    assert {e.type for e in asked} == set(_RULES)
    here, there = _by_pandas(ROWS, asked, index), _by_spark(as_frame(spark, ROWS), asked, index)
    for e, ours, theirs in zip(asked, here, there, strict=True):
        assert ours == theirs, e
    assert sum(not c.success for c in here) == 14
    assert sum(c.result is not None for c in here) == 14


@pytest.mark.parametrize("kept", LEFT_TO_SPARK, ids=lambda kept: f"{kept[0]}({', '.join(f'{k}={v}' for k, v in kept[1].items())})")
def test_what_the_engines_may_judge_differently_is_left_to_spark(kept: tuple[str, dict[str, Any]]) -> None:
    assert not as_on_spark(rules([kept])[0], ROWS.schema)


@pytest.mark.parametrize(
    "pattern", ["a$", "a.b", r"\d", r"\w", r"\bA", "(?i)a", "[a&&b]", "[[a]]", "a**", "a*+", "a*?", r"[\d]", "a^", r"\x41"]
)
def test_a_pattern_that_python_and_java_may_read_differently_is_not_plain(pattern: str) -> None:
    assert not is_plain(pattern)


@pytest.mark.spark
@settings(
    max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]
)
@given(
    pattern=st.from_regex(_PLAIN, fullmatch=True).filter(lambda p: len(p) < 40),
    text=st.text("aAzZ09-|/ \r\n\u0085\u2028١𝒳ßſK.^[", max_size=8),
)
def test_a_plain_pattern_finds_the_same_in_python_and_java(spark: SparkSession, pattern: str, text: str) -> None:
    try:
        ours = re.search(pattern, text) is not None
    except (re.error, OverflowError):
        assume(False)
    jvm = spark._jvm
    assert jvm is not None
    assert ours == jvm.java.util.regex.Pattern.compile(pattern).matcher(text).find()
