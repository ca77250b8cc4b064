"""The intent of a publication: which tables a cut has, and how they get their names."""

from __future__ import annotations

from collections.abc import Mapping

from tidelake.compact.fold_target import Folded
from tidelake.config.feed import Feed
from tidelake.history.incarnations import Incarnation
from tidelake.lake.cut import Cut, Intent, Staged, TableCut
from tidelake.lake.names import changelog_name, is_parking, parking_name, retired, snapshot_name, stands_as_before
from tidelake.publish.steps import placed, plan_moves


def intent_of(feed: Feed, staged: Staged, folded: dict[str, Folded]) -> Intent:
    """Return the intent that publishes these folded tables and staged changelogs. folded: by incarnation."""
    cut = staged.cut.copied()
    alive = {i.id: i for i in cut.catalog.alive()}
    gone = {i: t for i, t in cut.snapshots.items() if i not in alive}
    cut.snapshots = {i: folded[i].table if i in folded else t for i, t in cut.snapshots.items() if i in alive}
    cut.snapshots |= {i: f.table for i, f in folded.items()}
    cut.past = {u: identifier for u, identifier in cut.past.items() if u not in {t.uuid for t in cut.snapshots.values()}}
    replaced = [f.replaced for f in folded.values() if f.replaced is not None]
    now, wanted = dict[str, str](), dict[str, str]()
    for t in [*gone.values(), *replaced]:
        now[t.uuid], wanted[t.uuid] = t.identifier, retired(t.identifier, t.uuid)
        cut.past[t.uuid] = wanted[t.uuid]
    for i, t in cut.snapshots.items():
        now[t.uuid], wanted[t.uuid] = t.identifier, snapshot_name(feed, alive[i])
    for i, t in cut.changelogs.items():
        now[t.uuid] = t.identifier
        wanted[t.uuid] = changelog_name(feed, alive[i]) if i in alive else _kept(t)
    moves = plan_moves(now, wanted | _staying(feed, alive, cut, wanted))
    cut.snapshots = {i: placed(t, moves) for i, t in cut.snapshots.items()}
    cut.changelogs = {i: placed(t, moves) for i, t in cut.changelogs.items()}
    advances = [*staged.changelogs.values(), *(f.advance for f in folded.values())]
    return Intent(cut=cut, advances=advances, moves=moves)


def _staying(feed: Feed, alive: Mapping[str, Incarnation], cut: Cut, wanted: Mapping[str, str]) -> dict[str, str]:
    """Tables that keep the name that an earlier version gave them, unless another table needs that name."""
    every = [(i, t) for tables in (cut.snapshots, cut.changelogs) for i, t in tables.items() if i in alive]
    old = {t.uuid: t.identifier for i, t in every if stands_as_before(feed, alive[i], t.identifier)}
    takers: dict[str, set[str]] = {}
    for u, name in wanted.items():
        takers.setdefault(name, set()).add(u)
    return {u: identifier for u, identifier in old.items() if takers.get(identifier, {u}) <= {u}}


def _kept(t: TableCut) -> str:
    """Identifier of a dropped table's changelog, which leaves its name once."""
    return t.identifier if is_parking(t.identifier) else parking_name(t.identifier, t.uuid)
