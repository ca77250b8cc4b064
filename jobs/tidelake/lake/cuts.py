"""Read and record published cuts: the newest cut, its lineage, the cut for a TSO, and the base of the next window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tidelake.config.lake_paths import SYSTEM, cuts, events_table, intent_key, published_table, seq_of
from tidelake.errors import ConfigError, OrderError, StorageError
from tidelake.history.incarnations import Incarnation
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeCatalog, LakeColumn
from tidelake.lake.cut import Cut, TableCut
from tidelake.lake.cut_documents import abandoned, keep, newest_intent, next_seq, read_cut
from tidelake.lake.ddl_ledger import enter, entries
from tidelake.lake.events import first_ts
from tidelake.lake.owner import SYSTEM_OWNER
from tidelake.tso import show

_COLUMNS = (
    ("feed", "string"),
    ("seq", "bigint"),
    ("hour", "string"),
    ("applied_ts", "bigint"),
    ("resolved_ts", "bigint"),
    ("published_at", "timestamp"),
    ("incomplete", "boolean"),
    ("database", "string"),
    ("table", "string"),
    ("incarnation", "string"),
    ("identifier", "string"),
    ("uuid", "string"),
    ("snapshot_id", "bigint"),
    ("rows", "bigint"),
    ("parent_seq", "bigint"),
    ("expired", "boolean"),
    ("changelog_retained_after", "bigint"),
)


_KEEP = "keep_cuts and keep_daily under [maintenance] in feed.toml set how long cuts are kept"
KEEP_CHANGES = "keep_changelog under [maintenance] in feed.toml sets how long changes are kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The base of the next cut. newest: the newest published cut; cut: the cut that the next window continues, None for nothing. It is the
    newest, or in a redo an earlier one, with the current names of its tables. since: first hour of a redo that begins with nothing.
    """

    newest: Cut | None
    cut: Cut | None
    seq: int  # number of the next cut
    since: str | None = None

    @property
    def parent_seq(self) -> int | None:
        """Number of the cut that the next one continues; None if that is the newest, 0 for nothing."""
        return None if self.cut is self.newest else self.cut.parent_seq if self.cut else 0

    @property
    def kept(self) -> frozenset[str]:
        """The uuids of all tables that a published cut needs."""
        return frozenset(places(self.newest)) if self.newest else frozenset()


def places(newest: Cut) -> dict[str, str]:
    """Return the current name of every physical table of the feed: uuid → identifier."""
    return newest.past | {t.uuid: t.identifier for t in (*newest.snapshots.values(), *newest.changelogs.values())}


def base_of(catalog: LakeCatalog, store: Store, feed: str, redo_from: str | None = None) -> Base:
    """Return the base of the next window. redo_from: ignore everything published from this hour on.

    Raises StorageError (NOT_RETAINED), OrderError (BEFORE_SEED).
    """
    newest = newest_cut(catalog, store, feed)
    number = next_seq(store, feed, newest.seq if newest else 0)
    if newest is None or redo_from is None or newest.hour < redo_from:
        return Base(newest=newest, cut=newest, seq=number)
    for seq in sorted(lineage(catalog, feed), reverse=True):
        cut = read_cut(store, feed, seq)
        if cut.hour < redo_from:
            seen = _seen_from(newest, with_kept_changes(cut, changelog_retained_after(catalog, feed)))
            return Base(newest=newest, cut=seen, seq=number)
    if any(known.expired for known in _lineage(catalog, feed).values()):
        raise StorageError(f"feed {feed}: the cut before hour {redo_from} is no longer kept", code="NOT_RETAINED", remedy=_KEEP)
    if newest.seeded_ts:
        raise OrderError(
            f"feed {feed}: the export that seeded the tables, at {show(newest.seeded_ts)}, already contains hour {redo_from}",
            code="BEFORE_SEED",
            remedy=f"redo hours after {read_cut(store, feed, min(lineage(catalog, feed))).hour}",
        )
    return Base(newest=newest, cut=None, seq=number, since=min(redo_from, first_held(catalog, store, newest) or redo_from))


def first_held(catalog: LakeCatalog, store: Store, cut: Cut) -> str | None:
    """Return the first hour that the cuts up to this one hold. None where they hold none, or where an earlier version wrote the first cuts
    and they are gone.
    """
    if cut.first_hour:
        return cut.first_hour
    for seq in sorted(s for s in lineage(catalog, cut.feed) if s <= cut.seq):
        known = read_cut(store, cut.feed, seq)
        if known.first_hour or known.generations:
            return known.first_hour or min(known.generations)
    return None


def _seen_from(newest: Cut, cut: Cut) -> Cut:
    """Return an earlier cut as base of the next: numbered as the newest, with current table names; parent_seq is its own number."""
    now = places(newest)
    snapshots, changelogs = (
        {i: t.model_copy(update={"identifier": now.get(t.uuid, t.identifier)}) for i, t in tables.items()}
        for tables in (cut.snapshots, cut.changelogs)
    )
    own = {"seq": newest.seq, "parent_seq": cut.seq, "snapshots": snapshots, "changelogs": changelogs, "past": dict(newest.past)}
    return cut.model_copy(update=own)


def newest_cut(catalog: LakeCatalog, store: Store, feed: str) -> Cut | None:
    """Return the feed's newest published cut, None without one.

    The newest cut document answers if no publication is under way and no document is lost; else the table of published cuts answers.
    """
    last = max((seq_of(o.key) for o in store.objects(cuts(feed))), default=0)
    if last and store.head(intent_key(feed, last + 1)) is None and is_published(catalog, feed, last):
        return read_cut(store, feed, last)
    if not last and not newest_intent(store, feed):
        return None
    newest = max(known_cuts(catalog, feed), default=None)
    return None if newest is None else read_cut(store, feed, newest)


def is_published(catalog: LakeCatalog, feed: str, seq: int) -> bool:
    """Return whether the table of published cuts holds the cut."""
    table = catalog.find(published_table())
    return table is not None and any(batch.num_rows for batch in table.scan({"feed": feed, "seq": seq}, ["seq"]))


def published(catalog: LakeCatalog, feed: str) -> dict[int, int]:
    """Return all readable published cuts, including those that a rollback undid: number → resolved ts (TSO)."""
    return {seq: known.resolved_ts for seq, known in known_cuts(catalog, feed).items() if not known.expired}


def lineage(catalog: LakeCatalog, feed: str) -> dict[int, int]:
    """Return the readable published cuts that lead to the newest one, including it: number → resolved ts (TSO).

    Cuts that a rollback undid and cuts that maintenance expired are not included.
    """
    return {seq: known.resolved_ts for seq, known in _lineage(catalog, feed).items() if not known.expired}


def statements(catalog: LakeCatalog, feed: str) -> list[dict[str, Any]]:
    """Return the entries of the DDL ledger of the cuts that lead to the newest one, ordered by cut and statement.

    Expired cuts are included. Cuts that a rollback or a redo undid are not: their statements may have become others.
    """
    kept = _lineage(catalog, feed)
    return [entry for entry in entries(catalog, feed) if entry["seq"] in kept]


def _lineage(catalog: LakeCatalog, feed: str) -> dict[int, KnownCut]:
    every, found = known_cuts(catalog, feed), dict[int, KnownCut]()
    at = max(every, default=0)
    while at in every:
        found[at] = every[at]
        at = parent_of(every, at)
    return found


class KnownCut(NamedTuple):
    """A cut in the table of published cuts.

    hour: the last hour that it holds; parent_seq: None where an earlier version published it; expired: whether maintenance expired it;
    changelog_retained_after: the value that the function of that name collects, None where the cut did not raise it.
    """

    hour: str
    resolved_ts: int
    parent_seq: int | None
    expired: bool
    changelog_retained_after: int | None


def changelog_retained_after(catalog: LakeCatalog, feed: str) -> int:
    """Return the TSO after which the changelogs hold every published change. 0: they hold all changes.

    Maintenance raises the value before it removes changes. A caller that asks after reading a changelog knows which range was complete.
    """
    return max((known.changelog_retained_after or 0 for known in known_cuts(catalog, feed).values()), default=0)


def with_kept_changes(cut: Cut, gone: int) -> Cut:
    """Return the cut, without its changelogs if none of their changes are retained; new changelogs then begin. gone: the TSO that
    `changelog_retained_after` returns.
    """
    return cut.model_copy(update={"changelogs": {}}) if cut.resolved_ts <= gone else cut


def parent_of(every: Mapping[int, KnownCut], seq: int) -> int:
    """Return the number of the cut that this one continues, 0 for none. every: all cuts that the table of published cuts knows."""
    known = every[seq].parent_seq
    parent = seq - 1 if known is None else known
    if parent and parent not in every:  # the publication of the number before may have been abandoned
        return max((other for other in every if other < parent), default=0)
    return parent


def known_cuts(catalog: LakeCatalog, feed: str) -> dict[int, KnownCut]:
    """Return all cuts in the table of published cuts, by number, including those that were undone, replaced or expired."""
    table = catalog.find(published_table())
    if table is None:
        return {}
    wanted = ("seq", "hour", "resolved_ts", "parent_seq", "expired", "changelog_retained_after")
    names = [c.name for c in table.columns() if c.name in wanted]
    return {
        r["seq"]: KnownCut(r["hour"], r["resolved_ts"], r.get("parent_seq"), bool(r.get("expired")), r.get("changelog_retained_after"))
        for batch in table.scan({"feed": feed}, names)
        for r in _one_of_each(batch).to_pylist()
    }


def _one_of_each(rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row of each cut: the rows of a cut, one for each table, are equal in what concerns the cut."""
    seqs = rows.column("seq").to_numpy()
    return rows.take(pa.array(np.flatnonzero(np.diff(seqs, prepend=seqs[:1] - 1))))


def cut_for(catalog: LakeCatalog, store: Store, feed: str, ts: int) -> tuple[Cut | None, Cut]:
    """Return (the newest cut at or before ts, the first cut at or after it); both are the same if ts is a cut.

    Raises:
        StorageError: NOT_PUBLISHED for a ts after the newest cut; NOT_RETAINED for a ts before the oldest retained cut; BEFORE_SEED for
            a ts before the export that seeded the tables.
        ConfigError: BEFORE_FIRST_CUT.
    """
    every = _lineage(catalog, feed)
    seqs = {seq: known.resolved_ts for seq, known in every.items() if not known.expired}
    newest = max(seqs.values(), default=None)
    if newest is None:
        raise StorageError(
            f"feed {feed}: nothing is published yet", code="NOT_PUBLISHED", remedy=f"`tidelake run --feed {feed}` publishes a cut"
        )
    if ts > newest:
        raise StorageError(f"feed {feed}: TSO {ts} is not published: the newest cut is at {newest}", code="NOT_PUBLISHED")
    after = min(s for s, r in seqs.items() if r >= ts)
    exact = max((s for s, r in seqs.items() if r == ts), default=None)
    if exact is not None:
        cut = read_cut(store, feed, exact)
        return cut, cut
    before = max((s for s, r in seqs.items() if r < ts), default=None)
    if before is None and any(known.expired and known.resolved_ts < seqs[after] for known in every.values()):
        raise StorageError(
            f"feed {feed}: TSO {ts} is before the oldest cut that is kept, at {seqs[after]}",
            code="NOT_RETAINED",
            remedy=_KEEP,
        )
    first = read_cut(store, feed, after)
    if ts < first.seeded_ts:
        raise StorageError(f"feed {feed}: TSO {ts} is before the export that seeded its tables, at {first.seeded_ts}", code="BEFORE_SEED")
    if before is None:
        _refuse_before_first(catalog, first, ts)
    return (read_cut(store, feed, before) if before is not None else None), first


def _refuse_before_first(catalog: LakeCatalog, first: Cut, ts: int) -> None:
    """Raise ConfigError (BEFORE_FIRST_CUT) for a TSO before the first change that the lake knows."""
    events = catalog.find_own(events_table(first.feed), first.feed)
    begins = first_ts(events, sorted(first.generations)) if events is not None else None
    if begins is not None and ts < begins:
        raise ConfigError(
            f"feed {first.feed}: TSO {show(ts)} is before the first change in the lake: its first cut is cut {first.seq} at "
            f"{show(first.resolved_ts)}, with changes from {show(begins)} on",
            code="BEFORE_FIRST_CUT",
            remedy="ask for a TSO from there on",
        )


def last_snapshot(catalog: LakeCatalog, store: Store, cut: Cut | None, i: Incarnation) -> tuple[int, TableCut | None]:
    """Return (TSO, the table's snapshot at it): of the cut or, for a table dropped and recovered, of the last cut that held it.

    (0, None): no cut held it. Raises StorageError (NOT_RETAINED) if changes since that earlier cut are gone.
    """
    if cut is None or i.id in cut.snapshots or not i.recovered:
        return (cut.resolved_ts, cut.snapshots.get(i.id)) if cut else (0, None)
    for seq in sorted((s for s in lineage(catalog, cut.feed) if s < cut.seq), reverse=True):
        earlier = read_cut(store, cut.feed, seq)
        if i.id in earlier.snapshots:
            _refuse_gap(catalog, cut.feed, i, earlier.resolved_ts)
            return earlier.resolved_ts, earlier.snapshots[i.id]
    _refuse_gap(catalog, cut.feed, i, i.changes_after)
    return 0, None


def _refuse_gap(catalog: LakeCatalog, feed: str, i: Incarnation, since: int) -> None:
    gone = changelog_retained_after(catalog, feed)
    if gone and since < gone:
        raise StorageError(
            f"{i.name} was dropped and recovered: rebuilding it needs changes from {show(since)} on, but "
            f"changes up to {show(gone)} are not all kept",
            code="NOT_RETAINED",
            remedy=KEEP_CHANGES,
        )


def record(catalog: LakeCatalog, store: Store, cut: Cut) -> None:
    """Publish a cut: write its document, then its statements to the DDL ledger, then its rows to the table that other engines read, in one
    commit. Repeatable. Raises the error of `abandoned` if the cut's publication was abandoned.
    """
    if not keep(store, cut):
        raise abandoned(cut.feed, cut.seq)
    if is_published(catalog, cut.feed, cut.seq):
        return
    enter(catalog, cut, _before(catalog, store, cut) if cut.ledger else None)
    ensure_published(catalog)
    rows = pa.Table.from_pylist(_rows(cut), schema=catalog.load(published_table()).table.schema().as_arrow())
    catalog.append(published_table(), rows, {"tidelake.feed": cut.feed, "tidelake.cut": str(cut.seq)})


def _before(catalog: LakeCatalog, store: Store, cut: Cut) -> Cut | None:
    """Return the published cut that this one continues."""
    parent_seq = cut.seq - 1 if cut.parent_seq is None else cut.parent_seq
    seq = max((seq for seq in known_cuts(catalog, cut.feed) if seq <= parent_seq), default=0)
    return read_cut(store, cut.feed, seq) if seq else None


def ensure_published(catalog: LakeCatalog) -> None:
    """Create the table of published cuts, or add the columns that an earlier version did not write."""
    there = catalog.find(published_table())
    if there is None:
        _create(catalog)
    else:
        new = {"parent_seq": pa.int64(), "expired": pa.bool_(), "changelog_retained_after": pa.int64()}
        missing = [(name, kind) for name, kind in new.items() if name not in {c.name for c in there.columns()}]
        if missing:
            catalog.evolve(published_table(), lambda update: update.union_by_name(pa.schema(missing)))


def _create(catalog: LakeCatalog) -> None:
    catalog.claim_namespace(SYSTEM, SYSTEM_OWNER)
    try:
        catalog.create(published_table(), [LakeColumn(name=name, type=kind) for name, kind in _COLUMNS])
    except StorageError as e:
        if e.code != "TABLE_EXISTS":  # another feed created it first
            raise


def _rows(cut: Cut) -> list[dict[str, object]]:
    common = {
        "feed": cut.feed,
        "seq": cut.seq,
        "parent_seq": cut.seq - 1 if cut.parent_seq is None else cut.parent_seq,
        "hour": cut.hour,
        "applied_ts": cut.applied_ts,
        "resolved_ts": cut.resolved_ts,
        "published_at": datetime.fromtimestamp(cut.published_at_ms / 1000, UTC),
        "incomplete": cut.incomplete,
    }
    tables = [
        common
        | {"database": i.names[-1].database, "table": i.names[-1].table, "incarnation": i.id}
        | cut.snapshots[i.id].model_dump(include={"identifier", "uuid", "snapshot_id", "rows"})
        for i in cut.catalog.alive()
        if i.id in cut.snapshots
    ]
    return tables or [common]
