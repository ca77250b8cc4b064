"""Rollback: sets all tables of a feed back to a published cut, as one publication (docs/architecture.md 8.6).

It publishes that cut again under the next number, so the history of cuts only grows, and the next window starts where the cut ended. No row
is written: main of every table goes back to the cut's snapshot and its columns to those of the snapshot. Tables that the cut lacks leave
their names; tables that were dropped or replaced since get theirs back. Nothing is deleted: readers by snapshot id are not affected, and
you can roll back to the undone cut as to any other. If changes up to the cut are not kept any more, changelogs begin anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from tidelake import __version__
from tidelake.errors import ConfigError, StorageError
from tidelake.history.incarnations import Incarnation
from tidelake.io.storage import Store
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Cut, Intent, Return, TableCut
from tidelake.lake.cut_documents import next_seq, read_certificate, read_cut
from tidelake.lake.cuts import changelog_retained_after, lineage, newest_cut, published, with_kept_changes
from tidelake.lake.cuts import places as where
from tidelake.lake.names import retired
from tidelake.lake.namespaces import clear_way, refuse_taken
from tidelake.lake.opened import Lake
from tidelake.publish.certify import certify
from tidelake.publish.recovery import recover
from tidelake.publish.steps import carry_out, declare, plan_moves
from tidelake.tso import last_of, parse_moment, show


class TableRollback(BaseModel):
    """Rollback of one table.

    Attributes:
        table: The table.
        what: back, unchanged, leaves (the cut does not have it) or returns (it was dropped or replaced since).
        from_snapshot: Snapshot now; None if there is none.
        to_snapshot: Snapshot at the cut; None if there is none.
        rows_before: Rows now.
        rows_after: Rows at the cut.
        changes: Changelog rows that are undone; negative if they come back.
    """

    table: str
    what: str
    from_snapshot: int | None
    to_snapshot: int | None
    rows_before: int
    rows_after: int
    changes: int


class RolledBack(BaseModel):
    """A rollback, done or planned. seq: number of the cut that it publishes; None if the lake is already at the wanted cut."""

    feed: str
    seq: int | None
    from_cut: int
    from_ts: int
    to_cut: int
    to_ts: int
    hour: str  # last hour that the cut covers; run the next one first
    changes: int  # changelog rows of all tables that are undone
    tables: list[TableRollback]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Every physical table of the feed and its present name."""

    newest: Cut
    target: Cut
    now: Mapping[str, str]  # uuid → identifier

    @property
    def wanted(self) -> dict[str, TableCut]:
        """The tables of the wanted cut, by UUID."""
        return {t.uuid: t for t in (*self.target.snapshots.values(), *self.target.changelogs.values())}

    @property
    def gone(self) -> dict[str, TableCut]:
        """Tables of the newest cut that the wanted cut lacks."""
        tables = (*self.newest.snapshots.values(), *self.newest.changelogs.values())
        return {t.uuid: t for t in tables if t.uuid not in self.wanted}


def rollback(lake: Lake, to: str, *, dry_run: bool = False) -> RolledBack:
    """Set all tables back to a published cut. Holds the lease. An interrupted rollback is finished by the next command.

    Args:
        lake: The feed's lake.
        to: TSO, time, or `cut N`.
        dry_run: Only plan.

    Raises:
        ConfigError: NOT_A_CUT, with the nearest ones.
        StorageError: NOT_FOUND: a snapshot has expired; TABLE_MOVED, TAKEN.
        TidelakeError: What `namespaces.refuse_taken` and `clear_way` raise.
    """
    if dry_run:
        return _planned(lake, to)[0]
    with lake.hold(f"rollback to {to}") as fence:
        recover(lake.catalog, lake.store, lake.feed.name)
        plan, places = _planned(lake, to)
        if plan.seq is None:
            return plan
        intent = _intent(lake, plan, places, fence)
        clear_way(lake.catalog, intent, places.now)
        certify(lake, intent, "rollback")
        declare(lake.store, intent)
        carry_out(lake.catalog, lake.store, intent)
    return plan


def wanted_cut(catalog: LakeCatalog, store: Store, feed: str, to: str) -> Cut:
    """Return a cut by TSO, ISO time or number (`cut 7`).

    By TSO or time, cuts that lead to the newest one come first, then the one that was undone last. Raises ConfigError (NOT_A_CUT).
    """
    every, current = published(catalog, feed), lineage(catalog, feed)
    if not every:
        raise ConfigError(f"feed {feed} has published nothing yet", code="NOT_A_CUT")
    numbered = re.fullmatch(r"cut ([0-9]+)", to)
    if numbered is not None:
        if int(numbered[1]) not in every:
            raise ConfigError(f"feed {feed} has no {to}", code="NOT_A_CUT", remedy=f"they are numbered up to {max(every)}")
        return read_cut(store, feed, int(numbered[1]))
    low, high = _span(to)
    for among in (current, every):
        found = [seq for seq, resolved in among.items() if low <= resolved <= high]
        if found:
            return read_cut(store, feed, max(found))
    below = max((r for r in current.values() if r < low), default=None)
    above = min((r for r in current.values() if r > high), default=None)
    near = " and ".join(show(r) for r in (below, above) if r is not None)
    raise ConfigError(f"feed {feed} has no cut at {to}", code="NOT_A_CUT", remedy=f"the nearest: {near}; --to takes one of them")


def _span(to: str) -> tuple[int, int]:
    """The range of TSOs that a text means: one TSO, or those of a millisecond."""
    if to.isdecimal():
        return int(to), int(to)
    last = last_of(parse_moment(to))
    return last - last % (1 << 18), last


def _planned(lake: Lake, to: str) -> tuple[RolledBack, _Places]:
    feed = lake.feed.name
    target = with_kept_changes(wanted_cut(lake.catalog, lake.store, feed, to), changelog_retained_after(lake.catalog, feed))
    refuse_taken(lake.catalog, lake.feed, target.catalog)
    newest = newest_cut(lake.catalog, lake.store, feed) or target
    places = _Places(newest=newest, target=target, now=where(newest))
    same = newest.resolved_ts == target.resolved_ts and not places.gone and newest.snapshots == target.snapshots
    moved = _tables(lake.catalog, places)
    plan = RolledBack(
        feed=feed,
        seq=None if same else next_seq(lake.store, feed, newest.seq),
        from_cut=newest.seq,
        from_ts=newest.resolved_ts,
        to_cut=target.seq,
        to_ts=target.resolved_ts,
        hour=target.hour,
        changes=sum(t.changes for t in moved),
        tables=moved,
    )
    return plan, places


def _tables(catalog: LakeCatalog, places: _Places) -> list[TableRollback]:
    """All tables of both cuts, with their names in the wanted cut, else in the newest."""
    newest, target = places.newest, places.target
    lives: dict[str, Incarnation] = newest.catalog.incarnations | target.catalog.incarnations
    found = []
    for i in lives:
        was, will = newest.snapshots.get(i), target.snapshots.get(i)
        changes = _records(catalog, places, newest.changelogs.get(i)) - _records(catalog, places, target.changelogs.get(i))
        if was or will or changes:
            found.append(
                TableRollback(
                    table=lives[i].name,
                    what=_what(was, will),
                    from_snapshot=was.snapshot_id if was else None,
                    to_snapshot=will.snapshot_id if will else None,
                    rows_before=was.rows if was else 0,
                    rows_after=will.rows if will else 0,
                    changes=changes,
                )
            )
    return sorted(found, key=lambda t: t.table)


def _what(was: TableCut | None, will: TableCut | None) -> str:
    if will is None:
        return "leaves"
    if was is None or was.uuid != will.uuid:
        return "returns"
    return "unchanged" if was.snapshot_id == will.snapshot_id else "back"


def _records(catalog: LakeCatalog, places: _Places, t: TableCut | None) -> int:
    """Rows of a changelog at a cut, from its snapshot's summary."""
    return 0 if t is None else int(_load(catalog, places, t).summary(t.snapshot_id).get("total-records", 0))


def _load(catalog: LakeCatalog, places: _Places, t: TableCut) -> LakeTable:
    return catalog.load(places.now.get(t.uuid, t.identifier))


def _intent(lake: Lake, plan: RolledBack, places: _Places, fence: int) -> Intent:
    target, gone = places.target, places.gone
    wanted = {u: t.identifier for u, t in places.wanted.items()} | {u: retired(places.now[u], u) for u in gone}
    cut = target.copied().model_copy(
        update={
            "seq": plan.seq,
            "parent_seq": target.seq,
            "run": f"rollback_{plan.seq}_{fence}",
            "version": __version__,
            "past": {u: wanted.get(u, i) for u, i in places.now.items() if u not in places.wanted},
        },
    )
    return Intent(
        cut=cut,
        returns=_returns(lake.catalog, places),
        moves=plan_moves({u: places.now[u] for u in wanted}, wanted),
        certificate=_certificate(lake.store, plan, cut),
    )


def _returns(catalog: LakeCatalog, places: _Places) -> list[Return]:
    """The tables whose main or columns differ from the wanted cut."""
    heads = {t.uuid: t.snapshot_id for t in (*places.newest.snapshots.values(), *places.newest.changelogs.values())}
    found = []
    for uuid, t in places.wanted.items():
        table = _load(catalog, places, t)
        table.summary(t.snapshot_id)  # raises if the snapshot has expired
        if table.main != heads.get(uuid, table.main):
            raise StorageError(
                f"{table.identifier}: main is at snapshot {table.main}, which no run of Tidelake created",
                code="TABLE_MOVED",
                remedy=f"set main back to snapshot {heads[uuid]}, then run again",
            )
        if not table.stands_at(t.snapshot_id):
            found.append(Return(identifier=table.identifier, uuid=uuid, base=table.main, to=t.snapshot_id))
    return found


def _certificate(store: Store, plan: RolledBack, cut: Cut) -> dict[str, Any]:
    """The wanted cut's proof, which is valid again, and what the rollback undid."""
    proof = read_certificate(store, plan.feed, plan.to_cut)
    said = {"cut": cut.seq, "run": cut.run, "version": cut.version, "rollback": plan.model_dump(exclude={"seq", "feed"})}
    return proof | said


def lines(plan: RolledBack) -> list[str]:
    """Return a rollback as lines for people."""
    if plan.seq is None:
        return [f"{plan.feed} is at cut {plan.from_cut}, {show(plan.to_ts)}: nothing to do"]
    head = f"{plan.feed}: from cut {plan.from_cut}, {show(plan.from_ts)}, to cut {plan.to_cut}, {show(plan.to_ts)}, as cut {plan.seq}"
    tail = f"  {plural(plan.changes, 'changelog row')} undone; hours after {plan.hour} can be run again"
    return [head, *(f"  {_line(t)}" for t in plan.tables), tail]


def _line(t: TableRollback) -> str:
    snapshots = f"snapshot {t.from_snapshot or 'none'} → {t.to_snapshot or 'none'}" if t.what != "unchanged" else "no commit"
    return f"{t.table}: {t.what}, {snapshots}, {t.rows_before:,} → {plural(t.rows_after, 'row')}, {plural(t.changes, 'change')} undone"
