"""How physical tables take the schema of a window's end: what is done at once, what waits for publishing, what is built anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lake import lakes
from tests.lake.lakes import incarnation, with_columns
from tidelake.config.feed import ColumnPolicy, Feed
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.incarnations import Column
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Reshape
from tidelake.lake.names import is_parking, parking_name, vacant
from tidelake.lake.tables import create_changelog, create_snapshot, finish, grow_changelog, holders, lake_column, reshape


@pytest.fixture
def lake(tmp_path: Path) -> LakeCatalog:
    return lakes.catalog(tmp_path)


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return lakes.feed(tmp_path)


def named(table: LakeTable) -> list[tuple[str, str]]:
    return [(c.name, c.type) for c in table.columns() if c.source_id is not None]


def test_a_snapshot_table_has_the_sources_columns_and_the_commit_ts(lake: LakeCatalog, feed: Feed) -> None:
    table = create_snapshot(lake, feed, incarnation(id="bigint unsigned", price="decimal(12,2)", at="timestamp(6)"), "d.t", 4)
    assert [(c.name, c.type, c.doc) for c in table.columns()] == [
        ("id", "decimal(20,0)", "1: bigint unsigned"),
        ("price", "decimal(12,2)", "2: decimal(12,2)"),
        ("at", "timestamp", "3: timestamp(6)"),
        ("_commit_ts", "bigint", "TSO of the last change of the row"),
    ]
    assert [str(f) for f in table.table.spec().fields] == ["1000: tidelake_bucket: bucket[4](1)"]


def test_added_columns_come_at_their_place_before_staging(lake: LakeCatalog, feed: Feed) -> None:
    i = incarnation(id="bigint", a="int")
    table = create_snapshot(lake, feed, i, "d.t", 1)
    one, a = i.columns
    first, last = (Column(id=n, name=f"c{n}", type=MysqlType("int"), since_ts=5) for n in (3, 4))
    shaped = reshape(lake, feed, with_columns(i, first, one, a, last), table)
    assert shaped is not None
    assert (named(shaped[0]), shaped[1]) == ([("c3", "int"), ("id", "bigint"), ("a", "int"), ("c4", "int")], None)


def test_an_added_column_may_have_a_dot_in_its_name(lake: LakeCatalog, feed: Feed) -> None:
    i = incarnation(id="bigint")
    dotted = Column(id=2, name="a.b", type=MysqlType("int"), since_ts=5)
    changelog = create_changelog(lake, feed, i, "d_changelog.t", i.columns, 1)
    shaped = reshape(lake, feed, with_columns(i, dotted, *i.columns), create_snapshot(lake, feed, i, "d.t", 1))
    assert shaped is not None
    assert named(shaped[0]) == [("a.b", "int"), ("id", "bigint")]
    assert ("a.b", "int") in named(grow_changelog(lake, feed, i, changelog, [*i.columns, dotted]))


def test_a_wider_type_is_taken_in_place(lake: LakeCatalog, feed: Feed) -> None:
    i = incarnation(id="bigint", qty="smallint unsigned", price="decimal(8,2)", x="float")
    table = create_snapshot(lake, feed, i, "d.t", 1)
    one, qty, price, x = i.columns
    wider = (replace(qty, type=MysqlType("int", unsigned=True)), replace(price, type=MysqlType("decimal", length=12, scale=2)))
    shaped = reshape(lake, feed, with_columns(i, one, *wider, replace(x, type=MysqlType("double"))), table)
    assert shaped is not None
    assert named(shaped[0]) == [("id", "bigint"), ("qty", "bigint"), ("price", "decimal(12,2)"), ("x", "double")]


def test_new_names_and_drops_wait_for_publishing(lake: LakeCatalog, feed: Feed) -> None:
    i = incarnation(id="bigint", note="text", vip="tinyint")
    table = create_snapshot(lake, feed, i, "d.t", 1)
    one, note, _ = i.columns
    shaped = reshape(lake, feed, with_columns(i, one, replace(note, name="remark")), table)
    assert shaped is not None
    assert named(shaped[0]) == [("id", "bigint"), ("note", "string"), ("vip", "int")]
    assert shaped[1] == Reshape(renamed={2: "remark"}, dropped=[3])
    for _ in range(2):  # the second time there is nothing left to do
        finish(lake, "d.t", shaped[1])
        assert named(lake.load("d.t")) == [("id", "bigint"), ("remark", "string")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"id": "bigint", "a": "bigint"}, [("id", 1, "bigint"), ("a", 2, "bigint unsigned")]),
        ({"id": "bigint", "a": "int"}, [("id", 1, "bigint"), ("a", 2, "varchar(9)")]),
        ({"id": "bigint", "a": "decimal(8,2)"}, [("id", 1, "bigint"), ("a", 2, "decimal(8,3)")]),
        ({"id": "bigint", "a": "int", "b": "int"}, [("id", 1, "bigint"), ("b", 2, "int"), ("a", 3, "int")]),
        ({"id": "bigint", "a": "int"}, [("id", 1, "bigint"), ("a", 3, "int")]),
    ],
    ids=["unsigned", "to text", "more digits", "names swapped", "dropped and added again"],
)
def test_what_iceberg_refuses_is_built_anew(
    before: dict[str, str], after: list[tuple[str, int, str]], lake: LakeCatalog, feed: Feed
) -> None:
    i = incarnation(**before)
    table = create_snapshot(lake, feed, i, "d.t", 1)
    columns = [Column(id=n, name=name, type=MysqlType.parse(t)) for name, n, t in after]
    assert reshape(lake, feed, with_columns(i, *columns), table) is None
    assert named(lake.load("d.t")) == [(name, "int" if t == "int" else t) for name, t in before.items()]


def test_a_changelog_keeps_every_column_that_ever_lived(lake: LakeCatalog, feed: Feed) -> None:
    i = incarnation(id="bigint", a="int", b="int")
    table = create_changelog(lake, feed, i, "d_changelog.t", i.columns, 1)
    one, a, b = i.columns
    swapped = [one, replace(a, name="b"), replace(b, name="a")]
    table = grow_changelog(lake, feed, i, table, swapped)
    assert {c.source_id: c.name for c in table.columns() if c.source_id} == {1: "id", 2: "b", 3: "a"}
    text = replace(a, name="b", type=MysqlType("varchar", length=5))
    table = grow_changelog(lake, feed, i, table, [one, text])
    assert [(c.name, c.type) for c in holders(table.columns())[2]] == [("b", "string"), ("b__2", "int")]
    again = Column(id=4, name="a", type=MysqlType("int"))
    table = grow_changelog(lake, feed, i, table, [one, text, again])
    assert [(c.name, c.type) for c in holders(table.columns())[3]] == [("a__3", "int")]
    assert [(c.name, c.type) for c in holders(table.columns())[4]] == [("a", "int")]
    assert grow_changelog(lake, feed, i, table, [one, text, again]).columns() == table.columns()


def test_a_changelog_gives_a_name_to_the_column_that_bears_it_last(lake: LakeCatalog, feed: Feed) -> None:
    i = incarnation(id="bigint", a="int")
    one, a = i.columns
    later, last = (Column(id=n, name="A", type=MysqlType("int")) for n in (3, 4))
    called = Column(id=5, name="a__2", type=MysqlType("int"))
    wanted = {1: "id", 4: "A", 5: "a__2", 2: "a__2_2", 3: "A__3"}
    made = create_changelog(lake, feed, i, "d_changelog.t", [one, last, called, a, later], 1)  # as they lived in its first window
    assert {c.source_id: c.name for c in made.columns() if c.source_id} == wanted
    old = create_changelog(lake, feed, i, "d_changelog.u", [one, a], 1)
    grown = grow_changelog(lake, feed, i, old, [one, last, called, a, later])
    assert {c.source_id: c.name for c in grown.columns() if c.source_id} == wanted


def test_a_new_table_takes_its_own_leftover_but_not_anothers_name(lake: LakeCatalog, feed: Feed) -> None:
    i = incarnation(id="bigint")
    create_snapshot(lake, feed, i, "d.t", 1)
    other = replace(i, id="d.t@77")
    spare = vacant(lake, "shop", "d.t", other, ())
    assert spare != "d.t"
    assert is_parking(spare)
    assert vacant(lake, "shop", "d.t", i, ()) == "d.t"
    assert lake.find("d.t") is None


def test_a_zero_date_policy_stays_with_the_column_through_new_names(tmp_path: Path) -> None:
    policy = {"d.customers": {"last_login": ColumnPolicy(zero_date="string")}}
    feed = lakes.feed(tmp_path, columns=policy)
    i = incarnation(id="bigint")
    i = replace(i, names=(replace(i.names[0], table="customers", until_ts=9), replace(i.names[0], table="clients", after_ts=9)))
    column = Column(id=2, name="seen_at", type=MysqlType("datetime"), former=("last_login",))
    assert lake_column(feed, i, column).type == "string"
    assert lake_column(feed, i, replace(column, former=())).type == "timestamp_ntz"


def test_parking_names_are_told_from_others() -> None:
    assert parking_name("d.t", "0123456789") == "d_past.t__01234567"
    assert is_parking("d_past.t__01234567")
    assert not is_parking("d.t")
