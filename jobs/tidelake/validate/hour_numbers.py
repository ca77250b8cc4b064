"""Numbers of an hour that are compared with other hours: from the staged window, and from the stored reports of earlier days."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cached_property

from pydantic import BaseModel

from tidelake.config.lake_paths import quality_key
from tidelake.errors import DamageError
from tidelake.io.documents import parsed
from tidelake.io.storage import Store
from tidelake.lake.cut import Staged, TableCounts
from tidelake.spark.spread import THREADS
from tidelake.tso import format_hour, parse_hour, physical_ms
from tidelake.validate.cut_facts import lag_seconds
from tidelake.validate.quality.same_hours import DAYS, Metric

log = logging.getLogger(__name__)

_LAG, _ROWS = Metric("", "lag", "seconds"), Metric("", "rows")
_COUNTED = ("rows", "inserts", "updates", "deletes", "upserts")
_MINUTES = (45, 75)  # length of windows whose counts are compared


class _Counts(BaseModel):
    """What is compared of one table."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    upserts: int = 0
    nulled_values: dict[str, int] = {}
    nulled_zero_dates: dict[str, int] = {}

    @property
    def rows(self) -> int:
        """Number of changed rows."""
        return self.inserts + self.updates + self.deletes + self.upserts

    def value(self, number: Metric) -> float:
        """Return a number of the table; NaN for a share of no values."""
        if number.column is None:
            return getattr(self, number.name)  # type: ignore[no-any-return]
        nulled = self.nulled_values.get(number.column, 0) + self.nulled_zero_dates.get(number.column, 0)
        written = self.rows - self.deletes
        return nulled / written if written else math.nan


class Hour(BaseModel):
    """What is compared of an hour; a stored report (facts.HourFacts) has more."""

    cut: int | None = None
    superseded_by: int | None = None
    applied_ts: int | None = None
    resolved_ts: int | None = None
    lag_seconds: float | None = None
    tables: dict[str, _Counts]

    @cached_property
    def counts(self) -> Mapping[str, _Counts]:
        """The tables, if the window is about an hour long; those of other windows are not compared."""
        minutes = (physical_ms(self.resolved_ts or 0) - physical_ms(self.applied_ts or 0)) / 60_000
        return self.tables if _MINUTES[0] <= minutes <= _MINUTES[1] else {}

    @cached_property
    def rows(self) -> float:
        """Number of changed rows of all tables; NaN if it is not compared."""
        return sum(c.rows for c in self.counts.values()) if self.counts else math.nan

    def numbers(self) -> Iterator[Metric]:
        """Yield what the hour has numbers of."""
        yield _LAG
        if self.counts:
            yield _ROWS
        for table, c in self.counts.items():
            yield from (Metric(table, name) for name in _COUNTED)
            if c.rows > c.deletes:
                yield from (Metric(table, "NULL by policy", "share", name) for name in {**c.nulled_values, **c.nulled_zero_dates})

    def value(self, number: Metric) -> float:
        """Return one of the hour's numbers; NaN if it has none."""
        if number is _LAG:
            return math.nan if self.lag_seconds is None else self.lag_seconds
        if number is _ROWS:
            return self.rows
        return counts.value(number) if (counts := self.counts.get(number.table)) else math.nan


def earlier_hours(store: Store, feed: str, hour: str) -> Iterator[Hour]:
    """Yield the same hour of each earlier day that has a readable report of a published cut."""
    at = parse_hour(hour)
    keys = [quality_key(feed, format_hour(at - timedelta(days=n))) for n in range(1, DAYS + 1)]
    with ThreadPoolExecutor(THREADS) as pool:
        for key, data in zip(keys, pool.map(store.read_if_present, keys), strict=True):
            try:
                found = None if data is None else parsed(store, key, data, Hour.model_validate_json)
            except DamageError as e:
                log.warning(f"{e}; it is not compared with")
                continue
            if found is not None and found.cut is not None and found.superseded_by is None:
                yield found


def staged_hour(staged: Staged) -> Hour:
    """Return the hour of a staged window. Tables without changes have zero of everything."""
    cut, none = staged.cut, TableCounts()
    counts = ((i.name, staged.counts.get(i.id, none)) for i in cut.catalog.alive())
    tables = {name: _Counts.model_construct(**{k: getattr(c, k) for k in _Counts.model_fields}) for name, c in counts}
    lag = lag_seconds(cut.hour, cut.resolved_ts)
    return Hour(applied_ts=cut.applied_ts, resolved_ts=cut.resolved_ts, lag_seconds=lag, tables=tables)
