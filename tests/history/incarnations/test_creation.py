"""Creating what already exists, and tables like others."""

from __future__ import annotations

import pytest

from tests.history.incarnations.lives import SHOP, after, only, refused
from tidelake.history.incarnations import ALWAYS, Catalog


def defined(query: str) -> Catalog:
    """As tables.sql defines it: before every row."""
    return after((ALWAYS, query))


@pytest.mark.parametrize(
    "query",
    [
        SHOP,
        "CREATE TABLE Orders (ID INT(11) PRIMARY KEY, note VARCHAR(20) NOT NULL DEFAULT 'x', total NUMERIC(10,2), KEY k (note))",
        "CREATE TABLE orders (id INT, note VARCHAR(20), v INT AS (id) VIRTUAL, total DECIMAL(10,2), PRIMARY KEY (id))",
        "CREATE TABLE IF NOT EXISTS orders (quite_other INT)",
    ],
)
def test_the_create_of_a_table_that_tables_sql_defines_alike_changes_nothing(query: str) -> None:
    before = defined(SHOP)
    assert after((100, query), catalog=before) == before
    assert before.at("shop", "orders", 1) is only(before)


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))",
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR(20), total DECIMAL(10,2))",
        "CREATE TABLE orders (id INT, note VARCHAR(20), total DECIMAL(10,2))",
        "CREATE TABLE orders (id INT, note VARCHAR(20), total DECIMAL(10,2), PRIMARY KEY (id, note))",
    ],
)
def test_the_create_of_a_table_that_tables_sql_defines_otherwise_is_refused(query: str) -> None:
    error = refused((100, query), catalog=defined(SHOP))
    said = "shop.orders already exists, as tables.sql defines it, with other columns or another key"
    assert (error.code, error.message) == ("TABLE_EXISTS", said)
    assert "since TSO 5, with other" in refused((5, SHOP), (100, query)).message


def test_a_table_like_another_takes_its_columns_and_key_but_not_its_history() -> None:
    source = "CREATE TABLE a (x INT, k INT NOT NULL, v INT AS (x) VIRTUAL, UNIQUE u (k))"
    catalog = after((1, source), (2, "ALTER TABLE a ADD n INT NOT NULL DEFAULT 5"), (3, "CREATE TABLE b LIKE a"))
    a, b = catalog.incarnations.values()
    assert [(c.name, c.type, c.nullable) for c in b.columns] == [(c.name, c.type, c.nullable) for c in a.columns]
    assert [(c.since_ts, c.default) for c in b.columns] == [(ALWAYS, None)] * 3
    assert (b.key, b.key_index, b.from_ts) == ((2,), "u", 3)
    assert refused((4, "DROP INDEX u ON b"), catalog=catalog).code == "UNSUPPORTED_DDL"
