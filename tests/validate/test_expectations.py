"""Expectations of the users' files, checked without data: what is wrong, where, and what is allowed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tidelake.errors import ConfigError
from tidelake.history.contract import Expectation
from tidelake.validate.quality.judge import check_expectation

ORIGIN = "expectations/shop.orders.toml: [[expect]] 2"
BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"


def expectation(kind: str, **arguments: Any) -> Expectation:
    return Expectation(table="shop.orders", type=kind, arguments=arguments, severity="critical", origin=ORIGIN)


def refusal(kind: str, **arguments: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        check_expectation(expectation(kind, **arguments))
    assert raised.value.message.startswith(ORIGIN)
    return str(raised.value)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (BETWEEN, {"column": "price", "min_value": 0, "mostly": 0.9}),
        (BETWEEN, {"column": "at", "min_value": datetime(2026, 1, 1)}),  # noqa: DTZ001 - as TOML has them
        (IN_SET, {"column": "grade", "value_set": ["new", "used"], "row_condition": "price > 0"}),
        ("expect_compound_columns_to_be_unique", {"column_list": ["a", "b"]}),
        ("expect_column_values_to_not_be_null", {"column": "id", "description": "every order has an id", "notes": "of the shop"}),
        ("expect_table_row_count_to_equal", {"value": 3}),
        ("unexpected_rows_expectation", {"unexpected_rows_query": "SELECT * FROM {batch} WHERE price < 0"}),
        ("expect_column_values_to_match_like_pattern", {"column": "name", "like_pattern": "N-%", "escape": "!"}),
        ("expect_column_values_to_be_increasing", {"column": "id"}),
    ],
)
def test_expectations_that_can_be_judged_pass(kind: str, arguments: dict[str, Any]) -> None:
    check_expectation(expectation(kind, **arguments))


def test_an_unknown_type_is_refused_with_close_matches() -> None:
    said = refusal("expect_column_values_to_be_betwen", column="a", min_value=1)
    assert "found 'expect_column_values_to_be_betwen'" in said
    assert f"did you mean {BETWEEN}" in said


def test_a_type_like_no_other_is_refused_without_guesses() -> None:
    assert "did you mean" not in refusal("expect_42")


def test_an_unknown_argument_is_refused_with_the_allowed_ones() -> None:
    said = refusal(BETWEEN, column="a", min_valu=1)
    assert "min_valu: expect_column_values_to_be_between has no such argument" in said
    assert "did you mean min_value? allowed: column, condition_parser" in said


@pytest.mark.parametrize("name", ["result_format", "catch_exceptions", "id", "meta", "batch_id"])
def test_arguments_that_are_tidelakes_own_are_refused(name: str) -> None:
    assert f"{name}: {BETWEEN} has no such argument" in refusal(BETWEEN, column="a", min_value=1, **{name: "x"})


def test_a_missing_argument_is_named() -> None:
    said = refusal(IN_SET, column="a")
    assert "value_set: missing" in said
    assert "needs column, value_set" in said


def test_a_wrong_value_is_shown_with_what_is_allowed() -> None:
    assert "mostly: found 1.5: ensure this value is less than or equal to 1.0" in refusal(IN_SET, column="a", value_set=[1], mostly=1.5)
    assert "value_set: found 'abc': value is not a valid list" in refusal(IN_SET, column="a", value_set="abc")


@pytest.mark.parametrize(
    ("kind", "arguments", "missing"),
    [
        ("expect_column_values_to_match_regex", {"column": "a"}, "regex"),
        ("expect_table_row_count_to_be_between", {}, "max_value and min_value"),
        ("expect_column_max_to_be_between", {"column": "a", "strict_min": True}, "max_value and min_value"),
        ("expect_column_values_to_be_in_type_list", {"column": "a"}, "type_list"),
        ("expect_table_columns_to_match_set", {"exact_match": True}, "column_set"),
    ],
)
def test_an_expectation_that_expects_nothing_is_refused(kind: str, arguments: dict[str, Any], missing: str) -> None:
    assert f"{kind} without {missing} expects nothing" in refusal(kind, **arguments)


def test_a_bound_that_would_be_rounded_is_refused() -> None:
    check_expectation(expectation(BETWEEN, column="a", max_value=1 << 64))
    assert "found 18446744073709551615, which Great Expectations would compare as" in refusal(BETWEEN, column="a", max_value=(1 << 64) - 1)


def test_a_condition_that_spark_cannot_read_is_refused() -> None:
    assert "write the row_condition in Spark SQL" in refusal(
        IN_SET, column="a", value_set=[1], row_condition="b > 1", condition_parser="pandas"
    )


def test_parameters_of_checkpoints_are_refused() -> None:
    assert "min_value: found a parameter of a checkpoint" in refusal(BETWEEN, column="a", min_value={"$PARAMETER": "low"})


def test_a_query_over_anything_but_the_window_is_refused() -> None:
    assert "found no {batch}" in refusal("unexpected_rows_expectation", unexpected_rows_query="SELECT * FROM shop.orders")
