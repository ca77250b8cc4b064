"""Whether an hour is complete, as far as its archive can say: what it still waits for. docs/landing.md has the rules.

Nothing is read but listings: of the hour, and of the hours after it until every partition's next object is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidelake.archives import Layout, Listing, list_hour
from tidelake.feed import Feed
from tidelake.findings import LONG_OVER
from tidelake.land.manifest import Manifest
from tidelake.land.ranges import show
from tidelake.storage import Store

LOOK_AHEAD = 24  # hours after the hour in which a partition's next object is looked for

Ends = dict[tuple[str, int], int | None]  # topic, partition → the last offset that is there, None where it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Something that an hour waits for. topic, partition: None where it is the whole hour; what: for people."""

    topic: str | None = None
    partition: int | None = None
    what: str

    def __str__(self) -> str:
        return self.what if self.topic is None else f"{self.topic}[{self.partition}]: {self.what}"


def waits_for(feed: Feed, archive: Store, layout: Layout, hour: datetime, listing: Listing, ends: Ends, now: datetime) -> tuple[Waits, ...]:
    """What keeps the hour from being complete by the feed's rule; nothing where it is. listing: of the hour; ends: of its partitions.

    A storage sink's hour cannot be listed before its checkpoint has passed it.
    """
    if layout.file_bits:
        return ()
    over = hour + timedelta(hours=1)
    if now < over:
        return (Waits(what=f"the hour ends at {_time(over)}"),)
    newest = datetime.fromtimestamp(listing.newest_ms / 1000, UTC)
    quiet = max(newest, over) + timedelta(minutes=feed.quiet_minutes)
    if feed.quiet_minutes and now < min(quiet, over + LONG_OVER):  # without minutes no clock but ours is asked
        what = f"its newest object was written at {_time(newest)}" if newest > over else f"the hour ended at {_time(over)}"
        return (Waits(what=f"{what}, and it must be quiet until {_time(quiet)}"),)
    return tuple(_not_followed(feed, archive, layout, hour, ends, now)) if feed.closed_by == "next-offset" else ()


def ends_of(manifests: Sequence[Manifest]) -> Ends:
    """The last offset of every partition over some hours, in conflict or not, with a message or known to have none."""
    ends: Ends = {}
    for manifest in manifests:
        for topic, partitions in manifest.partitions.items():
            for number, partition in partitions.items():
                last = [ranges[-1][1] for ranges in (partition.covered, partition.conflicts) if ranges]
                known = ends.get((topic, number))
                ends[topic, number] = max([*last, *([] if known is None else [known])], default=None)
    return ends


def _not_followed(feed: Feed, archive: Store, layout: Layout, hour: datetime, ends: Ends, now: datetime) -> Iterator[Waits]:
    """The expected partitions that have no later object, or one that does not continue where the hour ends."""
    topics = feed.topics if feed.topic_pattern is None else sorted({topic for topic, _ in ends})
    pending = {(topic, number) for topic in topics for number in range(feed.partitions_of(topic))}
    for ahead in range(1, LOOK_AHEAD + 1):
        later = hour + timedelta(hours=ahead)
        if not pending or later > now:
            break
        found = _first_numbers(feed, archive, layout, later, sorted({topic for topic, _ in pending}))
        for topic, number in sorted(pending & found.keys()):
            end, begin = ends.get((topic, number)), found[topic, number]
            if end is not None and begin > end + 1 and not layout.number_is_last_offset:
                what = f"its next object begins at offset {begin}, and no object has {show([(end + 1, begin - 1)])}"
                yield Waits(topic=topic, partition=number, what=what)
        pending -= found.keys()
    for topic, number in sorted(pending):
        yield Waits(topic=topic, partition=number, what="no object of a later hour is there")


def _first_numbers(feed: Feed, archive: Store, layout: Layout, hour: datetime, topics: Sequence[str]) -> Mapping[tuple[str, int], int]:
    """The smallest number in the names of every partition's objects in an hour: at or below its first offset (archives.md 9.1, 9.8)."""
    found: dict[tuple[str, int], int] = {}
    for topic in topics:
        for source in list_hour(feed, archive, topic, hour, layout).objects:
            at = source.topic, source.partition
            found[at] = min(source.number, found.get(at, source.number))
    return found


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
