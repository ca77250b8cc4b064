"""Merge-on-read: if few rows of a large snapshot table change, the old rows are deleted by position and the new ones appended.

The cost then depends on the window: files are neither read nor written as a whole. Readers pay for it because they skip deleted rows. So a
table uses it only up to a share of its rows, including what earlier windows deleted; the next window after that rewrites buckets.
Maintenance also rewrites files with deletes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import TableCounts

LARGE = 2_000_000  # rows; rewriting fewer takes only seconds (docs/scale.md)
SHARE = 0.05  # maximum share of the rows that are changed or deleted by position
MOST_KEYS = 500_000  # maximum keys; above, rewriting costs about as much
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
