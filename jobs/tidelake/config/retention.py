"""Retention of published cuts: [maintenance] of feed.toml, and the rule (docs/architecture.md 8.6).

Ages are measured from the newest cut and not from the clock: a stopped feed loses nothing, and a plan is the same tomorrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tidelake.tso import at, begin_ts, from_ms, physical_ms

KeptBecause = Literal["newest", "every", "daily"]
MIN_ORPHAN = timedelta(days=3)  # no run takes longer from staging files to publishing them
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1)}


def _span(value: Any) -> timedelta | None:
    """Parse `36h`, `30d` or `forever`, which is None."""
    if value is None or isinstance(value, timedelta) or value == "forever":
        return None if value == "forever" else value
    match = re.fullmatch(r"([1-9][0-9]{0,4})([hd])", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('a time like "36h" or "30d", or "forever"')
    return int(match[1]) * _UNITS[match[2]]


TimeSpan = Annotated[timedelta | None, BeforeValidator(_span)]


class Maintenance(BaseModel):
    """Settings of `tidelake maintain`: what it keeps, and the file sizes that it aims at. None: for ever."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_cuts: TimeSpan = timedelta(days=30)  # every cut
    keep_daily: TimeSpan = timedelta(days=365)  # of older cuts the last of each day (UTC)
    file_mb: Annotated[int, Field(strict=True, ge=1, le=4096)] = 128
    small_files: Annotated[int, Field(strict=True, ge=2)] = 5  # number of small files in one partition that are joined
    orphan_age: TimeSpan = MIN_ORPHAN
    keep_changelog: TimeSpan = None  # whole days (UTC) of older changes are removed
    archive_changelog: Annotated[str, Field(min_length=1)] | None = None  # URI: files are copied there before they are removed

    @model_validator(mode="after")
    def _holds_together(self) -> Maintenance:
        if self.keep_cuts is not None and self.keep_cuts < timedelta(days=1):
            raise ValueError("keep_cuts should be a day at least: readers that use a cut's snapshot ids need that time")
        if self.keep_daily is not None and self.keep_cuts is not None and self.keep_daily < self.keep_cuts:
            raise ValueError("keep_daily should be as long as keep_cuts at least; older cuts are thinned to one a day")
        if self.keep_changelog is not None and (self.keep_cuts is None or self.keep_changelog < self.keep_cuts):
            raise ValueError(
                "keep_changelog should be as long as keep_cuts at least: between cuts that are all kept every TSO must be readable"
            )
        if self.archive_changelog is not None and self.keep_changelog is None:
            raise ValueError("archive_changelog needs keep_changelog: changes are copied when they reach that age")
        if self.orphan_age is None or self.orphan_age < MIN_ORPHAN:
            raise ValueError('orphan_age should be "3d" at least: younger files may belong to a run that is not published yet')
        return self


def retained(cuts: Mapping[int, int], keep: Maintenance) -> dict[int, KeptBecause]:
    """Return the retained cuts with the reason. cuts: number → resolved ts, including those that a rollback undid.

    Of a day, the cut with the largest number is retained: the one published again after a rollback, not the one that it undid.
    """
    if not cuts:
        return {}
    newest = max(cuts)
    last: dict[date, int] = {}
    for seq in sorted(cuts):
        last[at(cuts[seq]).date()] = seq
    kept: dict[int, KeptBecause] = {}
    for seq, ts in cuts.items():
        age = timedelta(milliseconds=physical_ms(cuts[newest]) - physical_ms(ts))
        if seq == newest:
            kept[seq] = "newest"
        elif keep.keep_cuts is None or age <= keep.keep_cuts:
            kept[seq] = "every"
        elif last[at(ts).date()] == seq and (keep.keep_daily is None or age <= keep.keep_daily):
            kept[seq] = "daily"
    return kept


def changes_kept_after(cuts: Iterable[int], newest_ts: int, keep: Maintenance) -> int:
    """Return the TSO after which all changes are kept, the last one of a day (UTC); 0: all are kept. cuts: resolved ts of the retained
    cuts.

    All changes after the retained cut that keep_changelog reaches back to are kept, so that every TSO of that time can be read.
    """
    if keep.keep_changelog is None:
        return 0
    oldest = from_ms(max(physical_ms(newest_ts) - keep.keep_changelog // timedelta(milliseconds=1), 0) + 1) - 1
    cut = max((ts for ts in cuts if ts <= oldest), default=oldest)
    return max(begin_ts(at(cut).replace(hour=0, minute=0, second=0, microsecond=0)) - 1, 0)
