"""Rewrites small files and delete files of tables, and removes old files of changelogs; published like any run.

The rewritten table has few large files with the same rows. The newest cut is published again under the next number, with the same window,
rows and columns, and new snapshot ids, without dropped tables whose changes are all removed. So the next hour starts from the rewritten
tables, an interrupted rewrite is dropped or finished like an hour, and the cut before it stays readable until it expires. Iceberg rewrites
on a branch; it commits a `replace` snapshot, which readers of changes skip.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tidelake import __version__
from tidelake.config.lake_paths import BRANCH, CATALOG, MAIN
from tidelake.errors import StorageError
from tidelake.history.dropped_tables import without
from tidelake.io.texts import plural
from tidelake.lake.branches import begin_branch, sql_name
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Advance, Cut, Intent, TableCut
from tidelake.lake.cut_documents import next_seq, read_certificate
from tidelake.lake.opened import Lake
from tidelake.maintenance.changelog_age import OldFile, by_day, old_files, remove, summed
from tidelake.maintenance.expire import call_name
from tidelake.maintenance.maintenance_plan import MaintenancePlan, TablePlan
from tidelake.spark.spread import THREADS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def stage_rewrite(lake: Lake, newest: Cut, plan: MaintenancePlan, fence: int, archived: Mapping[str, str]) -> Intent | None:
    """Rewrite tables on branches. Return the intent that publishes it; None if there is nothing to publish.

    Args:
        lake: The feed's lake.
        newest: The newest cut.
        plan: The plan.
        fence: Number of the lease that this run holds.
        archived: Changelog → manifest of the copies of removed files.

    Raises:
        StorageError: TABLE_MOVED: main is not at the cut's snapshot; ROWS_DIFFER: the rewritten rows differ.
    """
    seq = next_seq(lake.store, newest.feed, newest.seq)
    branch = f"{BRANCH}{seq}_{fence}"
    by_name = {t.identifier: (i, t) for part in (newest.snapshots, newest.changelogs) for i, t in part.items()}
    todo = [p for p in plan.tables if p.rewrites or p.old is not None]
    spark = lake.spark if any(p.rewrites for p in todo) else None  # start it once, before the threads
    removed = [(p.table, by_name[p.table][1].snapshot_id) for p in todo if p.old is not None]
    going = {table: old_files(lake.catalog.load(table), at, plan.changelog_retained_after) for table, at in removed}

    def one(p: TablePlan) -> Advance | None:
        return _staged(lake, spark if p.rewrites else None, *by_name[p.table], branch, going.get(p.table, []))

    with ThreadPoolExecutor(THREADS) as pool:
        advances = [a for a in pool.map(one, todo) if a is not None]
    if not (advances or plan.leaving or plan.absent):
        return None
    return _intent(lake, _again(newest, plan, seq, branch), newest.seq, advances, _let_go(going, plan, archived))


def _staged(lake: Lake, spark: SparkSession | None, incarnation: str, t: TableCut, branch: str, going: Sequence[OldFile]) -> Advance | None:
    """Stage one table without the files that are removed; rewritten if there is a session."""
    table = lake.catalog.load(t.identifier)
    if table.main != t.snapshot_id:
        raise StorageError(
            f"{t.identifier}: {MAIN} is at snapshot {table.main}, which no run of Tidelake created",
            code="TABLE_MOVED",
            remedy=f"set {MAIN} back to snapshot {t.snapshot_id}, then run again",
        )
    begin_branch(lake.catalog, table, branch, t.snapshot_id)
    if going:
        remove(lake.catalog, t.identifier, branch, going)
        log.info(f"{t.identifier}: removed {plural(len(going), 'file')} up to {going[-1].name}")
    staged = lake.catalog.load(t.identifier)
    head = staged.branch(branch) if spark is None else _rewritten(lake, spark, staged, branch)
    if head == t.snapshot_id:
        lake.catalog.drop_branches(lake.catalog.load(t.identifier), [branch])
        return None
    return Advance(
        identifier=t.identifier, uuid=t.uuid, base=t.snapshot_id, to=head, branch=branch, incarnation=incarnation, buckets=t.buckets
    )


def _rewritten(lake: Lake, spark: SparkSession, table: LakeTable, branch: str) -> int:
    """Rewrite the branch's files with Iceberg and return its snapshot."""
    base = table.branch(branch)
    by_day(lake.catalog, table.identifier)
    row = spark.sql(_call(table, branch, lake.feed.maintenance.file_mb << 20, lake.feed.maintenance.small_files)).collect()[0]
    staged = lake.catalog.load(table.identifier)
    head = staged.branch(branch)
    if head != base:
        before, after = (_rows(spark, staged, snapshot_id) for snapshot_id in (base, head))
        if before != after:
            raise StorageError(f"{table.identifier}: {before:,} rows, rewritten {after:,}; nothing is published", code="ROWS_DIFFER")
        log.info(f"{table.identifier}: {plural(row['rewritten_data_files_count'], 'file')} became {row['added_data_files_count']:,}")
    return head


def _call(table: LakeTable, branch: str, file_bytes: int, small_files: int) -> str:
    """SQL of the rewrite. Sorted tables are sorted again; a file with one delete file is rewritten."""
    options = {
        "target-file-size-bytes": file_bytes,
        "min-input-files": small_files,
        "delete-file-threshold": 1,
        "remove-dangling-deletes": "true",
        "partial-progress.enabled": "false",  # all in one commit
    }
    listed = ", ".join(f"'{k}', '{v}'" for k, v in options.items())
    strategy = "sort" if table.table.sort_order().fields else "binpack"
    arguments = f"table => {call_name(table.identifier)}, branch => '{branch}', strategy => '{strategy}', options => map({listed})"
    return f"CALL {CATALOG}.system.rewrite_data_files({arguments})"


def _rows(spark: SparkSession, table: LakeTable, snapshot_id: int) -> int:
    """Number of rows: from the summary if nothing is deleted by position, else counted."""
    summary = table.summary(snapshot_id)
    if int(summary.get("total-delete-files", 0)) == 0:
        return int(summary["total-records"])
    return spark.read.option("versionAsOf", snapshot_id).table(sql_name(table.identifier)).count()


def _let_go(going: Mapping[str, Sequence[OldFile]], plan: MaintenancePlan, archived: Mapping[str, str]) -> dict[str, Any]:
    """The certificate's record of removed changes and of dropped tables that left."""
    sums = {name: summed(files) for name, files in going.items()}
    tables = {name: s.model_dump() | {"archived": archived.get(name)} for name, s in sums.items() if s is not None}
    if not (tables or plan.leaving):
        return {}
    return {"let_go": {"changelog_retained_after": plan.changelog_retained_after, "tables": tables, "dropped": plan.leaving}}


def _again(newest: Cut, plan: MaintenancePlan, seq: int, run: str) -> Cut:
    """The newest cut under a new number, without dropped tables that leave it. Earlier cuts may need their changelogs."""
    own = {"seq": seq, "run": run, "version": __version__, "published_at_ms": 0}
    cut = Cut.model_validate(newest.model_dump(exclude={"parent_seq"}) | own)
    logs = {t.uuid: t.identifier for i in plan.leaving if (t := cut.changelogs.pop(i, None)) is not None}
    cut.past = {uuid: identifier for uuid, identifier in (cut.past | logs).items() if uuid not in plan.absent}
    cut.catalog = without(cut.catalog, plan.leaving, plan.changelog_retained_after)
    return cut


def _intent(lake: Lake, cut: Cut, of: int, advances: Sequence[Advance], let_go: dict[str, Any]) -> Intent:
    to = {a.uuid: a.to for a in advances}
    cut.snapshots, cut.changelogs = _moved(cut.snapshots, to), _moved(cut.changelogs, to)
    proof = {k: v for k, v in read_certificate(lake.store, cut.feed, of).items() if k != "let_go"}
    tables = {a.identifier: {"from": a.base, "to": a.to} for a in advances}
    rewrites = {"cut": of, "tables": tables}
    own = {"cut": cut.seq, "run": cut.run, "version": cut.version, "rewrites": rewrites}
    return Intent(cut=cut, advances=list(advances), certificate=proof | own | let_go)


def _moved(tables: Mapping[str, TableCut], to: Mapping[str, int]) -> dict[str, TableCut]:
    return {i: t.model_copy(update={"snapshot_id": to.get(t.uuid, t.snapshot_id)}) for i, t in tables.items()}
