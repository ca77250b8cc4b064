"""Report of one hour: a single self-contained HTML file for screens, phones and paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidelake.errors import QUARANTINE_CODES
from tidelake.validate.quality.facts import HourFacts, TableFacts
from tidelake.validate.quality.headline import headline, quarantine_commands
from tidelake.validate.quality.inline import REPORT_STYLE, content_security_policy, inline
from tidelake.validate.quality.navigation import Navigation
from tidelake.validate.quality.templates import environment
from tidelake.validate.quality.trends import changed_rows, quarantined, trends
from tidelake.validate.quality.verdict import Check

_KINDS = {
    "row": "Row changes",
    "ddl": "DDL statements",
    "resolved": "Resolved timestamps",
    "bootstrap": "Table descriptions",
    "rejected": "Refused messages",
    "row_schema": "Row schemas",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """Number of masked values of a column, in rows before and after changes."""

    table: str
    column: str
    mask: str
    values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Number of cells of a column that the lake does not have as the source had them."""

    table: str
    column: str
    what: str
    cells: int


def render(current: HourFacts, history: Sequence[HourFacts], navigation: Navigation | None = None) -> str:
    """Return the page of an hour.

    Args:
        current: Facts of the hour.
        history: Facts of earlier hours, for the plots and for what readers see meanwhile.
        navigation: Links to the pages around it, if there are any.
    """
    failed = sorted((c for c in current.checks if not c.success), key=lambda c: (c.severity, c.table, c.rule))
    quiet = sorted(name for name, t in current.tables.items() if not _moved(t))
    page, style = environment().get_template("page.html.j2"), inline(*REPORT_STYLE)
    return page.render(
        navigation=navigation,
        styles=[style],
        scripts=[],
        policy=content_security_policy([style]),
        facts=current,
        headline=headline(current, history),
        events=_events(current),
        moved={name: t for name, t in sorted(current.tables.items()) if name not in quiet},
        unmoved=quiet,
        totals=_totals(current),
        has_rows=any(t.rows_after is not None for t in current.tables.values()),
        has_written=any(t.written for t in current.tables.values()),
        failed=failed,
        passed=_passed(current),
        losses=list(_losses(current)),
        checked={name: t.checksums for name, t in sorted(current.tables.items()) if t.checksums},
        masked=[
            Masked(table=name, column=column, mask=mask, values=n)
            for name, t in sorted(current.tables.items())
            for column, by in sorted(t.masked.items())
            for mask, n in by.items()
        ],
        untrusted={name: t.untrusted for name, t in sorted(current.tables.items()) if t.untrusted},
        waiting=sum(r.messages - r.accepted for r in current.rejected),
        quarantined=quarantined(current),
        quarantine_commands=quarantine_commands(current.feed, current.hour),
        meanings=QUARANTINE_CODES,
        trends=trends(current, history),
        changed_rows=changed_rows,
        refused_messages=quarantined,
    )


def _events(f: HourFacts) -> dict[str, int]:
    """Events by kind in words, the usual kinds first."""
    order = [*(k for k in _KINDS if k in f.events), *sorted(k for k in f.events if k not in _KINDS)]
    return {_KINDS.get(kind, kind): f.events[kind] for kind in order}


def _moved(t: TableFacts) -> bool:
    return bool(t.events or t.changes or t.written or t.rows_before != t.rows_after)


def _totals(f: HourFacts) -> TableFacts:
    names = ("events", "duplicates", "inserts", "updates", "deletes", "upserts", "changes", "unsettled", "partial")
    counts = {name: sum(getattr(t, name) for t in f.tables.values()) for name in names}
    known = [t for t in f.tables.values() if t.rows_before is not None and t.rows_after is not None]
    before, after = (sum(getattr(t, name) for t in known) for name in ("rows_before", "rows_after"))
    return TableFacts(**counts, rows_before=before if known else None, rows_after=after if known else None)


def _passed(f: HourFacts) -> dict[str, list[Check]]:
    """Passed checks by table; those of the whole window first."""
    passed: dict[str, list[Check]] = {}
    for c in sorted((c for c in f.checks if c.success), key=lambda c: (c.table, c.column or "", c.rule)):
        passed.setdefault(c.table, []).append(c)
    return passed


def _losses(f: HourFacts) -> Iterator[Loss]:
    for name, t in sorted(f.tables.items()):
        for what, cells in (
            ("zero dates, now NULL", t.nulled_zero_dates),
            ("texts with invalid UTF-8, repaired with �", t.repaired),
            ("values that did not fit the type", t.invalid_values),
            ("values that did not fit the type, now NULL", t.nulled_values),
            ("ambiguous values: an hour that clocks showed twice, or an empty ENUM or SET", t.ambiguous),
        ):
            yield from (Loss(table=name, column=column, what=what, cells=n) for column, n in sorted(cells.items()) if n)
