"""The handle of a table never changes unseen."""

from __future__ import annotations

import pytest

from tests.history.incarnations.lives import after, altered, only, refused

UNIQUE = "CREATE TABLE orders (a INT NOT NULL, b INT NOT NULL, c INT, v INT AS (a) VIRTUAL NOT NULL, UNIQUE ab (a, b))"


@pytest.mark.parametrize(
    ("clause", "follows"),
    [
        ("ADD UNIQUE (c)", True),  # c may be NULL
        ("ADD UNIQUE (b, a)", True),  # not smaller
        ("ADD UNIQUE (v)", True),  # never sent, so never a handle
        ("ADD UNIQUE ((a + 1))", True),
        ("ADD UNIQUE (b)", False),
        ("DROP INDEX ab", False),
        ("DROP INDEX AB", False),
        ("DROP INDEX other", True),
        ("RENAME INDEX ab TO x, DROP INDEX ab", True),
        ("RENAME INDEX ab TO x, DROP INDEX x", False),
        ("MODIFY a INT", False),  # it may be NULL now
        ("MODIFY a BIGINT NOT NULL", True),
        ("DROP b", False),
    ],
)
def test_a_table_whose_handle_would_change_is_not_followed(clause: str, follows: bool) -> None:
    before = after((1, UNIQUE))
    assert only(before).key == (1, 2)
    if follows:
        assert only(after((2, f"ALTER TABLE orders {clause}"), catalog=before)).key == (1, 2)
    else:
        assert refused((2, f"ALTER TABLE orders {clause}"), catalog=before).code == "UNSUPPORTED_DDL"


def test_a_primary_key_stays_the_handle_whatever_indexes_come() -> None:
    assert altered("ADD UNIQUE (total)", "MODIFY total INT NOT NULL", "ADD UNIQUE t2 (total)").key == (1,)


def test_a_table_without_a_key_would_take_the_first_that_fits() -> None:
    keyless = "CREATE TABLE orders (a INT, b INT NOT NULL)"
    assert only(after((1, keyless), (2, "ALTER TABLE orders ADD UNIQUE (a)"))).key == ()
    assert (
        refused((1, keyless), (2, "CREATE UNIQUE INDEX u ON orders (b)")).message
        == "the unique index 'u' becomes the handle of shop.orders"
    )


FRESH = "CREATE TABLE orders (a INT, b INT NOT NULL, c INT, PRIMARY KEY (a))"


@pytest.mark.parametrize(
    ("table", "clause", "key", "index"),
    [
        ("CREATE TABLE orders (a INT, b INT)", "ADD PRIMARY KEY (b, A)", (2, 1), "PRIMARY"),
        ("CREATE TABLE orders (a INT, b INT)", "ADD COLUMN id BIGINT AUTO_INCREMENT PRIMARY KEY FIRST", (3,), "PRIMARY"),
        (FRESH, "DROP PRIMARY KEY, ADD PRIMARY KEY (a, b)", (1, 2), "PRIMARY"),
        ("CREATE TABLE orders (a INT, b INT NOT NULL)", "ADD UNIQUE u (b)", (2,), "u"),
        (UNIQUE, "ADD UNIQUE only_b (b)", (2,), "only_b"),
        (UNIQUE, "ADD PRIMARY KEY (b)", (2,), "PRIMARY"),
    ],
)
def test_a_table_without_rows_takes_any_key(table: str, clause: str, key: tuple[int, ...], index: str) -> None:
    made = after((1, table), rows=False)
    i = only(after((2, f"ALTER TABLE orders {clause}"), catalog=made, rows=False))
    assert (i.key, i.key_index, i.empty) == (key, index, True)
    assert all(not c.nullable for c in i.columns if c.id in key)
    assert refused((1, table), (2, f"ALTER TABLE orders {clause}")).code == "UNSUPPORTED_DDL"


def test_a_primary_key_over_the_columns_of_the_handle_changes_no_row() -> None:
    i = only(after((1, UNIQUE), (2, "ALTER TABLE orders ADD PRIMARY KEY (b, a)")))
    assert (i.key, i.key_index) == ((1, 2), "PRIMARY")


def test_what_a_primary_key_replaces_is_told() -> None:
    error = refused((1, UNIQUE), (2, "ALTER TABLE orders ADD PRIMARY KEY (b)"))
    assert error.message == "the statement changes the key of shop.orders from (a, b) to the primary key"
    assert (
        "changes the key of shop.w from none to the primary key"
        in refused((1, "CREATE TABLE w (a INT)"), (2, "ALTER TABLE w ADD PRIMARY KEY (a)")).message
    )


def test_a_primary_key_that_nothing_replaces_is_not_followed_even_without_rows() -> None:
    made = after((1, FRESH), rows=False)
    assert refused((2, "ALTER TABLE orders DROP PRIMARY KEY"), catalog=made).code == "UNSUPPORTED_DDL"


@pytest.mark.parametrize("clause", ["ADD x TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "ADD x INT AS (a) STORED", "MODIFY c JSON"])
def test_a_table_without_rows_takes_any_column(clause: str) -> None:
    made = after((1, FRESH), rows=False)
    assert only(after((2, f"ALTER TABLE orders {clause}"), catalog=made)) != only(made)
    assert refused((1, FRESH), (2, f"ALTER TABLE orders {clause}")).code == "UNSUPPORTED_DDL"
