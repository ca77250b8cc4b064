"""The stored quality documents of a feed. Every question reads a bounded number of them and lists the months that it needs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from tidelake.config.lake_paths import decoded, hour_of_document, in_hours, manifests, quality_key, reports
from tidelake.errors import DamageError
from tidelake.io.documents import find_document, members
from tidelake.io.object_store import ObjectInfo
from tidelake.io.storage import Store
from tidelake.pages.hour_states import HourHead, read_head
from tidelake.tso import format_hour, parse_hour
from tidelake.validate.quality.facts import HourFacts
from tidelake.validate.quality.trends import HOURS, outline

_THREADS = 16  # heads that are read at a time


class Reports:
    """The quality documents of a feed. Listings and heads are kept, whole documents are not.

    Args:
        store: The lake's store.
        feed: Name of the feed.
    """

    def __init__(self, store: Store, feed: str) -> None:
        self.store, self.feed = store, feed
        self._months = dict[str, dict[str, ObjectInfo]]()
        self._outlines = dict[str, HourFacts | None]()
        self.heads = dict[tuple[str, str], HourHead]()  # by hour and etag

    def of_month(self, month: str) -> dict[str, ObjectInfo]:
        """Return the documents of a month (`2026-01`) by hour, ascending."""
        if month not in self._months:
            found = self.store.objects(reports(self.feed) + month)
            self._months[month] = {o.key.rpartition("/")[2].removesuffix(".json"): o for o in found if o.key.endswith(".json")}
        return self._months[month]

    def landed(self, month: str) -> set[str]:
        """Return the landed hours of a month or year, or all of them for an empty text."""
        return {hour_of_document(o.key) for o in self.store.objects(in_hours(manifests(self.feed), month))}

    def decoded(self, month: str) -> set[str]:
        """Return the decoded hours of a month."""
        return {hour_of_document(o.key) for o in self.store.objects(in_hours(decoded(self.feed), month))}

    def head(self, hour: str) -> HourHead:
        """Return the head of an hour's document."""
        at = hour, self.of_month(hour[:7])[hour].etag
        if at not in self.heads:
            self.heads[at] = read_head(self.store, self.feed, hour)
        return self.heads[at]

    def heads_of(self, month: str) -> dict[str, HourHead]:
        """Return the heads of a month's documents by hour."""
        hours = self.of_month(month)
        with ThreadPoolExecutor(_THREADS) as pool:
            return dict(zip(hours, pool.map(self.head, hours), strict=True))

    def facts(self, hour: str) -> HourFacts | None:
        """Return the facts of an hour, None without a document. Raises DamageError."""
        facts = find_document(self.store, quality_key(self.feed, hour), HourFacts)
        self._outlines[hour] = outline(facts) if facts is not None else None
        return facts

    def readable(self, hour: str) -> HourFacts | None:
        """Return the facts of an hour, None without a document or if it cannot be read. For what only adds to a page."""
        try:
            return self.facts(hour)
        except DamageError:
            self._outlines[hour] = None
            return None

    def members(self, hour: str) -> dict[str, Any]:
        """Return the members of an hour's document as they are, which takes a fraction of the time. Empty if it cannot be read."""
        key = quality_key(self.feed, hour)
        try:
            data = self.store.read_if_present(key)
            return members(self.store, key, data) if data is not None else {}
        except DamageError:
            return {}

    def around(self, hour: str) -> tuple[str | None, str | None]:
        """Return the last hour with a report before this one, and the first one after it: of this month or the ones beside it."""
        hours = self._hours(month_before(hour[:7]), month_after(hour[:7]))
        at, after = bisect_left(hours, hour), bisect_right(hours, hour)
        return hours[at - 1] if at else None, hours[after] if after < len(hours) else None

    def until(self, hour: str, hours: int = HOURS) -> list[str]:
        """Return the hours with a report among the last ones up to and including this one, ascending."""
        first = format_hour(parse_hour(hour) - timedelta(hours=hours - 1))
        found = self._hours(first[:7], hour[:7])
        return found[bisect_left(found, first) : bisect_right(found, hour)]

    def history(self, hour: str) -> list[HourFacts]:
        """Return what the report of an hour shows of the hours before it: their facts with all tables in one."""
        hours = self.until(hour)
        for h in hours:
            if h not in self._outlines:
                self.readable(h)
        self._outlines = {h: self._outlines[h] for h in hours}  # the next hour needs them, nobody needs those before
        return [facts for h, facts in self._outlines.items() if facts is not None and h != hour]

    def _hours(self, first: str, last: str) -> list[str]:
        """Return the hours with a report from one month up to and including another."""
        return list(chain.from_iterable(self.of_month(m) for m in months_between(first, last)))


def month_before(month: str) -> str:
    """Return the month before one."""
    return f"{_first(month) - timedelta(days=1):%Y-%m}"


def month_after(month: str) -> str:
    """Return the month after one."""
    return f"{_first(month) + timedelta(days=31):%Y-%m}"


def months_between(first: str, last: str) -> Sequence[str]:
    """Return the months from the first up to and including the last one."""
    found = [first]
    while found[-1] < last:
        found.append(month_after(found[-1]))
    return found


def this_month() -> str:
    """Return the month of the clock (UTC)."""
    return f"{datetime.now(UTC):%Y-%m}"


def _first(month: str) -> datetime:
    return parse_hour(f"{month}-01T00")
