"""EXCHANGE PARTITION: rows change places between two tables, in order with their row events; at cuts, between them, in versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.checkout import CHECKOUT
from tests.lake.histories import Feeder, Row, ddl, publish, publish_again, resolved, row, row_schema
from tests.lake.lakes import feed
from tests.lake.truths import compare, published
from tests.lake.windows import KV, opened
from tidelake.config.feed import TablePolicy
from tidelake.config.policy import ColumnPolicy, Policy
from tidelake.errors import OrderError
from tidelake.history.incarnations import Catalog
from tidelake.history.window import ObservedTable, Statement, compile_window
from tidelake.lake.cut import Cut
from tidelake.lake.folding.fold import Fold
from tidelake.lake.folding.table_fold import removed
from tidelake.lake.opened import Lake
from tidelake.query.changes import changes_of
from tidelake.query.frames import scd2
from tidelake.validate.report import hour_facts

pytestmark = pytest.mark.usefixtures("small_hours")
BARE = row_schema("id bigint", "v varchar", key=())
WIDE = row_schema("id bigint", "v int", "w int")
RANGE = "RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN MAXVALUE)"
KEYED = "(id BIGINT PRIMARY KEY, v VARCHAR(9))"
SQL = f"""CREATE TABLE d.p {KEYED} PARTITION BY {RANGE}; CREATE TABLE d.t {KEYED}; CREATE TABLE d.n {KEYED};
CREATE TABLE d.h (id BIGINT, v VARCHAR(9)) PARTITION BY LIST (id) (PARTITION a VALUES IN (1, NULL), PARTITION b VALUES IN (2, 3));
CREATE TABLE d.b (id BIGINT, v VARCHAR(9));"""


def exchange(ts: int, partition: str, other: str, table: str = "p", more: str = "") -> Any:
    """The statement on both partitions."""
    return ddl(ts, f"ALTER TABLE {table} EXCHANGE PARTITION {partition} WITH TABLE {other}{more}", 0, 1)


FIRST = [
    *exchange(5, "p0", "t"),  # nothing is there yet
    *(row(0, "insert", 20, KV, (i, "p"), table="p") for i in ("1", "11", "21")),
    *(row(0, "insert", 20, KV, (i, "t"), table="t") for i in ("1", "2")),
    *(row(0, "insert", 20, BARE, (i, "h"), table="h") for i in ("1", "2", "2", None)),
    *(row(0, "insert", 20, BARE, (i, "b"), table="b") for i in ("3", "3", "2")),
    row(0, "insert", 30, KV, ("5", "at 30"), table="p"),  # as old as the statement: older
    row(0, "update", 30, KV, ("2", "at 30"), ("2", "t"), table="t"),
    *exchange(30, "p0", "t", more=" WITH VALIDATION"),
    *exchange(32, "p0", "t"),  # and back
    *exchange(34, "P0", "`d`.`t`", more=" WITHOUT VALIDATION"),
    row(0, "update", 40, KV, ("1", "p now"), ("1", "t"), table="p"),
    row(0, "delete", 40, KV, None, ("1", "p"), table="t"),
    *exchange(45, "b", "b", table="h"),
    *resolved(50, 0, 1),
]
SECOND = [
    *exchange(50, "p0", "n"),  # as old as the cut that is published
    *exchange(50, "p0", "t"),
    row(0, "update", 51, KV, ("2", "at 51"), ("2", "at 30"), table="n"),
    row(0, "insert", 51, KV, ("7", "at 51"), table="p"),
    row(0, "insert", 52, KV, ("8", "t"), table="t"),
    *ddl(64, "RENAME TABLE t TO u, n TO t", 0, 1),
    *ddl(66, "TRUNCATE TABLE p", 0, 1),
    *exchange(68, "p0", "t"),
    *ddl(72, "ALTER TABLE p DROP PARTITION p0", 0, 1),
    *ddl(73, f"CREATE TABLE c {KEYED}", 0, 1),
    row(0, "insert", 74, KV, ("2", "c"), table="c"),
    *exchange(74, "b", "b", table="h"),  # no row event of either in this window
    *exchange(75, "p1", "c"),  # which reaches down to p0's rows now
    *ddl(76, "DROP TABLE u", 0, 1),
    *ddl(76, f"CREATE TABLE n {KEYED}", 0, 1),
    *exchange(80, "p1", "n"),  # exactly at the window's end
    *resolved(80, 0, 1),
]
THIRD = [
    *exchange(80, "p1", "n"),  # a copy of the next hour
    row(0, "update", 85, KV, ("2", "last"), ("2", "c"), table="n"),
    row(0, "delete", 85, BARE, None, ("2", "b"), table="b"),
    row(0, "insert", 86, KV, ("4", "at 86"), table="n"),
    *exchange(86, "p1", "n"),
    *ddl(87, "RECOVER TABLE u", 0, 1),
    *exchange(88, "p1", "u"),
    *resolved(90, 0, 1),
]
# (table, TSO) → its rows then
TRUTH: dict[tuple[str, int], list[Row]] = {
    ("p", 30): [("1", "t"), ("2", "at 30"), ("11", "p"), ("21", "p")],
    ("t", 30): [("1", "p"), ("5", "at 30")],
    ("p", 32): [("1", "p"), ("5", "at 30"), ("11", "p"), ("21", "p")],
    ("t", 32): [("1", "t"), ("2", "at 30")],
    ("h", 45): [("1", "h"), (None, "h"), ("3", "b"), ("3", "b"), ("2", "b")],
    ("b", 45): [("2", "h"), ("2", "h")],
    ("t", 50): [("5", "at 30")],
    ("p", 51): [("5", "at 30"), ("7", "at 51"), ("11", "p"), ("21", "p")],
    ("t", 51): [],
    ("n", 51): [("1", "p now"), ("2", "at 51")],
    ("p", 68): [("1", "p now"), ("2", "at 51")],
    ("t", 68): [],
    ("p", 75): [("2", "c")],
    ("c", 75): [],
    ("p", 80): [],
    ("n", 80): [("2", "c")],
    ("n", 86): [],
    ("p", 86): [("2", "last"), ("4", "at 86")],
    ("p", 90): [("8", "t")],
    ("u", 90): [("2", "last"), ("4", "at 86")],
    ("h", 90): [("1", "h"), ("2", "h"), ("2", "h"), (None, "h")],
    ("b", 90): [("3", "b"), ("3", "b")],
}
AT_THE_CUT: dict[tuple[str, int], list[Row]] = {("p", 50): [("1", "p now"), ("2", "at 30"), ("11", "p"), ("21", "p")], ("n", 50): []}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Feeder, Lake, list[Cut]]]:
    """Three cuts, at 50, 80 and 90."""
    policy = Policy(before_images="all", on_before_image="block")  # no row that crossed makes an old value look lost
    tables = {"d.p": TablePolicy(buckets=4), "d.b": TablePolicy(buckets=1)}
    with opened(tmp_path_factory.mktemp("exchange"), SQL, partitions=2, policy=policy, tables=tables) as (made, lake):
        yield made, lake, [published(lake, made.add(lake, hour)) for hour in (FIRST, SECOND, THIRD)]


Story = tuple[Feeder, Lake, list[Cut]]


def test_rows_change_places_at_the_statement_s_place_among_row_events(story: Story) -> None:
    _, lake, cuts = story
    compare(lake, TRUTH | AT_THE_CUT)
    ends = [{i.name.partition(".")[2]: c.snapshots[i.id].rows for i in c.catalog.alive()} for c in cuts]
    assert ends == [
        {"p": 4, "t": 1, "n": 0, "h": 5, "b": 2},
        {"p": 0, "t": 0, "h": 4, "b": 3, "c": 0, "n": 1},
        {"p": 1, "t": 0, "u": 2, "h": 4, "b": 2, "c": 0, "n": 0},
    ]
    assert lake.catalog.find("d_changelog.c") is not None
    assert [c.changelogs.get("d.n@-1") is None for c in cuts] == [True, False, False]


def test_changes_say_that_no_event_brought_them(story: Story) -> None:
    _, lake, _ = story
    names = ("_commit_ts", "_change_type", "_origin", "_topic", "_kafka_partition", "_offset", "_ordinal", "id", "v")
    found = [
        c
        for of in changes_of(lake, "d.n", 0, None)
        for c in of.rows.read_all().sort_by([("_change_seq", "ascending"), ("id", "ascending")]).select(names).to_pylist()
    ]
    assert [tuple(c.values()) for c in found if c["_commit_ts"] in (51, 80)] == [
        (51, "INSERT", "partition_exchange", None, None, None, None, 1, "p now"),
        (51, "INSERT", "partition_exchange", None, None, None, None, 2, "at 30"),
        (51, "UPDATE_BEFORE", "event", "t", 0, 24, 0, 2, "at 30"),
        (51, "UPDATE_AFTER", "event", "t", 0, 24, 0, 2, "at 51"),
        (80, "INSERT", "partition_exchange", None, None, None, None, 2, "c"),
    ]
    facts = hour_facts(lake, "2026-01-05T10").tables
    assert (facts["d.p"].inserts, facts["d.t"].deletes) == (4, 1)


def test_versions_end_and_begin_where_rows_change_places(story: Story) -> None:
    _, lake, _ = story
    found = scd2(lake.spark, lake.feed, "d.p", 60).drop("_valid_from", "_valid_to", "_current").collect()
    assert sorted((tuple(r) for r in found), key=str) == sorted(
        [
            (1, "p", 20, 30),
            (1, "t", 30, 32),
            (1, "p", 32, 34),
            (1, "t", 34, 40),
            (1, "p now", 40, 51),
            (2, "at 30", 30, 32),
            (2, "at 30", 34, 51),
            (5, "at 30", 32, 34),
            (5, "at 30", 51, None),
            (7, "at 51", 51, None),
            (11, "p", 20, None),
            (21, "p", 20, None),
        ],
        key=str,
    )


def test_the_recipe_of_the_documentation_follows_it(story: Story) -> None:
    _, lake, _ = story
    recipe: dict[str, Any] = {}
    exec((CHECKOUT / "docs" / "time-travel.md").read_text().split("```python recipe\n")[1].split("```")[0], recipe)
    for table, ts, rows in (("t", 51, {(1, "p now"), (2, "at 51")}), ("p", 86, {(2, "last"), (4, "at 86")}), ("n", 86, set())):
        found = recipe["asof"](lake.catalog.catalog, "shop", f"d.{table}", f"d_changelog.{table}", ["id"], ts)
        assert {tuple(r.values()) for r in found.to_pylist()} == rows


@pytest.mark.long
def test_every_hour_again_in_one_window_gives_the_same(story: Story) -> None:
    made, lake, cuts = story
    cut, differences = publish_again(lake, max(made.begins), min(made.begins))
    assert (cut.applied_ts, cut.resolved_ts) == (0, 90)
    assert {name: n for name, n in differences.items() if any(n.values())} == {}
    compare(
        lake, TRUTH | {("p", 50): [("5", "at 30"), ("11", "p"), ("21", "p")], ("t", 50): [], ("n", 50): [("1", "p now"), ("2", "at 30")]}
    )
    assert {i.name: cut.snapshots[i.id].rows for i in cut.catalog.alive()} == {
        i.name: cuts[-1].snapshots[i.id].rows for i in cuts[-1].catalog.alive()
    }


def test_columns_that_change_after_it_change_in_the_rows_that_came(tmp_path: Path) -> None:
    """Rows that came with the window of a later MODIFY are known in their last type only: such a window stops."""
    sql = f"CREATE TABLE d.q {KEYED} PARTITION BY {RANGE}; CREATE TABLE d.s (v VARCHAR(9), id BIGINT PRIMARY KEY);"
    first = [
        *(row(0, "insert", 20, KV, (i, f"{i}.6"), table="q") for i in ("1", "3")),
        *(row(0, "insert", 20, row_schema("v varchar", "id bigint"), (f"{i}.6", i), table="s") for i in "12"),
        *resolved(50),
    ]
    second = [
        *exchange(60, "p0", "s", table="q")[:1],
        *ddl(61, "ALTER TABLE q MODIFY v INT"),
        *ddl(62, "ALTER TABLE q ADD w INT NOT NULL DEFAULT 7"),
        *ddl(62, "ALTER TABLE s RENAME COLUMN v TO x"),
        row(0, "update", 63, WIDE, ("2", "9", "8"), ("2", "3", "7"), table="q"),
        *resolved(80),
    ]
    with opened(tmp_path, sql, tables={"d.s": TablePolicy(buckets=4)}) as (made, lake):
        cut = [published(lake, made.add(lake, hour)) for hour in (first, second)][1]
        compare(lake, {("q", 62): [("1", "2", "7"), ("2", "3", "7")], ("s", 60): [("1.6", "1"), ("3.6", "3")]})
        compare(lake, {("q", 80): [("1", "2", "7"), ("2", "9", "8")], ("s", 80): [("1.6", "1"), ("3.6", "3")]})
        assert {i: t.buckets for i, t in cut.snapshots.items()} == {"d.q@-1": 1, "d.s@-1": 4}
        with pytest.raises(
            OrderError, match=r"column 'v' of d\.q is string where its rows change places at TSO 60 .* int at the window's end"
        ):
            publish_again(lake, max(made.begins), min(made.begins))


def test_rows_of_a_partition_by_key_change_places_and_leave_with_it(tmp_path: Path) -> None:
    """Those that TiDB has in p0 are the ids with an even CRC-32."""
    there, away = ["4", "5", "6"], ["1", "2", "3"]
    assert [crc32(i.encode()) % 2 for i in (*there, *away)] == [0, 0, 0, 1, 1, 1]
    sql = f"CREATE TABLE d.k {KEYED} PARTITION BY KEY () PARTITIONS 2; CREATE TABLE d.s {KEYED};"
    first = [
        *(row(0, "insert", 20, KV, (i, "k"), table="k") for i in (*there[:2], *away)),
        *(row(0, "insert", 20, KV, (i, "s"), table="s") for i in there[1:]),
        *exchange(30, "p0", "s", table="k", more=" WITHOUT VALIDATION"),
        *resolved(50, 0, 1),
    ]
    second = [
        row(0, "update", 55, KV, (away[0], "at 55"), (away[0], "k"), table="k"),
        *ddl(60, "ALTER TABLE k TRUNCATE PARTITION p0", 0, 1),
        row(0, "insert", 70, KV, (there[2], "at 70"), table="k"),
        *resolved(80, 0, 1),
    ]
    stay = [(i, "k") for i in away[1:]]
    with opened(tmp_path, sql, partitions=2) as (made, lake):
        for hour in (first, second):
            published(lake, made.add(lake, hour))
        compare(lake, {("k", 50): [*((i, "s") for i in there[1:]), (away[0], "k"), *stay], ("s", 50): [(i, "k") for i in there[:2]]})
        compare(lake, {("k", 59): [*((i, "s") for i in there[1:]), (away[0], "at 55"), *stay]})
        compare(lake, {("k", 60): [(away[0], "at 55"), *stay], ("k", 80): [(away[0], "at 55"), (there[2], "at 70"), *stay]})
        ended = scd2(lake.spark, lake.feed, "d.k").where("_valid_to_ts = 60").collect()
        assert {(r["id"], r["v"]) for r in ended} == {(int(i), "s") for i in there[1:]}


def stopped(folder: Path, *messages: Any, **changes: Any) -> OrderError:
    with opened(folder, SQL, partitions=2, **changes) as (made, lake):
        with pytest.raises(OrderError) as error:
            publish(lake, made.add(lake, [*messages, *resolved(50, 0, 1)]))
        assert all(lake.catalog.find(f"d.{t}") is None for t in "pt")
        return error.value


def test_rows_that_do_not_fit_the_partition_stop_the_window(tmp_path: Path) -> None:
    rows = (row(0, "insert", 20, KV, (i, "t"), table="t") for i in ("2", "10", "11"))
    error = stopped(tmp_path, *rows, *exchange(30, "p0", "t", more=" WITHOUT VALIDATION"))
    assert (error.code, error.exit_code) == ("UNSUPPORTED_DDL", 3)
    assert "2 rows of d.t are none of partition 'p0' of d.p, where EXCHANGE PARTITION put them at TSO 30" in error.message


def test_a_value_that_is_masked_in_one_of_the_tables_cannot_cross(tmp_path: Path) -> None:
    masked = {"d.t": {"v": ColumnPolicy(mask="truncate(2)")}}
    error = stopped(tmp_path, row(0, "insert", 20, KV, ("2", "t"), table="t"), *exchange(30, "p0", "t"), columns=masked)
    assert (error.code, error.exit_code) == ("UNSUPPORTED_DDL", 3)
    assert "column 'v' is string in d.p, masked (truncate(2)) in d.t" in error.message


def test_a_partition_by_key_is_not_told_once_the_texts_of_its_column_are_others(tmp_path: Path) -> None:
    said = ["CREATE TABLE p (id INT) PARTITION BY KEY (id) PARTITIONS 2", "ALTER TABLE p TRUNCATE PARTITION p0"]
    said += ["ALTER TABLE p REMOVE PARTITIONING", "ALTER TABLE p MODIFY id BIGINT", "ALTER TABLE p MODIFY id DECIMAL(10,2)"]
    statements = [Statement(commit_ts=n, database="d", query=q) for n, q in enumerate(said, 1)]
    seen = ObservedTable(database="d", table="p", row_schema=row_schema("id int", key=()), first_ts=2, last_ts=2, rows=1)
    (p,) = compile_window(Catalog(), statements, [seen], Policy(), of_tidb=True).catalog.incarnations.values()
    large, decimal = (Fold(feed=feed(tmp_path), incarnation=p, columns=p.columns_at(ts), applied_ts=0, until_ts=ts) for ts in (4, 5))
    assert large.left(large.removals[0]) == "crc32(concat(coalesce(CAST(CAST(`id` AS STRING) AS BINARY), X'00'))) % 2 IN (0)"
    with pytest.raises(
        OrderError, match=r"d\.p: the rows of a partition by KEY are not known once column 'id' is decimal\(10,2\)"
    ) as error:
        removed(decimal, decimal.removals[0])
    assert error.value.code == "UNSUPPORTED_DDL"


def test_a_partition_whose_column_is_masked_is_not_told(tmp_path: Path) -> None:
    made = feed(tmp_path, columns={"d.p": {"id": ColumnPolicy(mask="hash")}}, policy=Policy(mask_key="a key of these tests, long enough"))
    said = [f"CREATE TABLE p {KEYED} PARTITION BY {RANGE}", "ALTER TABLE p TRUNCATE PARTITION p0"]
    statements = [Statement(commit_ts=n, database="d", query=q) for n, q in enumerate(said, 1)]
    seen = ObservedTable(database="d", table="p", row_schema=KV, first_ts=2, last_ts=2, rows=1)
    (p,) = compile_window(Catalog(), statements, [seen], Policy()).catalog.incarnations.values()
    fold = Fold(feed=made, incarnation=p, columns=p.columns, applied_ts=0, until_ts=9)
    with pytest.raises(OrderError, match=r"d\.p: the partitioning column is masked") as error:
        fold.left(fold.removals[0])
    assert error.value.code == "UNSUPPORTED_DDL"
