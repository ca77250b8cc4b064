"""A first cut with every kind of step, all that a lake holds after it, and the steps to be cut short at."""

from __future__ import annotations

from pathlib import Path

from tests.lake import lakes
from tidelake.config.lake_paths import certificate_key
from tidelake.history.window import LedgerEntry
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Advance, Cut, Intent, Reshape, TableCut
from tidelake.lake.cuts import newest_cut, published
from tidelake.lake.ddl_ledger import entries
from tidelake.publish.steps import plan_moves


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
