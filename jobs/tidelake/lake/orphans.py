"""Orphans: files in the warehouse that no metadata names. Left by attempts that were killed, and by tables that were dropped.

Only what is older than orphan_age counts: a run that is staging now has written files that nothing names yet. Of folders that no table
of the catalog has, only those count whose own metadata carries the feed's mark: another catalog may have tables in the same warehouse.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from tidelake.lake.expire import call_name
from tidelake.lake.opened import Lake
from tidelake.lake.owner import OWNER
from tidelake.lake.spread import THREADS
from tidelake.lake.upkeep_plan import TablePlan
from tidelake.layout import CATALOG
from tidelake.object_store import ObjectInfo
from tidelake.storage import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_METADATA = ".metadata.json"


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
    """Folders of tables that were the feed's and are in the catalog no more, if all in them is older than that moment."""
    own = sorted(n for n, owner in lake.catalog.namespaces().items() if owner == lake.feed.name)
    known = {
        lake.catalog.load(t).table.location().removeprefix(f"{lake.settings.warehouse}/") for ns in own for t in lake.catalog.tables(ns)
    }
    warehouse, found = open_store(lake.settings.warehouse), []
    for namespace in own:
        for folder, objects in groupby(warehouse.objects(f"{namespace}/"), key=lambda o: "/".join(o.key.split("/")[:2])):
            inside = tuple(objects)
            if folder in known or any(o.modified_ms >= before_ms for o in inside):
                continue
            if _mark(warehouse, inside) == lake.feed.name:
                found.append(Leftover(folder=folder, objects=inside))
            else:
                lake.tell("upkeep", f"{folder} is no table of the catalog, and not marked as feed {lake.feed.name}'s: it stays")
    return found


def _mark(warehouse: Store, inside: Sequence[ObjectInfo]) -> str | None:
    """The feed that a table's newest metadata names; None where nothing does."""
    documents = [o for o in inside if o.key.endswith(_METADATA)]
    if not documents:
        return None
    try:
        mark = json.loads(warehouse.read(max(documents, key=lambda o: (o.modified_ms, o.key)).key))["properties"][OWNER]
    except (ValueError, KeyError, TypeError):
        return None
    return str(mark)


def remove_leftovers(lake: Lake, found: Sequence[Leftover]) -> None:
    """Remove these folders; what says whose they are goes last, so that a removal cut short is gone on with."""
    warehouse, keys = open_store(lake.settings.warehouse), [o.key for one in found for o in one.objects]
    with ThreadPoolExecutor(THREADS) as pool:
        for last in (False, True):
            list(pool.map(warehouse.delete, (key for key in keys if key.endswith(_METADATA) == last)))


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
