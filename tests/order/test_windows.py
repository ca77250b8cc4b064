"""Windows one by one: what order and compact make of rows, repeats and statements at particular places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lake.histories import Message, ddl, publish, resolved, row, row_schema, rows_of
from tests.lake.windows import KV, TEXT, opened, table
from tidelake.config.feed import TablePolicy
from tidelake.errors import ConfigError, OrderError, StorageError
from tidelake.history.event import RowSchema
from tidelake.lake.opened import Lake

KV_N = row_schema("id bigint", "v varchar", "n bigint")

F0 = "2020-01-01 00:00:00.000"

pytestmark = pytest.mark.usefixtures("small_hours")


def test_a_row_at_the_resolved_ts_belongs_to_the_window_and_one_after_it_waits(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        first = [row(0, "insert", 100, KV, ("1", "a")), row(0, "insert", 101, KV, ("2", "b")), *resolved(100)]
        cut = publish(lake, feed.add(lake, first))
        assert cut is not None
        assert (cut.resolved_ts, cut.open_hours) == (100, ["2026-01-05T10"])
        assert rows_of(lake, "d.k") == table(("1", "a"))
        publish(lake, feed.add(lake, resolved(200)))
        assert rows_of(lake, "d.k") == table(("1", "a"), ("2", "b"))
        assert rows_of(lake, "d.k", 100) == table(("1", "a"))


def test_rows_wait_through_as_many_hours_as_the_resolved_ts_is_behind(tmp_path: Path) -> None:
    rows = [row(0, "insert", ts, KV, (str(ts), "a")) for ts in (100, 200, 300)]
    with opened(tmp_path) as (feed, lake):
        cuts = [publish(lake, feed.add(lake, [*rows, *resolved(100)]))]
        cuts += [publish(lake, feed.add(lake, resolved(ts))) for ts in (120, 140, 160, 250, 400)]
        assert [c.open_hours if c else None for c in cuts] == [["2026-01-05T10"]] * 5 + [[]]
        assert rows_of(lake, "d.k") == table(("100", "a"), ("200", "a"), ("300", "a"))
        assert rows_of(lake, "d.k", 250) == table(("100", "a"), ("200", "a"))


def test_repeats_in_a_replay_epoch_change_nothing_wherever_the_window_ends(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        sent = [
            row(0, "insert", 10, KV, ("1", "a")),
            row(0, "update", 20, KV, ("1", "b"), ("1", "a")),
            row(0, "insert", 20, KV, ("7", "x")),
            row(0, "delete", 30, KV, None, ("7", "x")),
        ]
        publish(lake, feed.add(lake, [*sent[:3], *resolved(25)]))
        cut = publish(lake, feed.add(lake, [*resolved(5), *sent, *resolved(40)]))
        assert cut is not None
        assert rows_of(lake, "d.k") == table(("1", "b"))
        assert rows_of(lake, "d.k", 25) == table(("1", "b"), ("7", "x"))
        assert rows_of(lake, "d.k", 15) == table(("1", "a"))


def test_equal_rows_without_a_key_count_and_their_repeats_do_not(tmp_path: Path) -> None:
    twice = [row(0, "insert", 10, TEXT, ("x",), table="m"), row(0, "insert", 10, TEXT, ("x",), table="m")]
    with opened(tmp_path) as (feed, lake):
        first = [*resolved(8), *twice[:1], *resolved(5), *twice, row(0, "delete", 12, TEXT, None, ("x",), table="m"), *resolved(20)]
        publish(lake, feed.add(lake, first))
        assert rows_of(lake, "d.m") == table(("x",), names=("v",))
        assert rows_of(lake, "d.m", 11) == table(("x",), ("x",), names=("v",))


def test_a_repeat_counts_once_if_the_resolved_ts_went_back_in_an_hour_without_rows(tmp_path: Path) -> None:
    sent = row(0, "insert", 30, TEXT, ("x",), table="m")
    with opened(tmp_path, partitions=2) as (feed, lake):
        publish(lake, feed.add(lake, [sent, *resolved(15, 0, 1)]))
        publish(lake, feed.add(lake, [*resolved(30, 0), *resolved(20, 0, 1)]))
        cut = publish(lake, feed.add(lake, [sent, *resolved(40, 0, 1)]))
        assert cut is not None
        assert cut.resolved_ts == 40
        assert rows_of(lake, "d.m") == table(("x",), names=("v",))


@pytest.mark.parametrize("quiet", [0, 3])
def test_a_repeat_counts_once_if_the_first_resolved_ts_of_a_window_went_back(quiet: int, tmp_path: Path) -> None:
    """The one before it in the partition is in an earlier hour."""
    sent = row(1, "insert", 130, TEXT, ("x",), table="m")
    with opened(tmp_path, partitions=2) as (feed, lake):
        publish(lake, feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *resolved(20, 0), *resolved(120, 1)]))
        for n in range(quiet):
            assert publish(lake, feed.add(lake, resolved(30 + n, 0)))
        publish(lake, feed.add(lake, [sent, *resolved(115, 1), sent, *resolved(140, 0, 1)]))
        assert rows_of(lake, "d.m") == table(("x",), names=("v",))


def test_equal_rows_count_if_the_resolved_ts_goes_on_from_where_it_went_back_to(tmp_path: Path) -> None:
    sent = row(0, "insert", 30, TEXT, ("x",), table="m")
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *resolved(20), *resolved(5), *resolved(8)]))
        publish(lake, feed.add(lake, [sent, *resolved(12), sent, *resolved(40)]))
        assert rows_of(lake, "d.m") == table(("x",), ("x",), names=("v",))


def test_a_key_changed_in_one_update_is_a_delete_and_an_insert(tmp_path: Path) -> None:
    """Of many keys, so that rows leave their buckets."""
    with opened(tmp_path, tables={"d.k": TablePolicy(buckets=4)}) as (feed, lake):
        publish(lake, feed.add(lake, [*(row(0, "insert", 10, KV, (str(n), "a")) for n in range(9)), *resolved(15)]))
        moved = [row(0, "update", 20 + n, KV, (str(n + 10), "a"), (str(n), "a")) for n in range(8)]
        publish(lake, feed.add(lake, [*moved, *resolved(35)]))
        assert rows_of(lake, "d.k") == table(("8", "a"), *((str(n + 10), "a") for n in range(8)))
        assert rows_of(lake, "d.k", 23) == table(*((str(n + 10), "a") for n in range(4)), *((str(n), "a") for n in range(4, 9)))


def test_a_bucket_and_a_table_that_become_empty_are_empty(tmp_path: Path) -> None:
    with opened(tmp_path, tables={"d.k": TablePolicy(buckets=4)}) as (feed, lake):
        keys = [str(n) for n in range(8)]
        publish(lake, feed.add(lake, [*(row(0, "insert", 10, KV, (k, "a")) for k in keys), *resolved(15)]))
        publish(lake, feed.add(lake, [row(0, "delete", 20, KV, None, ("3", "a")), *resolved(25)]))
        assert rows_of(lake, "d.k") == table(*((k, "a") for k in keys if k != "3"))
        gone = [row(0, "delete", 30, KV, None, (k, "a")) for k in keys if k != "3"]
        cut = publish(lake, feed.add(lake, [*gone, *resolved(35)]))
        assert cut is not None
        assert cut.snapshots["d.k@-1"].rows == 0
        assert rows_of(lake, "d.k") == table()
        assert rows_of(lake, "d.k", 15) == table(*((k, "a") for k in keys))


def test_only_touched_buckets_are_rewritten_and_untouched_tables_get_no_commit(tmp_path: Path) -> None:
    with opened(tmp_path, tables={"d.k": TablePolicy(buckets=8)}) as (feed, lake):
        first = [
            *(row(0, "insert", 10, KV, (str(n), "a")) for n in range(40)),
            row(0, "insert", 10, row_schema("v varchar", key=()), ("x",), table="m"),
        ]
        one = publish(lake, feed.add(lake, [*first, *resolved(15)]))
        two = publish(lake, feed.add(lake, [row(0, "update", 20, KV, ("5", "b"), ("5", "a")), *resolved(25)]))
        assert one is not None
        assert two is not None
        assert one.snapshots["d.m@-1"] == two.snapshots["d.m@-1"]
        summary = lake.catalog.load("d.k").summary(two.snapshots["d.k@-1"].snapshot_id)
        assert (summary["changed-partition-count"], summary["total-records"]) == ("1", "40")


def test_a_life_without_rows_leaves_its_name_to_the_next_one_of_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelake.order.arrow.staged_by_workers.THREADS", 1)  # the first life is staged first, and takes the name of both
    with opened(tmp_path) as (feed, lake):
        again = [*ddl(10, "DROP TABLE k"), *ddl(11, "CREATE TABLE k (id BIGINT PRIMARY KEY, v VARCHAR(20))")]
        cut = publish(lake, feed.add(lake, [*again, row(0, "insert", 12, KV, ("1", "a")), *resolved(15)]))
        assert cut is not None
        assert {i: t.identifier for i, t in cut.changelogs.items()} == {"d.k@11": "d_changelog.k"}
        assert [t for n in ("d_changelog", "d_changelog_past") for t in lake.catalog.tables(n)] == ["d_changelog.k"]
        assert rows_of(lake, "d.k") == table(("1", "a"))


def test_a_statement_at_the_resolved_ts_is_taken_whether_it_comes_in_this_hour_or_the_next(tmp_path: Path) -> None:
    wide = row_schema("id bigint", "v varchar", "n int")
    add = "ALTER TABLE k ADD COLUMN n INT NOT NULL DEFAULT 7"
    for late in (False, True):
        with opened(tmp_path / str(late)) as (feed, lake):
            first = [row(0, "insert", 10, KV, ("1", "a")), *resolved(20)]
            publish(lake, feed.add(lake, first if late else [*first, *ddl(20, add)]))
            second = [row(0, "insert", 30, wide, ("2", "b", "8")), *resolved(40)]
            publish(lake, feed.add(lake, [*ddl(20, add), *second] if late else second))
            assert rows_of(lake, "d.k") == table(("1", "a", "7"), ("2", "b", "8"), names=("id", "v", "n"))
            assert rows_of(lake, "d.k", 15) == table(("1", "a"))


def test_a_truncated_table_holds_only_what_came_after(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *resolved(15)]))
        second = [row(0, "insert", 20, KV, ("2", "b")), *ddl(20, "TRUNCATE TABLE k"), row(0, "insert", 30, KV, ("3", "c")), *resolved(35)]
        publish(lake, feed.add(lake, second))
        assert rows_of(lake, "d.k") == table(("3", "c"))
        assert rows_of(lake, "d.k", 19) == table(("1", "a"))
        assert rows_of(lake, "d.k", 20) == table()
        publish(lake, feed.add(lake, [*ddl(40, "TRUNCATE k"), *resolved(45)]))
        assert rows_of(lake, "d.k") == table()


def test_a_table_dropped_and_made_again_in_one_window_is_another_table(tmp_path: Path) -> None:
    other = row_schema("id bigint", "n int")
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *resolved(15)]))
        second = [
            row(0, "insert", 20, KV, ("2", "b")),
            *ddl(21, "DROP TABLE `d`.`k`"),
            *ddl(22, "CREATE TABLE k (id BIGINT PRIMARY KEY, n INT)"),
            row(0, "insert", 30, other, ("1", "5")),
            *resolved(35),
        ]
        publish(lake, feed.add(lake, second))
        assert rows_of(lake, "d.k") == table(("1", "5"), names=("id", "n"))
        assert rows_of(lake, "d.k", 20) == table(("1", "a"), ("2", "b"))
        assert rows_of(lake, "d.k", 15) == table(("1", "a"))
        with pytest.raises(ConfigError, match="a table had that name until 21"):
            rows_of(lake, "d.k", 21)


def test_a_table_made_again_in_one_window_without_any_row_is_empty(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        again = [*ddl(21, "DROP TABLE k"), *ddl(22, "CREATE TABLE k (id BIGINT PRIMARY KEY, v VARCHAR(20))")]
        publish(lake, feed.add(lake, [row(0, "insert", 20, KV, ("2", "b")), *again, *resolved(35)]))
        assert rows_of(lake, "d.k") == table()
        assert rows_of(lake, "d.k", 20) == table(("2", "b"))


def test_tables_that_swap_their_names_keep_their_rows(tmp_path: Path) -> None:
    sql = "CREATE TABLE d.a (id BIGINT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE d.b (id BIGINT PRIMARY KEY, v VARCHAR(20));"
    with opened(tmp_path, sql) as (feed, lake):
        both = [row(0, "insert", 10, KV, ("1", "of a"), table="a"), row(0, "insert", 10, KV, ("1", "of b"), table="b")]
        publish(lake, feed.add(lake, [*both, *resolved(15)]))
        swap = ddl(20, "RENAME TABLE a TO tmp, b TO a, tmp TO b")
        publish(lake, feed.add(lake, [*swap, row(0, "insert", 25, KV, ("2", "new in a"), table="a"), *resolved(30)]))
        assert rows_of(lake, "d.a") == table(("1", "of b"), ("2", "new in a"))
        assert rows_of(lake, "d.b") == table(("1", "of a"))
        assert rows_of(lake, "d.a", 15) == table(("1", "of a"))


@dataclass(frozen=True, slots=True)
class Change:
    """A clause of ALTER TABLE, the table's columns after it, and its rows then: one of before, one that comes."""

    clause: str
    columns: str
    after: tuple[str, ...]
    new: tuple[str | None, ...]

    @property
    def row_schema(self) -> RowSchema:
        kinds = {"id": "bigint", "v": "bigint unsigned" if "UNSIGNED" in self.clause else "varchar", "w": "varchar"}
        return row_schema(*(f"{n} {(kinds | {'n': 'int', 'f': 'datetime'})[n]}" for n in self.columns.split()))


CHANGES = {
    "renamed column": Change("RENAME COLUMN v TO w", "id w", ("1", "12"), ("2", "b")),
    "dropped column": Change("DROP COLUMN v", "id", ("1",), ("2",)),
    "type that iceberg refuses": Change("MODIFY COLUMN v BIGINT UNSIGNED", "id v", ("1", "12"), ("2", "18446744073709551615")),
    "new name and its old name again": Change(
        "CHANGE COLUMN v n INT, ADD COLUMN v VARCHAR(9) DEFAULT 'new'", "id n v", ("1", "12", "new"), ("2", "5", None)
    ),
    "first with default": Change(
        "ADD f DATETIME(3) NOT NULL DEFAULT '2020-01-01' FIRST", "f id v", (F0, "1", "12"), ("2026-01-05 10:00:00.500", "2", "b")
    ),
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory, spark_app: None) -> dict[str, list[Any]]:
    """A table for each of CHANGES: what readers found in it after the window of the statement and after the next."""
    tables = {name: f"k{n}" for n, name in enumerate(CHANGES)}
    sql = " ".join(f"CREATE TABLE d.{t} (id BIGINT PRIMARY KEY, v VARCHAR(20));" for t in tables.values())
    with opened(tmp_path_factory.mktemp("changed"), sql) as (feed, lake):

        def window(messages: Callable[[Change, str], list[Message]], until: int) -> None:
            sent = [m for name, t in tables.items() for m in messages(CHANGES[name], t)]
            assert publish(lake, feed.add(lake, [*sent, *resolved(until)])) is not None

        def altered(c: Change, t: str) -> list[Message]:
            return [*ddl(20, f"ALTER TABLE {t} {c.clause}", table=t), row(0, "insert", 30, c.row_schema, c.new, table=t)]

        window(lambda _, t: [row(0, "insert", 10, KV, ("1", "12"), table=t)], 15)
        window(altered, 35)
        read = {name: [rows_of(lake, f"d.{t}", ts) for ts in (None, 25, 15)] for name, t in tables.items()}
        columns = {name: [c.name for c in lake.catalog.load(f"d.{t}").columns()] for name, t in tables.items()}
        window(lambda c, t: [row(0, "delete", 40, c.row_schema, None, c.new, table=t)], 45)
        return {name: [*read[name], columns[name], rows_of(lake, f"d.{t}")] for name, t in tables.items()}


@pytest.mark.parametrize("name", CHANGES)
def test_columns_change_and_older_cuts_keep_theirs(name: str, changed: dict[str, list[Any]]) -> None:
    names, after, new = tuple(CHANGES[name].columns.split()), CHANGES[name].after, CHANGES[name].new
    now, between, before, columns, last = changed[name]
    assert now == table(after, new, names=names)
    assert between == last == table(after, names=names)
    assert before == table(("1", "12"))
    assert columns == [*names, "_commit_ts"]


def test_a_statement_waits_for_its_window_with_no_row_beside_it(tmp_path: Path) -> None:
    statement = ddl(20, "ALTER TABLE k ADD COLUMN n BIGINT DEFAULT 5")  # to one partition alone, as Canal-JSON's
    with opened(tmp_path, partitions=2) as (feed, lake):
        rows = [row(0, "insert", 10, KV, ("1", "a")), *resolved(15, 0, 1)]
        cut = publish(lake, feed.add(lake, [*rows, *resolved(20), *statement]))
        assert cut is not None
        assert (cut.resolved_ts, cut.open_hours) == (15, ["2026-01-05T10"])
        publish(lake, feed.add(lake, resolved(30, 0, 1)))
        assert rows_of(lake, "d.k") == table(("1", "a", "5"), names=("id", "v", "n"))
        assert rows_of(lake, "d.k", 19) == table(("1", "a"))


def test_a_column_that_leaves_and_comes_again_in_a_tables_first_window(tmp_path: Path) -> None:
    add = "ALTER TABLE k ADD COLUMN n BIGINT DEFAULT"
    messages = [row(0, "insert", 10, KV, ("1", "a")), *ddl(11, f"{add} 5"), row(0, "insert", 12, KV_N, ("2", "b", "6"))]
    messages += [*ddl(13, "ALTER TABLE k DROP COLUMN n"), *ddl(14, f"{add} 7"), row(0, "insert", 15, KV_N, ("3", "c", "8"))]
    names = ("id", "v", "n")
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [*messages, *resolved(20)]))
        assert rows_of(lake, "d.k") == table(("1", "a", "7"), ("2", "b", "7"), ("3", "c", "8"), names=names)
        assert rows_of(lake, "d.k", 12) == table(("1", "a", "5"), ("2", "b", "6"), names=names)
        changes = lake.catalog.load("d_changelog.k").scan(columns=("id", "n", "n__3")).read_all().to_pylist()
        assert sorted(tuple(c.values()) for c in changes) == [(1, None, None), (2, None, 6), (3, 8, None)]


def test_a_window_of_nothing_but_a_column_gives_the_cut_a_snapshot_that_knows_it(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [row(0, "insert", 100, KV, ("1", "a")), *resolved(110)]))
        publish(lake, feed.add(lake, [*ddl(120, "ALTER TABLE d.k ADD COLUMN n BIGINT"), *resolved(130)]))
        assert rows_of(lake, "d.k") == table(("1", "a", None), names=("id", "v", "n"))
        assert rows_of(lake, "d.k", 110) == table(("1", "a"))
        publish(lake, feed.add(lake, [row(0, "insert", 140, KV_N, ("2", "b", "3")), *resolved(150)]))
        assert rows_of(lake, "d.k") == table(("1", "a", None), ("2", "b", "3"), names=("id", "v", "n"))
        assert rows_of(lake, "d.k", 130) == table(("1", "a", None), names=("id", "v", "n"))
        publish(lake, feed.add(lake, [*ddl(160, "ALTER TABLE d.k RENAME COLUMN n TO m"), *resolved(170)]))
        assert rows_of(lake, "d.k") == table(("1", "a", None), ("2", "b", "3"), names=("id", "v", "m"))
        assert rows_of(lake, "d.k", 150) == table(("1", "a", None), ("2", "b", "3"), names=("id", "v", "n"))


def test_a_statement_that_cannot_be_followed_stops_the_feed_and_says_what_to_do(tmp_path: Path) -> None:
    statement = "ALTER TABLE k EXCHANGE PARTITION p WITH TABLE x"
    with opened(tmp_path) as (feed, lake):
        hour = feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *ddl(12, statement), *resolved(15)])
        with pytest.raises(OrderError, match="EXCHANGE PARTITION") as error:
            publish(lake, hour)
        assert (error.value.code, error.value.exit_code) == ("UNSUPPORTED_DDL", 3)
        assert "ignore_ddl = [12]" in error.value.remedy
        with pytest.raises(StorageError, match="nothing is published yet"):
            rows_of(lake, "d.k")
    going_on = lake.feed.model_copy(update={"policy": lake.feed.policy.model_copy(update={"ignore_ddl": (12,)})})
    with Lake.of(going_on) as again:
        publish(again, hour)
        assert rows_of(again, "d.k") == table(("1", "a"))


def test_the_slowest_partition_decides_and_a_silent_one_blocks(tmp_path: Path) -> None:
    with opened(tmp_path, partitions=2) as (feed, lake):
        hour = feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *resolved(50, 0)])
        with pytest.raises(OrderError, match=r"no resolved ts was ever seen in t\[1\]"):
            publish(lake, hour)
        cut = publish(lake, feed.add(lake, [row(1, "insert", 20, KV, ("2", "b")), row(1, "insert", 40, KV, ("3", "c")), *resolved(30, 1)]))
        assert cut is not None
        assert (cut.resolved_ts, cut.applied_ts) == (30, 0)
        assert rows_of(lake, "d.k") == table(("1", "a"), ("2", "b"))


def test_an_hour_that_does_not_move_the_resolved_ts_names_who_stands_still(tmp_path: Path) -> None:
    with opened(tmp_path, partitions=2) as (feed, lake):
        publish(lake, feed.add(lake, resolved(20, 0, 1)))
        with pytest.raises(OrderError, match=r"does not advance from 20 .* in t\[1\]") as error:
            publish(lake, feed.add(lake, resolved(30, 0)))
        assert error.value.code == "STANDS_STILL"


def test_an_hour_that_is_published_is_left_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        hour = feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *resolved(15)])
        assert publish(lake, hour) is not None
        heads = {t: lake.catalog.load(t).main for t in ("d.k", "d_changelog.k", "_tidelake.published")}
        assert publish(lake, hour) is None
        assert {t: lake.catalog.load(t).main for t in heads} == heads


def test_a_value_that_does_not_fit_its_type_blocks_and_names_the_column(tmp_path: Path) -> None:
    numbers = row_schema("id bigint", "v varchar")
    sql = "CREATE TABLE d.k (id BIGINT PRIMARY KEY, v INT)"
    with opened(tmp_path, sql) as (feed, lake), pytest.raises(Exception, match=r"d\.k\.v: types parsed") as error:
        publish(lake, feed.add(lake, [row(0, "insert", 10, numbers, ("1", "twelve")), *resolved(15)]))
    assert getattr(error.value, "exit_code", None) == 3


def test_a_table_without_definition_is_taken_from_its_first_row(tmp_path: Path) -> None:
    s = row_schema("id bigint unsigned", "price varchar", "at datetime")
    with opened(tmp_path, "") as (feed, lake):
        publish(lake, feed.add(lake, [row(0, "insert", 10, s, ("18446744073709551615", "1.50", "2026-01-05 10:00:00.120")), *resolved(15)]))
        found = rows_of(lake, "d.k")
        assert found == table(("18446744073709551615", "1.50", "2026-01-05 10:00:00.12"), names=("id", "price", "at"))
