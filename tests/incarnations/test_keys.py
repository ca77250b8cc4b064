"""The handle of a table never changes unseen."""

from __future__ import annotations

import pytest

from tests.incarnations.lives import after, altered, only, refused

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
