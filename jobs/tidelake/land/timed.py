"""Hours of archives whose paths have none (docs/architecture.md 7): ranges of offsets of every partition, by the timestamps of messages.

An hour begins where the hour before ended, and ends before the first message with a later time, like hours of live topics. Hours therefore
join without gap or overlap for any timestamps. A late message belongs to the hour that is landed next, and one object may belong
to several hours. A message without a timestamp, or with a future one, counts from the time when its object was written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.archives import Layout, Listing, SourceObject, list_all, numbered, topics_of
from tidelake.config.feed import Feed
from tidelake.errors import TopicPartition
from tidelake.io.storage import Store
from tidelake.land.store.manifest import Manifest, PartitionFacts, all_newest, newest
from tidelake.tso import format_hour

LOOK_BACK = 24  # number of earlier hours that are searched for a partition's last offset

_NONE = np.iinfo(np.int64).max
_ONE_HOUR = timedelta(hours=1)


@dataclass(slots=True)
class OffsetSpan:
    """The offsets of an hour in one partition, found while its messages are read: from `begin` up to, not including, `end`.

    start: where it begins, None if only timestamps show it; near: the hour does not end before; fixed: where the next hour begins, if that
    is landed; since_ms, until_ms: the hour, epoch milliseconds; ordered: objects are read in the order of their offsets.
    """

    start: int | None
    near: int
    fixed: int | None
    since_ms: int
    until_ms: int
    ordered: bool
    _first: int = _NONE  # the first message of the hour or a later one
    _beyond: int = _NONE  # the first message of a later hour
    _last: int = -1
    owners: set[str] = field(default_factory=set)  # objects with messages that may belong to the hour

    @property
    def begin(self) -> int:
        if self.start is not None:
            return self.start
        return self._first if self._first != _NONE else self._last + 1

    @property
    def end(self) -> int:
        return self._last + 1 if self.next is None else self.next

    @property
    def next(self) -> int | None:
        """The offset where the next hour begins, None while no message of a later hour was read."""
        return self.fixed if self.fixed is not None else self._beyond if self._beyond != _NONE else None

    def wants(self, source: SourceObject, layout: Layout) -> bool:
        """Return whether an object may have messages of the hour, after those already read."""
        if not self.ordered or self.next is None:
            return True
        return self._last < self.end if layout.number_is_last_offset else source.number < self.end

    def take(self, batch: pa.RecordBatch, source: SourceObject) -> pa.RecordBatch:
        """Return the messages of a batch that may belong to the hour."""
        offsets = batch.column("offset").to_numpy()
        written = source.modified_ms or _NONE
        times = np.minimum(pc.fill_null(batch.column("timestamp_ms"), written).to_numpy(zero_copy_only=False), written)
        self._last = int(offsets.max(initial=self._last))
        if self.start is None:
            self._first = int(offsets[times >= self.since_ms].min(initial=self._first))
        if self.fixed is None:
            self._beyond = int(offsets[(times >= self.until_ms) & (offsets >= self.near)].min(initial=self._beyond))
        low = self.start if self.start is not None else self._first if self.ordered else 0
        kept = (offsets >= low) & (offsets < (_NONE if self.next is None else self.next))
        if kept.any():
            self.owners.add(source.key)
        return batch if kept.all() else batch.filter(pa.array(kept))


class WholeObjects:
    """Base of listers whose objects belong to one hour each."""

    settled = True

    def spans(self, found: Collection[TopicPartition]) -> Mapping[TopicPartition, OffsetSpan]:
        """Return no spans, because everything in the objects belongs to the hour."""
        return {}

    def narrowed(self, listing: Listing, partitions: Mapping[TopicPartition, PartitionFacts], read: Collection[str]) -> Listing:
        """Return the whole listing."""
        return listing


class TimedHour:
    """The listing of one hour: the objects of every partition that may have messages of it."""

    def __init__(self, feed: Feed, archive: Store, lake: Store, hour: datetime, layout: Layout) -> None:
        self._feed, self._archive, self._hour, self._layout = feed, archive, hour, layout
        self._numbered = numbered(feed)
        self._this, self._after = (newest(lake, feed.name, format_hour(h)) for h in (hour, hour + _ONE_HOUR))
        self._lake, self._older = lake, list[Manifest]()
        self._before = newest(lake, feed.name, format_hour(hour - _ONE_HOUR))  # an older one ended before another hour

    def __call__(self) -> Listing:
        feed = self._feed
        listings = [list_all(feed, self._archive, topic, self._layout) for topic in topics_of(feed, self._archive)]
        found: dict[TopicPartition, list[SourceObject]] = {}
        for source in sorted(source for listing in listings for source in listing.objects):
            found.setdefault((source.topic, source.partition), []).append(source)
        spans = self.spans(found.keys())
        chosen = [self._chosen(sources, spans[place], _facts(self._this, place)) for place, sources in found.items()]
        unknown = tuple(sorted(info for listing in listings for info in listing.unknown))
        return Listing(objects=tuple(sorted(source for sources in chosen for source in sources)), unknown=unknown)

    def record(self) -> None:
        """Nothing to keep: manifests contain where hours begin and end."""

    @property
    def settled(self) -> bool:
        """Whether the landed hour has ended in every partition in which the next one has begun."""
        places = [(topic, number) for topic, numbers in (self._after.partitions if self._after else {}).items() for number in numbers]
        return self._this is None or not any((facts := _facts(self._this, place)) and facts.next is None for place in places)

    def spans(self, found: Collection[TopicPartition]) -> dict[TopicPartition, OffsetSpan]:
        """Return the span of the hour in every partition that is found, expected, or held by this hour or the one before."""
        topics = self._feed.topics if self._feed.topic_pattern is None else ()
        expected = {(topic, number) for topic in topics for number in range(self._feed.partitions_of(topic))}
        held = [m for m in (self._before, self._this) if m is not None]
        known = {(topic, number) for m in held for topic, numbers in m.partitions.items() for number in numbers}
        return {place: self._span(place) for place in sorted({*found, *expected, *known})}

    def narrowed(self, listing: Listing, partitions: Mapping[TopicPartition, PartitionFacts], read: Collection[str]) -> Listing:
        """Return the objects of a listing that belong to the hour as it was landed. read: the keys of those with messages of it."""
        objects = list[SourceObject]()
        for place, sources in groupby(listing.objects, lambda s: (s.topic, s.partition)):
            facts = partitions.get(place)
            of_hour = list(sources)
            if facts is not None and facts.next is not None:
                of_hour = self._landed(of_hour, facts, read)
            objects += of_hour
        return replace(listing, objects=tuple(objects))

    def _span(self, place: TopicPartition) -> OffsetSpan:
        this, since = _facts(self._this, place), int(self._hour.timestamp() * 1000)
        start = this.start if this is not None and this.start is not None else self._start(place)
        near = (next_of(this) if this is not None else None) or 0
        after = _facts(self._after, place)
        fixed = after.start if after is not None else None
        return OffsetSpan(
            start=start,
            near=max(near, start or 0),
            fixed=fixed,
            since_ms=since,
            until_ms=since + 3_600_000,
            ordered=self._numbered,
        )

    def _start(self, place: TopicPartition) -> int | None:
        """Return where the hour before ended; 0 for a partition that it lacks; None without an hour before."""
        if self._before is None:
            return None
        facts = _facts(self._before, place) or self._long_ago(place)
        return (next_of(facts) if facts else None) or 0

    def _long_ago(self, place: TopicPartition) -> PartitionFacts | None:
        """Return the newest facts of a partition that the hour before, landed by paths, does not have."""
        if not self._older:
            since, until = (format_hour(self._hour - back * _ONE_HOUR) for back in (LOOK_BACK, 1))
            self._older = list(all_newest(self._lake, self._feed.name, since=since, until=until).values())[::-1]
        return next((facts for manifest in self._older if (facts := _facts(manifest, place))), None)

    def _chosen(self, sources: list[SourceObject], span: OffsetSpan, this: PartitionFacts | None) -> list[SourceObject]:
        """Return the objects of a partition that may have messages of the hour."""
        if this is not None and this.next is not None and self._this is not None:
            return self._landed(sources, this, {source.key for source in self._this.sources})
        return self._from(sources, span.start, span.fixed, span.since_ms)

    def _landed(self, sources: list[SourceObject], facts: PartitionFacts, read: Collection[str]) -> list[SourceObject]:
        """Return the objects of an hour that has ended. If names have no offsets: those that were read, unless something is missing."""
        if self._numbered or facts.gaps:
            return self._from(sources, facts.start, facts.next, 0)
        return [source for source in sources if source.key in read]

    def _from(self, sources: list[SourceObject], start: int | None, end: int | None, since_ms: int) -> list[SourceObject]:
        return _candidates(sources, self._layout, self._numbered, start, end, since_ms)


def behind(feed: Feed, layout: Layout, sources: Sequence[SourceObject], hour: datetime, manifest: Manifest | None) -> list[SourceObject]:
    """Return the objects that may have messages after an hour: by offsets if it is landed, else those written since it ended."""
    over_ms = int((hour + _ONE_HOUR).timestamp() * 1000)
    if manifest is None:
        return [source for source in sources if source.modified_ms >= over_ms]
    out = list[SourceObject]()
    for place, of_place in groupby(sorted(sources), lambda s: (s.topic, s.partition)):
        facts = _facts(manifest, place)
        out += _candidates(list(of_place), layout, numbered(feed), (next_of(facts) if facts else None) or 0, None, over_ms)
    return out


def _candidates(
    sources: list[SourceObject], layout: Layout, by_number: bool, start: int | None, end: int | None, since_ms: int
) -> list[SourceObject]:
    """Return the objects of a partition that may have offsets from start up to, not including, end, by the numbers in their names.

    Without a start: those that may have messages since a time, because an object is written after its messages. If names have no numbers,
    the time decides in any case, with one hour more, because the hour before may have been landed early.
    """
    if not by_number:
        return sources if start is None else [source for source in sources if source.modified_ms >= since_ms - 3_600_000]
    ascending = sorted(sources, key=lambda s: (s.number, s.key))
    if start is None:
        late = [source for source in ascending if source.modified_ms >= since_ms]
        return sorted({*late, *ascending[-1:]})  # the newest one shows where the hour begins if no object is late
    if layout.number_is_last_offset:
        kept = [source for source in ascending if source.number >= start]
        inner = [source for source in kept if end is None or source.number < end]
        return sorted({*inner, *kept[len(inner) : len(inner) + 1]})
    floor = max((source.number for source in ascending if source.number <= start), default=0)
    return sorted(source for source in ascending if source.number >= floor and (end is None or source.number < end))


def next_of(facts: PartitionFacts) -> int | None:
    """Return where the next hour begins, as far as an hour knows: after its last offset, if there was no message of a later hour."""
    if facts.next is not None:
        return facts.next
    ends = [ranges[-1][1] + 1 for ranges in (facts.covered, facts.conflicts) if ranges]
    return max([*ends, facts.start] if facts.start is not None else ends, default=None)


def not_ended(manifest: Manifest, places: Collection[TopicPartition]) -> set[TopicPartition]:
    """Return the partitions without a message of a later hour when the hour was landed."""
    return {place for place in places if (facts := _facts(manifest, place)) is None or facts.next is None}


def _facts(manifest: Manifest | None, place: TopicPartition) -> PartitionFacts | None:
    return manifest.partitions.get(place[0], {}).get(place[1]) if manifest else None
