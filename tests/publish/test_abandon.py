"""Giving up a publishing: what it moved is back, its number is never used again, whoever is publishing at the same time finds out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lake import cheap, lakes
from tests.lake.killed import Killed, kill_at
from tests.publish.one_cut import STEPS, check, intent_of
from tidelake.config.lake_paths import certificate_key, intent_key
from tidelake.errors import ConfigError, StorageError
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Advance, Cut, Intent
from tidelake.lake.cut_documents import find_abandoned, next_seq
from tidelake.lake.cuts import base_of, is_published, lineage, newest_cut, published
from tidelake.lake.ddl_ledger import entries
from tidelake.lake.opened import Lake
from tidelake.publish import abandon as giving_up
from tidelake.publish.abandon import abandon, finish, give_up
from tidelake.publish.recovery import recover
from tidelake.publish.rollback import rollback
from tidelake.publish.steps import carry_out, declare

UNDOABLE = [s for s in STEPS if s[0] in ("after the intent", "before the stamp", "before name change 1", "before name change 4")]
TABLES = ("d.a", "d.b", "d.c", "d.old")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake.of(lakes.feed(tmp_path)) as opened:
        yield opened


def state(catalog: LakeCatalog) -> dict[str, object]:
    """What readers see of the tables, and who is who."""
    return {t: (catalog.load(t).uuid, catalog.load(t).main, lakes.contents(catalog, t)) for t in TABLES}


def cut_short(lake: Lake, tmp_path: Path, step: str = "append", nth: int = 0) -> tuple[Intent, dict[str, object]]:
    """An intent whose publishing ended at this step; what stood there before."""
    intent = intent_of(lake.catalog, tmp_path)
    before = state(lake.catalog)
    declare(lake.store, intent)
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, step, nth)
        with pytest.raises(Killed):
            carry_out(lake.catalog, lake.store, intent)
    return intent, before


@pytest.mark.parametrize(("where", "step", "nth"), UNDOABLE, ids=[s[0] for s in UNDOABLE])
def test_a_publishing_cut_short_anywhere_can_be_given_up(lake: Lake, tmp_path: Path, where: str, step: str, nth: int) -> None:
    intent, before = cut_short(lake, tmp_path, step, nth)
    given = abandon(lake)
    assert given is not None
    assert given.seq == 1
    assert state(lake.catalog) == before
    assert lake.catalog.load("d.a").branches == []
    assert recover(lake.catalog, lake.store, "shop") is None
    assert (newest_cut(lake.catalog, lake.store, "shop"), published(lake.catalog, "shop"), entries(lake.catalog, "shop")) == (None, {}, [])
    assert abandon(lake) is None
    with pytest.raises(StorageError, match="ABANDONED"):
        carry_out(lake.catalog, lake.store, intent)
    assert state(lake.catalog) == before


def test_the_number_is_never_used_again_and_cuts_go_on_from_the_one_before(lake: Lake) -> None:
    first = cheap.publish(lake, None, 0)
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, "record", 0)
        with pytest.raises(Killed):
            cheap.publish(lake, first, 1)
    assert abandon(lake) is not None
    base = base_of(lake.catalog, lake.store, "shop")
    assert (base.seq, base.newest, base.parent_seq) == (3, first, None)
    assert next_seq(lake.store, "shop", 1) == 3
    third = cheap.publish(lake, first.model_copy(update={"seq": 2}), 1)
    assert third.seq == 3
    assert newest_cut(lake.catalog, lake.store, "shop") == third
    assert lineage(lake.catalog, "shop").keys() == {1, 3}
    assert not is_published(lake.catalog, "shop", 2)
    assert lake.store.head(certificate_key("shop", 2)) is None
    back = rollback(lake, "cut 1")
    assert (back.seq, back.to_cut) == (4, 1)
    assert lineage(lake.catalog, "shop").keys() == {1, 4}
    assert rollback(lake, "cut 3").seq == 5
    with pytest.raises(ConfigError, match="has no cut 2"):
        rollback(lake, "cut 2")


def test_a_dry_run_tells_it_and_touches_nothing(lake: Lake, tmp_path: Path) -> None:
    intent, _ = cut_short(lake, tmp_path, "record")
    half = lake.catalog.load("d.a").main
    given = abandon(lake, dry_run=True)
    assert given is not None
    lines = given.lines(dry_run=True)
    assert lines[0] == "shop: cut 1 (hour 2026-01-05T10) would be abandoned; readers keep the previous cut"
    assert f"  d.a: main goes back to snapshot {intent.advances[0].base}, with its columns" in lines
    assert "  d.c: gets its name d.b back" in lines
    assert lake.catalog.load("d.a").main == half
    assert find_abandoned(lake.store, "shop", 1) is None
    assert recover(lake.catalog, lake.store, "shop") is not None
    check(lake.catalog, lake.store)


@pytest.mark.parametrize(
    ("step", "nth", "by"),
    [
        ("drop_branches", 0, "recover"),
        ("restore", 0, "abandon"),
        ("rename", 0, "recover"),
        ("rename", 3, "abandon"),
        ("forget", 0, "recover"),
    ],
)
def test_giving_up_that_is_killed_is_finished_by_itself_or_by_the_next_run(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, nth: int, by: str
) -> None:
    at = ("advance", 0) if step == "drop_branches" else ("record", 0)
    _, before = cut_short(lake, tmp_path, *at)
    with monkeypatch.context() as patch:
        kill_at(patch, step, nth, giving_up)
        with pytest.raises(Killed):
            abandon(lake)
    if by == "abandon":
        assert abandon(lake) is not None
    assert recover(lake.catalog, lake.store, "shop") is None
    assert state(lake.catalog) == before
    assert abandon(lake) is None


def test_a_cut_that_is_whole_but_for_its_record_is_not_given_up(lake: Lake, tmp_path: Path) -> None:
    cut_short(lake, tmp_path, "append", 2)
    for dry_run in (True, False):
        with pytest.raises(ConfigError, match="cut 1 of feed shop cannot be abandoned: all its tables are published") as error:
            abandon(lake, dry_run=dry_run)
    assert (error.value.code, error.value.exit_code) == ("COMPLETE", 2)
    assert recover(lake.catalog, lake.store, "shop") is not None
    check(lake.catalog, lake.store)


@pytest.mark.parametrize(("step", "nth"), [("advance", 0), ("rename", 0), ("record", 0)])
def test_a_run_that_lost_its_lease_while_it_published_moves_nothing_after_it_was_given_up(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, nth: int
) -> None:
    intent = intent_of(lake.catalog, tmp_path)
    before = state(lake.catalog)
    declare(lake.store, intent)
    with monkeypatch.context() as patch:
        interrupt_at(patch, step, nth, lambda: give_up(lake.catalog, lake.store, intent))
        with pytest.raises(StorageError) as error:
            carry_out(lake.catalog, lake.store, intent)
    assert error.value.code in ("ABANDONED", "TABLE_MOVED")
    assert published(lake.catalog, "shop") == {}
    assert state(lake.catalog) == before


def interrupt_at(patch: pytest.MonkeyPatch, step: str, nth: int, call: object) -> None:
    """Something else happens just before the nth call of a step."""
    from tidelake.publish import steps as publish

    owner: object = LakeCatalog if hasattr(LakeCatalog, step) else publish
    was, calls = getattr(owner, step), [0]

    def wrapper(*arguments: object, **named: object) -> object:
        calls[0] += 1
        if calls[0] == nth + 1:
            patch.undo()
            call()  # type: ignore[operator]
        return was(*arguments, **named)

    patch.setattr(owner, step, wrapper)


def test_a_table_that_is_gone_or_that_somebody_moved_is_left(lake: Lake, tmp_path: Path) -> None:
    intent, _ = cut_short(lake, tmp_path, "advance")
    stranger = lake.catalog.append("d.a", lakes.batch(lake.catalog.load("d.a"), [(9, "stranger")]))
    given = abandon(lake)
    assert given is not None
    assert any("which no run created: left as it is" in s.detail for s in given.steps)
    assert lake.catalog.load("d.a").main == stranger
    lake.catalog.drop("d.a", "shop")
    note = find_abandoned(lake.store, "shop", 1)
    assert note is not None
    finish(lake.catalog, lake.store, intent, note)


def test_tables_made_for_the_cut_and_namespaces_left_empty_go_those_of_others_stay(lake: Lake, tmp_path: Path) -> None:
    intent = intent_of(lake.catalog, tmp_path)
    made = [lakes.table(lake.catalog, name) for name in ("e_past.new__1", "d.new")]
    heads = [lakes.stage(lake.catalog, t, "run_1_1", [(1, "new")]) for t in made]
    for t, head in zip(made, heads, strict=True):
        intent.advances.append(Advance(identifier=t.identifier, uuid=t.uuid, base=t.main, to=head, branch="run_1_1", incarnation="d.new@1"))
    lake.catalog.set_properties("d.new", {"tidelake.feed": "other"})
    declare(lake.store, intent)
    assert abandon(lake) is not None
    names = {".".join(n) for n in lake.catalog.catalog.list_namespaces()}
    assert (lake.catalog.find("e_past.new__1"), "e_past" in names, "d_past" in names, "d" in names) == (None, False, False, True)
    assert lake.catalog.load("d.new").uuid == made[1].uuid


def test_without_a_publishing_there_is_nothing_to_give_up(lake: Lake) -> None:
    assert abandon(lake) is None
    cheap.publish(lake, None, 0)
    assert abandon(lake) is None
    assert lake.store.head(intent_key("shop", 2)) is None


def test_a_rollback_that_is_given_up_leaves_the_newest_cut(lake: Lake) -> None:
    cut: Cut | None = None
    for hours in range(2):
        cut = cheap.publish(lake, cut, hours)
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, "record", 0)
        with pytest.raises(Killed):
            rollback(lake, "cut 1")
    assert abandon(lake) is not None
    assert newest_cut(lake.catalog, lake.store, "shop") == cut
    assert cut is not None
    assert lake.catalog.load("d.k").main == cut.snapshots["d.k@-1"].snapshot_id
    assert rollback(lake, "cut 1").seq == 4


def test_a_lake_s_store_is_all_it_takes_to_know_that_a_number_was_given_up(lake: Lake, tmp_path: Path) -> None:
    cut_short(lake, tmp_path)
    abandon(lake)
    note = find_abandoned(open_store(str(tmp_path / "lake")), "shop", 1)
    assert note is not None
    assert (note.seq, note.run, note.undone) == (1, "run_1_1", True)
