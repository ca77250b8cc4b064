"""Counts of one have the noun in the singular."""

from __future__ import annotations

from typing import Any

import pytest

from tidelake.cli import rollback, stages
from tidelake.history.contract import Expectation
from tidelake.validate.quality import wording
from tidelake.validate.quality.validation import RuleOutcome

DONE = {
    "hour": "2026-01-05T10",
    "messages": 1,
    "cut": 3,
    "tables": {"shop.orders": 1},
    "rejected": {"TRUNCATED": 1},
    "published": 463368563725434880,
    "incomplete_because": [],
    "seconds": {"land": 1.0},
}


def test_a_run_says_one_message_one_table_and_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    stages._say(DONE)
    said = capsys.readouterr().out
    assert said.startswith("2026-01-05T10: 1 message → cut 3: 1 table, 1 row at ")
    assert said.endswith(", 1 message quarantined  [1.0 s]\n")


def test_a_run_says_many_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    stages._say(DONE | {"messages": 2000, "tables": {"shop.orders": 1, "shop.items": 1999}, "rejected": {}})
    assert capsys.readouterr().out.startswith("2026-01-05T10: 2,000 messages → cut 3: 2 tables, 2,000 rows at ")


def test_differences_of_a_rollback() -> None:
    assert rollback._differences({"shop.orders": {"added": 1, "changed": 2}}) == ["  shop.orders: 1 row added, 2 rows changed"]


@pytest.mark.parametrize(
    ("rule", "result", "says"),
    [
        ("expect_column_values_to_be_between", {"element_count": 1, "missing_count": 1}, "only NULL, in 1 row"),
        ("expect_column_values_to_be_between", {"element_count": 4, "unexpected_count": 1}, "1 bad value among 4 (25 %)"),
        ("expect_column_values_to_be_between", {"element_count": 4, "unexpected_count": 2}, "2 bad values among 4 (50 %)"),
        ("expect_column_values_to_be_between", {"element_count": 4, "unexpected_count": 0}, "no bad value among 4"),
        (
            "expect_column_distinct_values_to_be_in_set",
            {"unexpected_count": 1, "missing_count": 2},
            "1 distinct value not expected, 2 distinct values missing",
        ),
        ("unexpected_rows_expectation", {"observed_value": 1}, "1 row"),
        ("unexpected_rows_expectation", {"observed_value": 2000}, "2,000 rows"),
    ],
)
def test_what_an_expectation_found(rule: str, result: dict[str, Any], says: str) -> None:
    expectation = Expectation(table="shop.orders", type=rule, arguments={"column": "price"}, severity="warning", origin="here")
    assert wording.observed(expectation, RuleOutcome(success=False, result=result, error=None)) == says
