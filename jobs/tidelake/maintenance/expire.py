"""Expires cuts. They first leave the published cuts; then what only they needed is removed.

After an interruption the next maintenance continues.

Iceberg's expire_snapshots expires everything older than five days unless it gets a time, even if it gets ids (measured). So it gets the
year 1970 and the ids.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tidelake.config.lake_paths import CATALOG, cut_key, cuts, file_lists, run_key
from tidelake.errors import DamageError
from tidelake.io.texts import plural
from tidelake.lake.cut import Cut
from tidelake.lake.opened import Lake
from tidelake.lake.proof.stored_lists import StoredLists
from tidelake.maintenance.maintenance_plan import MaintenancePlan, TablePlan
from tidelake.maintenance.needs import stale_branches
from tidelake.spark.spread import THREADS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_AT_ONCE = 500  # maximum ids in one statement
_NEVER = "TIMESTAMP '1970-01-02 00:00:00'"


def forget_documents(lake: Lake, kept: Container[int], newest: Cut) -> None:
    """Remove the documents of earlier cuts that are not kept, and their stages' documents. Certificates and intents stay."""
    feed = lake.feed.name
    for seq in [int(o.key.removeprefix(cuts(feed)).removesuffix(".json")) for o in lake.store.objects(cuts(feed))]:
        if seq < newest.seq and seq not in kept:
            for stage in ("order", "validate"):
                lake.store.delete(run_key(feed, seq, stage))
            lake.store.delete(cut_key(feed, seq))


def forget_lists(lake: Lake, needed: Mapping[str, Mapping[str, int]]) -> int:
    """Remove the lists of files that no retained cut needs, and return their number.

    Where a list cannot be read, its parts are not known: then all lists of its table stay.

    Args:
        lake: The feed's lake.
        needed: The lists that retained cuts name: by the table's UUID, their sha256 and number of files.
    """
    feed, store = lake.feed.name, lake.store

    def keys(uuid: str) -> set[str] | None:
        lists = StoredLists(store, feed, uuid)
        try:
            return {lists.key(sha256) for sha256 in lists.names(needed[uuid])}
        except DamageError as e:
            log.warning(f"all lists of files of table {uuid} stay: {e}")
            return None

    with ThreadPoolExecutor(THREADS) as pool:
        named = dict(zip(needed, pool.map(keys, needed), strict=True))
        kept_by_table = ((o.key, named.get(o.key.split("/")[-2], set())) for o in store.objects(file_lists(feed)))
        gone = [key for key, kept in kept_by_table if kept is not None and key not in kept]
        list(pool.map(store.delete, gone))
    return len(gone)


def drop_gone(lake: Lake, plan: MaintenancePlan, newest: Cut) -> list[str]:
    """Drop tables that no retained cut reads, and branches of runs that lost their number. Return the dropped tables."""
    for p in plan.tables:
        if p.gone:
            lake.catalog.drop(p.table, lake.feed.name)
            log.info(f"dropped {p.table}, which no cut needs")
        elif (table := lake.catalog.find(p.table)) is not None and (stale := stale_branches(table, newest)):
            lake.catalog.drop_branches(table, stale)
    return [p.table for p in plan.tables if p.gone]


def expire_snapshots(lake: Lake, tables: Sequence[TablePlan]) -> tuple[int, int]:
    """Expire the plan's snapshots. Return (number of snapshots, number of files that only they needed)."""
    todo = [p for p in tables if p.expires and not p.gone]
    if not todo:
        return 0, 0
    spark = lake.spark

    def one(p: TablePlan) -> int:
        deleted = sum(_expire(spark, p.table, p.expires[i : i + _AT_ONCE]) for i in range(0, len(p.expires), _AT_ONCE))
        log.info(f"{p.table}: expired {len(p.expires):,} of {plural(p.snapshots, 'snapshot')}, deleted {plural(deleted, 'file')}")
        return deleted

    with ThreadPoolExecutor(THREADS) as pool:
        deleted = sum(pool.map(one, todo))
    return sum(len(p.expires) for p in todo), deleted


def call_name(identifier: str) -> str:
    """Return a table's name in the form for procedure calls."""
    return "'" + ".".join(f"`{part}`" for part in identifier.split(".")) + "'"


def _expire(spark: SparkSession, identifier: str, ids: Sequence[int]) -> int:
    listed = ", ".join(f"{i}L" for i in ids)
    arguments = f"table => {call_name(identifier)}, older_than => {_NEVER}, snapshot_ids => array({listed})"
    row = spark.sql(f"CALL {CATALOG}.system.expire_snapshots({arguments})").collect()[0]
    return sum(int(n or 0) for n in row.asDict().values())
