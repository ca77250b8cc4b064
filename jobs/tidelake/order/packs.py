"""A window's rows for each of its tables. Many small ones are taken in packs, as each would read the rows of all.

A pack's rows are sorted by table and kept on the executors' disks while its tables are staged. Spark knows of every few thousand rows that
it keeps the first and the last name, so a table reads little more than its own.
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

SMALL = 100_000  # row events of a table; more are worth a pass, and tasks, of their own
FEW = 8  # small tables whose passes cost less than a pack
PACK = 500_000  # row events
_PARTITIONS = 4  # of a pack; tables are staged side by side, so each needs few


def in_packs(rows: DataFrame, tables: Sequence[TableRows], seen: WindowRows) -> Iterator[tuple[DataFrame, list[TableRows]]]:
    """(rows to find the tables' own in, tables): each table once, large ones first. rows: of the window; what is kept of them goes when the
    next pack is asked for."""
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
    """Of at most so many row events each."""
    pack, held = list[TableRows](), 0
    for n, table in small:
        if pack and held + n > PACK:
            yield pack
            pack, held = [], 0
        pack.append(replace(table, few=True))
        held += n
    yield pack


def _kept(rows: DataFrame, names: Sequence[Name]) -> DataFrame:
    """The rows under these names, at hand."""
    from pyspark import StorageLevel

    listed = ", ".join(sorted({f"({literal(n.database)}, {literal(n.table)})" for n in names}))
    mine = rows.where(f"(database, table) IN ({listed})").repartition(_PARTITIONS, "database", "table")
    kept = mine.sortWithinPartitions("database", "table").persist(StorageLevel.DISK_ONLY)
    kept.count()  # once, and not by the first tables side by side
    return kept
