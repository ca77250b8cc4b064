"""Maintenance of a feed's tables (docs/maintenance.md). Repeatable; after an interruption the next one continues.

The lease is held while files are rewritten and again while cuts are expired, but not in between, so that a waiting hour can run. Orphans
need no lease: their age identifies them.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from pydantic import BaseModel

from tidelake.io.lease import check
from tidelake.io.texts import plural
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import write_lost
from tidelake.lake.cuts import changelog_retained_after, newest_cut, places
from tidelake.lake.namespaces import refuse_foreign_namespaces
from tidelake.lake.opened import Lake
from tidelake.maintenance.changelog_age import old_files
from tidelake.maintenance.changelog_archive import archive, refuse_own_warehouse
from tidelake.maintenance.expire import drop_gone, expire_snapshots, forget_documents, forget_lists
from tidelake.maintenance.maintenance_plan import MaintenancePlan, plan_maintenance
from tidelake.maintenance.needs import RetainedCuts
from tidelake.maintenance.orphans import find_orphans, leftovers, remove_leftovers
from tidelake.maintenance.published_rows import join_statements, let_go, raise_retained_after
from tidelake.maintenance.rewrite import stage_rewrite
from tidelake.publish.certify import certify
from tidelake.publish.recovery import recover
from tidelake.publish.steps import carry_out, declare

log = logging.getLogger(__name__)

YOUNG = timedelta(days=1)  # a reader may just have looked up a snapshot that nothing else needs


class Maintained(BaseModel):
    """A maintenance, done or planned.

    Attributes:
        plan: The plan at the start; None if nothing is published.
        cut: Number under which rewritten tables were published; None if none were.
        manifests: Manifests of archived changes.
    """

    feed: str
    plan: MaintenancePlan | None
    cut: int | None = None
    rewritten: list[str] = []
    removed_changes: int = 0
    manifests: list[str] = []
    expired_snapshots: int = 0
    deleted_files: int = 0
    dropped_tables: list[str] = []
    removed_orphans: int = 0
    removed_bytes: int = 0


def maintain(lake: Lake, *, dry_run: bool = False, young: timedelta = YOUNG) -> Maintained:
    """Rewrite files, remove what retention does not keep, and remove orphans.

    Args:
        lake: The feed's lake.
        dry_run: Only plan.
        young: Snapshots below this age stay.

    Raises:
        StorageError: TABLE_MOVED, ROWS_DIFFER, ARCHIVE_DIFFERS.
        ConfigError: The archive is inside the warehouse, or a namespace belongs to another feed.
        ContractError: tables.sql cannot be read, and changes were removed.
        OwnershipError: NOT_OURS.
        LeaseError: Another run holds the lease.
    """
    refuse_own_warehouse(lake)
    before_ms = _ago(young)
    newest = newest_cut(lake.catalog, lake.store, lake.feed.name)
    if newest is None:
        return Maintained(feed=lake.feed.name, plan=None)
    refuse_foreign_namespaces(lake.catalog, lake.feed.name, {name.rpartition(".")[0] for name in places(newest).values()})
    cuts = RetainedCuts(lake.store, lake.feed.name)
    done = Maintained(feed=lake.feed.name, plan=plan_maintenance(lake, newest, before_ms, cuts))
    if not dry_run:
        _rewrite(lake, done, before_ms, cuts)
        _expire(lake, done, before_ms, cuts)
    _orphans(lake, done, remove=not dry_run)
    return done


def _rewrite(lake: Lake, done: Maintained, before_ms: int, cuts: RetainedCuts) -> None:
    with lake.hold("maintenance: rewrite") as fence:
        newest = _recovered(lake)
        plan = plan_maintenance(lake, newest, before_ms, cuts)
        if plan.staged is not None:
            return
        manifests = _archived(lake, newest, plan)
        intent = stage_rewrite(lake, newest, plan, fence, manifests)
        if intent is not None:
            done.manifests = sorted(manifests.values())
            done.removed_changes = sum(p.old.rows for p in plan.tables if p.old is not None)
            check(lake.store, lake.feed.name, fence)
            if plan.changelog_retained_after > changelog_retained_after(lake.catalog, lake.feed.name):
                raise_retained_after(lake.catalog, lake.feed.name, newest.seq, plan.changelog_retained_after)
            certify(lake, intent, "rewrite")
            declare(lake.store, intent)
            done.cut = carry_out(lake.catalog, lake.store, intent).seq
            done.rewritten = sorted(a.identifier for a in intent.advances)


def _archived(lake: Lake, newest: Cut, plan: MaintenancePlan) -> dict[str, str]:
    """Copy the changes that are removed, if the feed has an archive. Return the manifests by table."""
    uri, manifests = lake.feed.maintenance.archive_changelog, dict[str, str]()
    at = {t.identifier: t.snapshot_id for t in newest.changelogs.values()}
    for p in plan.tables:
        if p.old is not None and uri is not None:
            table = lake.catalog.load(p.table)
            files = old_files(table, at[p.table], plan.changelog_retained_after)
            manifests[p.table] = archive(lake, uri, table, files, newest.seq, plan.changelog_retained_after)
            log.info(f"{p.table}: {plural(p.old.rows, 'change')} copied, {manifests[p.table]}")
    return manifests


def _expire(lake: Lake, done: Maintained, before_ms: int, cuts: RetainedCuts) -> None:
    with lake.hold("maintenance: expire") as fence:
        newest = _recovered(lake)
        plan = plan_maintenance(lake, newest, before_ms, cuts)
        log.info(f"keep {plural(len(plan.cuts), 'cut')}, let go of {len(plan.lets_go):,}")
        check(lake.store, lake.feed.name, fence)
        let_go(lake.catalog, plan.feed, plan.lets_go, lake.feed.maintenance.small_files)
        join_statements(lake.catalog, plan.feed, lake.feed.maintenance.small_files)
        done.expired_snapshots, done.deleted_files = expire_snapshots(lake, plan.tables)
        done.dropped_tables = drop_gone(lake, plan, newest)
        forget_documents(lake, plan.cuts, newest)
        forget_lists(lake, cuts.lists(plan.cuts))
        for seq in write_lost(lake.store, plan.feed, plan.cuts):
            log.info(f"wrote the document of cut {seq} again, which was missing")


def _orphans(lake: Lake, done: Maintained, *, remove: bool) -> None:
    plan, age = done.plan, lake.feed.maintenance.orphan_age
    assert plan is not None
    assert age is not None  # the settings guarantee it
    before_ms = _ago(age)
    left = [p.model_copy(update={"gone": p.gone or p.table in done.dropped_tables}) for p in plan.tables]
    plan.tables = find_orphans(lake, left, before_ms, remove=remove)
    found = leftovers(lake, before_ms)
    plan.folders, plan.folder_bytes = [one.folder for one in found], sum(o.size for one in found for o in one.objects)
    if remove:
        remove_leftovers(lake, found)
        done.removed_orphans = sum(p.orphans or 0 for p in plan.tables) + sum(len(one.objects) for one in found)
        done.removed_bytes = sum(p.orphan_bytes for p in plan.tables) + plan.folder_bytes


def _recovered(lake: Lake) -> Cut:
    """Finish an interrupted publication and return the newest cut."""
    recover(lake.catalog, lake.store, lake.feed.name)
    newest = newest_cut(lake.catalog, lake.store, lake.feed.name)
    assert newest is not None  # one existed before the lease was taken
    return newest


def _ago(age: timedelta) -> int:
    """The time `age` before now, in milliseconds since the epoch."""
    return int(time.time() * 1000) - age // timedelta(milliseconds=1)
