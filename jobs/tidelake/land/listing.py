"""List the archive's objects of one hour: by path, by messages' timestamps, or for a storage sink by its checkpoint and commit ts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from tidelake.archives import Layout, Listing, list_hour, topics_of
from tidelake.config.feed import Feed
from tidelake.errors import TopicPartition
from tidelake.io.storage import Store
from tidelake.land.store.manifest import PartitionFacts
from tidelake.land.timed import OffsetSpan, TimedHour, WholeObjects


class Lister(Protocol):
    """Lists an hour again at every call. `record` keeps what a repetition needs, before the hour's manifest is written.

    spans: for objects that also hold messages of other hours, the finder of the hour's offsets in each found and expected partition.
    settled: whether only its objects can change the hour. narrowed: the objects of a listing that belong to the hour, as its landing
    showed; read: keys of the objects with messages of it.
    """

    def __call__(self) -> Listing: ...

    @property
    def settled(self) -> bool: ...

    def spans(self, found: Collection[TopicPartition]) -> Mapping[TopicPartition, OffsetSpan]: ...

    def narrowed(self, listing: Listing, partitions: Mapping[TopicPartition, PartitionFacts], read: Collection[str]) -> Listing: ...

    def record(self) -> None: ...


def lister(feed: Feed, archive: Store, lake: Store, hour: datetime, layout: Layout) -> Lister:
    """Return the lister of the layout's hours. Raises what SinkHour raises."""
    if not layout.file_bits:
        timed = feed.source.hours == "timestamps"
        return TimedHour(feed, archive, lake, hour, layout) if timed else _ByPath(feed, archive, hour, layout)
    from tidelake.land.sink_hours import SinkHour  # its reader compiles code: 60 MB that no other source needs

    return SinkHour(feed, archive, lake, hour, layout)


class _ByPath(WholeObjects):
    """Lister for hours in the objects' paths."""

    def __init__(self, feed: Feed, archive: Store, hour: datetime, layout: Layout) -> None:
        self._of = (feed, archive, hour, layout)

    def __call__(self) -> Listing:
        feed, archive, hour, layout = self._of
        listings = [list_hour(feed, archive, topic, hour, layout) for topic in topics_of(feed, archive)]
        return Listing(
            objects=tuple(sorted(source for listing in listings for source in listing.objects)),
            unknown=tuple(sorted(info for listing in listings for info in listing.unknown)),
            newest_ms=max((listing.newest_ms for listing in listings), default=0),
        )

    def record(self) -> None:
        """Nothing to keep: paths contain the hour."""
