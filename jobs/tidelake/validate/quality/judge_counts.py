"""Turns expectations about numbers of rows into measures: they are judged from the counts of the window, without reading its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelake.errors import ConfigError
from tidelake.history.contract import Expectation
from tidelake.io.texts import plural
from tidelake.validate.quality import wording
from tidelake.validate.quality.basis import counted_change
from tidelake.validate.quality.expectations import build
from tidelake.validate.quality.judge import Measure, refused_check
from tidelake.validate.quality.verdict import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCounts:
    """Counts of one table's window. new_rows: whole new row images; by_type: changes by change type."""

    new_rows: int
    by_type: Mapping[str, int]

    def of(self, e: Expectation) -> int:
        """Return the number that an expectation is about."""
        change = counted_change(e)
        return self.new_rows if change is None else self.by_type.get(change, 0)


def count_measures(expectations: Iterable[Expectation], counts: ChangeCounts) -> tuple[list[Measure], list[Check]]:
    """Return the measures of expectations about numbers of rows, and failed checks of those that cannot be validated."""
    measures, refused = list[Measure](), list[Check]()
    for e in expectations:
        try:
            measures.append(_measure(e, counts.of(e)))
        except ConfigError as error:
            refused.append(refused_check(e, error))
    return measures, refused


def _measure(e: Expectation, rows: int) -> Measure:
    expected, given = wording.expected(e, build(e)), e.arguments
    low, high = given.get("value", given.get("min_value")), given.get("value", given.get("max_value"))
    if low is not None and given.get("strict_min"):
        low = math.floor(low) + 1
    if high is not None and given.get("strict_max"):
        high = math.ceil(high) - 1
    return Measure(
        table=e.table,
        rule=wording.rule(e),
        value=rows,
        severity=e.severity,
        minimum=low,
        maximum=high,
        expected=expected,
        observed=plural(rows, "row"),
        origin=e.origin,
        remedy=wording.remedy(e),
        keeps_value=True,
    )
