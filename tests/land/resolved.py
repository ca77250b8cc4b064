"""Rows and resolved ts of a topic whose hours its resolved ts closes, and what an hour waits for."""

from __future__ import annotations

from tests.archives.objects import Message
from tests.land.archive import HOUR
from tests.protocols.json_messages import column, open_key, open_message
from tidelake.config.feed import Feed
from tidelake.land.comparison import compare_hour
from tidelake.tso import end_ts, show

END = end_ts(HOUR)  # the hour's last TSO
SECOND = 1000 << 18
MUST = f"it must pass {show(END)}"
NOTES = "closing/small/hour=2026-01-05T10.json"


def rows(first: int, last: int, ts: int = END) -> list[Message]:
    """Messages with a row each, at the offsets first to last."""
    key, value = open_message((open_key(ts), {"u": {"id": column(3, 1, key=True)}}))
    return [Message(i, value, key) for i in range(first, last + 1)]


def resolved(offset: int, ts: int) -> Message:
    key, value = open_message(({"ts": ts, "t": 3}, None))
    return Message(offset, value, key)


def waits(feed: Feed) -> list[str]:
    return [str(w) for w in compare_hour(feed, HOUR).waits]
