"""Validates with Great Expectations: numbers counted of every table, and the users' expectations on a table's rows.

Great Expectations takes seconds to import, so it is imported only when something is validated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidelake.errors import ConfigError
from tidelake.history.contract import Expectation, RuleSeverity
from tidelake.validate.quality import wording
from tidelake.validate.quality.evidence import UnexpectedRows
from tidelake.validate.quality.expectations import build, check_expectation, runnable
from tidelake.validate.quality.validation import Engine, RuleOutcome, quiet, validate
from tidelake.validate.quality.verdict import Check, Seen

if TYPE_CHECKING:
    import pandas as pd
    from great_expectations.expectations.expectation import Expectation as GxExpectation

__all__ = ["Measure", "check_expectation", "expectation_check", "judge_frame", "judge_measures", "refused_check"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number counted of a table, and at least one limit. expected, observed: texts for people, derived if empty. remedy, result: for a
    check that fails.
    """

    table: str
    rule: str
    value: int | float
    severity: RuleSeverity = "critical"
    column: str | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    expected: str = ""
    observed: str = ""
    origin: str = "every table"
    remedy: str = ""
    result: UnexpectedRows | None = None
    keeps_value: bool = False  # whether the check holds the number itself

    def __post_init__(self) -> None:
        if self.minimum is None and self.maximum is None:
            raise ValueError(f"measure {self.rule!r} of {self.table!r} has no limit")


def judge_measures(measures: Sequence[Measure]) -> list[Check]:
    """Return one check per measure, in order. One validation of one small frame covers all."""
    if not measures:
        return []
    complete = {"result_format": "COMPLETE", "unexpected_index_column_names": ["number"]}
    outcomes = validate("pandas", _frame(measures), _limits(), complete)
    error = next((o.error for o in outcomes if o.error is not None), None)
    broken = {row["number"] for o in outcomes for row in o.result.get("unexpected_index_list") or ()}
    return [_measured(m, number not in broken, error) for number, m in enumerate(measures)]


def judge_frame(frame: Any, expectations: Sequence[Expectation], engine: Engine = "spark") -> list[Check]:
    """Return one check per expectation, in order.

    An expectation that cannot be validated (unknown column, wrong argument) is a failed check with the reason.

    Args:
        frame: One table's rows of the window, a DataFrame of the engine. It is read several times, so cache what is expensive.
        expectations: The table's expectations.
        engine: What judges them.
    """
    built: dict[int, GxExpectation] = {}
    refused: dict[int, Check] = {}
    for number, e in enumerate(expectations):
        try:
            built[number] = build(e)
        except ConfigError as error:
            refused[number] = refused_check(e, error)
    outcomes = dict(zip(built, validate(engine, frame, [runnable(expectations[n]) for n in built]), strict=True))
    return [
        refused[number] if number in refused else expectation_check(e, wording.expected(e, built[number]), outcomes[number])
        for number, e in enumerate(expectations)
    ]


def refused_check(e: Expectation, error: ConfigError) -> Check:
    """Return the failed check of an expectation that cannot be validated."""
    return expectation_check(e, wording.arguments(e), RuleOutcome(success=False, result={}, error=f"{error.message}; {error.remedy}"))


def expectation_check(e: Expectation, expected: str, outcome: RuleOutcome) -> Check:
    """Return the check of an expectation. expected: what is expected, for people."""
    column = e.arguments.get("column")
    return Check(
        table=e.table,
        rule=wording.rule(e),
        severity=e.severity,
        success=outcome.success,
        column=column if isinstance(column, str) else None,
        observed=wording.observed(e, outcome),
        expected=expected,
        unexpected=wording.unexpected(e, outcome),
        seen=_seen(outcome.result),
        examples=wording.examples(outcome),
        origin=e.origin,
        remedy="" if outcome.success else wording.remedy(e),
    )


def _seen(result: Mapping[str, Any]) -> Seen | None:
    found = Seen(
        element_count=int(result.get("element_count") or 0),
        missing_count=int(result.get("missing_count") or 0),
        observed_value=_number(result.get("observed_value")),
    )
    return None if found == Seen() else found


def _number(value: Any) -> int | float | None:
    """A number that JSON holds; None for anything else."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def _frame(measures: Sequence[Measure]) -> pd.DataFrame:
    """Numbers stay Python objects: a float64 column with gaps would round TSOs."""
    import pandas as pd

    columns: Mapping[str, list[Any]] = {
        "value": [m.value for m in measures],
        "minimum": [m.minimum for m in measures],
        "maximum": [m.maximum for m in measures],
    }
    return pd.DataFrame({"number": range(len(measures))} | {k: pd.Series(v, dtype=object) for k, v in columns.items()})


def _limits() -> list[GxExpectation]:
    """Every value exists (NaN does not), none is below its minimum, none above its maximum."""
    with quiet():
        from great_expectations.expectations.core import expect_column_pair_values_a_to_be_greater_than_b as pairs
        from great_expectations.expectations.core import expect_column_values_to_not_be_null as single

        ordered: dict[str, Any] = {"or_equal": True, "ignore_row_if": "either_value_is_missing"}
        return [
            single.ExpectColumnValuesToNotBeNull(column="value"),
            pairs.ExpectColumnPairValuesAToBeGreaterThanB(column_A="value", column_B="minimum", **ordered),
            pairs.ExpectColumnPairValuesAToBeGreaterThanB(column_A="maximum", column_B="value", **ordered),
        ]


def _measured(m: Measure, success: bool, error: str | None) -> Check:
    counts_offenders = m.maximum == 0 and not m.minimum and isinstance(m.value, int)
    observed = f"could not be judged: {error}" if error is not None else m.observed or wording.show(m.value)
    return Check(
        table=m.table,
        rule=m.rule,
        severity=m.severity,
        success=success and error is None,
        column=m.column,
        observed=observed,
        expected=m.expected or _between(m),
        unexpected=abs(int(m.value)) if counts_offenders and not success else 0,
        seen=Seen(observed_value=m.value) if m.keeps_value else None,
        origin=m.origin,
        remedy="" if success else m.remedy,
        result=None if success else m.result,
    )


def _between(m: Measure) -> str:
    if m.maximum == 0 and not m.minimum:
        return "none"
    if m.minimum == m.maximum:
        return f"exactly {wording.show(m.maximum)}"
    if m.minimum is None:
        return f"at most {wording.show(m.maximum)}"
    low = wording.show(m.minimum)
    return f"at least {low}" if m.maximum is None else f"between {low} and {wording.show(m.maximum)}"
