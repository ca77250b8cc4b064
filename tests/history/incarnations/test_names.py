"""What a table was called at any TSO, and statements that mean no table."""

from __future__ import annotations

import pytest

from tests.history.incarnations.lives import SHOP, after, names, only, refused
from tidelake.history.incarnations import ALWAYS, Name


def test_a_table_holds_rows_after_its_create() -> None:
    catalog = after((100, SHOP))
    assert catalog.at("shop", "orders", 100) is None
    assert catalog.at("shop", "orders", 101) is only(catalog)
    assert (only(catalog).from_ts, only(catalog).name, only(catalog).id) == (100, "shop.orders", "shop.orders@100")


def test_a_row_exactly_at_a_statement_is_older_and_an_asof_there_is_younger() -> None:
    catalog = after((1, SHOP), (100, "RENAME TABLE orders TO sales"))
    i = only(catalog)
    assert (catalog.at("shop", "orders", 100), catalog.at("shop", "sales", 100)) == (i, None)
    assert (catalog.at("shop", "orders", 101), catalog.at("shop", "sales", 101)) == (None, i)
    assert (catalog.asof("shop", "orders", 99), catalog.asof("shop", "orders", 100)) == (i, None)
    assert catalog.asof("shop", "sales", 100) is i


def test_a_dropped_table_s_last_row_is_at_the_drop() -> None:
    catalog = after((1, SHOP), (100, "DROP TABLE orders"))
    assert catalog.at("shop", "orders", 100) is only(catalog)
    assert catalog.at("shop", "orders", 101) is None
    assert catalog.asof("shop", "orders", 99) is only(catalog)
    assert catalog.asof("shop", "orders", 100) is None
    assert (only(catalog).dropped_ts, catalog.alive()) == (100, [])


def test_drop_and_create_of_one_name_are_two_lives_of_rows() -> None:
    catalog = after((1, SHOP), (100, "DROP TABLE orders"), (105, "CREATE TABLE orders (a INT)"))
    old, new = catalog.incarnations.values()
    assert [catalog.at("shop", "orders", ts) for ts in (100, 101, 105, 106)] == [old, None, None, new]
    assert (old.id, new.id) == ("shop.orders@1", "shop.orders@105")
    assert (names(old.columns), names(new.columns)) == (["id", "note", "total"], ["a"])


def test_lives_born_at_one_ts_have_different_ids() -> None:
    born = (100, SHOP), (100, "DROP TABLE orders")
    catalog = after(*born, *born, (100, SHOP))
    assert list(catalog.incarnations) == ["shop.orders@100", "shop.orders@100#1", "shop.orders@100#2"]
    assert catalog.at("shop", "orders", 101) is catalog.incarnations["shop.orders@100#2"]


def test_names_ignore_case() -> None:
    catalog = after((1, "CREATE TABLE Shop.Orders (Id INT PRIMARY KEY)"), (2, "ALTER TABLE SHOP.ORDERS RENAME COLUMN ID TO Key_"))
    assert catalog.find("sHOP", "oRDERS") is only(catalog)
    assert catalog.at("shop", "ORDERS", 3) is only(catalog)
    assert only(catalog).column("KEY_") == only(catalog).columns[0]


def test_a_table_may_change_the_case_of_its_name() -> None:
    catalog = after((1, SHOP), (5, "RENAME TABLE orders TO Orders"))
    assert only(catalog).name == "shop.Orders"
    assert [n.until_ts for n in only(catalog).names] == [5, None]


def test_dots_in_names_are_part_of_them() -> None:
    catalog = after((1, "CREATE TABLE `a.b`.`c` (x INT)"), (2, "CREATE TABLE `a`.`b.c` (y INT)"))
    one, other = catalog.incarnations.values()
    assert (catalog.find("a.b", "c"), catalog.find("a", "b.c")) == (one, other)


def test_a_rename_moves_a_table_between_databases() -> None:
    catalog = after((1, SHOP), (5, "RENAME TABLE orders TO archive.orders"), (9, "DROP DATABASE shop"))
    assert only(catalog).names == (
        Name(database="shop", table="orders", after_ts=1, until_ts=5),
        Name(database="archive", table="orders", after_ts=5),
    )
    assert catalog.alive() == [only(catalog)]


def test_dropping_a_database_ends_its_tables_and_no_others() -> None:
    catalog = after((1, SHOP), (2, "CREATE TABLE t (a INT)"), (3, "CREATE TABLE other.t (a INT)"), (9, "DROP DATABASE SHOP"))
    assert {i.name: i.dropped_ts for i in catalog.incarnations.values()} == {"shop.orders": 9, "shop.t": 9, "other.t": None}


def test_three_renames_at_one_ts_swap_two_tables() -> None:
    queries = ["RENAME TABLE a TO tmp", "RENAME TABLE b TO a", "RENAME TABLE tmp TO b"]
    catalog = after((1, "CREATE TABLE a (x INT)"), (2, "CREATE TABLE b (y INT)"), *((50, q) for q in queries))
    a, b = catalog.incarnations.values()
    assert [catalog.at("shop", "a", ts) for ts in (50, 51)] == [a, b]
    assert [catalog.at("shop", "b", ts) for ts in (50, 51)] == [b, a]
    assert {catalog.at("shop", "tmp", ts) for ts in (49, 50, 51)} == {None}
    assert catalog.asof("shop", "a", 50) is b
    assert after((1, "CREATE TABLE a (x INT)"), (2, "CREATE TABLE b (y INT)"), (50, "RENAME TABLE a TO tmp, b TO a, tmp TO b")) == catalog


def test_a_name_that_is_taken_is_not_given_twice() -> None:
    error = refused((1, SHOP), (2, "CREATE TABLE t (a INT)"), (3, "RENAME TABLE t TO ORDERS"))
    assert (error.code, error.message) == ("TABLE_EXISTS", "shop.orders already exists, shop.t cannot take its name")


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE x",
        "TRUNCATE x",
        "RENAME TABLE x TO y",
        "ALTER TABLE x ADD a INT",
        "ALTER TABLE x ADD a TIMESTAMP DEFAULT CURRENT_TIMESTAMP",
        "ALTER TABLE x DROP a",
        "ALTER TABLE x MODIFY a INT",
        "ALTER TABLE x RENAME COLUMN a TO b",
        "ALTER TABLE x ADD UNIQUE (a)",
        "ALTER TABLE x DROP INDEX a",
        "ALTER TABLE x RENAME INDEX a TO b",
        "CREATE TABLE y LIKE x",
        "DROP DATABASE x",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE orders COMMENT 'x'",
    ],
)
def test_statements_about_unknown_tables_and_harmless_ones_have_no_effect(query: str) -> None:
    before = after((1, SHOP))
    assert after((2, query), catalog=before) == before


def test_a_statement_that_cannot_be_followed_is_refused() -> None:
    error = refused((1, SHOP), (2, "ALTER TABLE orders FROBNICATE"))
    assert (error.code, error.message) == ("UNSUPPORTED_DDL", "this version cannot follow ALTER TABLE … FROBNICATE")


def test_rows_up_to_and_including_a_truncate_leave() -> None:
    catalog = after((1, SHOP), (100, "TRUNCATE orders"), (200, "TRUNCATE TABLE orders"))
    i = only(catalog)
    assert [i.truncated(ts) for ts in (99, 100, 199, 200, 300)] == [ALWAYS, 100, 100, 200, 200]
    assert catalog.at("shop", "orders", 150) is i


def test_the_next_window_starts_without_what_no_later_row_meets() -> None:
    catalog = after((1, SHOP), (5, "TRUNCATE orders"), (6, "ALTER TABLE orders ADD x INT"), (7, "RENAME TABLE orders TO sales"))
    i = only(catalog.opened())
    assert (i.truncations, len(i.segments), i.columns) == ((), 1, only(catalog).columns)
    assert i.names == only(catalog).names
