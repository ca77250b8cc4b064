"""Rollback: every table is as it was at the cut, under its name and with its columns, and a rollback killed at any step is rolled
forward."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake import lakes
from tests.lake.killed import Killed, kill_at
from tests.publish.two_cuts import FIRST, NOW, SECOND, _cut, names_of, published_twice, seen
from tidelake.errors import ConfigError, OwnershipError, StorageError
from tidelake.lake.cut import Intent
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.cuts import lineage, published
from tidelake.publish.recovery import recover
from tidelake.publish.rollback import lines, rollback
from tidelake.publish.steps import declare
from tidelake.tso import at

THEN = {"d.a": {"a"}, "d.b": {"b"}, "d.c": {"c"}, "d.old": {"old"}}


def test_everything_is_as_it_was_and_nothing_is_deleted(tmp_path: Path) -> None:
    lake = published_twice(tmp_path)
    head = lake.catalog.load("d.a").main
    done = rollback(lake, str(FIRST))
    assert (seen(lake), names_of(lake, "d.a")) == (THEN, ["id", "v", "_commit_ts"])
    assert len(lakes.contents(lake.catalog, "d_changelog.a")) == 1
    assert [r["w"] for r in lakes.contents(lake.catalog, "d.a", head)] == ["a", "new"], "who reads the undone cut by its ids reads on"
    assert [t.rpartition("__")[0] for t in lake.catalog.tables("d_past")] == ["d_past.young"]
    facts = {(t.table, t.what, t.rows_before, t.rows_after, t.changes) for t in done.tables}
    assert facts == {
        ("d.a", "back", 2, 1, 1),
        ("d.b", "returns", 1, 1, 0),
        ("d.c", "returns", 1, 1, 0),
        ("d.old", "returns", 0, 1, 0),
        ("d.young", "leaves", 1, 0, 0),
    }
    assert (published(lake.catalog, "shop"), lineage(lake.catalog, "shop")) == ({1: FIRST, 2: SECOND, 3: FIRST}, {3: FIRST, 1: FIRST})
    proof = read_certificate(lake.store, "shop", 3)
    assert (proof["cut"], proof["hour"], proof["rollback"]["changes"], proof["rollback"]["from_cut"]) == (3, "2026-01-05T10", 1, 2)


def test_a_dry_run_says_the_same_and_touches_nothing(tmp_path: Path) -> None:
    lake = published_twice(tmp_path)
    plan = rollback(lake, str(FIRST), dry_run=True)
    assert (seen(lake), published(lake.catalog, "shop")) == (NOW, {1: FIRST, 2: SECOND})
    assert lines(plan)[-1] == "  1 changelog row undone; hours after 2026-01-05T10 can be run again"
    assert rollback(lake, str(FIRST)) == plan


def test_a_rollback_that_was_a_mistake_is_undone_by_a_rollback_to_the_cut_that_it_undid(tmp_path: Path) -> None:
    lake = published_twice(tmp_path)
    rollback(lake, str(FIRST))
    again = rollback(lake, str(SECOND))
    assert (again.seq, again.to_cut, again.changes) == (4, 2, -1)
    assert (seen(lake), names_of(lake, "d.a")) == (NOW, ["id", "w", "_commit_ts"])
    assert lineage(lake.catalog, "shop") == {4: SECOND, 2: SECOND, 1: FIRST}
    nothing = rollback(lake, str(SECOND))
    assert (nothing.seq, lines(nothing)[0][-13:]) == (None, "nothing to do")


def test_a_time_means_the_cut_of_that_millisecond_and_what_is_no_cut_is_refused_with_the_nearest(tmp_path: Path) -> None:
    lake = published_twice(tmp_path)
    assert rollback(lake, at(FIRST).isoformat(), dry_run=True).to_cut == 1
    with pytest.raises(ConfigError, match=rf"no cut at {FIRST + 1}; the nearest: {FIRST} \(.*\) and {SECOND} \(") as refused:
        rollback(lake, str(FIRST + 1))
    assert (refused.value.code, refused.value.exit_code) == ("NOT_A_CUT", 2)
    with pytest.raises(ConfigError, match=rf"the nearest: {SECOND} \("):
        rollback(lake, "2036-01-05T12:00:00Z")


STEPS: list[tuple[str, str, int]] = [
    ("after the intent", "restore", 0),
    ("between two tables", "restore", 1),
    *((f"before name change {n}", "rename", n) for n in range(6)),
    ("before the cut's document", "record", 0),
    ("before the published rows", "append", 0),
    ("before the certificate", "certificate", 0),
]
SAMPLE = ("between two tables", "before name change 3", "before the certificate")


@pytest.mark.parametrize(
    ("where", "step", "nth"), [pytest.param(*s, id=s[0], marks=[] if s[0] in SAMPLE else pytest.mark.long) for s in STEPS]
)
def test_a_rollback_killed_at_any_step_is_rolled_forward(
    where: str, step: str, nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = published_twice(tmp_path)
    with monkeypatch.context() as patch:
        kill_at(patch, step, nth)
        with pytest.raises(Killed):
            rollback(lake, str(FIRST))
    assert (3 in published(lake.catalog, "shop")) == (step == "certificate"), "a cut is visible before it is whole"
    finished = recover(lake.catalog, lake.store, "shop")
    assert finished is not None
    assert (finished.seq, finished.parent_seq) == (3, 1)
    assert (seen(lake), names_of(lake, "d.a")) == (THEN, ["id", "v", "_commit_ts"])
    assert lineage(lake.catalog, "shop") == {3: FIRST, 1: FIRST}
    assert recover(lake.catalog, lake.store, "shop") is None
    assert rollback(lake, str(FIRST)).seq is None


def test_the_second_of_two_publishers_is_refused_before_it_touches_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = published_twice(tmp_path)
    other = Intent(cut=_cut(3, SECOND + 1, {"a": lake.catalog.load("d.a")}, lake.catalog.load("d_changelog.a")))
    monkeypatch.setattr("tidelake.publish.rollback.recover", lambda *_: declare(lake.store, other))  # while this one plans
    with pytest.raises(StorageError, match="was published by another run") as error:
        rollback(lake, str(FIRST))
    assert (error.value.code, seen(lake)) == ("TAKEN", NOW)


def test_what_a_run_left_unpublished_makes_room_and_what_is_somebody_elses_does_not(tmp_path: Path) -> None:
    lake = published_twice(tmp_path)
    lakes.table(lake.catalog, "d.old", [(5, "left behind")])
    rollback(lake, str(FIRST))
    assert seen(lake) == THEN
    rollback(lake, str(SECOND))
    lake.catalog.create("d.old", lakes.COLUMNS)
    with pytest.raises(OwnershipError, match=r"needs the name d\.old, and the table of that name was not created by Tidelake") as error:
        rollback(lake, str(FIRST))
    assert (error.value.code, lineage(lake.catalog, "shop")[4]) == ("NOT_OURS", SECOND)


def test_a_table_that_someone_else_wrote_to_is_not_set_back(tmp_path: Path) -> None:
    lake = published_twice(tmp_path)
    lake.catalog.append("d.b", lakes.batch(lake.catalog.load("d.b"), [(9, "stranger")]))
    with pytest.raises(StorageError, match="which no run of Tidelake created") as error:
        rollback(lake, str(FIRST))
    assert (error.value.code, published(lake.catalog, "shop")) == ("TABLE_MOVED", {1: FIRST, 2: SECOND})
