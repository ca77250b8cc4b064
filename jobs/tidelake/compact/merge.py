"""Merge-on-read: if few rows of a large snapshot table change, the old rows are deleted by position and the new ones appended.

The cost then depends on the window: files are neither read nor written as a whole. Readers pay for it because they skip deleted rows. So a
table uses it only up to a share of its rows, including what earlier windows deleted; the next window after that rewrites buckets.
Maintenance also rewrites files with deletes. It takes two commits on the run's branch, of which only the last one is published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from tidelake.lake.branches import sql_name
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import TableCounts
from tidelake.lake.tables import MERGE_ON_READ
from tidelake.spark.sql_casts import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LARGE = 2_000_000  # rows; rewriting fewer takes only seconds (docs/scale.md)
SHARE = 0.05  # maximum share of the rows that are changed or deleted by position
MOST_KEYS = 500_000  # maximum keys, because they are sent to every task
_WORTH_A_WORD = 10_000  # rows; below, the reason is not reported


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeChoice:
    """Whether a window is merged on read, and why, for people; empty if there is no choice."""

    merges: bool
    why: str


def choose(table: LakeTable, snapshot_id: int, counts: TableCounts | None, share: float) -> MergeChoice:
    """Choose from counts.

    Args:
        table: The snapshot table.
        snapshot_id: Its snapshot.
        counts: Counts of the changes; None if unknown.
        share: Share of its buckets that have changes, 0 to 1.
    """
    rows, deleted = live_rows(table, snapshot_id), _deleted(table, snapshot_id)
    touched = int(rows * share)
    if counts is None or counts.partial or touched < _WORTH_A_WORD:
        return MergeChoice(merges=False, why="")
    if touched < LARGE:
        return MergeChoice(merges=False, why=f"{touched:,} rows are few enough to rewrite")
    leaving = counts.updates + counts.deletes + counts.upserts + counts.exchanged_out
    keys = leaving + counts.key_changes + counts.inserts + counts.exchanged_in
    said = f"{keys:,} keys change in {touched:,} rows" + (f" of which {deleted:,} are deleted by position" if deleted else "")
    if leaving + deleted > touched * SHARE or keys > MOST_KEYS:
        return MergeChoice(merges=False, why=f"{said}, too many to merge on read")
    return MergeChoice(merges=True, why=f"merge-on-read: {said}")


def live_rows(table: LakeTable, snapshot_id: int) -> int:
    """Return the number of rows of a snapshot."""
    return int(table.summary(snapshot_id).get("total-records", 0)) - _deleted(table, snapshot_id)


def _deleted(table: LakeTable, snapshot_id: int) -> int:
    return int(table.summary(snapshot_id).get("total-position-deletes", 0))


def changed_keys(frame: DataFrame, names: dict[str, str]) -> DataFrame:
    """Return the keys of all changes, marked for broadcast. names: names of the key's columns in the frame → in the table."""
    return frame.selectExpr(*(f"{quote(a)} AS {quote(b)}" for a, b in names.items())).distinct().hint("broadcast")


def delete_rows(spark: SparkSession, table: LakeTable, branch: str, keys: DataFrame, condition: str) -> None:
    """Delete the rows with these keys by position.

    Args:
        spark: The session.
        table: The table.
        branch: Its branch.
        keys: Keys, with the table's column names.
        condition: SQL for the buckets that the rows are in.
    """
    if MERGE_ON_READ.items() - table.properties.items():  # an earlier version created the table
        listed = ", ".join(f"'{k}' = '{v}'" for k, v in MERGE_ON_READ.items())
        spark.sql(f"ALTER TABLE {sql_name(table.identifier)} SET TBLPROPERTIES ({listed})")
    view, merged = f"tidelake_{uuid4().hex}", sql_name(table.identifier, branch)
    names = {k: f"_key{n}" for n, k in enumerate(keys.columns)}  # names that differ from the table's, which the condition uses
    keys.toDF(*names.values()).hint("broadcast").createOrReplaceTempView(view)
    try:
        same = " AND ".join(f"{quote(k)} = {name}" for k, name in names.items())
        spark.sql(f"MERGE INTO {merged} t USING {view} s ON {same} AND {condition} WHEN MATCHED THEN DELETE")
    finally:
        spark.catalog.dropTempView(view)


def within(rows: DataFrame, keys: DataFrame) -> DataFrame:
    """Return the rows with these keys."""
    return rows.join(keys, keys.columns, "left_semi")
