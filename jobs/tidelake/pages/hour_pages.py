"""The page of an hour: its report, from its stored facts, with links to the pages around it. Needs no catalog."""

from __future__ import annotations

from collections.abc import Sequence

from tidelake.pages.addresses import Address, table_stem
from tidelake.pages.layout import AirflowLinks, navigation
from tidelake.pages.reports import Reports
from tidelake.validate.quality.navigation import Link
from tidelake.validate.quality.report import render


def hour_page(reports: Reports, hour: str, tables: Sequence[str] | None = None, airflow: AirflowLinks | None = None) -> str | None:
    """Return the report of an hour, None if there is none.

    Args:
        reports: The feed's reports.
        hour: The hour.
        tables: Names of the tables that have a page. Default: all that the report names.
        airflow: Addresses in Airflow.
    """
    facts = reports.facts(hour)
    if facts is None:
        return None
    here = Address(feed=reports.feed, hour=hour)
    before, after = reports.around(hour)
    named = facts.tables.keys() if tables is None else facts.tables.keys() & set(tables)
    where = navigation(
        here,
        hour,
        airflow=airflow,
        previous=_hour(here, before),
        next_=_hour(here, after),
        tables={name: here.link(Address(feed=reports.feed, table=table_stem(name))) for name in sorted(named)},
    )
    return render(facts, reports.history(hour), where)


def _hour(here: Address, hour: str | None) -> Link | None:
    return Link(text=hour, href=here.link(Address(feed=here.feed, hour=hour))) if hour else None
