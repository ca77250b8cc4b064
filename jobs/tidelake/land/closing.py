"""Judge whether an hour is complete as far as its archive shows it, and what it waits for. docs/landing.md has the rules.

It reads the listings of the hour and of the hours after it, until every partition's next object is found. The rule "resolved"
(land/resolved.py) reads messages of these hours, too.
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

LOOK_AHEAD = 24  # number of later hours that are searched for a partition's next object

Ends = dict[TopicPartition, int | None]  # topic, partition → last known offset, None if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The lake's data of a landed hour. covered: the complete offsets up to its end; hour: its manifest."""

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
    """Return what keeps the hour from being complete by the feed's rule; empty if it is complete.

    A storage sink's hour waits for nothing here: it cannot be listed before the checkpoint has passed it.

    Args:
        feed: The feed's settings.
        archive: The archive.
        lake: The lake's store.
        layout: The archive's layout.
        hour: First instant of the hour, UTC.
        listing: Listing of the hour.
        ends: Last offsets of the hour's partitions.
        now: Current time, UTC.
        held: What the lake holds of the hour, None if it is not landed.
    """
    if layout.file_bits:
        return ()
    over = hour + timedelta(hours=1)
    if now < over:
        return (Waits(what=f"the hour ends at {time_of(over)}"),)
    newest = datetime.fromtimestamp(listing.newest_ms / 1000, UTC)
    quiet = max(newest, over) + timedelta(minutes=feed.quiet_minutes)
    if feed.quiet_minutes and now < min(quiet, over + LONG_OVER):  # with 0 minutes only this machine's clock counts
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
    """Return the last offset of every partition over some hours, including offsets in conflict and those known to hold no message."""
    ends: Ends = {}
    for manifest in manifests:
        for topic, partitions in manifest.partitions.items():
            for number, partition in partitions.items():
                last = [ranges[-1][1] for ranges in (partition.covered, partition.conflicts) if ranges]
                known = ends.get((topic, number))
                ends[topic, number] = max([*last, *([] if known is None else [known])], default=None)
    return ends


def covered_of(manifests: Sequence[Manifest]) -> Covered:
    """Return the complete offsets of every partition over some hours: landed, or known to hold no message."""
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
    """Yield the expected partitions without a later object, or without one that continues where the hour ends."""
    found: dict[TopicPartition, int] = {}
    for sources in _later(feed, archive, layout, hour, pending, now):
        for place, number in _first_numbers(sources).items():
            found[place] = min(number, found.get(place, number))
        pending -= {place for place in pending & found.keys() if not _between(ends.get(place), found[place], layout)}
    for topic, number in sorted(pending):
        what, begin = "there is no object of a later hour", found.get((topic, number))
        if begin is not None:
            what = f"its next object begins at offset {begin}, and no object has {show(_between(ends.get((topic, number)), begin, layout))}"
        yield Waits(topic=topic, partition=number, what=what)


def _between(end: int | None, begin: int, layout: Layout) -> Ranges:
    """Return the offsets between the hour's last one and the first of later objects, as far as names show them."""
    return ((end + 1, begin - 1),) if end is not None and begin > end + 1 and not layout.number_is_last_offset else ()


def _later(
    feed: Feed, archive: Store, layout: Layout, hour: datetime, pending: Collection[TopicPartition], now: datetime
) -> Iterator[list[SourceObject]]:
    """Yield the objects hour by hour, of the topics that are still pending at that hour."""
    for ahead in range(1, LOOK_AHEAD + 1):
        later = hour + timedelta(hours=ahead)
        if not pending or later > now:
            return
        topics = sorted({topic for topic, _ in pending})
        yield [source for topic in topics for source in list_hour(feed, archive, topic, later, layout).objects]


def _behind(
    feed: Feed, archive: Store, layout: Layout, hour: datetime, places: Collection[TopicPartition], held: Held | None
) -> Iterator[list[SourceObject]]:
    """Yield once, for archives whose paths have no hours, all objects that may have messages after the hour."""
    found = [source for topic in sorted({topic for topic, _ in places}) for source in list_all(feed, archive, topic, layout).objects]
    yield behind(feed, layout, found, hour, held.hour if held else None)


def _open(
    feed: Feed, archive: Store, layout: Layout, hour: datetime, places: Collection[TopicPartition], held: Held | None
) -> Iterator[Waits]:
    """Yield the partitions without a message of a later hour, for archives whose paths have no hours. Before landing: without an object
    written since.
    """
    if held:
        left, what = not_ended(held.hour, places), "there is no message of a later hour"
    else:
        (written,) = _behind(feed, archive, layout, hour, places, None)
        left, what = {*places} - {(source.topic, source.partition) for source in written}, "no object was written since the hour ended"
    for topic, number in sorted(left):
        yield Waits(topic=topic, partition=number, what=what)


def _first_numbers(sources: Sequence[SourceObject]) -> Mapping[TopicPartition, int]:
    """Return the smallest number in the names of every partition's objects: at or below its first offset (docs/reference/archives.md 9.1,
    9.8).
    """
    found: dict[TopicPartition, int] = {}
    for source in sources:
        at = source.topic, source.partition
        found[at] = min(source.number, found.get(at, source.number))
    return found
