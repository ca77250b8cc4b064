"""Refuse archives of which nothing can be landed, by cause: missing, another folder, another layout, empty, too early."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from tidelake.archives import Layout, Listing
from tidelake.config.feed import Feed
from tidelake.errors import ConfigError, OrderError
from tidelake.io.storage import Store
from tidelake.io.texts import plural
from tidelake.land.findings import named
from tidelake.land.waits import time_of
from tidelake.tso import format_hour

_SHOWN = 20  # most folders shown of an archive


def refuse_unusable(feed: Feed, archive: Store, layout: Layout, listing: Listing) -> None:
    """Raise ConfigError if the feed's settings find no object of the hour and the archive shows why.

    listing: of the hour. Codes: NO_ARCHIVE, the folder does not exist; ARCHIVE_LAYOUT, the hour's folders hold objects of another layout;
    NO_TOPIC, the archive has folders of other topics only.
    """
    if listing.objects:
        return
    path = feed.folder / "feed.toml"
    if "://" not in archive.uri and not Path(archive.uri).is_dir():  # a missing bucket raises its own error
        raise ConfigError(
            f"{path}: source.uri: {archive.uri} does not exist", code="NO_ARCHIVE", remedy="correct it, or the value of its variable"
        )
    if listing.unknown:
        endings = " or ".join(f"*.{e}" for e in sorted(layout.extensions))
        keys = [info.key for info in listing.unknown]
        raise ConfigError(
            f"{path}: source.layout: the hour has {plural(len(keys), 'object')}, and no name matches layout "
            f"{feed.source.layout!r} ({endings} with partition and offset): {named(keys)}",
            code="ARCHIVE_LAYOUT",
            remedy=f"`tidelake sniff {archive.uri}` reports the layout; other names need source.template (docs/layouts.md)",
        )
    folders = archive.folders() if _by_topic(feed, layout) else []
    if folders and not set(feed.topics) & set(folders):
        raise ConfigError(
            f"{path}: topics: {archive.uri} has no folder {named(list(feed.topics))}; it has {named(folders[:_SHOWN])}",
            code="NO_TOPIC",
            remedy="correct the topics, or source.uri: the topics' folders are directly below it",
        )


def refuse_early(feed: Feed, archive: Store, hour: datetime, now: datetime) -> None:
    """Raise OrderError for an hour that may still get messages (HOUR_NOT_OVER) or an empty archive (ARCHIVE_EMPTY): no manifest may be
    written.
    """
    over = hour + timedelta(hours=1)
    if now < over:
        raise OrderError(
            f"hour {format_hour(hour)} of feed {feed.name} ends at {time_of(over)}",
            code="HOUR_NOT_OVER",
            remedy="land it after that; the DAG does so by itself",
        )
    if not archive.some("", 1):
        raise OrderError(
            f"{archive.uri} is empty",
            code="ARCHIVE_EMPTY",
            remedy="check that the archiver runs and writes there, then land the hour again",
        )


def _by_topic(feed: Feed, layout: Layout) -> bool:
    """Whether every topic has a folder directly below the archive's root."""
    return feed.topic_pattern is None and feed.source.template is None and feed.source.hours == "path" and not layout.file_bits
