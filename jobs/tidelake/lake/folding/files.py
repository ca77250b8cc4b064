"""The files that a fold reads, from the tables' metadata."""

from __future__ import annotations

from datetime import timedelta

from tidelake.lake.columns.fold_columns import FoldColumn
from tidelake.lake.columns.fold_rules import TableFold
from tidelake.lake.data_files import bucketed_by
from tidelake.lake.folding.bucket_rows import BucketOnly
from tidelake.lake.folding.fold import Fold
from tidelake.lake.folding.table_fold import TableAt
from tidelake.lake.folding.units import SideFiles
from tidelake.lake.scans import After
from tidelake.lake.tables import wider
from tidelake.tso import at


def base_files(base: TableAt | None, table: TableFold, buckets: BucketOnly | None) -> SideFiles:
    """Return the snapshot's files.

    Args:
        base: The snapshot, if there is one.
        table: The fold.
        buckets: The fold's buckets, whatever their number; None without any.
    """
    if base is None:
        return SideFiles()
    leading = _leading(table.rules.leading, table.base)
    files = list(base.table.files({}, leading, base.snapshot_id))
    return SideFiles(files, _is_bucketed(base, table.base, buckets), *leading)


def change_files(changes: TableAt | None, table: TableFold, buckets: BucketOnly | None) -> SideFiles:
    """Return the changelog's files that may have changes of the fold.

    Args:
        changes: The changelog, if there is one.
        table: The fold.
        buckets: The fold's buckets, whatever their number; None without any.
    """
    if changes is None:
        return SideFiles()
    after, until = table.rules.after_ts, table.rules.until_ts
    where = {"_commit_ts": After(after, until), "_commit_at": After(at(max(after, 0)) - timedelta(milliseconds=1), at(until))}
    leading = _leading(table.rules.leading, table.changes)
    files = list(changes.table.files(where, leading, changes.snapshot_id, changes.after))
    return SideFiles(files, _is_bucketed(changes, table.changes, buckets), *leading)


def buckets_of(fold: Fold, of: TableAt) -> BucketOnly | None:
    """Return the buckets of a table's files if all rows of a key of the fold are in one of them, else None."""
    by = bucketed_by(of.table)
    if by is None:
        return None
    numbers = {field_id: source_id for source_id, (field_id, _) in of.table.fields().items()}
    names = {c.id: c.lake_name for c in fold.columns if c.id in fold.incarnation.key}
    name = names.get(numbers.get(by[0], -1))
    return None if name is None else BucketOnly(column=name, buckets=by[1], number=None)


def _leading(name: str | None, columns: tuple[FoldColumn, ...]) -> list[int]:
    """The field id of the column by whose ranges a bucket can be shared, if the files have its bounds."""
    held = next((c for c in columns if c.name == name), None)
    if held is None or [h.type for h in held.holders] != [held.type]:
        return []
    return [held.holders[0].field_id]


def _is_bucketed(of: TableAt, columns: tuple[FoldColumn, ...], buckets: BucketOnly | None) -> bool:
    """Whether the files are partitioned first by buckets of this column, and its values have the same hash in the fold."""
    if buckets is None:
        return True
    column = next(c for c in columns if c.name == buckets.column)
    if len(column.holders) != 1 or column.needs_ts:
        return False
    held = column.holders[0]
    same = held.type == column.type or wider(held.type, column.type)
    return same and bucketed_by(of.table) == (held.field_id, buckets.buckets)
