"""The handle of a table never changes unseen."""

from __future__ import annotations

import pytest

from tests.history.incarnations.lives import SHOP, after, altered, only, refused
from tidelake.history.incarnations import ALWAYS, Incarnation, Rekey

UNIQUE = "CREATE TABLE orders (a INT NOT NULL, b INT NOT NULL, c INT, v INT AS (a) VIRTUAL NOT NULL, UNIQUE ab (a, b))"


@pytest.mark.parametrize(
    "clause",
    [
        "ADD UNIQUE (c)",  # c may be NULL
        "ADD UNIQUE (b, a)",  # not smaller
        "ADD UNIQUE (v)",  # never sent, so never a handle
        "ADD UNIQUE ((a + 1))",
        "DROP INDEX other",
        "RENAME INDEX ab TO x, DROP INDEX ab",
        "MODIFY a BIGINT NOT NULL",
        "ADD UNIQUE ba (b, a), DROP INDEX ab",  # the same columns
        "ADD PRIMARY KEY (b, a)",
    ],
)
def test_a_life_goes_on_while_the_same_columns_tell_its_rows_apart(clause: str) -> None:
    assert only(after((1, UNIQUE), (2, f"ALTER TABLE orders {clause}"))).key == (1, 2)


@pytest.mark.parametrize(
    ("clause", "why"),
    [
        ("DROP INDEX ab", "the index 'ab' is the handle of shop.orders: no other unique index without NULL is left"),
        ("DROP INDEX AB", "the index 'AB' is the handle"),
        ("RENAME INDEX ab TO x, DROP INDEX x", "the index 'x' is the handle"),
        ("ADD UNIQUE (c), DROP INDEX ab", "the index 'ab' is the handle of shop.orders: no other unique index without NULL is left"),
        ("ADD UNIQUE (b), DROP INDEX ab, DROP INDEX b", "the index 'b' is the handle"),
        ("MODIFY a INT", "column 'a' of the key of shop.orders becomes nullable"),
        ("DROP b", "column 'b' is part of the key"),
    ],
)
def test_what_leaves_no_certain_key_is_refused(clause: str, why: str) -> None:
    error = refused((1, UNIQUE), (2, f"ALTER TABLE orders {clause}"))
    assert (error.code, error.message.startswith(why)) == ("UNSUPPORTED_DDL", True)


def test_a_primary_key_stays_the_handle_whatever_indexes_come() -> None:
    assert altered("ADD UNIQUE (total)", "MODIFY total INT NOT NULL", "ADD UNIQUE t2 (total)").key == (1,)


def lives(*statements: tuple[int, str]) -> tuple[Incarnation, Incarnation]:
    """The two lives of the table."""
    first, second = after(*statements).incarnations.values()
    return first, second


def test_a_table_without_a_key_takes_the_first_that_fits() -> None:
    keyless = "CREATE TABLE orders (a INT, b INT NOT NULL)"
    assert only(after((1, keyless), (2, "ALTER TABLE orders ADD UNIQUE (a)"))).key == ()
    first, second = lives((1, keyless), (2, "CREATE UNIQUE INDEX u ON orders (b)"))
    assert (first.key, first.dropped_ts) == ((), 2)
    assert (second.key, second.key_index, second.dropped_ts) == ((2,), "u", None)
    assert (second.former, second.rekey, second.changes_after) == (first.id, Rekey(ts=2, number=0), 1)


@pytest.mark.parametrize(
    ("made", "clause", "key", "index"),
    [
        (UNIQUE, "ADD UNIQUE (b)", (2,), "b"),
        (UNIQUE, "ADD PRIMARY KEY (b)", (2,), "PRIMARY"),
        (UNIQUE, "ADD PRIMARY KEY (c)", (3,), "PRIMARY"),
        (UNIQUE, "ADD UNIQUE three (a, b, c), MODIFY c INT NOT NULL, DROP INDEX ab", (1, 2, 3), "three"),
        (UNIQUE, "ADD PRIMARY KEY (b), DROP COLUMN a", (2,), "PRIMARY"),
        (SHOP, "DROP PRIMARY KEY, ADD PRIMARY KEY (note, id)", (2, 1), "PRIMARY"),
        (SHOP, "MODIFY note VARCHAR(20) NOT NULL, ADD UNIQUE n (note), DROP PRIMARY KEY", (2,), "n"),
        (SHOP, "DROP PRIMARY KEY, DROP COLUMN id, ADD PRIMARY KEY (note)", (2,), "PRIMARY"),
    ],
)
def test_another_key_of_a_table_with_rows_begins_another_life(made: str, clause: str, key: tuple[int, ...], index: str) -> None:
    first, second = lives((1, made), (2, f"ALTER TABLE orders {clause}"))
    assert (second.key, second.key_index, second.from_ts, second.empty) == (key, index, 2, False)
    assert all(not c.nullable and c.since_ts == ALWAYS for c in second.columns if c.id in key)
    assert first.columns_at(2) == first.columns
    assert {c.id for c in second.columns} <= {c.id for c in first.columns}
    catalog = after((1, made), (2, f"ALTER TABLE orders {clause}"))
    assert [catalog.at("shop", "orders", ts) for ts in (2, 3)] == [first, second]
    assert [i.rekey for i in catalog.opened().incarnations.values()] == [None, None]


def test_the_index_with_the_fewest_columns_is_the_next_handle_the_oldest_of_several() -> None:
    columns = "a INT PRIMARY KEY, b INT NOT NULL, c INT NOT NULL"
    made = f"CREATE TABLE orders ({columns}, UNIQUE bc (b, c), UNIQUE c (c), UNIQUE b (b))"
    assert lives((1, made), (2, "ALTER TABLE orders DROP PRIMARY KEY"))[1].key_index == "c"
    *_, copy = after((1, made), (2, "CREATE TABLE x LIKE orders"), (3, "ALTER TABLE x DROP PRIMARY KEY")).incarnations.values()
    assert (copy.name, copy.key_index) == ("shop.x", "c")
    assert lives((1, made), (2, "ALTER TABLE orders RENAME INDEX c TO z, DROP INDEX z, DROP PRIMARY KEY"))[1].key_index == "b"
    dropped = [(2, "ALTER TABLE orders DROP INDEX c, DROP COLUMN b"), (3, "ALTER TABLE orders DROP PRIMARY KEY")]
    assert lives((1, made), *dropped)[1].key_index == "bc"  # which has one column now


def test_an_index_that_is_no_handle_has_no_effect() -> None:
    assert after((1, SHOP), (2, "ALTER TABLE orders ADD UNIQUE (note)")) == after((1, SHOP))


def test_a_statement_changes_a_key_once_and_its_copy_not_at_all() -> None:
    both = "ALTER TABLE orders ADD UNIQUE (b), ADD PRIMARY KEY (c)"
    first, second = lives((1, UNIQUE), (2, both))
    assert (second.key, second.former, second.rekey) == ((3,), first.id, Rekey(ts=2, number=0))
    assert lives((1, UNIQUE), (2, both), (2, "ALTER TABLE orders ADD PRIMARY KEY (c)")) == (first, second)
    *_, third = after((1, UNIQUE), (2, both), (3, "ALTER TABLE orders DROP PRIMARY KEY")).incarnations.values()
    assert (third.key_index, third.former, third.rekey) == ("b", second.id, Rekey(ts=3, number=0))


def test_statements_of_one_ts_that_move_rows_are_counted_together() -> None:
    made = [(1, f"CREATE TABLE {t} (a INT PRIMARY KEY, b INT NOT NULL)") for t in ("x", "y")]
    catalog = after(*made, *((2, f"ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (b)") for t in ("y", "x")))
    assert {i.name: i.rekey.number for i in catalog.alive() if i.rekey} == {"shop.y": 0, "shop.x": 1}


def test_the_next_life_has_every_name_for_rules_and_the_last_one_for_rows() -> None:
    catalog = after((1, UNIQUE), (2, "RENAME TABLE orders TO o"), (3, "ALTER TABLE o ADD PRIMARY KEY (c)"))
    first, second = catalog.incarnations.values()
    assert [(n.table, n.after_ts, n.until_ts) for n in second.names] == [("orders", 3, 3), ("o", 3, None)]
    assert [catalog.at("shop", t, ts) for t, ts in (("orders", 2), ("orders", 3), ("o", 3), ("o", 4))] == [first, None, first, second]


def test_only_a_table_that_was_dropped_comes_back() -> None:
    made = [(1, UNIQUE), (2, "DROP TABLE orders"), (3, UNIQUE), (4, "ALTER TABLE orders ADD PRIMARY KEY (c)")]
    made += [(5, "RENAME TABLE orders TO x"), (6, "RECOVER TABLE orders")]
    assert [(i.name, i.from_ts) for i in after(*made).alive()] == [("shop.orders", 1), ("shop.x", 4)]
    gone = after(*made[2:4], (5, "DROP DATABASE shop"), (6, "FLASHBACK DATABASE shop"))
    assert [i.key for i in gone.alive()] == [(3,)]


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


def test_a_primary_key_over_the_columns_of_the_handle_changes_no_row() -> None:
    i = only(after((1, UNIQUE), (2, "ALTER TABLE orders ADD PRIMARY KEY (b, a)")))
    assert (i.key, i.key_index) == ((1, 2), "PRIMARY")


def test_a_primary_key_that_nothing_replaces_is_not_followed_even_without_rows() -> None:
    made = after((1, FRESH), rows=False)
    assert refused((2, "ALTER TABLE orders DROP PRIMARY KEY"), catalog=made).code == "UNSUPPORTED_DDL"


@pytest.mark.parametrize("clause", ["ADD x TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "ADD x INT AS (a) STORED", "MODIFY c JSON"])
def test_a_table_without_rows_takes_any_column(clause: str) -> None:
    made = after((1, FRESH), rows=False)
    assert only(after((2, f"ALTER TABLE orders {clause}"), catalog=made)) != only(made)
    assert refused((1, FRESH), (2, f"ALTER TABLE orders {clause}")).code == "UNSUPPORTED_DDL"
