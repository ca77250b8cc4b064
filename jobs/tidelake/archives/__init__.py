"""Read archived Kafka objects as MESSAGE batches. Each layout is a module with its name (docs/reference/archives.md)."""

from __future__ import annotations

from importlib import import_module
from typing import get_args

from tidelake.archives.paths import TIMELESS, all_have_keys, list_all, list_hour, numbered, topics_of
from tidelake.archives.readers.layout import KEYED_PROTOCOLS, Layout, Listing, Lost, Sibling, SourceObject, absent, beside
from tidelake.config.source import LayoutName
from tidelake.errors import ConfigError


def layout_of(name: str) -> Layout:
    """Return the layout with this name. Raises ConfigError for a layout that this version does not read."""
    known = get_args(LayoutName)
    if name not in known:
        raise ConfigError(f"source.layout: unknown layout {name!r}", remedy=f"known: {', '.join(known)}")
    layout: Layout = import_module(f"tidelake.archives.{name.replace('-', '_')}").LAYOUT
    return layout


__all__ = [
    "KEYED_PROTOCOLS",
    "TIMELESS",
    "Layout",
    "Listing",
    "Lost",
    "Sibling",
    "SourceObject",
    "absent",
    "all_have_keys",
    "beside",
    "layout_of",
    "list_all",
    "list_hour",
    "numbered",
    "topics_of",
]
