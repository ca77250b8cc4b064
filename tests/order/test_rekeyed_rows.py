"""A new key of a table with rows: the table's next life begins with them, in order with row events; at cuts, between them, in versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.audit import certified, stranger
from tests.lake.histories import Feeder, Row, ddl, publish, publish_again, resolved, row, row_schema, rows_of
from tests.lake.truths import compare, published
from tests.lake.windows import KV, opened, table
from tests.order import offset_feeds
from tests.order.offset_feeds import drop, put, sent
from tidelake.config.feed import TablePolicy
from tidelake.config.policy import ColumnPolicy, Policy
from tidelake.errors import ConfigError, OrderError, TidelakeError
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.opened import Lake
from tidelake.order import planning
from tidelake.publish.rollback import rollback
from tidelake.query.changes import changes_of
from tidelake.query.diff import differences
from tidelake.query.frames import scd2

pytestmark = pytest.mark.usefixtures("small_hours")
BARE = row_schema("id bigint", "v varchar", key=())
BY_ID = row_schema("id bigint", "a bigint", "v varchar")
BY_A = row_schema("id bigint", "a bigint", "v varchar", key=("a",))
BY_BOTH = row_schema("id bigint", "a bigint", "v varchar", key=("id", "a"))
WIDE = row_schema("id bigint", "v varchar", "n bigint")
SQL = """CREATE TABLE d.w (id BIGINT, v VARCHAR(9)); CREATE TABLE d.t (id BIGINT PRIMARY KEY, a BIGINT, v VARCHAR(9));
CREATE TABLE d.u (id BIGINT NOT NULL, a BIGINT NOT NULL, v VARCHAR(9), UNIQUE ia (id, a));"""


def altered(ts: int, table: str, clauses: str) -> Any:
    """The statement on both partitions."""
    return ddl(ts, f"ALTER TABLE {table} {clauses}", 0, 1)


FIRST = [
    *(row(0, "insert", 20, BARE, (i, v), table="w") for i, v in (("1", "a"), ("2", "b"), ("2", "b"), ("3", "c"))),
    *(row(0, "insert", 20, BY_ID, (i, a, "t"), table="t") for i, a in (("1", "11"), ("2", "12"), ("3", "13"))),
    *(row(0, "insert", 20, BY_BOTH, (i, a, "u"), table="u") for i, a in (("1", "1"), ("1", "2"), ("2", "3"))),
    *resolved(50, 0, 1),
]
SECOND = [
    row(0, "delete", 60, BARE, None, ("2", "b"), table="w"),
    row(0, "update", 62, BARE, ("3", "at 62"), ("3", "c"), table="w"),  # as old as the statement: older
    *altered(62, "w", "ADD PRIMARY KEY (id)"),
    row(0, "update", 63, KV, ("1", "at 63"), ("1", "a"), table="w"),
    row(0, "insert", 63, KV, ("4", "d"), table="w"),
    row(0, "delete", 64, KV, None, ("2", "b"), table="w"),
    *altered(66, "t", "DROP PRIMARY KEY, DROP COLUMN v, ADD PRIMARY KEY (a), ADD COLUMN n BIGINT NOT NULL DEFAULT 7"),
    row(0, "update", 67, row_schema("id bigint", "a bigint", "n bigint", key=("a",)), ("2", "11", "8"), ("1", "11", "7"), table="t"),
    *altered(70, "u", "ADD UNIQUE j (a)"),
    row(0, "update", 71, BY_A, ("2", "1", "at 71"), ("1", "1", "u"), table="u"),
    *altered(72, "u", "DROP INDEX j"),
    row(0, "update", 73, BY_BOTH, ("2", "1", "at 73"), ("2", "1", "at 71"), table="u"),
    *ddl(75, "RENAME TABLE w TO x", 0, 1),
    *resolved(80, 0, 1),
]
THIRD = [
    *altered(80, "u", "ADD PRIMARY KEY (a), RENAME TO y"),  # as old as the cut that is published
    *altered(80, "y", "DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)"),
    row(0, "update", 81, BY_BOTH, ("1", "2", "at 81"), ("1", "2", "u"), table="y"),
    *altered(84, "x", "DROP PRIMARY KEY, ADD PRIMARY KEY (v)"),
    *ddl(85, "TRUNCATE TABLE t", 0, 1),
    *altered(86, "t", "DROP PRIMARY KEY, ADD PRIMARY KEY (id)"),
    *ddl(87, "DROP TABLE x", 0, 1),
    *ddl(88, "RECOVER TABLE x", 0, 1),
    row(0, "delete", 89, row_schema("id bigint", "v varchar", key=("v",)), None, ("4", "d"), table="x"),
    *resolved(90, 0, 1),
]
# (table, TSO) → its rows then
TRUTH: dict[tuple[str, int], list[Row]] = {
    ("w", 50): [("1", "a"), ("2", "b"), ("2", "b"), ("3", "c")],
    ("w", 61): [("1", "a"), ("2", "b"), ("3", "c")],
    ("w", 62): [("1", "a"), ("2", "b"), ("3", "at 62")],
    ("w", 63): [("1", "at 63"), ("2", "b"), ("3", "at 62"), ("4", "d")],
    ("w", 74): [("1", "at 63"), ("3", "at 62"), ("4", "d")],
    ("t", 65): [("1", "11", "t"), ("2", "12", "t"), ("3", "13", "t")],
    ("t", 66): [("1", "11", "7"), ("2", "12", "7"), ("3", "13", "7")],
    ("t", 67): [("2", "11", "8"), ("2", "12", "7"), ("3", "13", "7")],
    ("u", 70): [("1", "1", "u"), ("1", "2", "u"), ("2", "3", "u")],
    ("u", 71): [("2", "1", "at 71"), ("1", "2", "u"), ("2", "3", "u")],
    ("u", 72): [("2", "1", "at 71"), ("1", "2", "u"), ("2", "3", "u")],
    ("t", 80): [("2", "11", "8"), ("2", "12", "7"), ("3", "13", "7")],
    ("x", 80): [("1", "at 63"), ("3", "at 62"), ("4", "d")],
    ("y", 81): [("2", "1", "at 73"), ("1", "2", "at 81"), ("2", "3", "u")],
    ("t", 84): [("2", "11", "8"), ("2", "12", "7"), ("3", "13", "7")],
    ("t", 90): [],
    ("x", 86): [("1", "at 63"), ("3", "at 62"), ("4", "d")],
    ("x", 90): [("1", "at 63"), ("3", "at 62")],
    ("y", 90): [("2", "1", "at 73"), ("1", "2", "at 81"), ("2", "3", "u")],
}
AT_THE_CUT: dict[tuple[str, int], list[Row]] = {("u", 80): [("2", "1", "at 73"), ("1", "2", "u"), ("2", "3", "u")]}


Story = tuple[Feeder, Lake, list[Cut]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Three cuts, at 50, 80 and 90."""
    policy = Policy(before_images="all", on_before_image="block")  # no row that a new key brought makes an old value look lost
    with opened(tmp_path_factory.mktemp("rekey"), SQL, partitions=2, policy=policy, tables={"d.t": TablePolicy(buckets=4)}) as (made, lake):
        yield made, lake, [published(lake, made.add(lake, hour)) for hour in (FIRST, SECOND, THIRD)]


def test_rows_stay_whatever_tells_them_apart(story: Story) -> None:
    _, lake, cuts = story
    compare(lake, TRUTH | AT_THE_CUT)
    assert [{i.name: i.key for i in c.catalog.alive()} for c in cuts] == [
        {"d.w": (), "d.t": (1,), "d.u": (1, 2)},
        {"d.t": (2,), "d.u": (1, 2), "d.x": (1,)},
        {"d.t": (1,), "d.x": (2,), "d.y": (1, 2)},
    ]
    assert [c.snapshots[i.id].buckets for c in cuts for i in c.catalog.alive() if i.name == "d.t"][:2] == [4, 4]
    assert {t for t in lake.catalog.tables("d") if not t.startswith("_")} == {"d.t", "d.x", "d.y"}
    assert set(lake.catalog.tables("d_changelog")) >= {"d_changelog.x", "d_changelog.y"}


def test_the_new_changelog_begins_with_every_row(story: Story) -> None:
    _, lake, _ = story
    names = ("_commit_ts", "_change_type", "_origin", "_topic", "id", "v")
    tables = [of.rows.read_all().sort_by([("_change_seq", "ascending"), ("id", "ascending")]) for of in changes_of(lake, "d.w", 50, None)]
    assert [tuple(c.values()) for table in tables for c in table.select(names).to_pylist()] == [
        (60, "DELETE", "event", "t", 2, "b"),
        (62, "UPDATE_BEFORE", "event", "t", 3, "c"),
        (62, "UPDATE_AFTER", "event", "t", 3, "at 62"),
        (62, "INSERT", "new_key", None, 1, "a"),
        (62, "INSERT", "new_key", None, 2, "b"),
        (62, "INSERT", "new_key", None, 3, "at 62"),
        (63, "UPDATE_BEFORE", "event", "t", 1, "a"),
        (63, "UPDATE_AFTER", "event", "t", 1, "at 63"),
        (63, "INSERT", "event", "t", 4, "d"),
        (64, "DELETE", "event", "t", 2, "b"),
    ]


def test_the_certificate_counts_both_lives_under_their_name(story: Story) -> None:
    _, lake, cuts = story
    rows = read_certificate(lake.store, lake.feed.name, cuts[1].seq)["rows"]
    wanted = ("events", "updates", "changes", "exchanged_in", "rows_before", "rows_after")
    assert {name: tuple(n.get(k, 0) for k in wanted) for name, n in rows.items()} == {
        "d.w": (2, 1, 3, 0, 0, 0),  # its former life alone
        "d.x": (3, 1, 7, 3, 4, 3),
        "d.t": (1, 1, 5, 3, 3, 3),
        "d.u": (2, 2, 10, 6, 3, 3),
    }


def test_versions_begin_with_the_key_and_end_with_it(story: Story) -> None:
    _, lake, _ = story

    def versions(table: str, ts: int) -> list[tuple[Any, ...]]:
        rows = scd2(lake.spark, lake.feed, f"d.{table}", ts).select("a", "id", "_valid_from_ts", "_valid_to_ts").collect()
        return sorted(tuple(r) for r in rows)

    assert versions("t", 65) == [(11, 1, 20, None), (12, 2, 20, None), (13, 3, 20, None)]
    assert versions("t", 80) == [(11, 1, 66, 67), (11, 2, 67, None), (12, 2, 66, None), (13, 3, 66, None)]
    with pytest.raises(ConfigError, match="no key"):
        scd2(lake.spark, lake.feed, "d.w", 61)


def test_a_difference_over_it_is_one_table_that_ended_and_one_that_began(story: Story) -> None:
    _, lake, _ = story
    found = {(d.name_before, d.name_after): (d.removed, d.added) for d in differences(lake, "all", 50, 80)}
    assert found[("d.t", None)] == (3, 0)
    assert found[(None, "d.t")] == (0, 3)


def test_both_audits_call_it_as_certified(story: Story) -> None:
    _, lake, _ = story
    assert certified.audited(lake).wrong == []
    assert stranger.audited(lake)[0] == 0


def test_every_hour_again_in_one_window_and_a_rollback_give_the_same(story: Story) -> None:
    """The last of the story's tests: it leaves two cuts more."""
    made, lake, cuts = story
    _, found = publish_again(lake, max(made.begins), min(made.begins))
    assert {name: n for name, n in found.items() if any(n.values())} == {}
    compare(lake, TRUTH | {("y", 80): AT_THE_CUT["u", 80]})
    rollback(lake, f"cut {cuts[0].seq}")
    compare(lake, {("w", 50): TRUTH["w", 50]})
    for hour in sorted(made.begins)[1:]:
        published(lake, hour)
    compare(lake, {at: rows for at, rows in (TRUTH | AT_THE_CUT).items() if at[1] >= 80})


def test_a_table_without_rows_in_the_lake_has_nothing_to_bring(tmp_path: Path) -> None:
    with opened(tmp_path, "CREATE TABLE d.w (id BIGINT, v VARCHAR(9))") as (made, lake):
        hour = [*altered(30, "w", "ADD PRIMARY KEY (id)")[:1], row(0, "insert", 40, KV, ("1", "a"), table="w"), *resolved(50)]
        published(lake, made.add(lake, hour))
        compare(lake, {("w", 30): [], ("w", 50): [("1", "a")]})


def test_buckets_are_as_many_as_the_rows_of_the_former_life_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_BUCKET_ROWS", 2)
    first = [row(0, "insert", 20, BARE, (str(i), "a"), table="w") for i in range(5)]
    second = [*altered(60, "w", "ADD PRIMARY KEY (id)")[:1], row(0, "insert", 70, KV, ("9", "a"), table="w")]
    with opened(tmp_path, SQL) as (made, lake):
        published(lake, made.add(lake, [*first, *resolved(50)]))
        cut = published(lake, made.add(lake, [*second, *resolved(80)]))
        (life,) = [i for i in cut.catalog.alive() if i.name == "d.w"]
        assert (cut.snapshots[life.id].buckets, cut.changelogs[life.id].buckets, cut.snapshots[life.id].rows) == (4, 4, 6)


KEY_OF_M = offset_feeds.ddl("m", "ALTER TABLE m ADD PRIMARY KEY (v)")
X, Y, Z = ({"v": v} for v in "xyz")


def test_in_a_feed_ordered_by_offsets_the_key_comes_at_the_statement_s_offset(tmp_path: Path) -> None:
    first = [[put("m", X), put("m", X), put("m", Y)], [drop("m", X)]]
    second = [[put("m", Z)], [drop("m", Y), KEY_OF_M, put("m", Y)], [put("m", {"v": "w"}, X)]]
    with offset_feeds.opened(tmp_path, "canal") as (feed, lake):
        published(lake, feed.put(lake, {0: sent("canal", first)}))
        assert rows_of(lake, "d.m") == table(("x",), ("y",), names=("v",))
        cut = published(lake, feed.put(lake, {0: sent("canal", second)}))
        assert rows_of(lake, "d.m") == table(("w",), ("y",), ("z",), names=("v",))
        (life,) = [i for i in cut.catalog.alive() if i.name == "d.m"]
        assert rows_of(lake, "d.m", life.from_ts) == table(("x",), ("z",), names=("v",))
        assert rows_of(lake, "d.m", life.from_ts - 1) == table(("x",), ("y",), ("z",), names=("v",))
        again = offset_feeds.ddl("m", "ALTER TABLE m DROP PRIMARY KEY, ADD PRIMARY KEY (v)")
        hour = feed.put(lake, {0: sent("canal", [[again]]), 1: sent("canal", [[put("m", X)]])})
        with pytest.raises(OrderError, match="whether they come before or after it is unknown: 'ALTER TABLE m DROP PRIMARY"):
            publish(lake, hour)


def stopped(folder: Path, *hours: list[Any], **changes: Any) -> TidelakeError:
    with opened(folder, SQL, **changes) as (made, lake):
        *before, last = hours
        for hour in before:
            published(lake, made.add(lake, hour))
        with pytest.raises(TidelakeError) as error:
            publish(lake, made.add(lake, last))
        return error.value


KEYED = altered(30, "w", "ADD PRIMARY KEY (id)")[:1]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (("1", "2", "2", "3", "3", "3"), "2 keys of d.w are NULL or not unique in the lake at TSO 30 .*, the first id = 2 in 2 rows"),
        (("1", None), "1 key of d.w is NULL or not unique in the lake at TSO 30 .*, the first id = NULL in 1 row"),
    ],
)
def test_rows_without_the_key_stop_the_window(tmp_path: Path, ids: tuple[str | None, ...], said: str) -> None:
    rows = [row(0, "insert", 20, BARE, (i, str(n)), table="w") for n, i in enumerate(ids)]
    error = stopped(tmp_path, [*rows, *KEYED, *resolved(50)])
    assert (type(error), error.code, error.exit_code) == (OrderError, "UNSUPPORTED_DDL", 3)
    assert re.search(f"{said}: 'ALTER TABLE w ADD PRIMARY KEY [(]id[)]'", error.message)


@pytest.mark.parametrize("later", [0, 50])
def test_a_key_cannot_be_masked_into_one(tmp_path: Path, later: int) -> None:
    """Also in a window without a row of the table."""
    rows, statement = [row(0, "insert", 20, BARE, ("1", "v"), table="w")], altered(30 + later, "w", "ADD PRIMARY KEY (v)")[:1]
    hours = [[*rows, *resolved(50)], [*statement, *resolved(100)]] if later else [[*rows, *statement, *resolved(50)]]
    error = stopped(tmp_path, *hours, columns={"d.w": {"v": ColumnPolicy(mask="truncate(2)")}})
    assert (type(error), error.exit_code) == (ConfigError, 2)
    assert "v is in the key of d.w: rows would become one" in error.message


def test_a_default_that_comes_late_with_the_key_is_not_guessed(tmp_path: Path) -> None:
    first = [row(0, "insert", 20, BARE, ("1", "a"), table="w"), *resolved(30)]
    late = altered(30, "w", "DROP COLUMN v, ADD PRIMARY KEY (id), ADD COLUMN v BIGINT DEFAULT 7")[:1]
    error = stopped(tmp_path, first, [*late, *resolved(50)])
    assert error.code == "UNSUPPORTED_DDL"
    assert "column 'v' of d.w came with the key of TSO 30" in error.message


def test_masks_of_a_former_name_hold_in_the_next_life(tmp_path: Path) -> None:
    masked = {"d.w": {"v": ColumnPolicy(mask="null")}}
    first = [row(0, "insert", 20, BARE, ("1", None), table="w"), *ddl(25, "RENAME TABLE w TO x")]
    with opened(tmp_path, SQL, columns=masked) as (made, lake):
        cut = published(lake, made.add(lake, [*first, *altered(30, "x", "ADD PRIMARY KEY (id)")[:1], *resolved(50)]))
        (life,) = [i for i in cut.catalog.alive() if i.name == "d.x"]
        assert lake.catalog.load(cut.snapshots[life.id].identifier).columns()[1].doc == "2: varchar(9) /* mask null */"


def test_columns_that_change_after_it_change_in_its_rows(tmp_path: Path) -> None:
    hour = [
        row(0, "insert", 20, BARE, ("1", "1.6"), table="w"),
        *KEYED,
        *ddl(35, "ALTER TABLE w ADD n BIGINT NOT NULL DEFAULT 5"),
        *ddl(40, "ALTER TABLE w MODIFY v INT"),
        row(0, "insert", 45, row_schema("id bigint", "v int", "n bigint"), ("2", "3", "6"), table="w"),
        *resolved(50),
    ]
    with opened(tmp_path, SQL) as (made, lake):
        published(lake, made.add(lake, hour))
        compare(lake, {("w", 29): [("1", "1.6")], ("w", 50): [("1", "2", "5"), ("2", "3", "6")]})
