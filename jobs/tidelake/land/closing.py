"""Whether an hour is complete, as far as its archive can say: what it still waits for. docs/landing.md has the rules.

Read are listings, of the hour and of the hours after it until every partition's next object is found; by one rule (land/resolved.py),
messages of those hours, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidelake.archives import Layout, Listing, SourceObject, list_all, list_hour
from tidelake.config.feed import Feed
from tidelake.config.finding_kinds import LONG_OVER
from tidelake.errors import TopicPartition
from tidelake.io.storage import Store
from tidelake.land.resolved import Covered, not_resolved, standings_of
from tidelake.land.store.manifest import Manifest
from tidelake.land.store.ranges import Ranges, show, union
from tidelake.land.timed import behind, not_ended
from tidelake.land.waits import Waits, time_of

LOOK_AHEAD = 24  # hours after the hour in which a partition's next object is looked for

Ends = dict[TopicPartition, int | None]  # topic, partition → the last offset that is there, None where it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the lake has of a landed hour. covered: the offsets up to its end of which nothing is missing; hour: its manifest."""

    covered: Covered
    hour: Manifest


def waits_for(
    feed: Feed,
    archive: Store,
    lake: Store,
    layout: Layout,
    hour: datetime,
    listing: Listing,
    ends: Ends,
    now: datetime,
    held: Held | None = None,
) -> tuple[Waits, ...]:
    """What keeps the hour from being complete by the feed's rule; nothing where it is. listing: of the hour; ends: of its partitions;
    held: what the lake has of it, None where it is not landed.

    A storage sink's hour cannot be listed before its checkpoint has passed it.
    """
    if layout.file_bits:
        return ()
    over = hour + timedelta(hours=1)
    if now < over:
        return (Waits(what=f"the hour ends at {time_of(over)}"),)
    newest = datetime.fromtimestamp(listing.newest_ms / 1000, UTC)
    quiet = max(newest, over) + timedelta(minutes=feed.quiet_minutes)
    if feed.quiet_minutes and now < min(quiet, over + LONG_OVER):  # without minutes no clock but ours is asked
        what = f"its newest object was written at {time_of(newest)}" if newest > over else f"the hour ended at {time_of(over)}"
        return (Waits(what=f"{what}, and it must be quiet until {time_of(quiet)}"),)
    places = _expected(feed, ends)
    if feed.closed_by == "resolved":
        standings = standings_of(places, hour, held.covered if held else None)
        later = (
            _later(feed, archive, layout, hour, standings, now)
            if feed.source.hours == "path"
            else _behind(feed, archive, layout, hour, places, held)
        )
        return tuple(not_resolved(feed, archive, lake, layout, hour, standings, later))
    if feed.source.hours == "timestamps" and feed.closed_by == "next-offset":
        return tuple(_open(feed, archive, layout, hour, places, held))
    return tuple(_not_followed(feed, archive, layout, hour, places, ends, now)) if feed.closed_by == "next-offset" else ()


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


def covered_of(manifests: Sequence[Manifest]) -> Covered:
    """The offsets of every partition over some hours of which nothing is missing."""
    found: dict[TopicPartition, list[Ranges]] = {}
    for manifest in manifests:
        for topic, partitions in manifest.partitions.items():
            for number, partition in partitions.items():
                found.setdefault((topic, number), []).append(partition.covered)
    return {place: union(several) for place, several in found.items()}


def _expected(feed: Feed, ends: Ends) -> set[TopicPartition]:
    topics = feed.topics if feed.topic_pattern is None else sorted({topic for topic, _ in ends})
    return {(topic, number) for topic in topics for number in range(feed.partitions_of(topic))}


def _not_followed(
    feed: Feed, archive: Store, layout: Layout, hour: datetime, pending: set[TopicPartition], ends: Ends, now: datetime
) -> Iterator[Waits]:
    """The expected partitions that have no later object, or none that continues where the hour ends."""
    found: dict[TopicPartition, int] = {}
    for sources in _later(feed, archive, layout, hour, pending, now):
        for place, number in _first_numbers(sources).items():
            found[place] = min(number, found.get(place, number))
        pending -= {place for place in pending & found.keys() if not _between(ends.get(place), found[place], layout)}
    for topic, number in sorted(pending):
        what, begin = "no object of a later hour is there", found.get((topic, number))
        if begin is not None:
            what = f"its next object begins at offset {begin}, and no object has {show(_between(ends.get((topic, number)), begin, layout))}"
        yield Waits(topic=topic, partition=number, what=what)


def _between(end: int | None, begin: int, layout: Layout) -> Ranges:
    """The offsets between the hour's last one and the first of later objects, as far as names say them."""
    return ((end + 1, begin - 1),) if end is not None and begin > end + 1 and not layout.number_is_last_offset else ()


def _later(
    feed: Feed, archive: Store, layout: Layout, hour: datetime, pending: Collection[TopicPartition], now: datetime
) -> Iterator[list[SourceObject]]:
    """The objects of one hour after the other, of the topics that are still pending when it is their turn."""
    for ahead in range(1, LOOK_AHEAD + 1):
        later = hour + timedelta(hours=ahead)
        if not pending or later > now:
            return
        topics = sorted({topic for topic, _ in pending})
        yield [source for topic in topics for source in list_hour(feed, archive, topic, later, layout).objects]


def _behind(
    feed: Feed, archive: Store, layout: Layout, hour: datetime, places: Collection[TopicPartition], held: Held | None
) -> Iterator[list[SourceObject]]:
    """The same where paths have no hours: once, all objects that may have messages behind the hour."""
    found = [source for topic in sorted({topic for topic, _ in places}) for source in list_all(feed, archive, topic, layout).objects]
    yield behind(feed, layout, found, hour, held.hour if held else None)


def _open(
    feed: Feed, archive: Store, layout: Layout, hour: datetime, places: Collection[TopicPartition], held: Held | None
) -> Iterator[Waits]:
    """Where paths have no hours, the partitions without a message of a later hour; before landing, without an object written since."""
    if held:
        left, what = not_ended(held.hour, places), "no message of a later hour is there"
    else:
        (written,) = _behind(feed, archive, layout, hour, places, None)
        left, what = {*places} - {(source.topic, source.partition) for source in written}, "no object was written since the hour ended"
    for topic, number in sorted(left):
        yield Waits(topic=topic, partition=number, what=what)


def _first_numbers(sources: Sequence[SourceObject]) -> Mapping[TopicPartition, int]:
    """The smallest number in the names of every partition's objects: at or below its first offset (docs/reference/archives.md 9.1, 9.8)."""
    found: dict[TopicPartition, int] = {}
    for source in sources:
        at = source.topic, source.partition
        found[at] = min(source.number, found.get(at, source.number))
    return found
