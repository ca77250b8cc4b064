"""Dropped tables that come back: the same life, nameless in between."""

from __future__ import annotations

import pytest

from tests.history.incarnations.lives import SHOP, after, names, only, refused, row_columns

DROPPED = ((1, SHOP), (10, "ALTER TABLE orders ADD x INT"), (20, "DROP TABLE orders"))


@pytest.mark.parametrize(("statement", "name"), [("RECOVER TABLE Orders", "shop.Orders"), ("FLASHBACK TABLE orders TO other.o", "other.o")])
def test_a_recovered_table_is_the_same_life_under_its_new_name(statement: str, name: str) -> None:
    catalog = after(*DROPPED, (30, statement))
    i = only(catalog)
    database, table = name.split(".")
    assert (i.id, i.name, i.dropped_ts, i.recovered) == ("shop.orders@1", name, None, True)
    assert [catalog.at("shop", "orders", ts) for ts in (20, 21, 30)] == [i, None, None]
    assert [catalog.asof(database, table, ts) for ts in (20, 29, 30)] == [None, None, i]
    assert row_columns(i, 31) == names(i.columns_at(30)) == ["id", "note", "total", "x"]


def test_the_newest_of_several_that_bore_the_name_comes_back() -> None:
    catalog = after(*DROPPED, (30, SHOP), (40, "DROP TABLE orders"), (50, "RECOVER TABLE orders"))
    assert [(i.id, i.dropped_ts) for i in catalog.incarnations.values()] == [("shop.orders@1", 20), ("shop.orders@30", None)]


def test_a_recovered_database_brings_back_what_left_with_it_and_nothing_else() -> None:
    first = (*DROPPED, (30, SHOP), (31, "CREATE TABLE t (a INT)"), (32, "CREATE TABLE o.t (a INT)"), (40, "DROP DATABASE shop"))
    catalog = after(*first, (50, "FLASHBACK DATABASE shop TO found"))
    assert {i.id: (i.name, i.dropped_ts) for i in catalog.incarnations.values()} == {
        "shop.orders@1": ("shop.orders", 20),
        "shop.orders@30": ("found.orders", None),
        "shop.t@31": ("found.t", None),
        "o.t@32": ("o.t", None),
    }


def test_a_table_of_which_nothing_was_known_is_still_unknown() -> None:
    before = after(*DROPPED)
    assert after((30, "RECOVER TABLE nobody"), (31, "FLASHBACK DATABASE nowhere"), catalog=before) == before


def test_what_would_not_be_the_dropped_table_is_refused() -> None:
    again = after(*DROPPED, (30, SHOP))
    assert refused((40, "FLASHBACK TABLE orders TO o"), catalog=again).message.startswith("shop.orders exists; rows that TRUNCATE removed")
    taken = refused(*DROPPED, (30, "CREATE TABLE o (a INT)"), (40, "FLASHBACK TABLE orders TO o"))
    assert (taken.code, taken.message) == ("TABLE_EXISTS", "shop.o already exists, the dropped table cannot take its name")


def test_what_left_a_dropped_table_is_remembered_for_its_return() -> None:
    truncated = after((1, SHOP), (5, "TRUNCATE orders"), (9, "DROP TABLE orders")).opened()
    assert only(truncated).truncations == (5,)
    back = after((20, "RECOVER TABLE orders"), catalog=truncated)
    assert (only(back).truncations, only(back.opened()).truncations) == ((5,), ())
