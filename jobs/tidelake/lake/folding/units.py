"""Units of a fold: the files that one worker folds together. A unit is a bucket, or a table without buckets.

The changelog is bucketed like the snapshot. So a bucket needs no rows of another one, and nothing is shuffled. Where a statement changed
the column that rows are bucketed by, every bucket reads the files of that side whole, and takes its rows from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import BaseModel

from tidelake.lake.columns.pieces import Rows
from tidelake.lake.folding.bucket_rows import BucketOnly, BucketRows
from tidelake.lake.folding.file_rows import FileRef, FileRows, opened
from tidelake.lake.folding.table_fold import TableFold
from tidelake.lake.scans import FileFacts, plain


class UnitSide(BaseModel, frozen=True):
    """Files of one side. only: the bucket whose rows are taken from them; None for all rows."""

    files: tuple[FileRef, ...] = ()
    only: BucketOnly | None = None


class Unit(BaseModel, frozen=True):
    """What one worker folds. table: number of the table; bucket: the bucket's number, None for NULL or without buckets."""

    table: int
    bucket: int | None
    base: UnitSide
    changes: UnitSide


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Files of a table. bucketed: they are partitioned by the buckets of the fold."""

    files: Sequence[FileFacts] = ()
    bucketed: bool = True


def units_of(table: int, base: SideFiles, changes: SideFiles, buckets: BucketOnly | None, *, every: bool) -> list[tuple[int, Unit]]:
    """Return pairs (bytes of files, unit).

    Args:
        table: Number of the table.
        base: Files of the snapshot.
        changes: Files of the changelog.
        buckets: The buckets, whatever their number; None without any.
        every: Also buckets without changes.
    """
    if buckets is None:
        of_table = Unit(table=table, bucket=None, base=_side(base.files, None), changes=_side(changes.files, None))
        return [(_size(base.files) + _size(changes.files), of_table)]
    numbers: set[int | None] = {f.partition[0] for s in ((base, changes) if every else (changes,)) for f in s.files}
    if not (base.bucketed and changes.bucketed):
        numbers = {*range(buckets.buckets), None}
    out = []
    for number in sorted(numbers, key=lambda n: -1 if n is None else n):
        only = buckets.model_copy(update={"number": number})
        sides = [[f for f in s.files if not s.bucketed or f.partition[0] == number] for s in (base, changes)]
        of_base, of_changes = (_side(files, None if s.bucketed else only) for files, s in zip(sides, (base, changes), strict=True))
        out.append((sum(map(_size, sides)), Unit(table=table, bucket=number, base=of_base, changes=of_changes)))
    return out


@contextmanager
def sides_of(table: TableFold, unit: Unit) -> Iterator[tuple[FileRows, Rows, Rows]]:
    """Open a unit's files. Yield (all rows of the snapshot's files, the unit's rows of the snapshot, its changes)."""
    whole = not table.rules.merges
    with opened(unit.base.files, table.base, whole=whole) as base, opened(unit.changes.files, table.changes) as changes:
        yield base, _only(base, unit.base), _only(changes, unit.changes)


def _only(rows: FileRows, side: UnitSide) -> Rows:
    return rows if side.only is None else BucketRows(rows, side.only)


def _side(files: Sequence[FileFacts], only: BucketOnly | None) -> UnitSide:
    return UnitSide(files=tuple(_ref(f) for f in files), only=only)


def _ref(f: FileFacts) -> FileRef:
    return FileRef(path=f.path, uri=plain(f.path), deletes=tuple(plain(d) for d in f.deletes))


def _size(files: Sequence[FileFacts]) -> int:
    return sum(f.size for f in files)
