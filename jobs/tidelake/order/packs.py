"""Reads a window's rows for each of its tables. Small tables are read in packs, because each would otherwise scan all rows.

A pack's rows are sorted by table and kept on the executors' disks while its tables are staged. Spark knows the first and last name of every
few thousand rows, so a table reads little more than its own rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidelake.history.incarnations import Name
from tidelake.order.observed_tables import WindowRows
from tidelake.order.sql.rows import TableRows
from tidelake.spark.sql_casts import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL = 100_000  # maximum row events of a small table; larger ones get a scan of their own
FEW = 8  # up to this many small tables, separate scans cost less than a pack
PACK = 500_000  # maximum row events of a pack
_PARTITIONS = 4  # partitions of a pack; few, because its tables are staged in parallel


def in_packs(rows: DataFrame, tables: Sequence[TableRows], seen: WindowRows) -> Iterator[tuple[DataFrame, list[TableRows]]]:
    """Yield (rows that contain the tables' rows, tables): each table once, large ones first.

    Args:
        rows: Rows of the window. A pack's copy of them is released when the next pack is requested.
        tables: Tables of the window.
        seen: What rows the window has.
    """
    sizes = [(seen.rows_of(t.names), t) for t in tables]
    small = [(n, t) for n, t in sizes if n <= SMALL]
    if len(small) <= FEW:
        yield rows, [replace(t, few=seen.inside <= SMALL) for t in tables]
        return
    if large := [t for n, t in sizes if n > SMALL]:
        yield rows, large
    for pack in _packs(small):
        kept = _kept(rows, [n for t in pack for n in t.names])
        try:
            yield kept, pack
        finally:
            kept.unpersist()


def _packs(small: Sequence[tuple[int, TableRows]]) -> Iterator[list[TableRows]]:
    """Yield packs of at most PACK row events."""
    pack, held = list[TableRows](), 0
    for n, table in small:
        if pack and held + n > PACK:
            yield pack
            pack, held = [], 0
        pack.append(replace(table, few=True))
        held += n
    yield pack


def _kept(rows: DataFrame, names: Sequence[Name]) -> DataFrame:
    """Persist the rows under these names."""
    from pyspark import StorageLevel

    listed = ", ".join(sorted({f"({literal(n.database)}, {literal(n.table)})" for n in names}))
    mine = rows.where(f"(database, table) IN ({listed})").repartition(_PARTITIONS, "database", "table")
    kept = mine.sortWithinPartitions("database", "table").persist(StorageLevel.DISK_ONLY)
    kept.count()  # compute it once, not in each of the tables that start in parallel
    return kept
