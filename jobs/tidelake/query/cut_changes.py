"""What a cut changed in each table, compared with the cut that readers saw before it."""

from __future__ import annotations

from typing import Any

from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import find_certificate, read_cut
from tidelake.lake.cuts import known_cuts
from tidelake.lake.opened import Lake

Counts = dict[str, int]
COUNTS = ("inserts", "updates", "deletes", "upserts")


def changed_tables(lake: Lake, cut: Cut) -> dict[str, Counts]:
    """Return the tables that a cut changed, by name, with the numbers of changes that it applied.

    A table is changed if its rows, its columns or its name differ from those of the cut before. Rollbacks in between are skipped: what they
    undid counts as a change of this cut. Tables of which a redo found no row different are left out. If the cut before is no longer kept,
    all tables are returned. An upsert is a change of which the source does not say whether the row was there.
    """
    certificate = find_certificate(lake.store, lake.feed.name, cut.seq) or {}
    counts = certificate.get("rows", {})
    before, redone = _before(lake, cut), certificate.get("redo", {})
    same = _same_rows(redone, cut) if before is not None and redone.get("replaces") == before.seq else set[str]()
    return {
        i.name: {kind: int(counts.get(i.name, {}).get(kind, 0)) for kind in COUNTS}
        for i in cut.catalog.alive()
        if i.id in cut.snapshots and _differs(cut, before, i.id, rows=i.name not in same)
    }


def _before(lake: Lake, cut: Cut) -> Cut | None:
    """Return the cut before that is no rollback, None if there is none or it is no longer kept."""
    every = known_cuts(lake.catalog, lake.feed.name)
    for seq in sorted((s for s in every if s < cut.seq), reverse=True):
        if every[seq].expired:
            return None
        if "rollback" not in (find_certificate(lake.store, lake.feed.name, seq) or {}):
            return read_cut(lake.store, lake.feed.name, seq)
    return None


def _same_rows(redone: dict[str, Any], cut: Cut) -> set[str]:
    """Return the tables of which a redo found the same rows as in the cut that it replaced."""
    return {i.name for i in cut.catalog.alive() if i.name not in redone["tables"]}


def _differs(cut: Cut, before: Cut | None, incarnation: str, *, rows: bool) -> bool:
    """Whether a table differs from the cut before. rows: whether its rows may differ."""
    if before is None or incarnation not in before.snapshots:
        return True
    now, was = cut.catalog.incarnations[incarnation], before.catalog.incarnations[incarnation]
    moved = cut.snapshots[incarnation].snapshot_id != before.snapshots[incarnation].snapshot_id
    return (rows and moved) or (now.name, now.columns) != (was.name, was.columns)
