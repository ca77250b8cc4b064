"""The pages that need the lake's catalog: all feeds, a feed, a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tidelake.history.incarnations import Incarnation
from tidelake.lake.cut import Cut
from tidelake.pages.addresses import Address, table_stem
from tidelake.pages.calendar import days_of
from tidelake.pages.feed_row import FeedRow
from tidelake.pages.feed_source import FeedSource
from tidelake.pages.hour_states import HOUR_KINDS
from tidelake.pages.layout import AirflowLinks, navigation, rendered
from tidelake.pages.table_history import TableHistory, check_rows, figures
from tidelake.pages.table_summary import table_summary
from tidelake.validate.cut_facts import lag_seconds
from tidelake.validate.quality.headline import quarantine_commands
from tidelake.validate.quality.navigation import Link
from tidelake.validate.quality.trends import HOURS

MOST_TABLES = 2000  # tables that the first page lists
_TONES = ("bad", "warn", "open", "good")


def feeds_page(rows: Sequence[FeedRow], airflow: AirflowLinks | None = None) -> str:
    """Return the first page: all feeds and their tables."""
    here = Address()
    tables = [
        {"feed": row.feed, "name": name, "href": here.link(Address(feed=row.feed, table=table_stem(name)))}
        for row in rows
        if row.has_page
        for name in row.tables
    ]
    return rendered(
        "index.html.j2",
        navigation(here, "Feeds", airflow=airflow),
        rows=rows,
        counts=Counter(row.word for row in sorted(rows, key=lambda row: _TONES.index(row.tone))),
        links={row.feed: here.link(Address(feed=row.feed)) for row in rows},
        tables=tables[:MOST_TABLES],
        more=len(tables) - MOST_TABLES if len(tables) > MOST_TABLES else 0,
        airflow=airflow,
    )


def feed_page(source: FeedSource, row: FeedRow, month: str = "", airflow: AirflowLinks | None = None) -> str:
    """Return the page of a feed with the hours of a month. Default: the newest one."""
    feed, cut, months = source.feed.name, source.cut, list(source.months)
    here = Address(feed=feed, month=month)
    shown = month or (months[-1] if months else "")
    states = source.states(shown) if shown else {}
    at = months.index(shown) if shown in months else None
    found = Counter(state.kind for state in states.values())
    return rendered(
        "feed.html.j2",
        navigation(here, month or feed, airflow=airflow),
        row=row,
        report=here.link(Address(feed=feed, hour=row.hour)),
        month=shown,
        days=days_of(shown, states) if shown else [],
        kinds=[(kind, found[name]) for name, kind in HOUR_KINDS.items() if found[name]],
        before=_month(here, months[at - 1]) if at else None,
        after=_month(here, months[at + 1]) if at is not None and months[at + 1 :] else None,
        lag=lag_seconds(cut.hour, cut.resolved_ts) if cut is not None and not cut.is_seed else None,
        rows=sum(t.rows for t in cut.snapshots.values()) if cut else 0,
        tables=[_table(here, cut, i) for i in source.tables.values()] if cut else [],
        commands=quarantine_commands(feed),
    )


def table_page(source: FeedSource, i: Incarnation, history: TableHistory, airflow: AirflowLinks | None = None) -> str:
    """Return the page of a table of the newest cut. history: what the last reports say about it."""
    assert source.cut is not None, "a table comes from a cut"
    feed, summary, checks = source.feed.name, table_summary(source, i, source.cut), check_rows(history)
    return rendered(
        "table.html.j2",
        navigation(Address(feed=feed, table=table_stem(i.name)), i.name, airflow=airflow),
        feed=feed,
        t=summary,
        source_columns=len(i.columns),
        failing=sum(not row.newest.success for row in checks),
        figures=figures(history),
        hours=sorted(history.counts.items(), reverse=True)[:HOURS],
        checks=checks,
        commands=quarantine_commands(feed),
    )


def _month(here: Address, month: str) -> Link:
    return Link(text=month, href=here.link(Address(feed=here.feed, month=month)))


def _table(here: Address, cut: Cut, i: Incarnation) -> dict[str, object]:
    stored = cut.snapshots.get(i.id)
    place = stored or cut.changelogs.get(i.id)
    return {
        "name": i.name,
        "href": here.link(Address(feed=here.feed, table=table_stem(i.name))),
        "rows": stored.rows if stored else None,
        "identifier": place.identifier if place else "",
    }
