"""How long a catalog keeps tables that were dropped."""

from __future__ import annotations

import pytest

from tests.history.incarnations.lives import after, only, refused
from tidelake.history.dropped_tables import outdated, without

A = "CREATE TABLE a (id INT PRIMARY KEY)"
PARTED = (
    "CREATE TABLE p (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN (99))"
)
THRICE = ((1, A), (10, "DROP TABLE a"), (11, A), (20, "RENAME TABLE a TO Old"), (30, "DROP TABLE old"), (31, A), (40, "DROP TABLE a"))
LIVES = ["shop.a@1", "shop.a@11", "shop.a@31"]


@pytest.mark.parametrize(("ts", "gone"), [(9, 0), (10, 1), (29, 1), (30, 2), (40, 3), (99, 3)])
def test_a_life_is_outdated_where_it_ended_at_the_ts_or_before(ts: int, gone: int) -> None:
    catalog = after(*THRICE, (50, "CREATE TABLE b (id INT PRIMARY KEY)"))
    assert outdated(catalog, ts, []) == LIVES[:gone]


@pytest.mark.parametrize(
    ("defined", "stays"),
    [(("Shop", "A"), "shop.a@31"), (("shop", "old"), "shop.a@11"), (("shop", "b"), None), (("other", "a"), None), (("shop", "new"), None)],
)
def test_the_last_life_with_a_name_of_tables_sql_stays(defined: tuple[str, str], stays: str | None) -> None:
    catalog = after(*THRICE, (50, "CREATE TABLE b (id INT PRIMARY KEY)"))
    assert outdated(catalog, 99, [defined]) == [i for i in LIVES if i != stays]


def test_where_a_life_that_stays_has_the_name_no_other_does() -> None:
    catalog = after(*THRICE, (50, A))
    assert outdated(catalog, 99, [("shop", "a")]) == LIVES
    later = after(*THRICE)
    assert outdated(later, 39, [("shop", "a")]) == LIVES[:2], "the one that was dropped later has it"


def test_the_others_stay_as_they_are_and_the_catalog_says_up_to_when_some_are_missing() -> None:
    catalog = after(*THRICE, (50, A))
    left = without(catalog, LIVES[:2], 30)
    assert (list(left.incarnations), left.dropped_retained_after) == ([LIVES[2], "shop.a@50"], 30)
    assert all(left.incarnations[i] == catalog.incarnations[i] for i in left.incarnations)
    assert without(left, [], 20).dropped_retained_after == 30, "it never goes back"
    more = after((60, "CREATE TABLE c (id INT)"), catalog=left).opened()
    assert (more.dropped_retained_after, more.find("shop", "a")) == (30, left.incarnations["shop.a@50"])


def test_removed_partitions_stay_as_long_as_changes_do() -> None:
    statements = ((1, PARTED), (10, "ALTER TABLE p TRUNCATE PARTITION p0"), (20, "ALTER TABLE p TRUNCATE PARTITION p0"))
    catalog = after(*statements).opened()
    assert [r.ts for r in only(catalog).past_removals] == [10, 20]
    assert [[r.ts for r in only(without(catalog, [], ts)).past_removals] for ts in (9, 10, 20)] == [[10, 20], [20], []]


@pytest.mark.parametrize("statement", ["RECOVER TABLE a", "FLASHBACK TABLE a TO b", "FLASHBACK DATABASE shop", "RECOVER TABLE nobody"])
def test_a_table_that_may_be_missing_is_not_recovered(statement: str) -> None:
    for lives in (["shop.a@1"], []):  # one that stays has no changes any more
        left = without(after((1, A), (10, "DROP TABLE a")), lives, 10)
        error = refused((20, statement), catalog=left)
        assert (error.code, "was dropped after 10 " in error.message) == ("UNSUPPORTED_DDL", True)


def test_a_table_that_was_dropped_later_is_recovered() -> None:
    left = without(after(*THRICE), LIVES[:2], 30)
    back = after((50, "RECOVER TABLE a"), catalog=left)
    assert (only(back).id, only(back).dropped_ts, back.dropped_retained_after) == (LIVES[2], None, 30)
