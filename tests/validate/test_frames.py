"""Users' expectations on Spark's rows: passed, failed, mostly, conditions, and rules that cannot be judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tidelake.history.contract import Expectation
from tidelake.spark.lake_settings import LakeSettings
from tidelake.spark.session import spark_session
from tidelake.validate.quality.judge import judge_frame
from tidelake.validate.quality.verdict import Check, Seen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

ORIGIN = "expectations/shop.orders.toml: [[expect]] 1"
NOT_NULL = "expect_column_values_to_not_be_null"
BETWEEN = "expect_column_values_to_be_between"


@pytest.fixture(scope="module")
def orders(spark_app: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    """Ten orders: prices 0 to 9, every fifth without name."""
    nowhere = LakeSettings(warehouse=str(tmp_path_factory.mktemp("lake")), spark={}, iceberg={})
    with spark_session(nowhere, "quality") as spark:
        name = "CASE WHEN id % 5 > 0 THEN concat('N-', id) END AS name"
        yield spark.range(10).selectExpr("id", "CAST(id AS decimal(10,2)) AS price", name, "X'00FF' AS raw").coalesce(1).cache()


def rule(kind: str, severity: Literal["critical", "warning"] = "critical", **arguments: Any) -> Expectation:
    return Expectation(table="shop.orders", type=kind, arguments=arguments, severity=severity, origin=ORIGIN)


def judged(frame: DataFrame, kind: str, **arguments: Any) -> Check:
    (check,) = judge_frame(frame, [rule(kind, **arguments)])
    return check


def test_checks_come_in_the_order_of_the_rules_with_severity_and_origin(orders: DataFrame) -> None:
    rules = [rule(BETWEEN, "warning", column="price", max_value=6), rule(NOT_NULL, column="id"), rule(NOT_NULL, "warning", column="name")]
    checks = judge_frame(orders, rules)
    assert [(c.success, c.severity, c.column) for c in checks] == [
        (False, "warning", "price"),
        (True, "critical", "id"),
        (False, "warning", "name"),
    ]
    assert checks[0] == Check(
        table="shop.orders",
        rule="column values to be between",
        severity="warning",
        success=False,
        column="price",
        observed="3 bad values among 10 (30 %)",
        expected="price values to be less than or equal to 6",
        unexpected=3,
        seen=Seen(element_count=10),
        examples=["7.00", "8.00", "9.00"],
        origin=ORIGIN,
        remedy=f"correct the source or the rule ({ORIGIN})",
    )
    assert checks[1].remedy == ""
    assert checks[1].observed == "no bad value among 10"
    assert checks[1].examples == []
    assert checks[2].examples == ["NULL"]


def test_mostly_forgives_a_share(orders: DataFrame) -> None:
    assert judged(orders, BETWEEN, column="price", max_value=6, mostly=0.7).success
    assert not judged(orders, BETWEEN, column="price", max_value=6, mostly=0.8).success


def test_a_condition_in_spark_sql_chooses_the_rows(orders: DataFrame) -> None:
    check = judged(orders, BETWEEN, column="price", max_value=6, row_condition="id < 7")
    assert check.success
    assert check.expected == "price values to be less than or equal to 6 where id < 7"
    assert check.observed == "no bad value among 7"


def test_null_is_not_judged_and_said_so(orders: DataFrame) -> None:
    check = judged(orders, "expect_column_values_to_match_regex", column="name", regex="^N-[1-4]")
    assert check.observed == "4 bad values among 8 (50 %); 2 NULL not judged"


def test_rules_about_the_table_say_what_they_found(orders: DataFrame) -> None:
    rows, columns, unique, query = judge_frame(
        orders,
        [
            rule("expect_table_row_count_to_be_between", min_value=11),
            rule("expect_table_columns_to_match_set", column_set=["id", "price", "name", "total"]),
            rule("expect_compound_columns_to_be_unique", column_list=["raw", "name"]),
            rule("unexpected_rows_expectation", unexpected_rows_query="SELECT * FROM {batch} WHERE price > 7", description="cheap"),
        ],
    )
    assert (rows.success, rows.observed) == (False, "10")
    assert columns.observed == "id, name, price, raw; unexpected: raw; missing: total"
    assert unique.expected == "Values for given compound columns to be unique together: raw, name"
    assert unique.unexpected == 2
    assert (query.rule, query.observed, query.unexpected) == ("cheap", "2 rows", 2)


def test_a_window_without_rows_breaks_no_rule_about_rows(orders: DataFrame) -> None:
    check = judged(orders.where("false"), NOT_NULL, column="name")
    assert (check.success, check.observed) == (True, "no rows")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"column": "nope", "value_set": [1]}, 'The column "nope" in BatchData does not exist.'),
        ({"column": "raw", "value_set": [1]}, "DATATYPE_MISMATCH"),
        ({"column": "id", "value_set": [1], "row_condition": "id > > 1"}, "PARSE_SYNTAX_ERROR"),
        ({"column": "id"}, f"{ORIGIN}: value_set: missing"),
    ],
)
def test_a_rule_that_cannot_be_judged_fails_says_why_and_spoils_no_other(orders: DataFrame, arguments: dict[str, Any], why: str) -> None:
    broken = rule("expect_column_values_to_be_in_set", "warning", **arguments)
    before, failed, after = judge_frame(orders, [rule(NOT_NULL, column="id"), broken, rule(BETWEEN, column="price", max_value=6)])
    assert (before.success, after.observed) == (True, "3 bad values among 10 (30 %)")
    assert (failed.success, failed.severity, failed.origin) == (False, "warning", ORIGIN)
    assert failed.observed.startswith("could not be judged: ")
    assert why in failed.observed


def test_the_same_rule_twice_is_judged_twice(orders: DataFrame) -> None:
    assert [c.success for c in judge_frame(orders, [rule(NOT_NULL, column="id")] * 2)] == [True, True]
