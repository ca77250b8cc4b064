"""The rule `closed_by = "resolved"` for live topics: read messages from the hour's end on, up to a resolved ts after it."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta

from tidelake.config.feed import Feed
from tidelake.errors import TopicPartition
from tidelake.io.kafka import Topics
from tidelake.io.storage import Store
from tidelake.land.resolved import ResolvedState, standings_of
from tidelake.land.seen import Notes, SeenMessages, read_on
from tidelake.land.waits import Waits


def not_resolved_live(feed: Feed, topics: Topics, lake: Store, hour: datetime, places: list[TopicPartition]) -> tuple[Waits, ...]:
    """Return the partitions whose resolved ts has not passed the hour. A repeated call reads only what came since. Raises StorageError."""
    notes, standings = Notes(feed, lake, hour), standings_of(places, hour, None)
    bounds = topics.bounds(places)
    begins = topics.first_since(places, int((hour + timedelta(hours=1)).timestamp() * 1000))
    for place in places:
        low, high = bounds[place]
        begin = begins[place]
        if begin is not None:
            _read(feed, topics, notes, place, standings[place], max(begin, low), high)
    notes.keep()
    return tuple(
        Waits(topic=place[0], partition=place[1], what=standing.what if standing.read else "there is no message after the hour")
        for place, standing in sorted(standings.items())
        if not standing.done
    )


def _read(feed: Feed, topics: Topics, notes: Notes, place: TopicPartition, standing: ResolvedState, begin: int, end: int) -> None:
    key = f"kafka:{place[0]}/{place[1]}"
    seen = notes.of(key) or SeenMessages()
    begin = max(begin, seen.ranges[-1][1] + 1) if seen.ranges else begin
    if begin < end and not seen.is_beyond(standing.end_ts):
        with closing(topics.read(place, begin, end)) as batches:
            read_on(seen, feed, batches, standing.end_ts)
        notes.add(key, seen)
    standing.add(seen)
