"""Statements → catalogs, and how tests look at them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidelake.errors import OrderError
from tidelake.history.ddl.statement import parse
from tidelake.history.evolution import apply
from tidelake.history.incarnations import Catalog, Column, Incarnation

SHOP = "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20), total DECIMAL(10,2))"


def after(*statements: tuple[int, str], catalog: Catalog | None = None, rows: bool = True) -> Catalog:
    """The catalog after statements in database `shop`. rows: every table has some as soon as it is there."""
    catalog = catalog or Catalog()
    for ts, query in statements:
        for change in parse(query, "shop"):
            catalog = apply(catalog, ts, change)
        if rows:
            catalog = replace(catalog, incarnations={k: replace(i, empty=False) for k, i in catalog.incarnations.items()})
    return catalog


def refused(*statements: tuple[int, str], catalog: Catalog | None = None) -> OrderError:
    """The error of the last statement."""
    before = after(*statements[:-1], catalog=catalog)
    with pytest.raises(OrderError) as error:
        after(statements[-1], catalog=before)
    return error.value


def only(catalog: Catalog) -> Incarnation:
    (found,) = catalog.incarnations.values()
    return found


def names(columns: tuple[Column, ...]) -> list[str]:
    return [c.name for c in columns]


def row_columns(i: Incarnation, ts: int) -> list[str]:
    """The columns of a row at ts: a statement at ts is not in force yet."""
    (segment,) = [s for s in i.segments if s.after_ts < ts and (s.until_ts is None or ts <= s.until_ts)]
    return names(segment.columns)


def altered(*clauses: str, table: str = SHOP) -> Incarnation:
    """The table after one ALTER a clause, at 10, 20, …"""
    return only(after((1, table), *((10 * n, f"ALTER TABLE orders {c}") for n, c in enumerate(clauses, 1))))
