"""Tries the printed feed.toml: loads it as a feed and lists an hour like `land`; without hours in paths it lists all objects of a topic."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tidelake.archives import layout_of, list_all, list_hour
from tidelake.config.feed import Feed
from tidelake.io.storage import open_store
from tidelake.sniff.archive import Section
from tidelake.sniff.starter import Starter

_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Proof:
    """What `land` would list of the first hour, for a topic that has it.

    Attributes:
        hour: The hour; None if paths have none.
        absent: Known objects of the hour that it would not list.
        unknown: Other files in the hour's folders.
    """

    hour: datetime | None
    objects: int
    absent: tuple[str, ...]
    unknown: tuple[str, ...]


def proved(section: Section, start: Starter) -> Proof:
    """Try the feed. Raises ConfigError for an impossible template, and StorageError."""
    values = tomllib.loads(_VARIABLE.sub(lambda found: start.environment[found[1]], start.text))
    feed = Feed(name=start.name, folder=Path("schemas") / start.name, **values)
    topic = min(section.topics, key=lambda t: (not t.hours, min(t.hours, default=None) or ""))
    hour = min(topic.hours, default=None)
    store, layout = open_store(feed.source.uri), layout_of(section.layout or "")
    listing = list_hour(feed, store, topic.name, hour, layout) if hour else list_all(feed, store, topic.name, layout)
    known = {e.below for e in section.entries if e.said.hour == hour and e.said.topic == topic.name}
    taken = {source.key for source in listing.objects}
    return Proof(hour, len(taken), tuple(sorted(known - taken)), tuple(info.key for info in listing.unknown))
