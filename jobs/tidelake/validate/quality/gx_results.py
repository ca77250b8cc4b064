"""Stored checks of an hour as results of Great Expectations, matched with the expectations of the files that they were made by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tidelake.history.contract import Expectation
from tidelake.tso import parse_hour
from tidelake.validate.quality import wording
from tidelake.validate.quality.expectations import build
from tidelake.validate.quality.facts import HourFacts
from tidelake.validate.quality.verdict import Check, Seen

if TYPE_CHECKING:
    from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult, ExpectationValidationResult
    from great_expectations.expectations.expectation import Expectation as GxExpectation

_NUMBER = re.compile(r": \[\[expect\]\] (\d+)$")
_NAMES = "expect_table_columns_to_match_ordered_list"  # Data Docs show a list
_JUDGED = "could not be judged: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Checks of an hour beside the expectations that they were made by.

    Attributes:
        pairs: (expectation, check).
        changed: Checks whose expectation is no longer in its file, or is another one now.
    """

    pairs: Sequence[tuple[Expectation, Check]]
    changed: Sequence[Check]


def match(rules: Iterable[Expectation], checks: Iterable[Check]) -> Matched:
    """Match stored checks with the files' present expectations, by table, number, and what both say."""
    known = {(e.table.lower(), _number(e.origin)): e for e in rules}
    pairs, changed = list[tuple[Expectation, Check]](), list[Check]()
    for c in checks:
        if (number := _number(c.origin)) is None:
            continue  # a rule of every table
        e = known.get((c.table.lower(), number))
        if e is not None and _same(e, c):
            pairs.append((e, c))
        else:
            changed.append(c)
    return Matched(pairs=pairs, changed=changed)


def suite_result(
    suite: str, facts: HourFacts, checks: Sequence[tuple[GxExpectation, Check]], meta: Mapping[str, Any]
) -> ExpectationSuiteValidationResult:
    """Return the checks of a table, at least one, as Great Expectations' result of its suite. meta: further meta data."""
    from great_expectations import __version__
    from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult

    passed = sum(c.success for _, c in checks)
    end = parse_hour(facts.hour) + timedelta(hours=1)
    ours = {"feed": facts.feed, "hour": facts.hour, "cut": facts.cut, "status": facts.status, "run": facts.run}
    known = {
        "expectation_suite_name": suite,
        "great_expectations_version": __version__,
        "validation_time": f"{end:%Y%m%dT%H%M%S.%fZ}",
        "active_batch_definition": {
            "datasource_name": facts.feed,
            "data_connector_name": "tidelake",
            "data_asset_name": checks[0][1].table,
            "batch_identifiers": {"hour": facts.hour},
        },
        "batch_markers": {},
        "batch_parameters": {"hour": facts.hour},
        "batch_spec": {},
        "tidelake": ours,
    }
    return ExpectationSuiteValidationResult(
        success=passed == len(checks),
        results=[_result_of(built, c) for built, c in checks],
        suite_name=suite,
        statistics={
            "evaluated_expectations": len(checks),
            "successful_expectations": passed,
            "unsuccessful_expectations": len(checks) - passed,
            "success_percent": 100 * passed / len(checks),
        },
        meta={**known, **meta},
    )


def _result_of(built: GxExpectation, c: Check) -> ExpectationValidationResult:
    """Return a check as Great Expectations' result of an expectation."""
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult

    failed = c.observed.removeprefix(_JUDGED) if c.observed.startswith(_JUDGED) else None
    return ExpectationValidationResult(
        success=c.success,
        expectation_config=built.configuration,
        result={} if failed else _result(built.expectation_type, c),
        meta={"tidelake": {"observed": c.observed, "origin": c.origin, "remedy": c.remedy}},
        exception_info={"raised_exception": failed is not None, "exception_message": failed, "exception_traceback": None},
    )


def _result(kind: str, c: Check) -> dict[str, Any]:
    seen = c.seen or Seen()
    if not seen.element_count:
        said: Any = [c.observed] if kind == _NAMES else c.observed  # text, where the value is no number
        return {"observed_value": said if seen.observed_value is None else seen.observed_value}
    every, judged = seen.element_count, seen.element_count - seen.missing_count
    rows: dict[str, Any] = c.result.model_dump() if c.result else {}
    return {
        "element_count": every,
        "missing_count": seen.missing_count,
        "missing_percent": 100 * seen.missing_count / every,
        "unexpected_count": c.unexpected,
        "unexpected_percent": 100 * c.unexpected / judged if judged else 0.0,
        "unexpected_percent_nonmissing": 100 * c.unexpected / judged if judged else 0.0,
        "unexpected_percent_total": 100 * c.unexpected / every,
        "partial_unexpected_list": list(c.examples),
        **rows,
    }


def _number(origin: str) -> int | None:
    found = _NUMBER.search(origin)
    return int(found[1]) if found else None


def _same(e: Expectation, c: Check) -> bool:
    """Whether a check was made by this expectation: both say the same of rule, severity and what is expected."""
    column = e.arguments.get("column")
    said = (wording.rule(e), e.severity, column if isinstance(column, str) else None)
    return said == (c.rule, c.severity, c.column) and c.expected in (wording.arguments(e), wording.expected(e, build(e)))
