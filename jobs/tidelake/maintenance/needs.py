"""What retained cuts need: for every table the snapshots that must not expire, and the tables that must stay (docs/architecture.md 8.6).

It is computed from the cuts alone, never from a snapshot's age: an idle table's snapshot is as old as its last change, and every cut
since then reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

import numpy as np
import numpy.typing as npt

from tidelake.config.lake_paths import cut_of_branch
from tidelake.config.retention import KeptBecause
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import places
from tidelake.wire.kernels.arrays import Longs

_READERS = 4  # documents read in parallel; one of 3,000 tables takes 25 MB


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables of a cut, first the snapshots, then the changelogs.

    Attributes:
        uuids: Numbers of their UUIDs.
        snapshots: Number of snapshot tables.
        listed: Numbers of the UUIDs of tables with a list of files.
        lists: Their lists' sha256, in hex.
        files: Numbers of files in these lists.
    """

    resolved_ts: int
    events_snapshot_id: int | None
    uuids: Longs
    snapshot_ids: Longs
    snapshots: int
    listed: Longs
    lists: npt.NDArray[np.bytes_]
    files: Longs


class RetainedCuts:
    """The tables of published cuts. Each document is read once; 16 bytes of each table in it are kept, and 80 of each list of files.

    Args:
        store: Of the feed's lake.
        feed: The feed.
    """

    def __init__(self, store: Store, feed: str) -> None:
        self._store, self._feed = store, feed
        self._known, self.numbers, self._lock = dict[int, _Tables](), dict[str, int](), Lock()  # numbers: by UUID

    def of(self, seqs: Iterable[int]) -> dict[int, _Tables]:
        """Return the tables of these cuts, by number. Raises DamageError, StorageError."""
        wanted = list(seqs)
        with ThreadPoolExecutor(_READERS) as pool:
            missing = [seq for seq in wanted if seq not in self._known]
            self._known |= dict(zip(missing, pool.map(self._read, missing), strict=True))
        return {seq: self._known[seq] for seq in wanted}

    def lists(self, seqs: Iterable[int]) -> dict[str, dict[str, int]]:
        """Return the lists of files that these cuts name: by the table's UUID, their sha256 and number of files."""
        found, out = self.of(seqs), dict[str, dict[str, int]]()
        uuids = list(self.numbers)
        for t in found.values():
            for number, sha256, files in zip(t.listed.tolist(), t.lists.astype(str).tolist(), t.files.tolist(), strict=True):
                out.setdefault(uuids[number], {})[sha256] = files
        return out

    def _read(self, seq: int) -> _Tables:
        """Read a cut's document, which only the thread that read it holds."""
        cut = read_cut(self._store, self._feed, seq)
        tables = [*cut.snapshots.values(), *cut.changelogs.values()]
        return _Tables(
            cut.resolved_ts,
            cut.events_snapshot_id,
            self._numbered(t.uuid for t in tables),
            np.array([t.snapshot_id for t in tables], np.int64),
            len(cut.snapshots),
            self._numbered(cut.files),
            np.array([d.sha256 for d in cut.files.values()], np.bytes_),
            np.array([d.files for d in cut.files.values()], np.int64),
        )

    def _numbered(self, uuids: Iterable[str]) -> Longs:
        with self._lock:
            return np.array([self.numbers.setdefault(uuid, len(self.numbers)) for uuid in uuids], np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What retained cuts need.

    Attributes:
        events: Snapshot ids of the events table.
        events_since: The oldest of them for which every later snapshot is kept; None: all are kept.
        places: UUID → identifier of every table of the feed.
        numbers: UUID → its number in uuids.
        uuids, snapshot_ids, seqs: A row for each table of each retained cut, by UUID, then by cut.
    """

    events: frozenset[int]
    events_since: int | None
    places: Mapping[str, str]
    numbers: Mapping[str, int]
    uuids: Longs
    snapshot_ids: Longs
    seqs: Longs

    def cuts(self, uuid: str) -> dict[int, list[int]]:
        """Return the snapshots of a table that are needed, with the numbers of the cuts that read them."""
        number, found = self.numbers.get(uuid, -1), dict[int, list[int]]()
        rows = slice(*np.searchsorted(self.uuids, [number, number + 1]))
        for snapshot_id, seq in zip(self.snapshot_ids[rows].tolist(), self.seqs[rows].tolist(), strict=True):
            found.setdefault(snapshot_id, []).append(seq)
        return found


def needs(cuts: RetainedCuts, newest: Cut, kept: Mapping[int, KeptBecause], gone: int = 0) -> Needs:
    """Return the needs of these cuts, from their documents; the table of published cuts does not have changelogs.

    gone: the changelog_retained_after (TSO). A cut at or before it needs no changelog; a lake that continues from it begins a new one.
    """
    found = cuts.of(sorted(kept))
    taken = {seq: len(t.uuids) if t.resolved_ts > gone or seq == newest.seq else t.snapshots for seq, t in found.items()}
    uuids, ids = (np.concatenate([getattr(t, of)[: taken[seq]] for seq, t in found.items()]) for of in ("uuids", "snapshot_ids"))
    order = np.argsort(uuids, kind="stable")
    events = [t.events_snapshot_id for t in found.values() if t.events_snapshot_id is not None]
    whole = [t.events_snapshot_id for seq, t in found.items() if kept[seq] != "daily"]
    return Needs(
        events=frozenset(events),
        events_since=whole[0] if whole else None,
        places=places(newest),
        numbers=cuts.numbers,
        uuids=uuids[order],
        snapshot_ids=ids[order],
        seqs=np.repeat(list(taken), list(taken.values()))[order],
    )


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
