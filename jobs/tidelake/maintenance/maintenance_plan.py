"""Plan of a maintenance: which cuts expire, what every table has, and which cuts need which of its snapshots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence

from pydantic import BaseModel

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import ddl_table, events_table, late_table, published_table, run_key
from tidelake.config.retention import KeptBecause, Maintenance, changes_kept_after, retained
from tidelake.history.contract import read_tables
from tidelake.history.dropped_tables import outdated
from tidelake.io.documents import find_document
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut, Staged
from tidelake.lake.cut_documents import next_seq
from tidelake.lake.cuts import changelog_retained_after, lineage, published
from tidelake.lake.opened import Lake
from tidelake.maintenance.changelog_age import Going, hours_of, old_files, summed
from tidelake.maintenance.changelog_archive import folder
from tidelake.maintenance.needs import Needs, RetainedCuts, events_needed, expirable, needs

SMALL = 0.75  # share of the target size; Iceberg's rewrite takes smaller files


class TablePlan(BaseModel):
    """Plan for one physical table.

    Attributes:
        kept: Snapshot id → numbers of the cuts that read it.
        expires: Snapshot ids that nothing needs.
        gone: No retained cut reads the table; it is dropped.
        old: Files of a changelog that are not kept any more.
        archive: Folder that they are copied to first.
        orphans: Number of orphans; None before they are counted.
    """

    table: str
    files: int = 0
    bytes: int = 0
    small_files: int = 0
    delete_files: int = 0
    rewrites: bool = False
    snapshots: int = 0
    kept: dict[int, list[int]] = {}
    expires: list[int] = []
    gone: bool = False
    old: Going | None = None
    archive: str | None = None
    orphans: int | None = None
    orphan_bytes: int = 0


class MaintenancePlan(BaseModel):
    """Plan for a feed.

    Attributes:
        cuts: Retained cuts and why.
        lets_go: Cuts that cannot be read afterwards.
        staged: Hour that is staged and not published; rewriting waits for it.
        changelog_retained_after: TSO after which all changes are kept; 0 if all are.
        dropped: Number of dropped tables in the newest cut.
        leaving: Those that leave it, because none of their changes is kept: incarnation → name.
        absent: UUIDs of tables that only earlier cuts needed and that are not in the catalog any more.
    """

    feed: str
    cuts: dict[int, KeptBecause]
    lets_go: list[int]
    staged: str | None
    changelog_retained_after: int
    tables: list[TablePlan]
    dropped: int = 0
    leaving: dict[str, str] = {}
    absent: list[str] = []
    folders: list[str] = []  # folders of tables that the catalog no longer has
    folder_bytes: int = 0


def plan_maintenance(lake: Lake, newest: Cut, before_ms: int, retained_cuts: RetainedCuts) -> MaintenancePlan:
    """Return the plan, without orphans. Only reads.

    Args:
        lake: The feed's lake.
        newest: The newest cut.
        before_ms: Only snapshots from before this time (ms) expire.
        retained_cuts: Reads the cuts' documents.
    """
    feed = lake.feed
    every = published(lake.catalog, feed.name)
    cuts = retained(every, feed.maintenance)
    led, before = lineage(lake.catalog, feed.name), changelog_retained_after(lake.catalog, feed.name)
    gone = max(before, changes_kept_after((led[seq] for seq in led if seq in cuts), newest.resolved_ts, feed.maintenance))
    need = needs(retained_cuts, newest, cuts, before)
    staged = find_document(lake.store, run_key(feed.name, next_seq(lake.store, feed.name, newest.seq), "order"), Staged)
    absent = list[str]()
    tables = [*_of_cuts(lake, newest, need, before_ms, gone, absent), *_of_system(lake, need, before_ms)]
    changes_after = gone if any(p.old for p in tables) else before
    return MaintenancePlan(
        feed=feed.name,
        cuts=cuts,
        lets_go=sorted(every.keys() - cuts.keys()),
        staged=staged.cut.hour if staged else None,
        changelog_retained_after=changes_after,
        tables=tables,
        dropped=sum(i.dropped_ts is not None for i in newest.catalog.incarnations.values()),
        leaving=_leaving(feed, newest, tables, changes_after),
        absent=[uuid for uuid in absent if uuid in newest.past],
    )


def _leaving(feed: Feed, newest: Cut, tables: Sequence[TablePlan], ts: int) -> dict[str, str]:
    """The dropped tables whose changelogs are empty after the plans of the tables. ts: the changelog_retained_after."""
    if not ts:
        return {}
    left = {p.table: p.files - (p.old.files if p.old is not None else 0) for p in tables}
    logs, lives = newest.changelogs, newest.catalog.incarnations
    ended = outdated(newest.catalog, ts, ((t.database, t.table) for t in read_tables(feed.folder)))
    return {i: lives[i].name for i in ended if i not in logs or left.get(logs[i].identifier) == 0}


def _of_cuts(lake: Lake, newest: Cut, need: Needs, before_ms: int, gone: int, absent: list[str]) -> Iterator[TablePlan]:
    """Yield plans for the tables of cuts. absent: gets the UUIDs of those that the catalog does not have."""
    changelogs = {t.uuid: t.snapshot_id for t in newest.changelogs.values()} if lake.feed.maintenance.keep_changelog else {}
    current = {t.uuid for t in (*newest.snapshots.values(), *newest.changelogs.values())}
    for uuid, identifier in sorted(need.places.items(), key=lambda item: item[1]):
        table = lake.catalog.find(identifier)
        if table is None or table.uuid != uuid:
            absent.append(uuid)  # an earlier maintenance dropped the table
            continue
        table.require(lake.feed.name)
        kept = need.cuts(uuid)
        if not kept:
            yield TablePlan(table=identifier, snapshots=len(table.table.snapshots()), gone=True)
            continue
        plan = _with_snapshots(TablePlan(table=identifier, kept=kept), table, set(kept), before_ms)
        old = old_files(table, changelogs[uuid], gone) if uuid in changelogs else []
        uri = lake.feed.maintenance.archive_changelog if old else None
        place = None if uri is None else open_store(uri).uri_of(folder(lake.feed.name, identifier))
        plan = plan.model_copy(update={"old": summed(old), "archive": place})
        yield _with_files(plan, table, lake.feed.maintenance, {f.path for f in old}) if uuid in current else plan


def _of_system(lake: Lake, need: Needs, before_ms: int) -> Iterator[TablePlan]:
    """Tidelake's own tables. Only their present state is read, except events, which are also read as of a cut."""
    own, shared = (events_table(lake.feed.name), late_table(lake.feed.name)), (published_table(), ddl_table())
    for identifier in (*own, *shared):
        table = lake.catalog.find_own(identifier, lake.feed.name) if identifier in own else lake.catalog.find(identifier)
        if table is not None:
            kept = events_needed(table, need) if identifier == events_table(lake.feed.name) else set[int]()
            yield _with_snapshots(TablePlan(table=identifier), table, kept, before_ms)


def _with_snapshots(plan: TablePlan, table: LakeTable, needed: set[int], before_ms: int) -> TablePlan:
    expires = expirable(table, needed, before_ms)
    return plan.model_copy(update={"snapshots": len(table.table.snapshots()), "expires": expires})


def _with_files(plan: TablePlan, table: LakeTable, settings: Maintenance, old: Container[str]) -> TablePlan:
    """Add the files of main to a plan.

    Small files are rewritten if a partition has many; one delete file is always reason enough. Partitions of a former partition spec count
    as
    one: Iceberg moves their files to the present spec. old: files that are removed.
    """
    by_hour = bool(hours_of(table))
    small = Counter[tuple[object, ...]]()
    files = size = 0
    deletes = set[str]()
    for task in table.table.scan().plan_files():
        files, size = files + 1, size + task.file.file_size_in_bytes
        deletes |= {d.file_path for d in task.delete_files}
        if task.file.file_size_in_bytes < SMALL * (settings.file_mb << 20) and task.file.file_path not in old:
            values = task.file.partition
            now = task.file.spec_id == table.table.spec().spec_id and not by_hour
            small[tuple(values[i] for i in range(len(values))) if now else ("before",)] += 1
    found = {"files": files, "bytes": size, "small_files": small.total(), "delete_files": len(deletes)}
    rewrites = bool(deletes) or any(n >= settings.small_files for n in small.values())
    return plan.model_copy(update=found | {"rewrites": rewrites})
