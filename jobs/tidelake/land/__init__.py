"""The land stage (docs/architecture.md 7): writes what an archive or live topics hold of an hour as canonical objects and a manifest."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from tidelake.config.feed import Feed

if TYPE_CHECKING:
    from tidelake.land.hour import LandReport, OnBytesLanded


def land_hour(feed: Feed, hour: datetime, progress: OnBytesLanded | None = None) -> LandReport:
    """Land one hour of the feed's source: an archive (`land_archived_hour`) or live topics (`live.land_live_hour`).

    Args:
        feed: The feed's settings.
        hour: First instant of the hour, UTC.
        progress: Called with (done, in all), in bytes of the archive or offsets of the topics.

    Raises:
        OrderError, ConfigError, StorageError: What the called function raises.
    """
    if feed.source.kind == "archive":
        from tidelake.land.hour import land_hour as land_archived_hour

        return land_archived_hour(feed, hour, progress)
    from tidelake.land.live import land_live_hour  # imports Kafka's client, which archives do not need

    return land_live_hour(feed, hour, progress)
