"""Orphans: files in the warehouse that no metadata names, left by killed runs and dropped tables.

Only files older than orphan_age count: a run that is staging now has written files that no metadata names yet. A folder without a table in
the catalog counts only if its own metadata carries the feed's mark: another catalog can have tables in the same warehouse.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby

from tidelake.errors import StorageError
from tidelake.io.object_store import ObjectInfo
from tidelake.io.storage import Store, open_store
from tidelake.io.texts import plural
from tidelake.lake.data_files import named_files
from tidelake.lake.opened import Lake
from tidelake.lake.owner import OWNER
from tidelake.lake.scans import plain
from tidelake.maintenance.maintenance_plan import TablePlan
from tidelake.spark.spread import THREADS

log = logging.getLogger(__name__)

_METADATA = ".metadata.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Folder of a table that the catalog no longer has, below the warehouse."""

    folder: str
    objects: tuple[ObjectInfo, ...]


def find_orphans(lake: Lake, tables: Sequence[TablePlan], before_ms: int, *, remove: bool) -> list[TablePlan]:
    """Return the plans with their tables' orphans counted. remove: also remove them. Does not start Spark."""

    def one(p: TablePlan) -> TablePlan:
        return p if p.gone else _of_table(lake, p, before_ms, remove=remove)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, tables))


def leftovers(lake: Lake, before_ms: int) -> list[Leftover]:
    """Return the folders of the feed's former tables in which everything is older than a time (ms)."""
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
                log.info(f"{folder} is not a table of the catalog and has no mark of feed {lake.feed.name}: it is kept")
    return found


def _mark(warehouse: Store, inside: Sequence[ObjectInfo]) -> str | None:
    """The feed that a table's newest metadata names; None if none does."""
    documents = [o for o in inside if o.key.endswith(_METADATA)]
    if not documents:
        return None
    try:
        mark = json.loads(warehouse.read(max(documents, key=lambda o: (o.modified_ms, o.key)).key))["properties"][OWNER]
    except (ValueError, KeyError, TypeError):
        return None
    return str(mark)


def remove_leftovers(lake: Lake, found: Sequence[Leftover]) -> None:
    """Remove folders. The metadata that names the owner goes last, so that an interrupted removal can continue."""
    warehouse, keys = open_store(lake.settings.warehouse), [o.key for one in found for o in one.objects]
    with ThreadPoolExecutor(THREADS) as pool:
        for last in (False, True):
            list(pool.map(warehouse.delete, (key for key in keys if key.endswith(_METADATA) == last)))


def _of_table(lake: Lake, p: TablePlan, before_ms: int, *, remove: bool) -> TablePlan:
    parent, _, folder = plain(lake.catalog.load(p.table).table.location()).rpartition("/")
    store = open_store(parent)
    found = [o for o in _unnamed(lake, store, p.table, folder) if o.modified_ms < before_ms]
    size = sum(o.size for o in found)
    if found and remove:
        for o in found:
            store.delete(o.key)
        log.info(f"{p.table}: removed {plural(len(found), 'orphan')}, {plural(size, 'byte')}")
    return p.model_copy(update={"orphans": len(found), "orphan_bytes": size})


def _unnamed(lake: Lake, store: Store, identifier: str, folder: str) -> list[ObjectInfo]:
    """The objects of a table's folder that its metadata does not name.

    Objects are listed first, so files that are added meanwhile do not count. Raises StorageError (FILE_LOST) if the table's own metadata is
    not among them: then names and objects cannot be compared.
    """
    inside = list(store.objects(f"{folder}/"))
    table = lake.catalog.load(identifier)
    own = plain(table.table.metadata_location).removeprefix(f"{store.uri}/")
    if own not in {o.key for o in inside}:
        raise StorageError(
            f"table {identifier}: its metadata {table.table.metadata_location} is not among the objects of {store.uri}/{folder}",
            code="FILE_LOST",
            remedy="no orphan of it is removed; restore the file, or find out why its folder does not list it",
        )
    named = {plain(path).removeprefix(f"{store.uri}/") for path in named_files(table)}
    return [o for o in inside if o.key not in named]
