"""The page at a path, made when it is asked for: for Airflow, where `reader` calls it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tidelake.config.feed import feed_names, load_feed
from tidelake.errors import ConfigError
from tidelake.io.storage import open_store
from tidelake.pages.addresses import Address, parse_path, table_stem
from tidelake.pages.all_feeds import feed_rows, opened_feed
from tidelake.pages.feed_row import feed_row
from tidelake.pages.hour_pages import hour_page
from tidelake.pages.lake_pages import feed_page, feeds_page, table_page
from tidelake.pages.layout import AirflowLinks, missing_page
from tidelake.pages.reports import Reports
from tidelake.pages.table_history import TableHistory, histories
from tidelake.tso import parse_hour


class Page(NamedTuple):
    """A page and its HTTP status."""

    status: int
    html: str


def page_at(schemas: Path, path: str, feeds: Sequence[str] | None = None, airflow: AirflowLinks | None = None) -> Page:
    """Return the page at a path below the pages' prefix.

    Args:
        schemas: Folder that holds the feeds.
        path: The path.
        feeds: Feeds that the first page shows. Default: all.
        airflow: Addresses in Airflow.

    Raises:
        TidelakeError: The lake or the feed's settings cannot be read.
    """
    address, known = parse_path(path), feed_names(schemas)
    if address is None:
        return Page(404, missing_page(Address(), "No such page", "There is no page at this address.", airflow=airflow))
    if not address.feed:
        return Page(200, feeds_page(feed_rows(schemas, known if feeds is None else [f for f in known if f in feeds]), airflow))
    if address.feed not in known:
        return Page(404, missing_page(Address(), "No such feed", f"There is no feed {address.feed}.", airflow=airflow))
    return _hour(schemas, address, airflow) if address.hour else _of_lake(schemas, address, airflow)


def _hour(schemas: Path, at: Address, airflow: AirflowLinks | None) -> Page:
    try:
        parse_hour(at.hour)
    except ConfigError as e:
        return Page(404, missing_page(Address(feed=at.feed), "No such hour", str(e), airflow=airflow))
    found = hour_page(Reports(open_store(load_feed(schemas, at.feed).lake.uri), at.feed), at.hour, airflow=airflow)
    if found is not None:
        return Page(200, found)
    same = f"--feed {at.feed} --hour {at.hour}"
    missing = missing_page(
        at,
        "No report yet",
        f"Nothing is stored for hour {at.hour} of feed {at.feed}; the report is written when the hour is published or blocked.",
        "Run the hour, in Airflow or by hand:",
        commands=[f"tidelake run {same}", f"tidelake report {same}   # if the hour is landed"],
        airflow=airflow,
    )
    return Page(404, missing)


def _of_lake(schemas: Path, at: Address, airflow: AirflowLinks | None) -> Page:
    """Return the page of a feed, a month or a table: those that need the lake's catalog."""
    with opened_feed(schemas, at.feed) as source:
        if at.table:
            name = next((name for name in source.tables if table_stem(name) == at.table), None)
            if name is None:
                said = "The newest cut has no such table: it was dropped or renamed, or never existed. The feed's page lists all tables."
                return Page(404, missing_page(at, "No such table", said, airflow=airflow))
            until = source.newest_report
            history = histories(source.reports, until, name).get(name) if until else None
            return Page(200, table_page(source, source.tables[name], history or TableHistory(), airflow))
        if at.month and at.month not in source.months:
            return Page(404, missing_page(at, "No such month", f"Feed {at.feed} has no hours of {at.month}.", airflow=airflow))
        return Page(200, feed_page(source, feed_row(source), at.month, airflow))
