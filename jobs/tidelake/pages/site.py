"""Writes pages as files: all feeds, their months, hours and tables, for any web server or bucket. Links are relative.

The page of an hour is made again if the documents changed that it was made from: its own and those of the hours in its plots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from tidelake.config.feed import feed_names
from tidelake.errors import DamageError, TidelakeError
from tidelake.pages.addresses import Address, table_stem
from tidelake.pages.all_feeds import feed_rows, opened_feed, row_of_error
from tidelake.pages.feed_row import FeedRow, feed_row
from tidelake.pages.feed_source import FeedSource
from tidelake.pages.hour_pages import hour_page
from tidelake.pages.lake_pages import feed_page, feeds_page, table_page
from tidelake.pages.layout import missing_page
from tidelake.pages.reports import Reports
from tidelake.pages.site_folder import FeedRecord, SiteFolder
from tidelake.pages.table_history import TableHistory, histories

Progress = Callable[[int, int], None]


def write_site(schemas: Path, folder: SiteFolder, feeds: Sequence[str], progress: Progress | None = None) -> list[FeedRow]:
    """Write the pages of these feeds and the first page. Return the rows of the first page.

    The first page lists these feeds and those that the folder has pages of. Pages of feeds that have no folder in `schemas` any more are
    removed. The pages of a feed that cannot be read stay as they are.

    Args:
        schemas: Folder that holds the feeds.
        folder: The site's folder.
        feeds: Names of the feeds.
        progress: Called with the number of finished pages and of all pages of a feed.
    """
    known = feed_names(schemas)
    for gone in sorted(folder.record.feeds.keys() - set(known)):
        folder.keep_only(gone, [])
        del folder.record.feeds[gone]
    rows = {name: _write_feed(schemas, folder, name, progress) for name in feeds}
    others = [name for name in known if name not in rows and folder.has(Address(feed=name).path)]
    rows |= {row.feed: row for row in feed_rows(schemas, others)}
    shown = [_linked(folder, rows[name]) for name in known if name in rows]
    folder.write(Address().path, feeds_page(shown))
    folder.save()
    return shown


def _linked(folder: SiteFolder, row: FeedRow) -> FeedRow:
    """Return the row with the tables that have a page. A feed that cannot be read keeps the page that it has."""
    tables = tuple(t for t in row.tables if folder.has(Address(feed=row.feed, table=table_stem(t)).path))
    return row.with_pages(tables, has_page=folder.has(Address(feed=row.feed).path))


def _write_feed(schemas: Path, folder: SiteFolder, name: str, progress: Progress | None) -> FeedRow:
    try:
        with opened_feed(schemas, name) as source:
            row = feed_row(source)
            _FeedSite(source, row, folder, progress).write()
            return row
    except TidelakeError as e:
        return row_of_error(name, e)


class _FeedSite:
    """The pages of one feed."""

    def __init__(self, source: FeedSource, row: FeedRow, folder: SiteFolder, progress: Progress | None) -> None:
        self._source, self._row, self._folder, self._progress = source, row, folder, progress
        self._name, self._reports = source.feed.name, source.reports
        self._before = folder.record.feeds.get(self._name, FeedRecord())
        self._reports.heads |= {(hour, etag): head for hour, (etag, head) in self._before.heads.items()}
        self._paths = list[str]()
        self._done, self._all = 0, 1

    def write(self) -> None:
        """Write all pages, then remove those that the feed no longer has."""
        hours = [h for m in self._source.months for h in self._reports.of_month(m)]
        self._all = len(hours) + len(self._source.months) + len(self._source.tables) + 1
        if self._before.tables and not set(self._before.tables) <= set(self._source.tables):
            self._before.hours.clear()  # a table is gone to which pages of hours may link
        made = {hour: self._hour(hour) for hour in hours}
        for month in ["", *self._source.months]:
            self._put(Address(feed=self._name, month=month), feed_page(self._source, self._row, month))
        self._tables()
        self._folder.keep_only(self._name, self._paths)
        documents = [(hour, o.etag) for m in self._source.months for hour, o in self._reports.of_month(m).items()]
        heads = {hour: (etag, self._reports.heads[hour, etag]) for hour, etag in documents if (hour, etag) in self._reports.heads}
        self._folder.record.feeds[self._name] = FeedRecord(hours=made, heads=heads, tables=list(self._source.tables))
        self._folder.save()

    def _hour(self, hour: str) -> str:
        """Write the page of an hour unless it was made from the same documents. Return their hash; empty for a damaged document."""
        at, inputs = Address(feed=self._name, hour=hour), _inputs(self._reports, hour)
        if self._before.hours.get(hour) == inputs and self._folder.has(at.path):
            self._folder.unchanged += 1
            self._keep(at)
            return inputs
        try:
            page = hour_page(self._reports, hour, list(self._source.tables))
        except DamageError as e:
            self._folder.damaged.append(str(e))
            page, inputs = missing_page(at, "The report cannot be read", str(e)), ""
        if page is not None:
            self._put(at, page)
        return inputs

    def _tables(self) -> None:
        until = self._source.newest_report
        found = histories(self._reports, until) if until else {}
        for name, i in self._source.tables.items():
            page = table_page(self._source, i, found.get(name) or TableHistory())
            self._put(Address(feed=self._name, table=table_stem(name)), page)

    def _put(self, address: Address, page: str) -> None:
        self._folder.write(address.path, page)
        self._keep(address)

    def _keep(self, address: Address) -> None:
        self._paths.append(address.path)
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._all)


def _inputs(reports: Reports, hour: str) -> str:
    """Return a hash of what the page of an hour is made from."""
    documents = [(h, reports.of_month(h[:7])[h].etag) for h in reports.until(hour)]
    return sha256(repr((documents, reports.around(hour))).encode()).hexdigest()[:16]
