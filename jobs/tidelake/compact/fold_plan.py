"""Chooses the tables of a window that workers fold (compact.fold_files), and their units, from metadata alone.

A unit is a bucket that has changes. The changelog has the same buckets as the snapshot, so a unit needs no rows of another unit and nothing
is shuffled. All other tables are folded with Spark SQL (compact.snapshot): tables without a key or whose key has no buckets; tables that a
statement changed, or whose changelog has a column in two types; tables with rows that were sent with their handle alone; tables with
buckets that have, or should get, deletes by position, or that are too large for a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from tidelake.compact.arrow_fold import MARKS, FoldRules, LeftToSpark
from tidelake.compact.arrow_images import ComparedImages
from tidelake.compact.fold_files import TableFold, side
from tidelake.compact.fold_target import ChangelogSlice, FoldWork, bucket_of
from tidelake.compact.merge import MergeChoice, choose
from tidelake.compact.snapshot import Touched, touched_by
from tidelake.config.policy import SAMPLE
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import TableCounts
from tidelake.lake.data_files import bucketed_by, columns_of_files
from tidelake.lake.images import Images, images_of, sampled_by
from tidelake.lake.scans import After, FileFacts
from tidelake.lake.tables import is_bucketable, key_columns, lake_column, physical
from tidelake.tso import at

UNIT_ROWS = 3_000_000  # maximum rows and changes of a bucket, which a worker holds in memory
UNIT_BYTES = 128 << 20  # maximum size of their files


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A unit of work: files of the snapshot and of the changelog, as keys below the tables' locations. size: bytes."""

    number: int
    base: list[str]
    changes: list[str]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldPlan:
    """A table that workers fold. gone: paths of the snapshot's files that are replaced; images: which old values are compared."""

    work: FoldWork
    table: TableFold
    buckets: list[Bucket]
    gone: list[str]
    touched: Touched
    choice: MergeChoice
    images: Images | None


def plan(work: FoldWork) -> FoldPlan | str:
    """Return how workers fold a table, or why they do not."""
    try:
        return _plan(work)
    except LeftToSpark as e:
        return str(e)


def _plan(work: FoldWork) -> FoldPlan:
    target, fold = work.target, work.fold
    changes, counts = _foldable(work)
    _check_columns(work, changes)
    _check_buckets(work, changes)
    changed = _changed(work, changes, counts)
    touched = touched_by(list(changed), target, fold)
    choice = choose(target.table, target.start, counts, touched.share) if target.base else MergeChoice(merges=False, why="")
    if choice.merges:
        raise LeftToSpark("merged on read")
    files = target.base.files({}, [], target.start) if target.base else ()
    base: dict[int, list[FileFacts]] = {n: [] for n in changed}
    for file in files:
        if file.partition[0] in base:
            base[file.partition[0]].append(file)
    images = images_of(fold, target.base.columns(target.base_snapshot) if target.base else None, counts)
    return FoldPlan(
        work=work,
        table=_table(work, changes, images),
        buckets=[_bucket(n, base[n], changed[n], target.table, changes.table) for n in sorted(changed)],
        gone=[f.path for n in changed for f in base[n]],
        touched=touched,
        choice=choice,
        images=images,
    )


def _foldable(work: FoldWork) -> tuple[ChangelogSlice, TableCounts]:
    fold, changes = work.fold, work.changes
    if changes is None or changes.counts is None or not changes.counts.changes:
        raise LeftToSpark("the changes to fold are unknown, or there are none")
    if changes.counts.partial:
        raise LeftToSpark("some rows carry their key only")
    key = key_columns(fold.feed, fold.incarnation, fold.columns)
    if not key or not all(is_bucketable(c) for c in key):
        raise LeftToSpark("no key, or one with a column that has no buckets")
    if not work.goes_on and (work.target.base is not None or fold.rewrites_all):
        raise LeftToSpark("rows change without an entry in the changelog")
    return changes, changes.counts


def _check_columns(work: FoldWork, changes: ChangelogSlice) -> None:
    fold, target = work.fold, work.target
    wanted = {c.id: (c.lake_name, lake_column(fold.feed, fold.incarnation, c).type) for c in fold.columns}
    now = {c.source_id: (c.name, c.type) for c in target.table.columns() if c.source_id is not None}
    types: dict[int | None, str] = {k: kind for k, (_, kind) in wanted.items()}
    base = {c.source_id: c.type for c in target.base.columns(target.base_snapshot)} if target.base else types
    if target.reshape is not None or now != wanted or not types.items() <= base.items():
        raise LeftToSpark("a statement changed the columns")
    logged = changes.table.columns(changes.snapshot_id)
    if any([c.type for c in physical(logged, k)] != [kind] for k, (_, kind) in wanted.items()):
        raise LeftToSpark("the changelog has a column in two types")


def _check_buckets(work: FoldWork, changes: ChangelogSlice) -> None:
    bucket = bucket_of(work.target, work.fold)
    number = next(c.id for c in work.fold.columns if bucket is not None and c.lake_name == bucket[0])
    for table in (work.target.table, changes.table):
        if bucketed_by(table) != (table.fields()[number][0], work.target.buckets):
            raise LeftToSpark("snapshot and changelog have different buckets")


def _changed(work: FoldWork, changes: ChangelogSlice, counts: TableCounts) -> dict[int, list[FileFacts]]:
    """The changelog's files with the window's changes, by bucket."""
    after, until = max(work.fold.applied_ts, work.fold.emptied_ts), work.fold.until_ts
    where = {"_commit_ts": After(after, until), "_commit_at": After(at(max(after, 0)) - timedelta(milliseconds=1), at(until))}
    found: dict[int, list[FileFacts]] = {}
    for file in changes.table.files(where, [], changes.snapshot_id):
        found.setdefault(file.partition[0], []).append(file)
    files = [f for of_bucket in found.values() for f in of_bucket]
    if sum(f.rows for f in files) != counts.changes or any(f.deletes for f in files):
        raise LeftToSpark("files of the changelog also hold other changes")
    if None in found:
        raise LeftToSpark("a key has no bucket")
    return found


def _bucket(number: int, base: Sequence[FileFacts], changed: Sequence[FileFacts], snapshot: LakeTable, changelog: LakeTable) -> Bucket:
    if any(f.deletes for f in base):
        raise LeftToSpark("rows are deleted by position")
    size = sum(f.size for f in (*base, *changed))
    if size > UNIT_BYTES or sum(f.rows for f in (*base, *changed)) > UNIT_ROWS:
        raise LeftToSpark("a bucket is too large for a worker")
    return Bucket(number=number, base=_keys(base, snapshot), changes=_keys(changed, changelog), size=size)


def _keys(files: Sequence[FileFacts], table: LakeTable) -> list[str]:
    location = f"{table.table.location()}/"
    if not all(f.path.startswith(location) for f in files):
        raise LeftToSpark("files are outside of their table's folder")
    return [f.path.removeprefix(location) for f in files]


def _table(work: FoldWork, changes: ChangelogSlice, images: Images | None) -> TableFold:
    fold, snapshot, logged = work.fold, columns_of_files(work.target.table), columns_of_files(changes.table)
    names = {k: name for k, (_, name) in changes.table.fields(changes.snapshot_id).items()}
    read = [*((names[c.id], c.lake_name) for c in fold.columns), *((m, m) for m in MARKS)]
    compared = None
    if images is not None:
        compared = ComparedImages(
            columns=list(images.columns),
            sampled=sampled_by(fold),
            share=1 if fold.feed.policy.before_images == "all" else SAMPLE,
            key_only_deletes=images.key_only_deletes,
        )
    return TableFold(
        base=side(work.target.table.table.location(), snapshot),
        changes=side(changes.table.table.location(), pa.schema([logged.field(name).with_name(to) for name, to in read])),
        rules=FoldRules(
            key=fold.key,
            after_ts=max(fold.applied_ts, fold.emptied_ts),
            until_ts=fold.until_ts,
            images=compared,
        ),
    )
