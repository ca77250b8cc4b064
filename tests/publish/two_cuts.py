"""A lake with two cuts, the second of which changes names, columns and rows, and what its readers see."""

from __future__ import annotations

from pathlib import Path

from tests.lake import lakes
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Advance, Cut, Intent, Reshape, TableCut
from tidelake.lake.opened import Lake
from tidelake.publish.steps import carry_out, declare, plan_moves

FIRST, SECOND = 463368564662075392, 463369508380639232  # an hour apart
NOW = {"d.a": {"a", "new"}, "d.b": {"c"}, "d.c": {"b"}, "d.young": {"y"}}


def published_twice(folder: Path) -> Lake:
    """Cut 1 holds a, b, c and old. By cut 2 a has a row more and its column another name, b and c swapped names, old was dropped and
    young is born."""
    lake = lakes.catalog(folder)
    opened = Lake(feed=lakes.feed(folder), store=open_store(str(folder / "lake")), settings=lake.settings, catalog=lake)
    a, b, c, old = (lakes.table(lake, f"d.{t}", [(1, t)]) for t in ("a", "b", "c", "old"))
    log = lakes.table(lake, "d_changelog.a", [(1, "a")])
    one = _cut(1, FIRST, {"a": a, "b": b, "c": c, "old": old}, log)
    _publish(opened, Intent(cut=one))
    young = lakes.table(lake, "d.young", [(1, "y")])
    two = _cut(2, SECOND, {"a": a, "b": c, "c": b, "young": young}, log)
    park = f"d_past.old__{old.uuid[:8]}"
    two.past[old.uuid] = park
    advances = []
    for made, t, reshape in ((a, two.snapshots["d.a@-1"], Reshape(renamed={2: "w"})), (log, two.changelogs["d.a@-1"], None)):
        head = lakes.stage(lake, made, "run_2_1", [(2, "new")])
        t.snapshot_id, t.rows = head, 2
        how = {"identifier": t.identifier, "uuid": made.uuid, "base": made.main, "to": head, "branch": "run_2_1"}
        advances.append(Advance(**how, incarnation="d.a@-1", reshape=reshape))
    moves = plan_moves({b.uuid: "d.b", c.uuid: "d.c", old.uuid: "d.old"}, {b.uuid: "d.c", c.uuid: "d.b", old.uuid: park})
    _publish(opened, Intent(cut=two, advances=advances, moves=moves))
    assert seen(opened) == NOW
    return opened


def _cut(seq: int, ts: int, tables: dict[str, LakeTable], log: LakeTable) -> Cut:
    return Cut(
        feed="shop",
        seq=seq,
        hour=f"2026-01-05T{9 + seq:02d}",
        applied_ts=0,
        resolved_ts=ts,
        run=f"run_{seq}_1",
        version="0",
        catalog=lakes.names(*tables),
        snapshots={
            f"d.{n}@-1": TableCut(identifier=f"d.{n}", uuid=t.uuid, snapshot_id=t.main, rows=1, buckets=1) for n, t in tables.items()
        },
        changelogs={"d.a@-1": TableCut(identifier="d_changelog.a", uuid=log.uuid, snapshot_id=log.main)},
    )


def _publish(lake: Lake, intent: Intent) -> None:
    intent.certificate = {"feed": "shop", "cut": intent.cut.seq, "hour": intent.cut.hour}
    declare(lake.store, intent)
    carry_out(lake.catalog, lake.store, intent)


def seen(lake: Lake) -> dict[str, set[object]]:
    """What readers of every table see: the texts."""
    return {t: texts(lake, t) for t in lake.catalog.tables("d")}


def texts(lake: Lake, table: str, snapshot_id: int | None = None) -> set[object]:
    """Its one column beside the key, whatever it is called."""
    return {r[name] for r in lakes.contents(lake.catalog, table, snapshot_id) for name in r.keys() - {"id", "_commit_ts"}}


def names_of(lake: Lake, table: str) -> list[str]:
    """A table's columns."""
    return [c.name for c in lake.catalog.load(table).columns()]
