"""Every expectation that is judged from rows can be judged on Spark, and a sample has the first rows in commit order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tidelake.history.contract import OWN_SQL, Expectation
from tidelake.spark.lake_settings import LakeSettings
from tidelake.spark.session import spark_session
from tidelake.validate.quality.basis import BASIS
from tidelake.validate.quality.expectations import build, runnable
from tidelake.validate.quality.judge_sample import judge_sample
from tidelake.validate.quality.validation import validate
from tidelake.validate.quality.verdict import Check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

PAIR = {"column_A": "id", "column_B": "twice"}
ARGUMENTS: dict[str, dict[str, Any]] = {  # of every type, such that the rows below meet it
    "expect_column_distinct_values_to_be_in_set": {"column": "kind", "value_set": ["a", "b", "c"]},
    "expect_column_distinct_values_to_contain_set": {"column": "kind", "value_set": ["a"]},
    "expect_column_distinct_values_to_equal_set": {"column": "kind", "value_set": ["a", "b"]},
    "expect_column_kl_divergence_to_be_less_than": {
        "column": "kind",
        "partition_object": {"values": ["a", "b"], "weights": [0.5, 0.5]},
        "threshold": 0.1,
    },
    "expect_column_max_to_be_between": {"column": "id", "max_value": 9},
    "expect_column_mean_to_be_between": {"column": "id", "min_value": 4, "max_value": 5},
    "expect_column_median_to_be_between": {"column": "id", "min_value": 4, "max_value": 5},
    "expect_column_min_to_be_between": {"column": "id", "min_value": 0},
    "expect_column_most_common_value_to_be_in_set": {"column": "kind", "value_set": ["a", "b"], "ties_okay": True},
    "expect_column_pair_values_a_to_be_greater_than_b": {"column_A": "twice", "column_B": "id", "or_equal": True},
    "expect_column_pair_values_to_be_equal": {"column_A": "id", "column_B": "id"},
    "expect_column_pair_values_to_be_in_set": PAIR | {"value_pairs_set": [(n, 2 * n) for n in range(10)]},
    "expect_column_proportion_of_non_null_values_to_be_between": {"column": "name", "min_value": 0.8, "max_value": 0.8},
    "expect_column_proportion_of_unique_values_to_be_between": {"column": "id", "min_value": 1},
    "expect_column_quantile_values_to_be_between": {
        "column": "id",
        "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[3, 6]]},
    },
    "expect_column_stdev_to_be_between": {"column": "id", "min_value": 1, "max_value": 5},
    "expect_column_sum_to_be_between": {"column": "id", "min_value": 45, "max_value": 45},
    "expect_column_to_exist": {"column": "id"},
    "expect_column_type_to_be": {"column": "id", "type_": "LongType"},
    "expect_column_unique_value_count_to_be_between": {"column": "kind", "min_value": 2, "max_value": 2},
    "expect_column_value_lengths_to_be_between": {"column": "name", "min_value": 3},
    "expect_column_value_lengths_to_equal": {"column": "kind", "value": 1},
    "expect_column_value_z_scores_to_be_less_than": {"column": "id", "threshold": 3, "double_sided": True},
    "expect_column_values_to_be_between": {"column": "price", "min_value": 0},
    "expect_column_values_to_be_in_set": {"column": "kind", "value_set": ["a", "b"]},
    "expect_column_values_to_be_in_type_list": {"column": "id", "type_list": ["LongType", "IntegerType"]},
    "expect_column_values_to_be_json_parseable": {"column": "doc"},
    "expect_column_values_to_be_null": {"column": "nothing"},
    "expect_column_values_to_be_of_type": {"column": "id", "type_": "LongType"},
    "expect_column_values_to_be_unique": {"column": "id"},
    "expect_column_values_to_match_json_schema": {"column": "doc", "json_schema": {"type": "object"}},
    "expect_column_values_to_match_like_pattern": {"column": "name", "like_pattern": "N-%"},
    "expect_column_values_to_match_like_pattern_list": {"column": "name", "like_pattern_list": ["N-_", "x"]},
    "expect_column_values_to_match_regex": {"column": "name", "regex": "^N-[0-9]$"},
    "expect_column_values_to_match_regex_list": {"column": "name", "regex_list": ["^N", "^x"]},
    "expect_column_values_to_match_strftime_format": {"column": "day", "strftime_format": "%Y-%m-%d"},
    "expect_column_values_to_not_be_in_set": {"column": "kind", "value_set": ["z"]},
    "expect_column_values_to_not_be_null": {"column": "id"},
    "expect_column_values_to_not_be_outliers": {"column": "id", "method": "iqr", "multiplier": 1.5},
    "expect_column_values_to_not_match_like_pattern": {"column": "name", "like_pattern": "%x%"},
    "expect_column_values_to_not_match_like_pattern_list": {"column": "name", "like_pattern_list": ["x%"]},
    "expect_column_values_to_not_match_regex": {"column": "name", "regex": "x"},
    "expect_column_values_to_not_match_regex_list": {"column": "name", "regex_list": ["x"]},
    "expect_compound_columns_to_be_unique": {"column_list": ["id", "kind"]},
    "expect_multicolumn_sum_to_equal": {"column_list": ["id", "minus"], "sum_total": 0},
    "expect_multicolumn_values_to_be_equal": {"column_list": ["id", "id"]},
    "expect_select_column_values_to_be_unique_within_record": {"column_list": ["kind", "name"]},
    "expect_table_column_count_to_be_between": {"min_value": 5},
    "expect_table_column_count_to_equal": {"value": 11},
    "expect_table_columns_to_match_ordered_list": {
        "column_list": ["id", "price", "name", "kind", "twice", "minus", "nothing", "doc", "day", "clock", "_change_seq"]
    },
    "expect_table_columns_to_match_set": {"column_set": ["id", "price"], "exact_match": False},
    "expect_table_row_count_to_be_between": {"min_value": 5, "row_condition": "id >= 5"},
    "expect_table_row_count_to_equal": {"value": 5, "row_condition": "id >= 5"},
    OWN_SQL: {"unexpected_rows_query": "SELECT * FROM {batch} WHERE id < 0"},
}


@pytest.fixture(scope="module")
def rows(spark_app: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    """Ten rows in two partitions, whose commit order is the reverse of their ids."""
    nowhere = LakeSettings(warehouse=str(tmp_path_factory.mktemp("lake")), spark={}, iceberg={})
    with spark_session(nowhere, "quality") as spark:
        yield (
            spark.range(10)
            .repartition(2)
            .selectExpr(
                "id",
                "CAST(id AS decimal(10,2)) AS price",
                "CASE WHEN id % 5 > 0 THEN concat('N-', id) END AS name",
                "CASE WHEN id % 2 = 0 THEN 'a' ELSE 'b' END AS kind",
                "2 * id AS twice",
                "-id AS minus",
                "CAST(NULL AS string) AS nothing",
                """concat('{"n": ', id, '}') AS doc""",
                "concat('2026-01-0', id % 9 + 1) AS day",
                "CASE WHEN id = 7 THEN 'noon' ELSE concat('1', id, ':00') END AS clock",
                "CAST(100 - id AS decimal(38,0)) AS _change_seq",
            )
            .cache()
        )


def rule(kind: str, **arguments: Any) -> Expectation:
    return Expectation(table="shop.orders", type=kind, arguments=arguments, severity="critical", origin="file: [[expect]] 1")


def sampled(frame: DataFrame, kind: str, rows: int = 100, **arguments: Any) -> Check:
    (check,) = judge_sample(frame, [rule(f"expect_column_values_to_be_{kind}", **arguments)], ["id"], rows)
    return check


def test_spark_judges_every_expectation_that_is_not_judged_from_a_sample(rows: DataFrame) -> None:
    assert set(ARGUMENTS) == {kind for kind, basis in BASIS.items() if basis != "sample"}
    outcomes = validate("spark", rows, [runnable(rule(kind, **arguments)) for kind, arguments in ARGUMENTS.items()])
    assert [(kind, o.error, o.result) for kind, o in zip(ARGUMENTS, outcomes, strict=True) if not o.success] == []


def test_spark_cannot_judge_like_patterns_and_dates_in_any_form(rows: DataFrame) -> None:
    kinds = [rule(kind, **ARGUMENTS[kind]) for kind, basis in BASIS.items() if basis == "patterns"]
    outcomes = validate("spark", rows, [build(e) for e in (*kinds, rule("expect_column_values_to_be_dateutil_parseable", column="day"))])
    assert all(o.error for o in outcomes)


def test_like_patterns_that_rows_do_not_match_fail(rows: DataFrame) -> None:
    kinds = ("match_like_pattern", "not_match_like_pattern")
    rules = [rule(f"expect_column_values_to_{kind}", column="name", like_pattern="%-_") for kind in kinds]
    matched, unmatched = validate("spark", rows, [runnable(e) for e in rules])
    assert (matched.success, unmatched.success, unmatched.result["unexpected_count"]) == (True, False, 8)


def test_order_is_judged_in_commit_order(rows: DataFrame) -> None:
    assert sampled(rows, "decreasing", column="id").success
    found = sampled(rows, "increasing", column="id")
    assert (found.success, found.unexpected, found.observed) == (False, 9, "9 bad values among 10 (90 %)")
    assert found.result is not None
    assert {r["id"] for r in found.result.partial_unexpected_index_list} <= set(range(9))


def test_a_sample_has_the_first_rows_in_commit_order_and_its_check_says_so(rows: DataFrame) -> None:
    whole = sampled(rows, "dateutil_parseable", column="clock")
    assert (whole.success, whole.observed, whole.examples) == (False, "1 bad value among 10 (10 %)", ["noon"])
    assert whole.result is not None
    assert whole.result.partial_unexpected_index_list == [{"id": 7, "clock": "noon"}]
    few = sampled(rows, "dateutil_parseable", rows=2, column="clock")
    assert (few.success, few.observed) == (True, "no bad value among 2; only the first 2 rows in commit order are judged")


def test_large_integers_beside_null_keep_their_order(rows: DataFrame) -> None:
    large = rows.selectExpr("id", "_change_seq", "CASE WHEN id <> 4 THEN 9007199254740993 - id END AS big")
    found = sampled(large, "increasing", column="big", strictly=True)
    assert (found.success, found.observed) == (True, "no bad value among 9; 1 NULL not judged")


def test_a_condition_chooses_the_rows_of_a_sample_before_it_is_cut(rows: DataFrame) -> None:
    found = sampled(rows, "dateutil_parseable", rows=3, column="clock", row_condition="id < 8 AND id > 4")
    assert (found.success, found.unexpected, found.observed) == (False, 1, "1 bad value among 3 (33.3 %)")
    assert found.expected.endswith("where id < 8 AND id > 4")


@pytest.mark.parametrize("arguments", [{"column": "nope"}, {"column": "clock", "row_condition": "id > > 1"}])
def test_a_rule_of_a_sample_that_cannot_be_judged_says_why(rows: DataFrame, arguments: dict[str, Any]) -> None:
    found = sampled(rows, "dateutil_parseable", **arguments)
    assert (found.success, found.severity) == (False, "critical")
    assert found.observed.startswith("could not be judged: file: [[expect]] 1: ")
