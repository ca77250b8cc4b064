"""The land stage (docs/architecture.md 7): what archive or live topics hold of an hour → canonical objects and a manifest in the lake."""

from __future__ import annotations

from datetime import datetime

from tidelake.config.feed import Feed
from tidelake.land.hour import LandReport, OnBytesLanded
from tidelake.land.hour import land_hour as land_archived_hour


def land_hour(feed: Feed, hour: datetime, progress: OnBytesLanded | None = None) -> LandReport:
    """Land one hour of the feed's source, as land_archived_hour or, of live topics, `live.land_live_hour` do."""
    if feed.source.kind == "archive":
        return land_archived_hour(feed, hour, progress)
    from tidelake.land.live import land_live_hour  # Kafka's client: archives do without

    return land_live_hour(feed, hour, progress)


__all__ = ["LandReport", "land_hour"]
