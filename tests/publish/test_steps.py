"""Publishing survives being cut short after any step: what follows is carried out again, nothing twice, nothing halfway."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake import lakes
from tests.lake.killed import Killed, kill_at
from tests.publish.one_cut import STEPS, check, intent_of
from tidelake.errors import StorageError
from tidelake.io.storage import open_store
from tidelake.lake.cuts import newest_cut, published
from tidelake.publish.recovery import recover
from tidelake.publish.steps import carry_out, declare, plan_moves


@pytest.mark.parametrize(("where", "step", "nth"), STEPS, ids=[s[0] for s in STEPS])
def test_a_publishing_killed_at_any_step_is_rolled_forward(
    where: str, step: str, nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, store = lakes.catalog(tmp_path), open_store(str(tmp_path / "lake"))
    intent = intent_of(lake, tmp_path)
    declare(store, intent)
    with monkeypatch.context() as patch:
        kill_at(patch, step, nth)
        with pytest.raises(Killed):
            carry_out(lake, store, intent)
    before = newest_cut(lake, store, "shop")
    assert (before is None) == (step != "certificate"), "a cut is visible before it is whole"
    again = recover(lake, store, "shop")
    assert again is not None
    check(lake, store)
    assert recover(lake, store, "shop") is None


def test_carrying_out_twice_changes_nothing(tmp_path: Path) -> None:
    lake, store = lakes.catalog(tmp_path), open_store(str(tmp_path / "lake"))
    intent = intent_of(lake, tmp_path)
    declare(store, intent)
    first = carry_out(lake, store, intent)
    heads = {t: lake.load(t).main for t in ("d.a", "d.b", "d.c", "_tidelake.published", "_tidelake.ddl")}
    assert carry_out(lake, store, intent) == first
    assert {t: lake.load(t).main for t in heads} == heads
    check(lake, store)


def test_the_second_of_two_publishers_is_refused_before_it_touches_a_table(tmp_path: Path) -> None:
    lake, store = lakes.catalog(tmp_path), open_store(str(tmp_path / "lake"))
    intent = intent_of(lake, tmp_path)
    declare(store, intent)
    other = intent.model_copy(update={"cut": intent.cut.model_copy(update={"run": "run_1_2"})})
    with pytest.raises(StorageError, match="was published by another run") as error:
        declare(store, other)
    assert error.value.code == "TAKEN"
    declare(store, intent)  # its own, again


def test_a_table_that_someone_else_wrote_to_stops_the_publishing_and_loses_nothing(tmp_path: Path) -> None:
    lake, store = lakes.catalog(tmp_path), open_store(str(tmp_path / "lake"))
    intent = intent_of(lake, tmp_path)
    stranger = lake.append("d.a", lakes.batch(lake.load("d.a"), [(9, "stranger")]))
    declare(store, intent)
    with pytest.raises(StorageError, match=f"set main back to snapshot {intent.advances[0].base}") as error:
        carry_out(lake, store, intent)
    assert error.value.code == "TABLE_MOVED"
    assert published(lake, "shop") == {}
    assert lake.load("d.a").main == stranger
    lake.set_branch(lake.load("d.a"), "main", intent.advances[0].base)
    recover(lake, store, "shop")
    check(lake, store)


def test_tables_swap_names_by_way_of_names_of_their_own() -> None:
    moves = plan_moves({"11111111-a": "d.x", "22222222-b": "d.y"}, {"11111111-a": "d.y", "22222222-b": "d.x"})
    assert [(m.source, m.parking, m.target) for m in moves] == [
        ("d.x", "d_past.x__11111111", "d.y"),
        ("d.y", "d_past.y__22222222", "d.x"),
    ]


def test_a_table_that_stays_is_not_moved() -> None:
    assert plan_moves({"u": "d.x"}, {"u": "d.x"}) == []
