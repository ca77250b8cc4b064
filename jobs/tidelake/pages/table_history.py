"""What the reports of the last hours say about each table. Every document is read once, and little of it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from tidelake.pages.reports import Reports
from tidelake.tso import format_hour, parse_hour
from tidelake.validate.quality.plots import Plot, Series, line, stacked
from tidelake.validate.quality.trends import HOURS, Figure
from tidelake.validate.quality.verdict import Check

_OPS = ("inserts", "updates", "deletes", "upserts")


class Counts(NamedTuple):
    """Numbers of a table in an hour. rows: after it, None without a snapshot."""

    rows: int | None
    inserts: int
    updates: int
    deletes: int
    upserts: int


@dataclass(slots=True, kw_only=True)
class CheckRow:
    """A check of the last hours. hour, newest: its newest result; failed: hours in which it failed; hours: how many have a result."""

    hour: str
    newest: Check
    failed: list[str] = field(default_factory=list)
    hours: int = 0

    def add(self, hour: str, check: Check) -> None:
        """Count the result of a later hour."""
        self.hour, self.newest, self.hours = hour, check, self.hours + 1
        if not check.success:
            self.failed.append(hour)


@dataclass(slots=True)
class TableHistory:
    """Numbers and checks of a table by hour, ascending."""

    counts: dict[str, Counts] = field(default_factory=dict)
    checks: dict[tuple[str, str], CheckRow] = field(default_factory=dict)  # by rule and column


def histories(reports: Reports, until: str, wanted: str | None = None) -> dict[str, TableHistory]:
    """Return the histories of tables over the last hours with a report.

    Args:
        reports: The feed's reports.
        until: The last hour.
        wanted: The only table that is kept. Default: all.
    """
    out = dict[str, TableHistory]()
    for hour in reports.until(until):
        said = reports.members(hour)
        for name, t in said.get("tables", {}).items():
            if wanted in (None, name):
                counts = Counts(t.get("rows_after"), *(t.get(op, 0) for op in _OPS))
                out.setdefault(name, TableHistory()).counts[hour] = counts
        for c in said.get("checks", []):
            if wanted in (None, c["table"]):
                history, check = out.setdefault(c["table"], TableHistory()), Check.model_validate(c)
                history.checks.setdefault((check.rule, check.column or ""), CheckRow(hour=hour, newest=check)).add(hour, check)
    return out


def check_rows(history: TableHistory) -> list[CheckRow]:
    """Return the checks of a table: those that failed in their newest hour first, then by name."""
    rows = [row for _, row in sorted(history.checks.items())]
    return sorted(rows, key=lambda row: (row.newest.success, not row.failed))


def figures(history: TableHistory) -> list[Figure]:
    """Return the plots of a table: rows after each hour, changes in each. None with less than two hours."""
    if len(history.counts) < 2:
        return []
    first, end = parse_hour(min(history.counts)), parse_hour(max(history.counts))
    hours = [first + timedelta(hours=n) for n in range(min((end - first) // timedelta(hours=1) + 1, HOURS))]
    known = [history.counts.get(format_hour(hour)) for hour in hours]
    rows = Plot(title="Rows after each hour", unit="rows", hours=hours, series=[Series(name="rows", values=[c and c.rows for c in known])])
    changes = Plot(title="Changed rows in each hour", unit="rows", hours=hours, series=_changes(known))
    plots = [(rows, line)] if any(c and c.rows is not None for c in known) else []
    return [
        Figure(title=p.title, svg=draw(p), series=p.series if len(p.series) > 1 else (), gaps=p.has_gaps, stops=False)
        for p, draw in [*plots, (changes, stacked)]
    ]


def _changes(known: Sequence[Counts | None]) -> list[Series]:
    """One series for each operation that changed a row; the first one if none did."""
    ops = [Series(name=op, values=[c and getattr(c, op) for c in known], colour=i) for i, op in enumerate(_OPS)]
    return [s for s in ops if any(s.values)] or ops[:1]
