"""Publishing survives being cut short after any step: what follows is carried out again, nothing twice, nothing halfway."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake import lakes
from tests.lake.killed import Killed, kill_at
from tidelake.config.lake_paths import certificate_key
from tidelake.errors import StorageError
from tidelake.history.window import LedgerEntry
from tidelake.io.storage import Store, open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Advance, Cut, Intent, Reshape, TableCut
from tidelake.lake.cuts import newest_cut, published
from tidelake.lake.ddl_ledger import entries
from tidelake.publish.recovery import recover
from tidelake.publish.steps import carry_out, declare, plan_moves


def intent_of(lake: LakeCatalog, folder: Path) -> Intent:
    """Cut 1 of three tables: `a` gets rows and a column's new name, `b` and `c` swap names, `old` leaves its name."""
    a, b, c, old = (lakes.table(lake, f"d.{t}", [(1, t)]) for t in ("a", "b", "c", "old"))
    head = lakes.stage(lake, a, "run_1_1", [(2, "new")])
    advance = Advance(
        identifier="d.a", uuid=a.uuid, base=a.main, to=head, branch="run_1_1", incarnation="d.a@-1", reshape=Reshape(renamed={2: "w"})
    )
    moves = plan_moves(
        {b.uuid: "d.b", c.uuid: "d.c", old.uuid: "d.old"}, {b.uuid: "d.c", c.uuid: "d.b", old.uuid: f"d_past.old__{old.uuid[:8]}"}
    )
    cut = Cut(
        feed="shop",
        seq=1,
        hour="2026-01-05T10",
        applied_ts=0,
        resolved_ts=463368564662075392,
        run="run_1_1",
        version="0",
        catalog=lakes.names("a", "b", "c"),
        snapshots={
            "d.a@-1": TableCut(identifier="d.a", uuid=a.uuid, snapshot_id=head, rows=2),
            "d.b@-1": TableCut(identifier="d.b", uuid=c.uuid, snapshot_id=c.main, rows=1),
            "d.c@-1": TableCut(identifier="d.c", uuid=b.uuid, snapshot_id=b.main, rows=1),
        },
        past={old.uuid: f"d_past.old__{old.uuid[:8]}"},
        ledger=[
            LedgerEntry(commit_ts=463368564662075000, database="d", query="RENAME …", effect="applied", tables=("d.b@-1", "d.c@-1")),
            LedgerEntry(commit_ts=463368564662075001, database="d", query="ALTER …", effect="ignored", why="UNSUPPORTED_DDL: so"),
        ],
    )
    return Intent(cut=cut, advances=[advance], moves=moves, certificate={"feed": "shop", "cut": 1})


def check(lake: LakeCatalog, store: Store) -> None:
    """Everything of cut 1 is there, once."""
    cut = newest_cut(lake, store, "shop")
    assert cut is not None
    assert published(lake, "shop") == {1: 463368564662075392}
    rows = lake.load("_tidelake.published").scan().read_all().to_pylist()
    assert sorted((r["table"], r["identifier"]) for r in rows) == [("a", "d.a"), ("b", "d.b"), ("c", "d.c")]
    assert [r["v"] for r in lakes.contents(lake, "d.b")] == ["c"]
    assert [r["v"] for r in lakes.contents(lake, "d.c")] == ["b"]
    assert [r["w"] for r in lakes.contents(lake, "d.a")] == ["a", "new"]
    assert [r["w"] for r in lakes.contents(lake, "d.a", cut.snapshots["d.a@-1"].snapshot_id)] == ["a", "new"]
    assert lake.load("d.a").branches == []
    assert lake.find("d.old") is None
    assert [r["v"] for r in lakes.contents(lake, next(iter(cut.past.values())))] == ["old"]
    assert store.head(certificate_key("shop", 1)) is not None
    assert [(r["number"], r["statement"], r["effect"], r["why"], r["table"]) for r in entries(lake, "shop")] == [
        (1, "RENAME …", "applied", None, "d.b"),
        (1, "RENAME …", "applied", None, "d.c"),
        (2, "ALTER …", "ignored", "UNSUPPORTED_DDL: so", None),
    ]
    after = {r["table"]: (r["snapshot_before"], r["snapshot_after"]) for r in entries(lake, "shop")}
    assert after == {i.removesuffix("@-1"): (None, cut.snapshots[i].snapshot_id) for i in ("d.b@-1", "d.c@-1")} | {None: (None, None)}


STEPS: list[tuple[str, str, int]] = [
    ("after the intent", "advance", 0),
    ("before the columns take their names", "finish", 0),
    ("before the stamp", "append", 0),
    *((f"before name change {n}", "rename", n) for n in range(5)),
    ("before the cut's document", "record", 0),
    ("before the ledger of statements", "append", 1),
    ("before the published rows", "append", 2),
    ("before the certificate", "certificate", 0),
]


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
