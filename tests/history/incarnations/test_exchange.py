"""Partitions that change places with tables: what the catalog keeps of it, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.history.incarnations.lives import after, refused
from tidelake.history.ddl.statement import parse
from tidelake.history.evolution import apply
from tidelake.history.incarnations import Catalog, Exchange, Incarnation, Removal

RANGE = "RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)"
P = f"CREATE TABLE p (id INT, v VARCHAR(9), PRIMARY KEY (id)) PARTITION BY {RANGE}"
T = "CREATE TABLE t (v VARCHAR(9), ID INT PRIMARY KEY)"
SWAP = "ALTER TABLE p EXCHANGE PARTITION P0 WITH TABLE t"
LOW = Removal(ts=10, column=1, high="10", null=True)


def life(catalog: Catalog, name: str) -> Incarnation:
    (found,) = [i for i in catalog.incarnations.values() if i.name == f"shop.{name}"]
    return found


def test_both_tables_know_what_changed_places() -> None:
    before = after((1, P), (2, T))
    catalog = after((10, SWAP), catalog=before)
    p, t = life(catalog, "p"), life(catalog, "t")
    assert p.exchanges == (Exchange(ts=10, number=0, other=t.id, partition="P0", part=LOW),)
    assert t.exchanges == (Exchange(ts=10, number=0, other=p.id, partition="P0"),)
    assert [replace(i, exchanges=()) for i in (p, t)] == list(before.incarnations.values())
    assert all(not i.exchanges for i in catalog.opened().incarnations.values())
    dropped = after((11, "DROP TABLE t"), catalog=catalog)
    assert all(not i.exchanges for i in dropped.opened().incarnations.values())


def test_the_same_statement_in_other_words_is_one_and_others_at_its_ts_are_counted() -> None:
    once = after((1, P), (2, T), (10, SWAP))
    assert after((10, f"{SWAP.replace(' t', ' `shop`.`t`')} WITHOUT VALIDATION"), catalog=once) == once
    other = after((10, SWAP.replace("P0", "p1")), catalog=once)
    assert [(e.number, e.partition) for e in life(other, "t").exchanges] == [(0, "P0"), (1, "p1")]


def test_two_tables_without_rows_stay_as_they_are_and_one_with_rows_gives_them_to_the_other() -> None:
    empty = after((1, P), (2, T), rows=False)
    assert after((10, SWAP), catalog=empty, rows=False) == empty
    t = life(empty, "t")
    one = after((10, SWAP), catalog=empty.with_(replace(t, empty=False)), rows=False)
    assert [i.empty for i in one.incarnations.values()] == [False, False]
    assert all(i.exchanges for i in one.incarnations.values())


@pytest.mark.parametrize(
    ("other", "statement", "why"),
    [
        (T.replace("VARCHAR(9)", "VARCHAR(8)"), SWAP, "rows of shop.t do not fit partition 'P0' of shop.p: columns v differ"),
        (T.replace("v VARCHAR(9),", ""), SWAP, "columns v differ"),
        (T.replace("ID INT PRIMARY KEY", "ID INT"), SWAP, "keys differ"),
        (T, SWAP.replace("P0", "p9"), "the rows of partition 'p9' of shop.p cannot be determined"),
        (T, "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE p", "its partitioning is unknown, or not by plain columns"),
        (T, SWAP.replace("TABLE t", "TABLE p"), "keys differ"),
        (T, SWAP.replace("TABLE t", "TABLE x"), "shop.p exchanges rows with a table that is unknown"),
        (T, SWAP.replace("TABLE p", "TABLE x"), "shop.t exchanges rows with a table that is unknown"),
    ],
)
def test_an_exchange_whose_rows_are_unknown_is_refused(other: str, statement: str, why: str) -> None:
    error = refused((1, P), (2, other), (10, statement))
    assert error.code == "UNSUPPORTED_DDL"
    assert why in error.message


@pytest.mark.parametrize(
    "by",
    [
        "RANGE COLUMNS (id, v) (PARTITION p0 VALUES LESS THAN (10, 'a'))",
        "RANGE (id % 9) (PARTITION p0 VALUES LESS THAN (5))",
    ],
)
def test_partitions_that_cannot_be_told_by_a_column_are_refused(by: str) -> None:
    assert refused((1, P.replace(RANGE, by)), (2, T), (10, SWAP)).code == "UNSUPPORTED_DDL"


def test_tables_of_which_nothing_is_known_have_nothing_to_exchange() -> None:
    assert after((10, SWAP)) == Catalog()
    (change,) = parse(SWAP, "shop")
    unknown = after((1, P), rows=False)
    assert apply(unknown, 10, change) == unknown
