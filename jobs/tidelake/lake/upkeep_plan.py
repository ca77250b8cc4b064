"""What upkeep finds and would do: which cuts go, what every table holds, which of its snapshots which cuts keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import BaseModel

from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut, Staged
from tidelake.lake.cuts import published
from tidelake.lake.needs import Needs, events_needed, expirable, needs
from tidelake.lake.opened import Lake
from tidelake.layout import ddl_table, events_table, late_table, published_table, run_key
from tidelake.retention import Upkeep, Why, retained

SMALL = 0.75  # of the wanted size; Iceberg's rewrite takes files below it


class TablePlan(BaseModel):
    """One physical table. kept: snapshot id → numbers of the cuts that read it; expires: snapshot ids that nobody needs.

    gone: no retained cut reads the table, it is dropped; orphans: None until they were looked for.
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
    orphans: int | None = None
    orphan_bytes: int = 0


class UpkeepPlan(BaseModel):
    """A feed. cuts: retained ones and why; lets_go: those that can no longer be read afterwards; staged: the hour that is staged and not
    published, for which rewriting waits."""

    feed: str
    cuts: dict[int, Why]
    lets_go: list[int]
    staged: str | None
    tables: list[TablePlan]
    folders: list[str] = []  # of tables that the catalog no longer has
    folder_bytes: int = 0


def plan_upkeep(lake: Lake, newest: Cut, before_ms: int) -> tuple[UpkeepPlan, Needs]:
    """The plan, orphans left out, and what it rests on. before_ms: only snapshots from before it expire. Reads, writes nothing."""
    feed = lake.feed
    every = published(lake.catalog, feed.name)
    cuts = retained(every, feed.upkeep)
    need = needs(lake.store, newest, cuts)
    staged = lake.store.read_if_present(run_key(feed.name, newest.seq + 1, "order"))
    plan = UpkeepPlan(
        feed=feed.name,
        cuts=cuts,
        lets_go=sorted(every.keys() - cuts.keys()),
        staged=Staged.model_validate_json(staged).cut.hour if staged else None,
        tables=[*_of_cuts(lake, newest, need, before_ms), *_of_system(lake, need, before_ms)],
    )
    return plan, need


def _of_cuts(lake: Lake, newest: Cut, need: Needs, before_ms: int) -> Iterator[TablePlan]:
    current = {t.uuid for t in (*newest.snapshots.values(), *newest.changelogs.values())}
    for uuid, identifier in sorted(need.places.items(), key=lambda item: item[1]):
        table = lake.catalog.find(identifier)
        if table is None or table.uuid != uuid:
            continue  # an earlier upkeep dropped it
        if uuid in need.gone:
            yield TablePlan(table=identifier, snapshots=len(table.table.snapshots()), gone=True)
            continue
        kept = need.cuts[uuid]
        plan = _with_snapshots(TablePlan(table=identifier, kept=dict(kept)), table, set(kept), before_ms)
        yield _with_files(plan, table, lake.feed.upkeep) if uuid in current else plan


def _of_system(lake: Lake, need: Needs, before_ms: int) -> Iterator[TablePlan]:
    """Tidelake's own tables, which are read as they are now; but events also as a cut was made from them."""
    for identifier in (events_table(lake.feed.name), late_table(lake.feed.name), published_table(), ddl_table()):
        table = lake.catalog.find(identifier)
        if table is not None:
            kept = events_needed(table, need) if identifier == events_table(lake.feed.name) else set[int]()
            yield _with_snapshots(TablePlan(table=identifier), table, kept, before_ms)


def _with_snapshots(plan: TablePlan, table: LakeTable, needed: set[int], before_ms: int) -> TablePlan:
    expires = expirable(table, needed, before_ms)
    return plan.model_copy(update={"snapshots": len(table.table.snapshots()), "expires": expires})


def _with_files(plan: TablePlan, table: LakeTable, settings: Upkeep) -> TablePlan:
    """With what main holds. Small files are put together where a partition has so many; a delete file is always worth it."""
    small = Counter[tuple[object, ...]]()
    files = size = 0
    deletes = set[str]()
    for task in table.table.scan().plan_files():
        files, size = files + 1, size + task.file.file_size_in_bytes
        deletes |= {d.file_path for d in task.delete_files}
        if task.file.file_size_in_bytes < SMALL * (settings.file_mb << 20):
            values = task.file.partition
            small[(task.file.spec_id, *(values[i] for i in range(len(values))))] += 1
    found = {"files": files, "bytes": size, "small_files": small.total(), "delete_files": len(deletes)}
    rewrites = bool(deletes) or any(n >= settings.small_files for n in small.values())
    return plan.model_copy(update=found | {"rewrites": rewrites})
