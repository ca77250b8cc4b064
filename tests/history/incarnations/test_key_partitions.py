"""Partitions BY KEY: rows that leave with one, in TiDB; what stays unknown, and what another server may have placed otherwise."""

from __future__ import annotations

import pytest

from tests.history.incarnations.lives import after, only, refused
from tests.history.windows import compiled, row_schema, said, seen
from tidelake.config.policy import Policy
from tidelake.errors import OrderError
from tidelake.history.incarnations import Catalog, Incarnation, Partitions, Removal
from tidelake.history.window import Statement, compile_window

COLUMNS = "id INT, n BIGINT UNSIGNED, b VARBINARY(9), y YEAR, PRIMARY KEY (n, id, b, y)"
EMPTIED = "ALTER TABLE orders TRUNCATE PARTITION p1"


def emptied(by: str, columns: str = COLUMNS, statement: str = EMPTIED) -> Incarnation:
    return only(after((1, f"CREATE TABLE orders ({columns}) PARTITION BY {by}"), (10, statement)))


@pytest.mark.parametrize(
    ("by", "wanted"),
    [
        ("KEY (id) PARTITIONS 4", Removal(ts=10, column=1, values=("1",), modulus=4, hashed=(1,))),
        ("LINEAR KEY ALGORITHM = 1 (y, b, n) PARTITIONS 3", Removal(ts=10, column=4, values=("1",), modulus=3, hashed=(4, 3, 2))),
        ("KEY () PARTITIONS 2", Removal(ts=10, column=2, values=("1",), modulus=2, hashed=(2, 1, 3, 4))),
        ("KEY (id) (PARTITION p1, PARTITION p0)", Removal(ts=10, column=1, values=("0",), modulus=2, hashed=(1,))),
    ],
)
def test_the_rows_of_a_truncated_partition_are_a_remainder_of_all_columns(by: str, wanted: Removal) -> None:
    assert emptied(by).removals == (wanted,)


LATER = "ALTER TABLE orders PARTITION BY KEY () PARTITIONS 2"


def test_a_table_partitioned_later_has_the_column_of_its_primary_key() -> None:
    i = only(after((1, "CREATE TABLE orders (n INT, id INT, PRIMARY KEY (id))"), (5, LATER), (10, EMPTIED)))
    assert i.removals == (Removal(ts=10, column=2, values=("1",), modulus=2, hashed=(2,)),)


def test_a_primary_key_whose_order_is_not_certain_tells_nothing_later() -> None:
    made = [(1, "CREATE TABLE orders (a INT NOT NULL, b INT NOT NULL, UNIQUE u (a, b))"), (2, "ALTER TABLE orders ADD PRIMARY KEY (b, a)")]
    assert only(after(*made)).key == (1, 2)
    assert only(after(*made, (5, LATER))).partitions is None
    assert only(after(*made, (5, LATER.replace("KEY ()", "KEY (b, a)")))).partitions is not None
    catalog, _ = compiled([said(5, LATER)], [seen(2, 3, row_schema())])
    assert (only(catalog).guessed, only(catalog).key_index, only(catalog).partitions) == (True, "PRIMARY", None)


def test_a_table_like_another_is_partitioned_by_all_of_its_columns() -> None:
    made = f"CREATE TABLE first ({COLUMNS}) PARTITION BY KEY (id, n) PARTITIONS 2"
    _, copy = after((1, made), (2, "CREATE TABLE orders LIKE first"), (10, EMPTIED)).incarnations.values()
    assert copy.removals == (Removal(ts=10, column=1, values=("1",), modulus=2, hashed=(1, 2)),)


@pytest.mark.parametrize(
    ("by", "columns", "why"),
    [
        ("KEY () PARTITIONS 2", "id INT NOT NULL, UNIQUE (id)", "its partitioning is unknown, or not by plain columns"),
        ("KEY (nr) PARTITIONS 2", "id INT PRIMARY KEY", "its partitioning is unknown"),
        ("KEY (v) PARTITIONS 2", "id INT, v INT AS (id) VIRTUAL", "its partitioning is unknown"),
        ("KEY (n) PARTITIONS 2", "id INT PRIMARY KEY, n INT", "column 'n', the partitioning column, is not in its key"),
        *(
            ("KEY (id, c) PARTITIONS 2", f"id INT, c {kind}", f"column 'c' is {kind.lower()}")
            for kind in ("DECIMAL(10,2)", "VARCHAR(9)", "CHAR(9)", "DATE", "DATETIME(3)", "TIMESTAMP", "TIME", "DOUBLE", "FLOAT", "BIT(9)")
        ),
        ("KEY (c) PARTITIONS 2", "c ENUM('a','b')", "column 'c' is enum('a','b')"),
    ],
)
def test_what_cannot_be_told_is_refused(by: str, columns: str, why: str) -> None:
    error = refused((1, f"CREATE TABLE orders ({columns}) PARTITION BY {by}"), (10, EMPTIED))
    assert error.code == "UNSUPPORTED_DDL"
    assert error.message.startswith(f"the rows of partition 'p1' of shop.orders cannot be determined: {why}")


def test_no_server_replaces_partitions_of_a_key() -> None:
    statement = "ALTER TABLE orders REORGANIZE PARTITION p0 INTO (PARTITION x)"
    assert emptied("KEY (id) PARTITIONS 4", statement=statement).partitions is None


def test_no_server_drops_one_partition_of_a_key() -> None:
    made = f"CREATE TABLE orders ({COLUMNS}) PARTITION BY KEY (id) PARTITIONS 4"
    error = refused((1, made), (10, "ALTER TABLE orders DROP PARTITION p1"))
    assert (error.code, "none can be dropped" in error.message) == ("UNSUPPORTED_DDL", True)


def test_what_the_catalog_keeps_of_a_key() -> None:
    by = emptied("KEY (n, id) PARTITIONS 2").partitions
    assert isinstance(by, Partitions)
    assert (by.kind, by.column, by.others, [(p.name, p.values) for p in by.parts]) == ("key", 2, (1,), [("p0", ("0",)), ("p1", ("1",))])


MADE = [
    said(1, "CREATE TABLE orders (id BIGINT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 4"),
    said(1, "CREATE TABLE o (id BIGINT PRIMARY KEY)"),
]
SWAP = "ALTER TABLE orders EXCHANGE PARTITION p1 WITH TABLE o WITHOUT VALIDATION"
ROWS = [seen(2, 3, row_schema())]


@pytest.mark.parametrize("statement", [EMPTIED, SWAP])
def test_only_tidb_places_rows_by_a_rule_that_is_known(statement: str) -> None:
    told: list[Statement] = [*MADE, said(10, statement)]
    catalog = compile_window(Catalog(), told, ROWS, Policy(), of_tidb=True).catalog
    orders, _ = catalog.incarnations.values()
    wanted = Removal(ts=10, column=1, values=("1",), modulus=4, hashed=(1,))
    assert [*orders.removals, *(e.part for e in orders.exchanges)] == [wanted]
    with pytest.raises(OrderError, match=r"a partition of shop\.orders cannot be determined: .* known for TiDB only") as error:
        compile_window(Catalog(), told, ROWS, Policy())
    assert error.value.code == "UNSUPPORTED_DDL"
    ignored, ledger = compiled(told, ROWS, ddl="ignore")
    assert (ledger[-1], next(iter(ignored.incarnations.values())).removals) == ("10 ignored", ())


def test_another_server_may_empty_all_partitions_and_those_of_a_table_without_rows() -> None:
    both = said(10, "ALTER TABLE orders TRUNCATE PARTITION ALL"), said(11, "ALTER TABLE o COMMENT = 'x'")
    catalog, ledger = compiled([*MADE, *both], ROWS)
    assert ledger[2:] == ["10 applied", "11 no effect"]
    assert compiled([*MADE, said(10, EMPTIED)], [])[1][2:] == ["10 no effect"]
    later = compiled([said(20, "ALTER TABLE orders ADD COLUMN a INT")], [], catalog.opened())[1]
    assert later == ["20 applied"]
