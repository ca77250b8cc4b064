"""Counts the masked values of a window, for certificate and report."""

from __future__ import annotations

from collections import Counter

from tidelake.config.feed import Feed
from tidelake.history.incarnations import Incarnation
from tidelake.history.projection import project
from tidelake.lake.tables import value_rules
from tidelake.order.observed_tables import WindowRows
from tidelake.order.table_rows import sent_names


def mask_counts(feed: Feed, i: Incarnation, seen: WindowRows) -> dict[str, dict[str, int]]:
    """Return column → mask → number of values: images before and after changes that have the column, including NULL and repeats."""
    sent = {(n.database, n.table) for n in sent_names(i, seen.sent)}
    images = Counter[int]()
    for g in seen.groups_of(sent):
        for row_schema in (g.row_schema, g.before_schema):
            if row_schema is not None:
                images[row_schema] += g.rows
    out: dict[str, dict[str, int]] = {}
    for p in project(i, [seen.row_schemas[s] for s in sorted(images)]):
        mask = value_rules(feed, i, p.column).mask
        if mask is not None and (found := sum(images[s] for s in {place.row_schema for place in p.places})):
            out[p.column.name] = {mask: found}
    return out
