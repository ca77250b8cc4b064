"""Whose a thing is, and that it stays (docs/ownership.md): two feeds of one database in one catalog, tables that Tidelake did not make."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.lake import lakes
from tests.logged import messages_of
from tidelake.compact.fold_target import Folded
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import (
    certificates,
    cuts,
    decisions,
    decoded,
    intents,
    late_table,
    manifests,
    mismatches,
    name_hash,
    seed_reports,
    sink_schemas,
)
from tidelake.errors import ConfigError, OwnershipError, TidelakeError
from tidelake.history.ddl.changes import ColumnDef, TableDef
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.incarnations import Catalog, Incarnation, create
from tidelake.io.storage import open_store
from tidelake.lake.branches import begin_branch
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Advance, Cut, Intent, Staged, TableCut
from tidelake.lake.cuts import changelog_retained_after, published, record
from tidelake.lake.events import ensure_events
from tidelake.lake.names import changelog_name, parking_name, snapshot_name, vacant
from tidelake.lake.namespaces import clear_way, refuse_taken, take
from tidelake.lake.opened import Lake
from tidelake.lake.tables import create_changelog, create_snapshot
from tidelake.maintenance.expire import drop_gone, forget_documents
from tidelake.maintenance.maintenance_plan import MaintenancePlan, TablePlan
from tidelake.maintenance.needs import stale_branches
from tidelake.maintenance.orphans import leftovers, remove_leftovers
from tidelake.maintenance.published_rows import let_go, raise_retained_after
from tidelake.order.change_sequence import sequence_of
from tidelake.order.changelogs import open_changelog
from tidelake.order.late.ledger import late_rows
from tidelake.order.table_rows import TableRows
from tidelake.publish.intent import intent_of
from tidelake.publish.recovery import recover
from tidelake.publish.steps import carry_out, declare, plan_moves
from tidelake.spark.parquet_files import kept_if_whole


@pytest.fixture
def lake(tmp_path: Path) -> LakeCatalog:
    return lakes.catalog(tmp_path)


@pytest.fixture
def first(tmp_path: Path) -> Feed:
    return lakes.feed(tmp_path)


@pytest.fixture
def second(tmp_path: Path) -> Feed:
    return lakes.feed(tmp_path, "other")


def table() -> Incarnation:
    """Table d.t."""
    return next(iter(lakes.names("t").incarnations.values()))


def rows(feed: Feed, i: Incarnation) -> TableRows:
    """What order would stage of it."""
    sequence = sequence_of(0, 0, 0, by_arrival=False)
    return TableRows(feed=feed, incarnation=i, names=i.names, row_schemas=(), bucket="id", buckets=1, sequence=sequence)


def unmarked(lake: LakeCatalog, identifier: str) -> LakeTable:
    """A table that Tidelake did not make, in a namespace of feed shop."""
    lake.claim_namespace(identifier.rpartition(".")[0], "shop")
    return lake.create(identifier, lakes.COLUMNS)


def stays(lake: LakeCatalog, made: LakeTable) -> bool:
    """Whether the table is where it was."""
    found = lake.find(made.identifier)
    return found is not None and found.uuid == made.uuid


def test_a_refused_feed_leaves_the_changelogs_of_the_other(lake: LakeCatalog, first: Feed, second: Feed) -> None:
    i = table()
    made = create_changelog(lake, first, i, "d_changelog.t", i.columns, 1)
    with pytest.raises(TidelakeError) as error:
        open_changelog(lake, rows(second, i), None, frozenset())
    assert "d_changelog" in str(error.value)
    assert "feed 'shop'" in str(error.value)
    assert stays(lake, made), "the first feed's changelog is gone"


def test_a_feed_is_refused_before_it_has_made_anything(lake: LakeCatalog, first: Feed, second: Feed) -> None:
    lake.claim_namespace("d_changelog_past", "shop")  # the last that is looked at
    before = lake.namespaces()
    with pytest.raises(ConfigError, match="namespace 'd_changelog_past' of the lake belongs to feed 'shop', feed 'other' may not"):
        take(lake, second, lakes.names("t"))
    assert lake.namespaces() == before
    take(lake, first, lakes.names("t"))
    assert lake.namespaces() == dict.fromkeys(("d", "d_changelog", "d_past", "d_changelog_past"), "shop") | {"_tidelake": "*"}


def test_looking_whether_names_are_taken_makes_no_catalog(tmp_path: Path, first: Feed) -> None:
    lake = lakes.catalog(tmp_path)
    refuse_taken(lake, first, lakes.names("t"))
    assert list((tmp_path / "lake").iterdir()) == []


@pytest.mark.parametrize("mark", ["other", None])
def test_a_table_under_another_mark_or_none_is_never_dropped(mark: str | None, lake: LakeCatalog) -> None:
    lake.claim_namespace("d", "shop")
    made = lake.create("d.t", lakes.COLUMNS, properties={} if mark is None else {"tidelake.feed": mark})
    with pytest.raises(OwnershipError) as error:
        lake.drop("d.t", "shop")
    whose = "was not created by Tidelake" if mark is None else "belongs to feed 'other'"
    assert str(error.value).startswith(f"NOT_OURS: table d.t {whose}; feed 'shop' needs its name, and neither changes nor drops it; give")
    assert error.value.exit_code == 3
    with pytest.raises(OwnershipError):
        vacant(lake, "shop", "d.t", table(), ())
    assert stays(lake, made)


def test_a_spare_name_that_somebody_else_has_is_passed_over(lake: LakeCatalog, first: Feed) -> None:
    i = table()
    there = create_snapshot(lake, first, i, "d.t", 1)
    spare = vacant(lake, "shop", "d.t", i, {there.uuid})
    theirs = unmarked(lake, spare)
    again = vacant(lake, "shop", "d.t", i, {there.uuid})
    assert again != spare
    assert stays(lake, theirs)


def test_feeds_whose_names_are_alike_do_not_share_an_events_table(tmp_path: Path, lake: LakeCatalog) -> None:
    one, other = lakes.feed(tmp_path, "a-b"), lakes.feed(tmp_path, "a_b", lake={"uri": str(tmp_path / "lake"), "namespace": "x_{database}"})
    made = ensure_events(lake, one)
    for use in (lambda: ensure_events(lake, other), lambda: refuse_taken(lake, other, lakes.names())):
        with pytest.raises(OwnershipError, match=r"_tidelake.a_b_events belongs to feed 'a-b'") as error:
            use()
        assert "names of feeds that differ in - and _ alone share their tables: give one of the feeds another name" in error.value.remedy
    assert stays(lake, made)


def test_nor_a_late_ledger(tmp_path: Path, lake: LakeCatalog) -> None:
    other = lakes.feed(tmp_path, "a_b")
    lake.claim_namespace("_tidelake", "*")
    made = lake.create(late_table("a-b"), lakes.COLUMNS, properties={"tidelake.feed": "a-b"})
    for use in (lambda: late_rows(lake, other.name), lambda: refuse_taken(lake, other, lakes.names())):
        with pytest.raises(OwnershipError, match=r"_tidelake\.a_b_late belongs to feed 'a-b'"):
            use()
    assert stays(lake, made)


def moving(lake: LakeCatalog, source: str, to: str) -> Intent:
    """Cut 1 of feed shop: a table takes another name."""
    made = lakes.table(lake, source)
    cut = Cut(
        feed="shop",
        seq=1,
        hour="2026-01-05T10",
        applied_ts=0,
        resolved_ts=463368564662075392,
        run="run_1_1",
        version="0",
        catalog=lakes.names("t"),
        snapshots={"d.t@-1": TableCut(identifier=to, uuid=made.uuid, snapshot_id=made.main)},
    )
    return Intent(cut=cut, moves=plan_moves({made.uuid: source}, {made.uuid: to}))


def test_what_a_run_staged_and_did_not_publish_makes_way_before_the_intent(lake: LakeCatalog) -> None:
    intent = moving(lake, "d_past.t__00000000", "d.t")
    leftover = lakes.table(lake, "d.t")
    with messages_of("publish") as said:
        clear_way(lake, intent, ())
    assert said == ["dropped d.t, which was staged and never published"]
    assert not stays(lake, leftover)


def test_a_table_of_the_feed_that_a_cut_needs_does_not_make_way(lake: LakeCatalog) -> None:
    intent = moving(lake, "d_past.t__00000000", "d.t")
    there = lakes.table(lake, "d.t")
    with pytest.raises(OwnershipError, match=r"table d_past.t__00000000 and the table with that name would both be d.t") as error:
        clear_way(lake, intent, {there.uuid})
    assert error.value.code == "NAME_COLLISION"
    assert stays(lake, there)


def test_two_tables_that_would_get_one_name_are_found_before_the_intent(lake: LakeCatalog) -> None:
    intent = moving(lake, "d.a", "d.t")
    intent.moves += moving(lake, "d.b", "d.T").moves  # some catalogs fold case
    with pytest.raises(OwnershipError, match=r"NAME_COLLISION: tables d.a and d.b would both be d.T in the lake; nothing is staged"):
        clear_way(lake, intent, ())


def test_a_table_of_somebody_else_is_found_before_the_intent_and_stays(lake: LakeCatalog) -> None:
    intent = moving(lake, "d.a", "d.t")
    theirs = unmarked(lake, "d.t")
    with pytest.raises(OwnershipError, match=r"NOT_OURS: d.a needs the name d.t, and the table of that name was not created by Tidelake"):
        clear_way(lake, intent, ())
    assert stays(lake, theirs)


def test_a_name_taken_after_the_intent_is_named_with_its_owner_and_the_way_forward(tmp_path: Path, lake: LakeCatalog) -> None:
    store, intent = open_store(str(tmp_path / "lake")), moving(lake, "d.a", "d.t")
    clear_way(lake, intent, ())
    declare(store, intent)
    theirs = unmarked(lake, "d.t")
    for attempt in (lambda: carry_out(lake, store, intent), lambda: recover(lake, store, "shop")):
        with pytest.raises(OwnershipError) as error:
            attempt()
        parked = parking_name("d.a", intent.moves[0].uuid)
        assert str(error.value) == (
            f"NOT_OURS: {parked} needs the name d.t, and the table of that name was not created by Tidelake; "
            "give the table d.t another name in the catalog, then run again; docs/ownership.md"
        )
        assert stays(lake, theirs)
    lake.rename("d.t", "d.theirs")
    assert recover(lake, store, "shop") is not None
    assert lake.load("d.t").uuid == intent.moves[0].uuid


def test_an_older_intent_that_gives_one_name_twice_says_which_and_that_it_cannot_be_carried_out(tmp_path: Path, lake: LakeCatalog) -> None:
    store, intent = open_store(str(tmp_path / "lake")), moving(lake, "d.a", "d.t")
    lakes.table(lake, "d.t")
    declare(store, intent)
    with pytest.raises(
        OwnershipError, match=r"NAME_COLLISION: d_past\.a__\w+ needs the name d\.t, and the table of that name belongs to feed 'shop'"
    ) as error:
        recover(lake, store, "shop")
    assert error.value.remedy.startswith(
        "both tables belong to this feed, so the cut cannot be published: abandon it with `tidelake abandon`"
    )


def test_databases_shop_and_shop_changelog_are_published_side_by_side(tmp_path: Path, lake: LakeCatalog, first: Feed) -> None:
    store = open_store(str(tmp_path / "lake"))
    definition = TableDef(columns=(ColumnDef(name="id", type=MysqlType("bigint"), nullable=False),), primary_key=("id",))
    known = create(create(Catalog(), "shop", "t", definition, -1), "shop_changelog", "t", definition, -1)
    take(lake, first, known)
    changelogs, folded = dict[str, TableCut](), dict[str, Folded]()
    for i in known.alive():
        changes = create_changelog(lake, first, i, vacant(lake, "shop", changelog_name(first, i), i, ()), i.columns, 1)
        rows = create_snapshot(lake, first, i, vacant(lake, "shop", snapshot_name(first, i), i, ()), 1)
        cuts = [TableCut(identifier=t.identifier, uuid=t.uuid, snapshot_id=t.main) for t in (changes, rows)]
        advance = Advance(identifier=rows.identifier, uuid=rows.uuid, base=rows.main, to=rows.main, branch="run_1_1", incarnation=i.id)
        changelogs[i.id], folded[i.id] = cuts[0], Folded(advance=advance, table=cuts[1], replaced=None, written="all")
    cut = Cut(feed="shop", seq=1, hour="2026-01-05T10", applied_ts=0, resolved_ts=2, run="run_1_1", version="0", catalog=known)
    intent = intent_of(first, Staged(cut=cut.model_copy(update={"changelogs": changelogs})), folded)
    clear_way(lake, intent, ())
    declare(store, intent)
    done = carry_out(lake, store, intent)
    assert {t.identifier for t in (*done.snapshots.values(), *done.changelogs.values())} == {
        *("shop.t", "shop_changelog.t"),
        *(f"shop_changelog_{name_hash('shop_changelog')}{end}.t" for end in ("", "_changelog")),
    }


def test_folders_of_another_catalogs_tables_in_the_same_warehouse_stay(tmp_path: Path) -> None:
    """Two catalogs over one lake, each with a namespace d: to the one, the other's tables look like folders that nobody needs."""
    elsewhere = {"uri": str(tmp_path / "lake"), "catalog": f"jdbc:sqlite:{tmp_path / 'other.db'}"}
    with Lake.of(lakes.feed(tmp_path, "other", lake=elsewhere)) as theirs:
        theirs.catalog.claim_namespace("d", "other")
        there = theirs.catalog.create("d.t", lakes.COLUMNS, properties={"tidelake.feed": "other"})
    with messages_of("maintenance") as said, Lake.of(lakes.feed(tmp_path)) as lake:
        mine = lakes.table(lake.catalog, "d.lost", [(1, "a")])
        lake.catalog.drop("d.lost", "shop")
        strange = tmp_path / "lake" / "warehouse" / "d" / "strange"
        strange.mkdir()
        (strange / "00000.metadata.json").write_text("[]")
        found = leftovers(lake, before_ms=1 << 50)
        places = [t.table.location().removeprefix(f"{lake.settings.warehouse}/") for t in (mine, there)]
        assert [one.folder for one in found] == places[:1]
        remove_leftovers(lake, found)
        assert leftovers(lake, before_ms=1 << 50) == []
    assert [what.partition(" is not a table")[0] for what in said[:2]] == ["d/strange", places[1]]
    assert (tmp_path / "lake" / "warehouse" / places[1] / "metadata").is_dir()
    assert not any(p.is_file() for p in (tmp_path / "lake" / "warehouse" / places[0]).rglob("*"))


def test_a_removal_cut_short_leaves_what_says_whose_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Lake.of(lakes.feed(tmp_path)) as lake:
        lakes.table(lake.catalog, "d.lost", [(1, "a")])
        lake.catalog.drop("d.lost", "shop")
        found = leftovers(lake, before_ms=1 << 50)
        gone: list[str] = []
        monkeypatch.setattr("tidelake.io.storage._LocalStore.delete", lambda _, key: gone.append(key))
        remove_leftovers(lake, found)
        assert [key.endswith(".metadata.json") for key in gone] == sorted(key.endswith(".metadata.json") for key in gone)
        assert {key.endswith(".metadata.json") for key in gone} == {True, False}


def test_branches_that_people_made_stay_whatever_they_are_called(lake: LakeCatalog) -> None:
    made = lakes.table(lake, "d.t", [(1, "a")])
    theirs = ("run_of_mine", "run_7", "runs", "run_1_1_old")
    for name in (*theirs, "run_1_1", "run_2_3"):
        lake.set_branch(lake.load("d.t"), name, made.main)
    cut = moving(lake, "d.a", "d.b").cut.model_copy(update={"seq": 9})
    assert stale_branches(lake.load("d.t"), cut) == ["run_1_1", "run_2_3"]
    begin_branch(lake, lake.load("d.t"), "run_9_1", made.main)
    assert sorted(lake.load("d.t").branches) == sorted([*theirs, "run_9_1"])


def test_maintenance_drops_no_table_that_somebody_else_put_under_the_name(tmp_path: Path) -> None:
    with Lake.of(lakes.feed(tmp_path)) as lake:
        theirs = unmarked(lake.catalog, "d_past.t__11111111")
        plan = MaintenancePlan(
            feed="shop",
            cuts={},
            lets_go=[],
            staged=None,
            changelog_retained_after=0,
            tables=[TablePlan(table=theirs.identifier, gone=True)],
        )
        with pytest.raises(OwnershipError, match=r"table d_past\.t__11111111 was not created by Tidelake"):
            drop_gone(lake, plan, moving(lake.catalog, "d.a", "d.b").cut)
        assert stays(lake.catalog, theirs)


def test_letting_go_of_cuts_and_changes_leaves_what_is_said_of_another_feeds(tmp_path: Path) -> None:
    with Lake.of(lakes.feed(tmp_path)) as lake:
        mine = moving(lake.catalog, "d.a", "d.b").cut
        theirs = mine.model_copy(update={"feed": "shop2"})
        for cut in (mine, theirs):
            record(lake.catalog, lake.store, cut)
        let_go(lake.catalog, "shop", [1], 1)
        raise_retained_after(lake.catalog, "shop", 1, 99)
        forget_documents(lake, (), mine.model_copy(update={"seq": 9}))
        assert (published(lake.catalog, "shop"), changelog_retained_after(lake.catalog, "shop")) == ({}, 99)
        assert (published(lake.catalog, "shop2"), changelog_retained_after(lake.catalog, "shop2")) == ({1: mine.resolved_ts}, 0)
        assert [o.key for o in lake.store.objects("cuts/")] == ["cuts/shop2/00000001.json"]


def test_no_feeds_prefix_begins_anothers() -> None:
    own = (manifests, decoded, mismatches, intents, cuts, certificates, decisions, sink_schemas, partial(seed_reports, run="run_1_1"))
    assert all(prefix("shop").endswith("/") and not prefix("shop2").startswith(prefix("shop")) for prefix in own)


def test_a_writer_that_fails_removes_what_it_wrote_and_nothing_beside_it(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.write("data/another-run.parquet", b"1")

    def fails() -> None:
        with kept_if_whole(store) as keys:
            keys.append("data/mine.parquet")
            store.write(keys[0], b"2")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert [o.key for o in store.objects()] == ["data/another-run.parquet"]
