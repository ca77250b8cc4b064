"""What a verdict keeps from being published, and what it says."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from tests.validate.facts import HOUR, check
from tidelake.errors import QualityError
from tidelake.validate.quality.verdict import Check, Verdict


def verdict(*checks: Check) -> Verdict:
    return Verdict(feed="shop-open", hour=HOUR, seq=12, run="r", checks=list(checks))


def test_critical_failures_come_first_and_then_tables_and_rules() -> None:
    odd = [check(False, rule=r, severity=s, table=t) for s, t, r in [("warning", "a", "x"), ("critical", "b", "y"), ("critical", "b", "x")]]
    found = verdict(check(), *odd, check(False, table="a", rule="z")).failed
    assert [(c.severity, c.table, c.rule) for c in found] == [
        ("critical", "a", "z"),
        ("critical", "b", "x"),
        ("critical", "b", "y"),
        ("warning", "a", "x"),
    ]


@pytest.mark.parametrize("checks", [[], [check()], [check(), check(False, severity="warning")]])
def test_only_a_critical_failure_keeps_a_window_back(checks: list[Check]) -> None:
    verdict(*checks).refuse()


def test_a_refusal_says_what_was_expected_and_found_how_many_more_and_what_to_do() -> None:
    first = check(False, column="price", expected="at least 0", observed="3 below", origin="shop.orders.toml: [[expect]] 2")
    with pytest.raises(QualityError) as error:
        verdict(check(False, table="shop.z"), first, check(False, severity="warning", table="a")).refuse()
    assert (error.value.code, error.value.exit_code) == ("EXPECTATION_FAILED", 3)
    assert error.value.message == (
        "shop.orders.price: key not null: expected at least 0, found 3 below (and 1 more); nothing of the window is published"
    )
    assert f"`tidelake report --feed shop-open --hour {HOUR}`" in error.value.remedy
    assert "(shop.orders.toml: [[expect]] 2)" in error.value.remedy


def test_a_single_refusal_of_a_whole_table_has_no_column_and_no_more() -> None:
    with pytest.raises(QualityError, match=r"^EXPECTATION_FAILED: shop\.orders: key not null: expected none, found 5; nothing of"):
        verdict(check(False, expected="none", observed="5")).refuse()


def test_the_certificate_has_every_check_with_what_differs_from_the_usual() -> None:
    said = verdict(check(), check(False, unexpected=3, observed="3")).summary()
    assert (said["checked"], said["failed"]) == (2, 1)
    assert said["checks"] == [
        {"table": "shop.orders", "rule": "key not null", "severity": "critical", "success": True},
        {"table": "shop.orders", "rule": "key not null", "severity": "critical", "success": False, "unexpected": 3, "observed": "3"},
    ]
    json.dumps(said)


def test_a_stored_verdict_is_read_back_and_one_of_another_form_is_not() -> None:
    stored = verdict(check(False, examples=["1"])).model_dump_json()
    assert Verdict.model_validate_json(stored) == verdict(check(False, examples=["1"]))
    with pytest.raises(ValidationError):
        Verdict.model_validate(json.loads(stored) | {"more": 1})
