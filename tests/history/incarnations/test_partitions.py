"""Rows that leave with their partition, by the columns of a row; a partition whose rows are unknown is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.history.incarnations.lives import after, only, refused
from tidelake.history.ddl.changes import Partition
from tidelake.history.incarnations import Incarnation, Partitions, Removal

RANGE = "RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN MAXVALUE)"
MONTHS = """(PARTITION `jan` VALUES LESS THAN (TO_DAYS(_UTF8MB4'2026-02-01')), PARTITION `feb` VALUES LESS THAN (740041),
    PARTITION rest VALUES LESS THAN (MAXVALUE))"""


def table(by: str, columns: str = "id INT, d DATE, n BIGINT UNSIGNED, v VARCHAR(9), t DATETIME(3), PRIMARY KEY (id, d, n, v, t)") -> str:
    return f"CREATE TABLE orders ({columns}) /*!50100 PARTITION BY {by} */"


def partitioned(by: str, *clauses: str, columns: str | None = None) -> Incarnation:
    """The table after one ALTER a clause, at 10, 20, …"""
    made = table(by, columns) if columns else table(by)
    return only(after((1, made), *((10 * n, f"ALTER TABLE orders {c}") for n, c in enumerate(clauses, 1))))


def names(i: Incarnation) -> list[str] | None:
    return [p.name for p in i.partitions.parts] if i.partitions else None


@pytest.mark.parametrize(
    ("by", "partition", "wanted"),
    [
        (RANGE, "p0", Removal(ts=10, column=1, high="10", null=True)),
        (RANGE, "P1", Removal(ts=10, column=1, low="10", high="20")),
        (RANGE, "p2", Removal(ts=10, column=1, low="20")),
        (
            "RANGE (id) (PARTITION a VALUES LESS THAN (-5), PARTITION b VALUES LESS THAN (+5))",
            "b",
            Removal(ts=10, column=1, low="-5", high="5"),
        ),
        (
            "RANGE COLUMNS (`d`) (PARTITION a VALUES LESS THAN ('2026-01-01'))",
            "a",
            Removal(ts=10, column=2, high="2026-01-01", null=True, text=True),
        ),
        (
            "RANGE COLUMNS(t) (PARTITION a VALUES LESS THAN ('2026-01-01'), PARTITION b VALUES LESS THAN ('2026-01-01 12:00:00.5'))",
            "b",
            Removal(ts=10, column=5, low="2026-01-01", high="2026-01-01 12:00:00.5", text=True),
        ),
        (
            "RANGE (YEAR(d)) (PARTITION a VALUES LESS THAN (2025), PARTITION b VALUES LESS THAN (YEAR('2026-07-01')))",
            "b",
            Removal(ts=10, column=2, low="2025-01-01", high="2026-01-01", text=True),
        ),
        (f"RANGE (TO_DAYS(d)) {MONTHS}", "feb", Removal(ts=10, column=2, low="2026-02-01", high="2026-03-01", text=True)),
        ("LIST (n) (PARTITION a VALUES IN (1, 3), PARTITION b VALUES IN (NULL, 5))", "a", Removal(ts=10, column=3, values=("1", "3"))),
        (
            "LIST (n) (PARTITION a VALUES IN (1, 3), PARTITION b VALUES IN (NULL, 5))",
            "b",
            Removal(ts=10, column=3, values=("5",), null=True),
        ),
        ("LIST COLUMNS (d) (PARTITION a VALUES IN ('2026-01-01'))", "a", Removal(ts=10, column=2, values=("2026-01-01",), text=True)),
        ("HASH (id) PARTITIONS 4", "p0", Removal(ts=10, column=1, values=("0",), null=True, modulus=4)),
        ("HASH (n) PARTITIONS 2 (PARTITION even, PARTITION odd)", "odd", Removal(ts=10, column=3, values=("1",), modulus=2)),
    ],
)
def test_the_rows_of_a_truncated_partition_leave(by: str, partition: str, wanted: Removal) -> None:
    before = partitioned(by)
    i = partitioned(by, f"TRUNCATE PARTITION {partition}")
    assert i.removals == (wanted,)
    assert replace(i, removals=()) == before


def test_a_range_of_several_columns_is_a_box_for_each_way_to_be_in_it() -> None:
    by = "RANGE COLUMNS (id, d) (PARTITION a VALUES LESS THAN (5, '2026-01-01'), PARTITION b VALUES LESS THAN (7, MAXVALUE))"
    new_year = {"column": 2, "text": True, "ts": 10}
    assert partitioned(by, "TRUNCATE PARTITION a").removals == (
        Removal(ts=10, column=1, high="5", null=True),
        Removal(ts=10, column=1, low="5", high="6", also=(Removal(high="2026-01-01", null=True, **new_year),)),
    )
    assert partitioned(by, "TRUNCATE PARTITION b").removals == (
        Removal(ts=10, column=1, low="6", high="7"),
        Removal(ts=10, column=1, low="7", high="8"),
        Removal(ts=10, column=1, low="5", high="6", also=(Removal(low="2026-01-01", **new_year),)),
    )


def test_a_list_of_several_columns_is_a_box_for_each_tuple() -> None:
    by = "LIST COLUMNS (id, d) (PARTITION a VALUES IN ((1, '2026-01-01'), (NULL, '2026-01-02')), PARTITION b VALUES IN ((2, NULL)))"
    day = {"column": 2, "text": True}
    assert partitioned(by, "DROP PARTITION a", "TRUNCATE PARTITION b").removals == (
        Removal(ts=10, column=1, values=("1",), also=(Removal(ts=10, values=("2026-01-01",), **day),)),
        Removal(ts=10, column=1, values=(), null=True, also=(Removal(ts=10, values=("2026-01-02",), **day),)),
        Removal(ts=20, column=1, values=("2",), also=(Removal(ts=20, values=(), null=True, **day),)),
    )


def test_a_dropped_range_is_the_next_one_s_from_then_on() -> None:
    i = partitioned(RANGE, "DROP PARTITION p0, p1", "TRUNCATE PARTITION p2")
    assert names(i) == ["p2"]
    assert i.removals[:2] == (Removal(ts=10, column=1, high="10", null=True), Removal(ts=10, column=1, low="10", high="20"))
    assert i.removals[2:] == (Removal(ts=20, column=1, null=True),)


def test_partitions_that_are_added_or_reorganised_are_known_later_and_lose_no_row() -> None:
    by = "RANGE (id) (PARTITION p0 VALUES LESS THAN (10))"
    more = "ADD PARTITION (PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN (40))"
    split = "REORGANIZE PARTITION p1, p2 INTO (PARTITION a VALUES LESS THAN (15), PARTITION b VALUES LESS THAN (40))"
    i = partitioned(by, more, split)
    assert (names(i), i.removals) == (["p0", "a", "b"], ())
    assert partitioned(by, more, split, "DROP PARTITION b").removals == (Removal(ts=30, column=1, low="15", high="40"),)


def test_a_table_partitioned_later_or_like_another_is_known_too() -> None:
    plain = "CREATE TABLE orders (id INT PRIMARY KEY)"
    later = after(
        (1, plain),
        (2, f"ALTER TABLE orders PARTITION BY {RANGE}"),
        (3, "CREATE TABLE copy LIKE orders"),
        (4, "ALTER TABLE copy DROP PARTITION p1"),
    )
    orders, copy = later.incarnations.values()
    assert (names(orders), names(copy)) == (["p0", "p1", "p2"], ["p0", "p2"])
    assert (orders.removals, copy.removals) == ((), (Removal(ts=4, column=1, low="10", high="20"),))
    gone = only(after((1, plain), (2, f"ALTER TABLE orders PARTITION BY {RANGE}"), (3, "ALTER TABLE orders REMOVE PARTITIONING")))
    assert gone.partitions is None


def test_a_renamed_column_still_tells_the_partition() -> None:
    i = partitioned(RANGE, "RENAME COLUMN id TO nr", "TRUNCATE PARTITION p2")
    assert i.removals == (Removal(ts=20, column=1, low="20"),)


def test_all_partitions_are_the_table() -> None:
    assert partitioned("KEY (id) PARTITIONS 4", "TRUNCATE PARTITION ALL").truncations == (10,)


def test_a_table_without_rows_loses_none_however_it_is_partitioned() -> None:
    empty = after((1, table("KEY (id) PARTITIONS 4")), (2, "ALTER TABLE orders TRUNCATE PARTITION p0"), rows=False)
    assert (only(empty).empty, only(empty).removals) == (True, ())


@pytest.mark.parametrize(
    ("by", "partition", "why"),
    [
        ("LINEAR HASH (id) PARTITIONS 4", "p0", "its partitioning is unknown, or not by plain columns"),
        ("RANGE (id, n) (PARTITION p0 VALUES LESS THAN (1, 1))", "p0", "its partitioning is unknown"),
        ("RANGE COLUMNS (id, nr) (PARTITION p0 VALUES LESS THAN (1, 1))", "p0", "its partitioning is unknown"),
        ("RANGE COLUMNS (id, n) (PARTITION p0 VALUES LESS THAN (1, 2, 3))", "p0", "its bounds are not plain values"),
        ("RANGE COLUMNS (id, n) (PARTITION p0 VALUES LESS THAN (1, 2 + 1))", "p0", "its bounds are not plain values"),
        ("RANGE COLUMNS (id, v) (PARTITION p0 VALUES LESS THAN (1, 'm'))", "p0", "column 'v' is varchar(9)"),
        ("RANGE COLUMNS (t, id) (PARTITION p0 VALUES LESS THAN ('2026-01-01', 1))", "p0", "DATETIME may only be the last of its columns"),
        ("LIST COLUMNS (id, n) (PARTITION p0 VALUES IN ((1, 2), (3)))", "p0", "its values are not plain values"),
        ("LIST COLUMNS (id, n) (PARTITION p0 VALUES IN ((1, 2 + 1)))", "p0", "its values are not plain values"),
        ("LIST COLUMNS (id) (PARTITION p0 VALUES IN ((1)))", "p0", "its values are not plain values"),
        ("RANGE (MONTH(d)) (PARTITION p0 VALUES LESS THAN (5))", "p0", "its partitioning is unknown"),
        ("RANGE (id + 1) (PARTITION p0 VALUES LESS THAN (5))", "p0", "its partitioning is unknown"),
        (RANGE, "p9", "its partitioning is unknown"),
        ("HASH (id) PARTITIONS 4 (PARTITION a)", "a", "its partitioning is unknown"),
        ("RANGE (id) (PARTITION p0 VALUES LESS THAN (1 + 1))", "p0", "its bounds are not plain values"),
        ("RANGE (id) (PARTITION p0 VALUES LESS THAN (1 + 1), PARTITION p1 VALUES LESS THAN (9))", "p1", "its bounds are not plain values"),
        ("RANGE COLUMNS (v) (PARTITION p0 VALUES LESS THAN ('m'))", "p0", "column 'v' is varchar(9)"),
        ("RANGE COLUMNS (d) (PARTITION p0 VALUES LESS THAN ('2026-02-31'))", "p0", "its bounds are not plain values"),
        ("LIST (id) (PARTITION p0 VALUES IN (DEFAULT))", "p0", "its values are not plain values"),
        ("LIST COLUMNS (t) (PARTITION p0 VALUES IN ('2026-01-01'))", "p0", "its values are not plain values"),
    ],
)
def test_what_cannot_be_told_is_refused(by: str, partition: str, why: str) -> None:
    error = refused((1, table(by)), (2, f"ALTER TABLE orders TRUNCATE PARTITION {partition}"))
    assert error.code == "UNSUPPORTED_DDL"
    assert error.message.startswith(f"the rows of partition '{partition}' of shop.orders cannot be determined: {why}")


def test_a_partition_by_a_column_beside_the_key_is_refused_as_rows_may_come_without_it() -> None:
    made = "CREATE TABLE orders (id INT PRIMARY KEY, n INT) PARTITION BY HASH (n) PARTITIONS 2"
    assert (
        "column 'n', the partitioning column, is not in its key"
        in refused((1, made), (2, "ALTER TABLE orders TRUNCATE PARTITION p0")).message
    )


@pytest.mark.parametrize("kind", ["HASH", "KEY"])
@pytest.mark.parametrize(
    ("clauses", "known"),
    [
        (["ADD PARTITION PARTITIONS 2"], ["p0", "p1", "p2", "p3", "p4"]),
        (["ADD PARTITION (PARTITION x, PARTITION y)"], ["p0", "p1", "p2", "x", "y"]),
        (["COALESCE PARTITION 1"], ["p0", "p1"]),
        (["ADD PARTITION (PARTITION x)", "ADD PARTITION PARTITIONS 1", "COALESCE PARTITION 3"], ["p0", "p1"]),
        (["COALESCE PARTITION 2", "ADD PARTITION (PARTITION x)"], ["p0", "x"]),
    ],
)
def test_rows_move_when_the_number_of_partitions_changes(kind: str, clauses: list[str], known: list[str]) -> None:
    i = partitioned(f"{kind} (id) PARTITIONS 3", "TRUNCATE PARTITION p1", *clauses, f"TRUNCATE PARTITION {known[-1]}")
    assert (names(i), [r.values for r in i.removals]) == (known, [("1",), (str(len(known) - 1),)])
    assert [r.modulus for r in i.removals] == [3, len(known)], "rows that left before had their partition by the former number"


@pytest.mark.parametrize("clause", ["ADD PARTITION PARTITIONS x", "COALESCE PARTITION x", "COALESCE PARTITION 4"])
def test_partitions_whose_number_is_not_told_are_not_known(clause: str) -> None:
    assert partitioned("HASH (id) PARTITIONS 4", clause).partitions is None


def test_what_the_catalog_keeps_of_a_partitioning() -> None:
    assert partitioned("RANGE (YEAR(d)) (PARTITION a VALUES LESS THAN (2025))").partitions == Partitions(
        kind="range", column=2, function="YEAR", parts=(Partition(name="a", below="2025"),)
    )
