"""The gauges of several feeds. A feed that cannot be read does not hide the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidelake.errors import TidelakeError
from tidelake.metrics.gauges import Gauge, feed_gauges, row_gauges
from tidelake.pages.all_feeds import opened_feed, row_of_error


def all_gauges(schemas: Path, names: Sequence[str]) -> tuple[list[Gauge], list[str]]:
    """Return the gauges of these feeds, and one sentence for each feed that could not be read."""
    gauges, errors = list[Gauge](), list[str]()
    for name in names:
        try:
            with opened_feed(schemas, name) as source:
                gauges += list(feed_gauges(source))
        except TidelakeError as e:
            row = row_of_error(name, e)
            gauges += row_gauges(row)
            errors += [] if row.can_be_read else [f"{name}: {e}"]
    return gauges, errors
