"""Check that the resolved ts of every partition has passed an hour: the rule `closed_by = "resolved"` (docs/architecture.md 7, 8.1).

A partition has all of an hour when a message after the hour carries a resolved ts after the hour's end, and no offset is missing up to that
message. Objects of later hours are read for it, in the order of the numbers in their names, no further than to that message. Before the
hour is landed its own offsets are not known: then only the resolved ts is checked, and landing checks for missing offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tidelake.archives import Layout, SourceObject
from tidelake.config.feed import Feed
from tidelake.errors import OrderError, StorageError, TopicPartition
from tidelake.io.storage import Store
from tidelake.land.seen import Notes, SeenMessages, read_on
from tidelake.land.sources import local_copies
from tidelake.land.store.ranges import Ranges, minus, show, union
from tidelake.land.waits import Waits
from tidelake.tso import end_ts
from tidelake.tso import show as show_ts

Covered = Mapping[TopicPartition, Ranges]  # the complete offsets

_UNREADABLE = ("DAMAGED_OBJECT", "BAD_OBJECT")


@dataclass(slots=True)
class ResolvedState:
    """State of one partition after an hour. end_ts: the hour's last TSO; ranges: the known offsets; whole: whether they include those of
    the hour; read: whether anything was read.

    best: the largest resolved ts of later hours and its offset; beyond: the first offset with a resolved ts after the end; problem: the
    error of an unreadable object.
    """

    end_ts: int
    ranges: Ranges = ()
    whole: bool = False
    read: bool = False
    best: tuple[int, int] | None = None
    beyond: int | None = None
    problem: str = ""

    def add(self, seen: SeenMessages) -> None:
        """Add what was read."""
        self.read = True
        self.ranges = union([self.ranges, seen.ranges])
        if seen.resolved_ts is None or seen.offset is None:
            return
        if self.best is None or seen.resolved_ts > self.best[0]:
            self.best = seen.resolved_ts, seen.offset
        if seen.is_beyond(self.end_ts):
            self.beyond = seen.offset if self.beyond is None else min(seen.offset, self.beyond)

    @property
    def done(self) -> bool:
        return self.beyond is not None and not self._missing

    @property
    def what(self) -> str:
        """The message about what the partition waits for."""
        if self.problem:
            return f"its resolved ts after the hour is unknown: {self.problem}"
        if not self.read:
            return "there is no object of a later hour"
        wanted = f"it must pass {show_ts(self.end_ts)}"
        if self.best is None:
            return f"there is no resolved ts after the hour up to offset {self.ranges[-1][1]}; {wanted}"
        stands = f"its resolved ts is {show_ts(self.best[0])}, at offset {self.best[1]}"
        return f"{stands}; {wanted}" if self.beyond is None else f"{stands}, and before it no object has {show(self._missing)}"

    @property
    def _missing(self) -> Ranges:
        """The missing offsets up to the message after the hour."""
        if not self.whole or self.beyond is None:
            return ()
        return minus([(self.ranges[0][0], self.beyond)], self.ranges)


def not_resolved(
    feed: Feed,
    archive: Store,
    lake: Store,
    layout: Layout,
    hour: datetime,
    standings: dict[TopicPartition, ResolvedState],
    later: Iterable[list[SourceObject]],
) -> Iterator[Waits]:
    """Yield the partitions whose resolved ts has not passed the hour. standings: the expected partitions; done ones are removed from it.

    later: lists of objects, hour by hour. Raises StorageError, OrderError, ConfigError if an object cannot be read now.
    """
    notes = Notes(feed, lake, hour)
    for sources in later:
        for source in sorted(sources, key=lambda s: (s.topic, s.partition, s.number, s.key)):
            standing = standings.get((source.topic, source.partition))
            if standing is None or not _may_help(standing, source, layout):
                continue
            try:
                standing.add(_seen(feed, archive, layout, notes, source, standing.end_ts))
            except (OrderError, StorageError) as e:
                if e.code not in _UNREADABLE:
                    raise
                standing.problem = standing.problem or e.message
            if standing.done:
                del standings[source.topic, source.partition]
    notes.keep()
    for (topic, number), standing in sorted(standings.items()):
        yield Waits(topic=topic, partition=number, what=standing.what)


def standings_of(places: Iterable[TopicPartition], hour: datetime, covered: Covered | None) -> dict[TopicPartition, ResolvedState]:
    """Return the state of partitions before anything is read. covered: None if the hour is not landed."""
    end = end_ts(hour)
    return {place: ResolvedState(end, covered.get(place, ()) if covered else (), covered is not None) for place in places}


def _may_help(standing: ResolvedState, source: SourceObject, layout: Layout) -> bool:
    """Whether an object may hold what is missing. Once the message after the hour is known, only objects that begin before it may."""
    return standing.beyond is None or (source.number <= standing.beyond and not layout.number_is_last_offset)


def _seen(feed: Feed, archive: Store, layout: Layout, notes: Notes, source: SourceObject, end: int) -> SeenMessages:
    """Return what an object holds, from the notes if it was read before."""
    etag = " ".join(part.etag for part in source.parts)
    known = notes.of(source.key, etag)
    if known is not None:
        return known
    seen = SeenMessages(etag=etag)
    with TemporaryDirectory(prefix="tidelake-closing-") as folder:
        path = Path(folder) / "source"
        with local_copies(archive, path, source):
            stopped = read_on(seen, feed, layout.read(path, source), end)
            if layout.covers and (covers := layout.covers(path)):
                last = seen.ranges[-1][1] if stopped else covers[1]
                seen.ranges = union([seen.ranges, [(covers[0], last)]])
    notes.add(source.key, seen)
    return seen
