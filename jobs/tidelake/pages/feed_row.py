"""The state of a feed in one row: of the first page, and of the head of the feed's page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tidelake.lake.cut import Cut
from tidelake.pages.feed_source import FeedSource

_NEVER, _UNREADABLE = "never ran", "cannot be read"
Tone = Literal["good", "warn", "bad", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRow:
    """State of a feed.

    Attributes:
        feed: Its name.
        word: The state: ok, incomplete, blocked, failed, not published yet, never ran, cannot be read.
        tone: Colour of the state.
        why: Why it is not ok; empty if it is.
        hour: Hour of the report that says more; empty if there is none.
        cut: The newest cut.
        tables: Names of its tables.
        quarantine: Number of messages without a decision.
        late_rows: Number of rows in the late ledger.
        has_page: Whether the feed has a page.
    """

    feed: str
    word: str
    tone: Tone
    why: str = ""
    hour: str = ""
    cut: Cut | None = None
    tables: tuple[str, ...] = ()
    quarantine: int = 0
    late_rows: int = 0
    has_page: bool = True

    @property
    def can_be_read(self) -> bool:
        """Whether the feed's state could be read."""
        return self.word != _UNREADABLE

    def with_pages(self, tables: tuple[str, ...], *, has_page: bool) -> FeedRow:
        """Return the row with these tables, and with or without a page of the feed."""
        return replace(self, tables=tables, has_page=has_page)


def feed_row(source: FeedSource) -> FeedRow:
    """Return the state of a feed from its newest cut, the newest report after it, quarantine and late ledger."""
    word, tone, why, hour = _state(source)
    return FeedRow(
        feed=source.feed.name,
        word=word,
        tone=tone,
        why=why,
        hour=hour,
        cut=source.cut,
        tables=tuple(source.tables),
        quarantine=len(source.quarantine),
        late_rows=source.late_rows,
    )


def never_ran(feed: str) -> FeedRow:
    """Return the row of a feed whose lake does not exist yet."""
    return FeedRow(
        feed=feed, word="never ran", tone="open", why=f"`tidelake run --feed {feed} --hour …` runs its first hour.", has_page=False
    )


def unreadable(feed: str, error: str) -> FeedRow:
    """Return the row of a feed whose state cannot be read."""
    return FeedRow(feed=feed, word=_UNREADABLE, tone="bad", why=error, has_page=False)


def _state(source: FeedSource) -> tuple[str, Tone, str, str]:
    cut, stopped = source.cut, source.stopped
    if stopped is not None:
        return stopped.status, "bad", f"Hour {stopped.hour}: {stopped.error or 'no error was recorded'}", stopped.hour
    if cut is None:
        if not source.newer_hours:
            return _NEVER, "open", _first_run(source.feed.name), ""
        return "not published yet", "open", f"The newest landed hour is {source.newer_hours[-1]}.", ""
    if cut.incomplete:
        reasons = "; ".join(f"{r.code}: {r.detail} (cut {r.cut}, hour {r.hour})" for r in cut.incomplete_because)
        return "incomplete", "warn", reasons or "An earlier version marked the cut, and recorded no reason.", cut.hour
    return "ok", "good", "", ""


def _first_run(feed: str) -> str:
    return f"`tidelake run --feed {feed} --hour …` runs its first hour."
