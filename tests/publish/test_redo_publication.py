"""A redo's publication survives being cut short after any step: what runs next rolls it forward, and no reader meets two cuts at once.

What is published twice (test_rollback.py) is replaced from the second hour on: `a` gets another row and another name for its column, `b`
and `c` do not swap names, `old` is not dropped, `young` is never born and a changelog has no change.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake import lakes
from tests.lake.killed import Killed, kill_at
from tests.publish.two_cuts import FIRST, NOW, SECOND, names_of, published_twice, seen, texts
from tidelake.compact.fold_target import Folded
from tidelake.config.lake_paths import certificate_key
from tidelake.errors import StorageError
from tidelake.lake.cut import Advance, Cut, Intent, Reshape, Staged
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import base_of, lineage, newest_cut, published
from tidelake.lake.opened import Lake
from tidelake.publish.intent import intent_of
from tidelake.publish.recovery import recover
from tidelake.publish.replace import replace
from tidelake.publish.rollback import rollback
from tidelake.publish.steps import carry_out, declare
from tidelake.query.asof import placed_now

REDONE = {"d.a": {"a", "redone"}, "d.b": {"b"}, "d.c": {"c"}, "d.old": {"old"}}
RUN = "run_3_1"


def redo_of(lake: Lake) -> Intent:
    """What compact declares for a redo from the second hour on."""
    base = base_of(lake.catalog, lake.store, "shop", "2026-01-05T11")
    assert (base.seq, base.parent_seq) == (3, 1)
    assert base.cut is not None
    assert base.newest is not None
    cut = base.cut.model_copy(deep=True)
    cut.seq, cut.parent_seq, cut.run, cut.hour = base.seq, base.parent_seq, RUN, base.newest.hour
    cut.applied_ts, cut.resolved_ts = FIRST, SECOND
    a = cut.snapshots["d.a@-1"]
    made = lake.catalog.load(a.identifier)
    lake.catalog.set_branch(made, RUN, a.snapshot_id)
    staged = lake.catalog.load(a.identifier)
    staged.table.append(lakes.batch(staged, [(3, "redone")]), branch=RUN)
    head = lake.catalog.load(a.identifier).branch(RUN)
    advance = Advance(
        identifier=a.identifier,
        uuid=a.uuid,
        base=a.snapshot_id,
        to=head,
        branch=RUN,
        incarnation="d.a@-1",
        reshape=Reshape(renamed={2: "u"}),
    )
    folded = Folded(advance=advance, table=a.model_copy(update={"snapshot_id": head, "rows": 2}), replaced=None, written="all")
    intent = intent_of(lake.feed, Staged(cut=cut), {"d.a@-1": folded})
    replace(lake.catalog, intent, base.newest)
    intent.certificate = {"feed": "shop", "cut": 3}
    return intent


def read(lake: Lake, cut: Cut) -> dict[str, set[object]]:
    """Every table of a cut, by its snapshot id, wherever the table is by now."""
    places = {lake.catalog.load(i).uuid: i for space in ("d", "d_past") for i in lake.catalog.tables(space)}
    assert len(places) == len(lake.catalog.tables("d")) + len(lake.catalog.tables("d_past")), "no table has two names"
    out = {}
    for i, t in cut.snapshots.items():
        out[f"d.{cut.catalog.incarnations[i].names[-1].table}"] = texts(lake, places[t.uuid], t.snapshot_id)
    return out


STEPS: list[tuple[str, str, int]] = [
    ("after the intent", "restore", 0),
    ("between the changelogs and the snapshots", "advance", 0),
    ("before the columns take their names", "finish", 0),
    ("before the stamp", "append", 0),
    *((f"before name change {n}", "rename", n) for n in range(6)),
    ("before the cut's document", "record", 0),
    ("before the published rows", "append", 1),
    ("before the certificate", "certificate", 0),
]
SAMPLE = ("before the stamp", "before name change 3")


@pytest.mark.parametrize(
    ("where", "step", "nth"), [pytest.param(*s, id=s[0], marks=[] if s[0] in SAMPLE else pytest.mark.long) for s in STEPS]
)
def test_a_redo_killed_at_any_step_is_rolled_forward(
    where: str, step: str, nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = published_twice(tmp_path)
    intent = redo_of(lake)
    declare(lake.store, intent)
    with monkeypatch.context() as patch:
        kill_at(patch, step, nth)
        with pytest.raises(Killed):
            carry_out(lake.catalog, lake.store, intent)
    newest = newest_cut(lake.catalog, lake.store, "shop")
    assert newest is not None
    assert newest.seq == (3 if step == "certificate" else 2), "a cut is visible before it is whole"
    assert read(lake, newest) == (REDONE if newest.seq == 3 else NOW), "whoever reads a cut reads one TSO"
    finished = recover(lake.catalog, lake.store, "shop")
    assert finished is not None
    assert (finished.seq, finished.parent_seq) == (3, 1)
    check(lake)
    assert recover(lake.catalog, lake.store, "shop") is None


def check(lake: Lake) -> None:
    """The redo is published, once; the cuts before it hold what they held."""
    assert (seen(lake), names_of(lake, "d.a")) == (REDONE, ["id", "u", "_commit_ts"])
    assert len(lakes.contents(lake.catalog, "d_changelog.a")) == 1, "the changelog is as of the first cut, too"
    assert published(lake.catalog, "shop") == {1: FIRST, 2: SECOND, 3: SECOND}
    assert lineage(lake.catalog, "shop") == {1: FIRST, 3: SECOND}
    assert lake.store.head(certificate_key("shop", 3)) is not None
    assert read(lake, read_cut(lake.store, "shop", 2)) == NOW
    newest = read_cut(lake.store, "shop", 3)
    for t in newest.snapshots.values():
        assert lake.catalog.load(t.identifier).main == t.snapshot_id
        assert lake.catalog.load(t.identifier).branches == []
    young = next(t for t in read_cut(lake.store, "shop", 2).snapshots.values() if t.identifier == "d.young")
    assert placed_now(newest, young).identifier.startswith("d_past.young__")


@pytest.mark.long
def test_a_redo_that_is_rolled_forward_is_undone_by_a_rollback_to_the_cut_that_it_replaced(tmp_path: Path) -> None:
    lake = published_twice(tmp_path)
    declare(lake.store, redo_of(lake))
    recover(lake.catalog, lake.store, "shop")
    rollback(lake, "cut 2")
    assert (seen(lake), names_of(lake, "d.a")) == (NOW, ["id", "w", "_commit_ts"])
    assert len(lakes.contents(lake.catalog, "d_changelog.a")) == 2
    rollback(lake, "cut 3")
    assert seen(lake) == REDONE


def test_a_redo_whose_number_another_run_took_touches_no_table(tmp_path: Path) -> None:
    lake = published_twice(tmp_path)
    intent = redo_of(lake)
    rollback(lake, str(FIRST))  # while the redo was building
    then = seen(lake)
    with pytest.raises(StorageError, match="was published by another run") as error:
        declare(lake.store, intent)
    assert (error.value.code, seen(lake)) == ("TAKEN", then)
