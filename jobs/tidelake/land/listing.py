"""The archive's objects of one hour: of all topics by their paths, or of a storage sink by its checkpoint and commit ts."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from tidelake.archives import Layout, Listing, list_hour, topics_of
from tidelake.feed import Feed
from tidelake.storage import Store


class Lister(Protocol):
    """Lists an hour anew at every call; `record` keeps what a repetition needs, before the hour's manifest is written."""

    def __call__(self) -> Listing: ...

    def record(self) -> None: ...


def lister(feed: Feed, archive: Store, lake: Store, hour: datetime, layout: Layout) -> Lister:
    """The way that the layout's hours are listed. Raises what SinkHour raises."""
    if not layout.file_bits:
        return _ByPath(feed, archive, hour, layout)
    from tidelake.land.sink_hours import SinkHour  # whose reader compiles: 60 MB that no other source needs

    return SinkHour(feed, archive, lake, hour, layout)


class _ByPath:
    """The hour stands in the objects' paths."""

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
        """Paths say everything."""
