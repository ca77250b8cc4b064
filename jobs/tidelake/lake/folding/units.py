"""Units of a fold: the files that one worker folds together. A unit is a bucket, or a table without buckets.

The changelog is bucketed like the snapshot. So a bucket needs no rows of another one, and nothing is shuffled. Where a statement changed
the column that rows are bucketed by, every bucket reads the files of that side whole, and takes its rows from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pydantic import BaseModel

from tidelake.lake.columns.fold_rules import FoldRules, TableFold
from tidelake.lake.columns.pieces import Rows
from tidelake.lake.columns.survivors import passes_for
from tidelake.lake.folding.bucket_rows import BucketOnly, BucketRows
from tidelake.lake.folding.file_rows import FileRef, FileRows, opened
from tidelake.lake.folding.range_rows import LeadingRange, RangeRows, Span, key_ranges, rows_read
from tidelake.lake.scans import FileFacts, plain

_AGAIN = 4  # times that the snapshot of a table without key is read, at most


class UnitSide(BaseModel, frozen=True):
    """Files of one side. only: the bucket whose rows are taken from them; None for all rows."""

    files: tuple[FileRef, ...] = ()
    only: BucketOnly | None = None


class Unit(BaseModel, frozen=True):
    """What one worker folds.

    Attributes:
        table: Number of the table.
        bucket: The bucket's number; None for NULL or without buckets.
        base: Files of the snapshot.
        changes: Files of the changelog.
        keys: The keys that it folds, if other units fold other keys of the bucket (without a key: other rows); None for all.
        alone: No other unit of the job is folded beside it, so that its columns are read by several threads.
    """

    table: int
    bucket: int | None
    base: UnitSide
    changes: UnitSide
    keys: LeadingRange | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Files of a table.

    bucketed: they are partitioned by the buckets of the fold; leading: field id of the column by whose ranges a bucket can be shared, if
    bounds of it can be used.
    """

    files: Sequence[FileFacts] = ()
    bucketed: bool = True
    leading: int | None = None


def units_of(
    table: int, base: SideFiles, changes: SideFiles, buckets: BucketOnly | None, *, every: bool, shares: FoldRules | None = None
) -> list[tuple[int, Unit]]:
    """Return pairs (bytes of files, unit).

    A bucket whose keys are too many for one pass becomes several units, each with a range of its keys. So does a large table without key.

    Args:
        table: Number of the table.
        base: Files of the snapshot.
        changes: Files of the changelog.
        buckets: The buckets, whatever their number; None without any.
        every: Also buckets without changes.
        shares: How the table is folded, if a bucket may become several units.
    """
    if buckets is None:
        of_table = Unit(table=table, bucket=None, base=_side(base.files, None), changes=_side(changes.files, None))
        return _shared(of_table, (base, changes), shares)
    numbers: set[int | None] = {f.partition[0] for s in ((base, changes) if every else (changes,)) for f in s.files}
    if not (base.bucketed and changes.bucketed):
        numbers = {*range(buckets.buckets), None}
    out = []
    for number in sorted(numbers, key=lambda n: -1 if n is None else n):
        only = buckets.model_copy(update={"number": number})
        sides = [[f for f in s.files if not s.bucketed or f.partition[0] == number] for s in (base, changes)]
        of_base, of_changes = (_side(files, None if s.bucketed else only) for files, s in zip(sides, (base, changes), strict=True))
        of_bucket = Unit(table=table, bucket=number, base=of_base, changes=of_changes)
        of_sides = [replace(s, files=files) for s, files in zip((base, changes), sides, strict=True)]
        out += _shared(of_bucket, of_sides, shares if base.bucketed and changes.bucketed else None)
    return out


@contextmanager
def sides_of(table: TableFold, unit: Unit) -> Iterator[tuple[FileRows, Rows, Rows]]:
    """Open a unit's files. Yield (all rows of the snapshot's files, the unit's rows of the snapshot, its changes)."""
    whole = not table.rules.merges and unit.keys is None
    with (
        opened(unit.base.files, table.base, whole=whole, threads=unit.alone) as base,
        opened(unit.changes.files, table.changes, threads=unit.alone) as changes,
    ):
        yield base, _only(base, unit.base, unit.keys), _only(changes, unit.changes, unit.keys)


def _only(rows: FileRows, side: UnitSide, keys: LeadingRange | None) -> Rows:
    if keys is not None:
        return RangeRows(rows, keys)
    return rows if side.only is None else BucketRows(rows, side.only)


def _shared(unit: Unit, sides: Sequence[SideFiles], rules: FoldRules | None) -> list[tuple[int, Unit]]:
    """Return pairs (bytes of files, unit): the unit, or several with a range of the leading column each."""
    size, ranges = sum(f.size for s in sides for f in s.files), list[LeadingRange]()
    if rules is not None and rules.leading is not None:
        base, changes = map(_spans, sides)
        if rules.key:
            ranges = key_ranges(rules.leading, [*base, *changes], passes_for(sum(f.rows for s in sides for f in s.files)))
        elif len(base) == len(sides[0].files):
            ranges = _without_key(rules.leading, base, changes)
    return [(size // len(ranges), unit.model_copy(update={"keys": r})) for r in ranges] or [(size, unit)]


def _spans(side: SideFiles) -> list[Span]:
    """Of each file with bounds of the leading column: number of rows, lowest and highest value."""
    at = side.leading
    return [] if at is None else [(f.rows, f.lower[at], f.upper[at]) for f in side.files if at in f.lower and at in f.upper]


def _without_key(leading: str, base: Sequence[Span], changes: Sequence[Span]) -> list[LeadingRange]:
    """The ranges of a table without key. All its columns are compared, and every unit reads all changes and may read all of a file.

    So there are fewer units than with a key: reading changes again costs at most half of reading everything once, and no more than
    _AGAIN times the snapshot is read. A unit writes rows of its range, sorted by the column, so the next fold can have more units.
    """
    stood, came = (sum(rows for rows, _, _ in spans) for spans in (base, changes))
    many = min(passes_for((stood + came) // 2), 1 + (stood + came) // max(2 * came, 1))
    while (ranges := key_ranges(leading, [*base, *changes], many)) and rows_read(base, ranges) > _AGAIN * stood:
        many //= 2
    return ranges


def _side(files: Sequence[FileFacts], only: BucketOnly | None) -> UnitSide:
    return UnitSide(files=tuple(_ref(f) for f in files), only=only)


def _ref(f: FileFacts) -> FileRef:
    return FileRef(path=f.path, uri=plain(f.path), deletes=tuple(plain(d) for d in f.deletes))
