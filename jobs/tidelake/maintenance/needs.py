"""What retained cuts need: for every table the snapshots that must not expire, and the tables that must stay (docs/architecture.md 8.6).

It is computed from the cuts alone, never from a snapshot's age: an idle table's snapshot is as old as its last change, and every cut
since then reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tidelake.config.lake_paths import cut_of_branch
from tidelake.config.retention import KeptBecause
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import places

_READERS = 16  # documents read in parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What retained cuts need.

    Attributes:
        cuts: UUID → snapshot id → numbers of the cuts that read it.
        events: Snapshot ids of the events table.
        events_since: The oldest of them for which every later snapshot is kept; None: all are kept.
        places: UUID → identifier of every table of the feed.
    """

    cuts: Mapping[str, Mapping[int, list[int]]]
    events: frozenset[int]
    events_since: int | None
    places: Mapping[str, str]

    @property
    def gone(self) -> dict[str, str]:
        """Tables that no retained cut reads: UUID → identifier."""
        return {uuid: identifier for uuid, identifier in self.places.items() if uuid not in self.cuts}


def needs(store: Store, newest: Cut, kept: Mapping[int, KeptBecause], gone: int = 0) -> Needs:
    """Return the needs of these cuts, from their documents; the table of published cuts does not have changelogs.

    gone: the changelog_retained_after (TSO). A cut at or before it needs no changelog; a lake that continues from it begins a new one.
    """
    with ThreadPoolExecutor(_READERS) as pool:
        cuts = list(pool.map(lambda seq: read_cut(store, newest.feed, seq), sorted(kept)))
    found: dict[str, dict[int, list[int]]] = {}
    for cut in cuts:
        changelogs = cut.changelogs.values() if cut.resolved_ts > gone or cut.seq == newest.seq else ()
        for t in (*cut.snapshots.values(), *changelogs):
            found.setdefault(t.uuid, {}).setdefault(t.snapshot_id, []).append(cut.seq)
    events = [cut.events_snapshot_id for cut in cuts if cut.events_snapshot_id is not None]
    whole = [cut.events_snapshot_id for cut in cuts if kept[cut.seq] != "daily"]
    return Needs(cuts=found, events=frozenset(events), events_since=whole[0] if whole else None, places=places(newest))


def expirable(table: LakeTable, needed: Iterable[int], before_ms: int) -> list[int]:
    """Return the snapshots from before a time (ms) that no cut, branch or tag needs."""
    keep = {*needed, *(ref.snapshot_id for ref in table.table.refs().values())}
    return [s.snapshot_id for s in table.table.snapshots() if s.snapshot_id not in keep and s.timestamp_ms < before_ms]


def events_needed(events: LakeTable, need: Needs) -> set[int]:
    """Return the snapshots of the events table that cuts were made from, and all after the oldest cut that is not thinned yet.

    The summaries of snapshots record which hours were decoded again since a cut (progress.py), so none after such a cut may be missing.
    """
    kept = set(need.events)
    for at in _back(events):
        kept.add(at)
        if at == need.events_since:
            break
    return kept


def stale_branches(table: LakeTable, newest: Cut) -> list[str]:
    """Return branches of runs that cannot be published any more: another run published the cut of their number."""
    numbers = ((name, cut_of_branch(name)) for name in table.branches)
    return sorted(name for name, number in numbers if number is not None and number <= newest.seq)


def _back(table: LakeTable) -> Iterator[int]:
    at: int | None = table.main
    while at is not None and (snapshot := table.table.snapshot_by_id(at)) is not None:
        yield at
        at = snapshot.parent_snapshot_id
