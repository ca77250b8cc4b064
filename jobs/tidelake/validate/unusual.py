"""Compares the numbers of a staged window with the stored reports of the same hour of earlier days.

It reads at most DAYS reports, each once, and stores one check for the window and one for each table with unusual numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from tidelake.config.feed import Feed
from tidelake.config.finding_kinds import KINDS, SEVERITIES, Severity
from tidelake.history.contract import read_history_actions
from tidelake.io.storage import Store
from tidelake.io.texts import plural
from tidelake.lake.cut import Staged
from tidelake.validate.hour_numbers import earlier_hours, staged_hour
from tidelake.validate.quality.judge import Measure
from tidelake.validate.quality.same_hours import DAYS, LEAST, RULE, Compared, Unusual, compare

log = logging.getLogger(__name__)

CODE = "UNUSUAL_NUMBERS"
MOST_TABLES = 50  # tables with a check of their own, those with the greatest distance; the others are counted
_CHECK = "numbers as in the same hour of earlier days"


def unusual_measures(feed: Feed, store: Store, staged: Staged) -> list[Measure]:
    """Return measures of the window's numbers; none where nothing can be compared, or the feed ignores UNUSUAL_NUMBERS."""
    by_default = feed.policy.severity(CODE, KINDS[CODE].severity)
    own = {table: SEVERITIES[action] for table, action in read_history_actions(feed.folder).items()}
    if by_default == "info" and "warning" not in own.values() and "critical" not in own.values():
        return []
    before = list(earlier_hours(store, feed.name, staged.cut.hour))
    if len(before) < LEAST:
        log.info(f"numbers are not compared: {plural(len(before), 'report')} of the same hour of the last {DAYS} days, {LEAST} are needed")
        return []
    severities = _Severities(by_default=by_default, of_tables=own)
    now = staged_hour(staged)
    numbers = [n for n in now.numbers() if severities.of(n.table) != "info"]
    compared = compare(numbers, [now.value(n) for n in numbers], [[day.value(n) for n in numbers] for day in before])
    return list(_measures(compared, severities))


class _Severities:
    """Severity of unusual numbers by table, with the feed's for the others."""

    def __init__(self, *, by_default: Severity, of_tables: Mapping[str, Severity]) -> None:
        self._by_default, self._of_tables = by_default, {table.lower(): s for table, s in of_tables.items()}

    def of(self, table: str) -> Severity:
        return self._of_tables.get(table.lower(), self._by_default)


def _measures(compared: Compared, severities: _Severities) -> Iterator[Measure]:
    by_table: dict[str, list[Unusual]] = {}
    for u in compared.unusual:
        by_table.setdefault(u.number.table, []).append(u)
    whole = by_table.pop("", [])
    ranked = sorted(by_table, key=lambda t: (severities.of(t) != "critical", -max(u.excess for u in by_table[t])))
    critical = sum(severities.of(t) == "critical" for t in ranked)
    shown, rest = ranked[: max(MOST_TABLES, critical)], ranked[max(MOST_TABLES, critical) :]
    said = f"{plural(compared.numbers, 'number')} compared, {plural(len(by_table), 'table')} with unusual ones"
    said += f", {plural(compared.short, 'number')} with fewer than {LEAST} earlier values" if compared.short else ""
    said += f"; only the first {len(shown)} of these tables are listed, not {', '.join(rest[:3])}…" if rest else ""
    yield _measure("", whole, "; ".join([*(u.observed for u in whole), said]), severities.of(""), len(whole) + len(rest))
    for table in shown:
        found = by_table[table]
        yield _measure(table, found, "; ".join(u.observed for u in found), severities.of(table), len(found))


def _measure(table: str, found: Sequence[Unusual], observed: str, severity: Severity, unusual: int) -> Measure:
    return Measure(
        table=table,
        rule=_CHECK,
        severity="critical" if severity == "critical" else "warning",
        value=unusual,
        minimum=0,
        maximum=0,
        expected="; ".join(u.expected for u in found) or "no unusual number",
        observed=observed,
        origin=f"{CODE}: {RULE}",
        remedy=f"{KINDS[CODE].remedy} (docs/how-to/expectations.md)",
    )
