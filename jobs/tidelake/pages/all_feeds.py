"""Feeds of a folder, opened one by one: a feed that cannot be read does not hide the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tidelake.config.feed import load_feed
from tidelake.errors import TidelakeError
from tidelake.io.storage import open_store
from tidelake.lake.identity import refuse_missing
from tidelake.lake.opened import Lake
from tidelake.pages.feed_row import FeedRow, feed_row, never_ran, unreadable
from tidelake.pages.feed_source import FeedSource

_THREADS = 4  # feeds that are read at a time
_NO_LAKE = "NO_LAKE"


@contextmanager
def opened_feed(schemas: Path, name: str) -> Iterator[FeedSource]:
    """Open a feed for its pages. Raises ConfigError (NO_LAKE), StorageError, and what Lake.of raises."""
    feed = load_feed(schemas, name)
    refuse_missing(open_store(feed.lake.uri))
    with Lake.of(feed) as lake:
        yield FeedSource(lake)


def feed_rows(schemas: Path, names: Sequence[str]) -> list[FeedRow]:
    """Return the rows of these feeds, in their order."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(lambda name: _row(schemas, name), names))


def _row(schemas: Path, name: str) -> FeedRow:
    try:
        with opened_feed(schemas, name) as source:
            return feed_row(source)
    except TidelakeError as e:
        return row_of_error(name, e)


def row_of_error(name: str, error: TidelakeError) -> FeedRow:
    """Return the row of a feed that could not be opened or read."""
    return never_ran(name) if error.code == _NO_LAKE else unreadable(name, str(error))
