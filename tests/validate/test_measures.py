"""Measures: what Spark counted, judged by limits. Great Expectations is real here, its first use takes seconds."""

from __future__ import annotations

import logging
import math
import subprocess
import sys
import warnings

import pytest

from tidelake.validate.quality.evidence import UnexpectedRows
from tidelake.validate.quality.judge import Measure, judge_measures


def measure(value: float, **more: object) -> Measure:
    return Measure(**({"table": "shop.orders", "rule": "key not null", "value": value, "maximum": 0} | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "minimum", "maximum", "success"),
    [
        (0, None, 0, True),
        (1, None, 0, False),
        (0, 0, 0, True),
        (-1, 0, 0, False),
        (5, 5, 5, True),
        (4, 5, None, False),
        (5, 5, None, True),
        (10, 1, 9, False),
        (0.5, 0.25, 0.75, True),
        (math.nan, None, 0, False),
        (math.inf, 1, None, True),
    ],
)
def test_a_measure_passes_inside_its_limits_and_at_them(value: float, minimum: float | None, maximum: float | None, success: bool) -> None:
    (check,) = judge_measures([measure(value, minimum=minimum, maximum=maximum)])
    assert check.success is success


def test_numbers_beyond_a_double_are_compared_exactly() -> None:
    tso = (1 << 62) + 1
    same, above, absent = judge_measures([measure(tso, maximum=tso), measure(tso + 1, maximum=tso), measure(tso, minimum=1, maximum=None)])
    assert (same.success, above.success, absent.success) == (True, False, True)


def test_checks_come_in_the_order_of_their_measures_with_all_they_said() -> None:
    rows = UnexpectedRows(unexpected_index_column_names=["id"], partial_unexpected_index_list=[{"id": 1}], partial_unexpected_list=[1])
    told = measure(
        3,
        severity="warning",
        column="price",
        expected="no NULL",
        observed="3 rows",
        origin="every table with a key",
        remedy="let it pass",
        result=rows,
    )
    passed, failed = judge_measures([measure(0, table="a.b", remedy="let it pass", result=rows), told])
    assert (passed.table, passed.success, passed.unexpected, passed.severity) == ("a.b", True, 0, "critical")
    assert (passed.remedy, passed.result) == ("", None)
    assert failed.model_dump() == {
        "table": "shop.orders",
        "rule": "key not null",
        "severity": "warning",
        "success": False,
        "column": "price",
        "observed": "3 rows",
        "expected": "no NULL",
        "unexpected": 3,
        "examples": [],
        "origin": "every table with a key",
        "remedy": "let it pass",
        "result": rows.model_dump(),
    }


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"maximum": 0}, "none"),
        ({"maximum": 1200}, "at most 1,200"),
        ({"minimum": 2, "maximum": None}, "at least 2"),
        ({"minimum": 2, "maximum": 2}, "exactly 2"),
        ({"minimum": 0.5, "maximum": 1}, "between 0.5 and 1"),
    ],
)
def test_limits_are_said_where_the_caller_says_nothing(limits: dict[str, object], expected: str) -> None:
    (check,) = judge_measures([measure(1234567, **limits)])
    assert check.expected == expected
    assert check.observed == "1,234,567"


def test_a_measure_without_limits_is_a_mistake_of_its_author() -> None:
    with pytest.raises(ValueError, match=r"'key not null' of 'shop\.orders' has no limit"):
        measure(1, maximum=None)


def test_nothing_to_judge_is_no_check() -> None:
    assert judge_measures([]) == []


def test_a_value_that_cannot_be_compared_fails_every_measure_and_says_why() -> None:
    checks = judge_measures([measure(0), measure("many")])  # type: ignore[arg-type]
    assert [c.success for c in checks] == [False, False]
    assert all("could not be judged" in c.observed for c in checks)


def test_thousands_of_measures_are_one_validation() -> None:
    checks = judge_measures([measure(n % 3, table=f"shop.t{n}") for n in range(3000)])
    assert [c.success for c in checks] == [n % 3 == 0 for n in range(3000)]


def test_judging_leaves_logging_and_warnings_as_they_were(caplog: pytest.LogCaptureFixture) -> None:
    def state() -> tuple[object, ...]:
        logger = logging.getLogger("great_expectations")
        return warnings.showwarning, list(warnings.filters), logger.propagate, list(logger.handlers)

    before = state()
    with caplog.at_level(logging.DEBUG):
        judge_measures([measure(0)])
    assert state() == before
    assert caplog.records == []


def test_great_expectations_is_not_imported_before_something_is_judged() -> None:
    code = "import sys, tidelake.validate.quality.judge, tidelake.validate.quality.report; print('great_expectations' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
