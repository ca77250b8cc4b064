"""Feeds whose messages belong to the hours of their timestamps, and what landed with each hour."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.archives.objects import WRITERS, Message
from tests.land.archive import HOUR, TOPIC, archive, at, landed, make_feed, manifest
from tidelake.config.feed import Feed
from tidelake.tso import format_hour

BEGIN = int(HOUR.timestamp() * 1000)
MINUTE = 60_000


def feed_of(tmp_path: Path, layout: str = "aiven-jsonl", partitions: int = 1, **settings: Any) -> Feed:
    source = {"uri": f"{tmp_path}/archive", "layout": layout, "hours": "timestamps"} | settings.pop("source", {})
    return make_feed(tmp_path, partitions=partitions, source=source, **{"protocol": "canal-json", "policy": {"on_gap": "warn"}} | settings)


def messages(first: int, *minutes: float | None) -> list[Message]:
    """Messages from an offset on, at these minutes of HOUR."""
    stamps = [None if m is None else BEGIN + int(m * MINUTE) for m in minutes]
    return [Message(first + i, b'{"o":%d}' % (first + i), None, stamp) for i, stamp in enumerate(stamps)]


def put(feed: Feed, content: Sequence[Message], written: float, *, partition: int = 0, key: str | None = None) -> str:
    """Write an object that was written at this minute of HOUR; key without its ending, by default Aiven's."""
    writer, extension = WRITERS[feed.source.layout or ""]
    key = f"{key or f'{TOPIC}-{partition}-{content[0].offset:020d}'}.{extension}"
    needs_topic = feed.source.layout in ("kcat", "canonical", "lenses-json", "lenses-parquet")
    archive(feed).write(key, writer(content, topic=TOPIC) if needs_topic else writer(content))  # type: ignore[call-arg]
    moment = (HOUR + timedelta(minutes=written)).timestamp()
    os.utime(Path(feed.source.uri) / key, (moment, moment))
    return key


def offsets(feed: Feed, hours: int, folder: Path, partition: int = 0) -> list[int]:
    """The offsets that landed with an hour."""
    found = landed(feed, manifest(feed, format_hour(at(hours))), folder)
    return [m.offset for m in found.get((TOPIC, partition), [])]


def span(feed: Feed, hours: int, partition: int = 0) -> tuple[int | None, int | None]:
    facts = manifest(feed, format_hour(at(hours))).partitions[TOPIC][partition]
    return facts.start, facts.next
