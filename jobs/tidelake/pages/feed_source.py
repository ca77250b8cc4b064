"""What the pages of a feed are rendered from: its newest cut, its reports, its quarantine. Each is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from tidelake.config.lake_paths import late_table
from tidelake.history.incarnations import Incarnation
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import first_held, lineage, newest_cut, statements
from tidelake.lake.decisions import Rejected
from tidelake.lake.opened import Lake
from tidelake.pages.hour_states import HourHead, HourState, state_of
from tidelake.pages.reports import Reports, months_between, this_month
from tidelake.query.status import undecided_messages

_MONTHS = 2  # that are listed one by one; of more, whole years are


class FeedSource:
    """A feed of an opened lake."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.feed = lake, lake.feed
        self.reports = Reports(lake.store, lake.feed.name)

    @cached_property
    def cut(self) -> Cut | None:
        """The newest published cut."""
        return newest_cut(self.lake.catalog, self.lake.store, self.feed.name)

    @cached_property
    def first_hour(self) -> str:
        """The first hour that the cuts hold; the newest cut's where that is not known; empty without a cut."""
        return (first_held(self.lake.catalog, self.lake.store, self.cut) or self.cut.hour) if self.cut else ""

    @cached_property
    def tables(self) -> dict[str, Incarnation]:
        """The tables of the newest cut by name, sorted."""
        return {i.name: i for i in sorted(self.cut.catalog.alive(), key=lambda i: i.name)} if self.cut else {}

    @cached_property
    def quarantine(self) -> list[Rejected]:
        """Messages, and groups of rows that fit no table, without a decision."""
        return undecided_messages(self.lake)

    @cached_property
    def statements(self) -> list[dict[str, Any]]:
        """The entries of the DDL ledger of the cuts that lead to the newest one."""
        return statements(self.lake.catalog, self.feed.name)

    @cached_property
    def late_rows(self) -> int:
        """Number of rows in the late ledger, of the cuts that lead to the newest one and of the next window."""
        catalog, newest = self.lake.catalog, self.cut.seq if self.cut else 0
        ledger = catalog.find_own(late_table(self.feed.name), self.feed.name)
        found = Counter[int]() if ledger is None else Counter(s for b in ledger.scan(None, ["seq"]) for s in b.column(0).to_pylist())
        kept = lineage(catalog, self.feed.name) if found else {}
        return sum(n for seq, n in found.items() if seq in kept or seq > newest)

    @cached_property
    def newer_hours(self) -> list[str]:
        """Landed hours after the newest cut, ascending. All landed hours if nothing is published."""
        if self.cut is None:
            return sorted(self.reports.landed(""))
        months = months_between(self.cut.hour[:7], max(this_month(), self.cut.hour[:7]))
        spans = months if len(months) <= _MONTHS else sorted({m[:4] for m in months})
        return sorted(h for span in spans for h in self.reports.landed(span) if h > self.cut.hour)

    @cached_property
    def stopped(self) -> HourHead | None:
        """The head of the newest report after the newest cut, if its hour was blocked or failed."""
        newer = [h for h in self.newer_hours if h in self.reports.of_month(h[:7])]
        head = self.reports.head(newer[-1]) if newer else None
        return head if head is not None and head.status in ("blocked", "failed") else None

    @cached_property
    def months(self) -> Sequence[str]:
        """The months of the feed's hours, from the first up to the last one. Empty if nothing is landed."""
        hours = [*([self.first_hour, self.cut.hour] if self.cut else []), *self.newer_hours[:1], *self.newer_hours[-1:]]
        return months_between(min(hours)[:7], max(hours)[:7]) if hours else []

    def states(self, month: str) -> dict[str, HourState]:
        """Return the states of a month's landed hours."""
        heads, decoded = self.reports.heads_of(month), self.reports.decoded(month)
        first, last = self.first_hour, self.cut.hour if self.cut else ""
        return {
            hour: state_of(hour, heads.get(hour), decoded=hour in decoded, held=first <= hour <= last)
            for hour in sorted(self.reports.landed(month) | heads.keys())
        }

    @cached_property
    def newest_report(self) -> str | None:
        """The newest hour that has a report."""
        return next((h for m in reversed(self.months) for h in reversed(self.reports.of_month(m))), None)
