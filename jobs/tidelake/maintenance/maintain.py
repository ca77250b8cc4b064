"""Upkeep: keep a feed's tables quick and small, whatever their age (docs/maintenance.md). Repeatable; what is cut short, the next one finishes.

The lease is held while files are rewritten and again while cuts go, not in between: an hour that waits gets its turn. Orphans need
none, they are told by their age.
"""

from __future__ import annotations

import time
from datetime import timedelta

from pydantic import BaseModel

from tidelake.io.lease import check
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import write_lost
from tidelake.lake.cuts import horizon, newest_cut, places
from tidelake.lake.namespaces import refuse_foreign_namespaces
from tidelake.lake.opened import Lake
from tidelake.maintenance.changelog_age import old_files, raise_horizon
from tidelake.maintenance.changelog_archive import archive, refuse_own_warehouse
from tidelake.maintenance.expire import drop_gone, expire_snapshots, forget_documents, let_go
from tidelake.maintenance.maintenance_plan import UpkeepPlan, plan_upkeep
from tidelake.maintenance.orphans import find_orphans, leftovers, remove_leftovers
from tidelake.maintenance.rewrite import stage_rewrite
from tidelake.publish.recovery import recover
from tidelake.publish.steps import carry_out, declare

YOUNG = timedelta(days=1)  # a snapshot that nobody needs may still be read by someone who has just looked it up


class Upkept(BaseModel):
    """An upkeep, done or planned. plan: as found at the start, None where nothing is published; cut: the number under which rewritten
    tables were published, None where none were; manifests: of what was archived; the rest counts what was done."""

    feed: str
    plan: UpkeepPlan | None
    cut: int | None = None
    rewritten: list[str] = []
    removed_changes: int = 0
    manifests: list[str] = []
    expired_snapshots: int = 0
    deleted_files: int = 0
    dropped_tables: list[str] = []
    removed_orphans: int = 0
    removed_bytes: int = 0


def upkeep(lake: Lake, *, dry_run: bool = False, young: timedelta = YOUNG) -> Upkept:
    """Rewrite, let go of what retention does not keep, remove orphans. young: snapshots below this age stay.

    Raises StorageError (TABLE_MOVED, ROWS_DIFFER, ARCHIVE_DIFFERS), ConfigError for an archive inside the warehouse or a namespace
    of another feed's, OwnershipError (NOT_OURS), LeaseError.
    """
    refuse_own_warehouse(lake)
    before_ms = _ago(young)
    newest = newest_cut(lake.catalog, lake.store, lake.feed.name)
    if newest is None:
        return Upkept(feed=lake.feed.name, plan=None)
    refuse_foreign_namespaces(lake.catalog, lake.feed.name, {name.rpartition(".")[0] for name in places(newest).values()})
    done = Upkept(feed=lake.feed.name, plan=plan_upkeep(lake, newest, before_ms)[0])
    if not dry_run:
        _rewrite(lake, done, before_ms)
        _expire(lake, done, before_ms)
    _orphans(lake, done, remove=not dry_run)
    return done


def _rewrite(lake: Lake, done: Upkept, before_ms: int) -> None:
    with lake.hold("upkeep: rewrite") as fence:
        newest = _recovered(lake)
        plan, _ = plan_upkeep(lake, newest, before_ms)
        if plan.staged is not None:
            return
        manifests = _archived(lake, newest, plan)
        intent = stage_rewrite(lake, newest, plan.tables, fence, plan.changes_after, manifests)
        if intent is not None:
            done.manifests = sorted(manifests.values())
            done.removed_changes = sum(p.old.rows for p in plan.tables if p.old is not None)
            check(lake.store, lake.feed.name, fence)
            if plan.changes_after > horizon(lake.catalog, lake.feed.name):
                raise_horizon(lake.catalog, lake.feed.name, plan.changes_after)
            declare(lake.store, intent)
            done.cut = carry_out(lake.catalog, lake.store, intent, lambda what: lake.tell("upkeep", what)).seq
            done.rewritten = sorted(a.identifier for a in intent.advances)


def _archived(lake: Lake, newest: Cut, plan: UpkeepPlan) -> dict[str, str]:
    """Copy the changes that go, where the feed has an archive; the manifests by table."""
    uri, manifests = lake.feed.upkeep.archive_changelog, dict[str, str]()
    at = {t.identifier: t.snapshot_id for t in newest.changelogs.values()}
    for p in plan.tables:
        if p.old is not None and uri is not None:
            table = lake.catalog.load(p.table)
            files = old_files(table, at[p.table], plan.changes_after)
            manifests[p.table] = archive(lake, uri, table, files, newest.seq, plan.changes_after)
            lake.tell("upkeep", f"{p.table}: {p.old.rows:,} changes copied, {manifests[p.table]}")
    return manifests


def _expire(lake: Lake, done: Upkept, before_ms: int) -> None:
    with lake.hold("upkeep: expire") as fence:
        newest = _recovered(lake)
        plan, _ = plan_upkeep(lake, newest, before_ms)
        lake.tell("upkeep", f"{len(plan.cuts)} cuts stay, {len(plan.lets_go)} go")
        check(lake.store, lake.feed.name, fence)
        let_go(lake.catalog, plan.feed, plan.lets_go, lake.feed.upkeep.small_files)
        done.expired_snapshots, done.deleted_files = expire_snapshots(lake, plan.tables)
        done.dropped_tables = drop_gone(lake, plan, newest)
        forget_documents(lake, plan.cuts, newest)
        for seq in write_lost(lake.store, plan.feed, plan.cuts):
            lake.tell("upkeep", f"wrote the document of cut {seq} again, which was lost")


def _orphans(lake: Lake, done: Upkept, *, remove: bool) -> None:
    plan, age = done.plan, lake.feed.upkeep.orphan_age
    assert plan is not None
    assert age is not None  # the settings see to it
    before_ms = _ago(age)
    plan.tables = find_orphans(lake, plan.tables, before_ms, remove=remove)
    found = leftovers(lake, before_ms)
    plan.folders, plan.folder_bytes = [one.folder for one in found], sum(o.size for one in found for o in one.objects)
    if remove:
        remove_leftovers(lake, found)
        done.removed_orphans = sum(p.orphans or 0 for p in plan.tables) + sum(len(one.objects) for one in found)
        done.removed_bytes = sum(p.orphan_bytes for p in plan.tables) + plan.folder_bytes


def _recovered(lake: Lake) -> Cut:
    """The newest cut, once a publishing that was cut short is rolled forward."""
    recover(lake.catalog, lake.store, lake.feed.name, lambda what: lake.tell("upkeep", what))
    newest = newest_cut(lake.catalog, lake.store, lake.feed.name)
    assert newest is not None  # there was one before the lease was taken
    return newest


def _ago(age: timedelta) -> int:
    """The moment so long ago, epoch milliseconds."""
    return int(time.time() * 1000) - age // timedelta(milliseconds=1)
