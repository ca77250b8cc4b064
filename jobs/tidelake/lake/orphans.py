"""Orphans: files in the warehouse that no metadata names. Left by attempts that were killed, and by tables that were dropped.

Only what is older than orphan_age counts: a run that is staging now has written files that nothing names yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.expire import call_name
from tidelake.lake.opened import Lake
from tidelake.lake.spread import THREADS
from tidelake.lake.upkeep_plan import TablePlan
from tidelake.layout import CATALOG
from tidelake.object_store import ObjectInfo
from tidelake.storage import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """The folder of a table that the catalog no longer has, below the warehouse."""

    folder: str
    objects: tuple[ObjectInfo, ...]


def find_orphans(lake: Lake, tables: Sequence[TablePlan], before_ms: int, *, remove: bool) -> list[TablePlan]:
    """The plans with the orphans of their tables counted; remove: and removed."""
    spark = lake.spark

    def one(p: TablePlan) -> TablePlan:
        return p if p.gone else _of_table(lake, spark, p, before_ms, remove=remove)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, tables))


def leftovers(lake: Lake, before_ms: int) -> list[Leftover]:
    """Folders in the feed's own namespaces that no table of the catalog has as its place, if all in them is older than that moment."""
    own = _namespaces(lake.catalog, lake.feed.name)
    known = {
        lake.catalog.load(t).table.location().removeprefix(f"{lake.settings.warehouse}/") for ns in own for t in lake.catalog.tables(ns)
    }
    warehouse, found = open_store(lake.settings.warehouse), []
    for namespace in own:
        for folder, objects in groupby(warehouse.objects(f"{namespace}/"), key=lambda o: "/".join(o.key.split("/")[:2])):
            inside = tuple(objects)
            if folder not in known and all(o.modified_ms < before_ms for o in inside):
                found.append(Leftover(folder=folder, objects=inside))
    return found


def remove_leftovers(lake: Lake, found: Sequence[Leftover]) -> None:
    """Remove these folders."""
    warehouse = open_store(lake.settings.warehouse)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(warehouse.delete, (o.key for one in found for o in one.objects)))


def _of_table(lake: Lake, spark: SparkSession, p: TablePlan, before_ms: int, *, remove: bool) -> TablePlan:
    until = datetime.fromtimestamp(before_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    arguments = f"table => {call_name(p.table)}, older_than => TIMESTAMP '{until}', prefix_listing => true"
    procedure = f"CALL {CATALOG}.system.remove_orphan_files({arguments}, dry_run => "
    paths = [str(r[0]) for r in spark.sql(f"{procedure}true)").collect()]
    if not paths:
        return p.model_copy(update={"orphans": 0})
    size = sum(_sizes(lake, p.table, paths))
    if remove:
        spark.sql(f"{procedure}false)").collect()
        lake.tell("upkeep", f"{p.table}: removed {len(paths)} orphans, {size:,} bytes")
    return p.model_copy(update={"orphans": len(paths), "orphan_bytes": size})


def _sizes(lake: Lake, identifier: str, paths: Sequence[str]) -> Iterator[int]:
    place = lake.catalog.load(identifier).table.location().rstrip("/").rpartition("/")
    wanted = {path.rpartition(f"{place[2]}/")[2] for path in paths}
    for o in open_store(place[0]).objects(f"{place[2]}/"):
        if o.key.removeprefix(f"{place[2]}/") in wanted:
            yield o.size


def _namespaces(catalog: LakeCatalog, feed: str) -> list[str]:
    """Those that belong to the feed."""
    names = [".".join(n) for n in catalog.catalog.list_namespaces()]
    return sorted(n for n in names if catalog.catalog.load_namespace_properties(n).get("tidelake.feed") == feed)
