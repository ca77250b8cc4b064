"""Names in the catalog: upstream names reach neither what the lake keeps for itself nor one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake import lakes
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import name_hash
from tidelake.errors import OwnershipError
from tidelake.history.ddl.changes import ColumnDef, TableDef
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.incarnations import Catalog, create
from tidelake.lake.cut import Cut, Staged, TableCut
from tidelake.lake.names import namespace_of, namespaces_of, snapshot_name
from tidelake.lake.namespaces import refuse_collisions
from tidelake.publish.intent import intent_of


def feed_of(folder: Path, namespace: str = "{database}") -> Feed:
    return lakes.feed(folder, lake={"uri": str(folder / "lake"), "namespace": namespace})


def names(*tables: str) -> Catalog:
    """A catalog with these tables, `db.table`."""
    definition = TableDef(columns=(ColumnDef(name="id", type=MysqlType("bigint"), nullable=False),), primary_key=("id",))
    known = Catalog()
    for t in tables:
        database, _, name = t.partition(".")
        known = create(known, database, name, definition, -1)
    return known


@pytest.mark.parametrize("database", ["shop", "Shop", "shop_changelogs", "past", "the_past_", "orders_202601", "changelog", "tidelake"])
def test_an_ordinary_database_keeps_its_name(database: str, tmp_path: Path) -> None:
    assert namespace_of(feed_of(tmp_path), database) == database


@pytest.mark.parametrize("database", ["shop_changelog", "shop_past", "shop_changelog_past", "Shop_Changelog", "_tidelake", "_past"])
def test_a_database_cannot_reach_what_the_lake_keeps_for_itself(database: str, tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    assert namespace_of(feed, database) == f"{database}_{name_hash(database)}"
    again = namespace_of(feed, namespace_of(feed, database))  # a database that is called like that
    assert again == f"{database}_{name_hash(database)}_{name_hash(f'{database}_{name_hash(database)}')}"


def test_no_two_databases_share_a_namespace(tmp_path: Path) -> None:
    plain = ["shop", "shop_changelog", "shop_past", "shop_changelog_past", "_tidelake", "shop_changelog_changelog"]
    feed, every = feed_of(tmp_path), dict[str, str]()
    for database in [*plain, *(namespace_of(feed_of(tmp_path), d) for d in plain if namespace_of(feed_of(tmp_path), d) != d)]:
        for namespace in namespaces_of(feed, database):
            assert every.setdefault(namespace.lower(), database) == database


@pytest.mark.parametrize(
    ("template", "database", "namespace"),
    [
        ("{feed}_{database}", "a_past", f"shop_a_past_{name_hash('a_past')}"),
        ("{database}_lake", "a_past", "a_past_lake"),
        ("{database}log", "a_change", f"a_change_{name_hash('a_change')}log"),
        ("_{database}", "tidelake", f"_tidelake_{name_hash('tidelake')}"),
        ("{database}_changelog", "a", "a_changelog"),  # whatever the database: nothing would be gained
        ("my_past", "a", "my_past"),
    ],
)
def test_the_rule_looks_at_the_namespace_that_comes_out(template: str, database: str, namespace: str, tmp_path: Path) -> None:
    assert namespace_of(feed_of(tmp_path, template), database) == namespace


def test_a_database_called_like_anothers_changelogs_wedges_nothing(tmp_path: Path) -> None:
    feed, both = feed_of(tmp_path), names("shop.t", "shop_changelog.t")
    refuse_collisions(feed, both)
    assert [snapshot_name(feed, i) for i in both.alive()] == ["shop.t", f"shop_changelog_{name_hash('shop_changelog')}.t"]


def test_two_tables_that_would_have_one_name_are_named_before_anything_is_staged(tmp_path: Path) -> None:
    with pytest.raises(OwnershipError) as error:
        refuse_collisions(feed_of(tmp_path, "all"), names("a.t", "b.u", "b.T"))
    assert str(error.value) == (
        "NAME_COLLISION: table a.t and table b.T would both be all.T in the lake; nothing is staged or published; rename one of them at "
        "the source, or give their databases feeds of their own with different [lake] namespace; docs/ownership.md"
    )
    assert error.value.exit_code == 3
    refuse_collisions(feed_of(tmp_path, "all"), names("a.t", "b.u"))


def test_a_table_and_the_changelog_of_another_do_not_get_one_name(tmp_path: Path) -> None:
    with pytest.raises(OwnershipError, match=r"changelog of table a.t and table a_changelog.t would both be a_changelog_changelog.t"):
        refuse_collisions(feed_of(tmp_path, "{database}_changelog"), names("a.t", "a_changelog.t"))


def test_a_database_that_is_called_like_anothers_name_in_the_lake_is_found(tmp_path: Path) -> None:
    like = f"a_b_{name_hash('a b')}"
    with pytest.raises(OwnershipError, match=rf"table a b\.t and table {like}\.t would both be {like}\.t in the lake"):
        refuse_collisions(feed_of(tmp_path), names("a b.t", f"{like}.t"))


def staged(feed: Feed, catalog: Catalog, snapshots: dict[str, TableCut], changelogs: dict[str, TableCut]) -> Staged:
    cut = Cut(feed=feed.name, seq=2, hour="2026-01-05T10", applied_ts=1, resolved_ts=2, run="run_2_1", version="0", catalog=catalog)
    return Staged(cut=cut.model_copy(update={"snapshots": snapshots, "changelogs": changelogs}))


def test_a_table_of_an_earlier_version_keeps_its_name_until_another_needs_it(tmp_path: Path) -> None:
    feed, both = feed_of(tmp_path), names("shop.t", "shop_changelog.t")
    old = {"shop_changelog.t@-1": TableCut(identifier="shop_changelog.t", uuid="1" * 32, snapshot_id=1)}
    assert intent_of(feed, staged(feed, both, old, {}), {}).moves == []
    new = {"shop.t@-1": TableCut(identifier="shop_changelog_past.t__22222222", uuid="2" * 32, snapshot_id=1)}
    moves = intent_of(feed, staged(feed, both, old, new), {}).moves
    assert {m.source: m.target for m in moves} == {
        "shop_changelog.t": f"shop_changelog_{name_hash('shop_changelog')}.t",
        "shop_changelog_past.t__22222222": "shop_changelog.t",
    }
