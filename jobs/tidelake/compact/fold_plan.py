"""Plans the fold of a table from metadata alone: which files are read, in which units, and which of them are replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidelake.compact.fold_files import TableJob
from tidelake.compact.fold_target import Folded, FoldWork, folded
from tidelake.compact.merge import MergeChoice, choose
from tidelake.config.policy import SAMPLE
from tidelake.io.texts import plural
from tidelake.lake.columns.fold_rules import ComparedImages, TableFold
from tidelake.lake.cut import Reshape, TableCounts
from tidelake.lake.data_files import columns_of_files
from tidelake.lake.folding.bucket_rows import BucketOnly
from tidelake.lake.folding.files import base_files, buckets_of, change_files
from tidelake.lake.folding.images import compared_bucket, images_of
from tidelake.lake.folding.table_fold import TableAt, table_fold
from tidelake.lake.folding.units import SideFiles, Unit, units_of

_NO_CHOICE = MergeChoice(merges=False, why="")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldPlan:
    """A table to fold.

    Attributes:
        work: The table.
        job: What workers need to know of it.
        units: Pairs (bytes of files, unit).
        replaced: Files of the target that are replaced whatever the units find.
        by_bucket: Files of the target that are replaced if their bucket has changes.
        choice: Whether the window is merged on read.
        appends: Rows are only appended.
    """

    work: FoldWork
    job: TableJob
    units: list[tuple[int, Unit]]
    replaced: frozenset[str] = frozenset()
    by_bucket: Mapping[int | None, list[str]] = field(default_factory=dict)
    choice: MergeChoice = _NO_CHOICE
    appends: bool = False

    def written(self, changed: int) -> str:
        """Return what is written and why, for people. changed: number of units with changes."""
        if self.appends:
            return "appended"
        if self.choice.merges:
            return self.choice.why
        buckets = self.work.target.buckets
        part = self.job.bucketed and self.work.goes_on and changed < buckets
        said = f"{changed} of {plural(buckets, 'bucket')}" if part else "all"
        return f"{said}: {self.choice.why}" if self.choice.why else said


def plan(work: FoldWork, number: int) -> FoldPlan | Folded | None:
    """Return how a table is folded; the result if no row changes, None if nothing changes at all.

    Args:
        work: The table.
        number: Its number among the tables of the job.

    Raises:
        OrderError: UNSUPPORTED_DDL: the partitioning column of removed rows is gone or masked.
    """
    target, changes = work.target, work.changes
    if changes is not None or not work.goes_on:
        return _plan(work, number)
    if target.reshape is None and not target.carries_its_columns:
        target = replace(target, reshape=Reshape())  # its commit gives the cut a snapshot with these columns
    if target.reshape is None and target.start == target.table.main:
        return None
    return folded(replace(work, target=target), "column names only" if target.reshape else "set back")


def _plan(work: FoldWork, number: int) -> FoldPlan:
    target, fold, changes = work.target, work.fold, work.changes
    counts = changes.counts if changes else None
    appends = work.goes_on and not fold.key and changes is not None and changes.only_inserts
    there = target.base is not None and target.base_snapshot is not None and fold.emptied_ts <= fold.applied_ts and not appends
    base = TableAt(target.base, target.base_snapshot) if there and target.base and target.base_snapshot is not None else None
    logged = TableAt(changes.table, changes.snapshot_id, changes.after) if changes else None
    images = None
    if fold.key and changes is not None:
        images = images_of(fold, target.base.columns(target.base_snapshot) if target.base else None, counts)
    table = table_fold(fold, base, logged, partial=counts is None or counts.partial > 0, images=images, coded=True)
    buckets = buckets_of(fold, TableAt(target.table, target.start))
    stood, came = base_files(base, table, buckets), change_files(logged, table, buckets)
    choice = _choice(work, counts, stood, came, buckets)
    compares_in = None
    if choice.merges:
        images, compares_in = _in_one_bucket(work, images, buckets)
        table = table.model_copy(update={"rules": table.rules.model_copy(update={"merges": True, "images": images})})
    part = work.goes_on and stood.bucketed
    return FoldPlan(
        work=work,
        job=_job(work, table, buckets, compares_in, only_changed=part),
        units=units_of(number, stood, came, buckets, every=not part, shares=None if choice.merges else table.rules),
        replaced=frozenset() if choice.merges or appends or part else frozenset(_replaced(work)),
        by_bucket={} if choice.merges or appends or not part else _by_bucket(stood, buckets),
        choice=choice,
        appends=appends,
    )


def _choice(work: FoldWork, counts: TableCounts | None, stood: SideFiles, came: SideFiles, buckets: BucketOnly | None) -> MergeChoice:
    if not work.goes_on or not work.fold.key or not stood.bucketed:
        return _NO_CHOICE
    known = buckets is not None and came.bucketed
    share = len({f.partition[0] for f in came.files}) / buckets.buckets if known and buckets else 1
    return choose(work.target.table, work.target.start, counts, share)


def _in_one_bucket(work: FoldWork, images: ComparedImages | None, buckets: BucketOnly | None) -> tuple[ComparedImages | None, int | None]:
    """About as many keys, all in one bucket, so that rows of other buckets need not be read."""
    if images is None or buckets is None or work.fold.feed.policy.before_images == "all":
        return images, None
    share = max(1, SAMPLE // buckets.buckets)
    return images.model_copy(update={"share": share}), compared_bucket(work.fold, buckets.buckets)


def _replaced(work: FoldWork) -> Sequence[str]:
    """All files of the target."""
    return [f.path for f in work.target.table.files({}, [], work.target.start)]


def _by_bucket(stood: SideFiles, buckets: BucketOnly | None) -> dict[int | None, list[str]]:
    out: dict[int | None, list[str]] = {}
    for f in stood.files:
        out.setdefault(None if buckets is None else f.partition[0], []).append(f.path)
    return out


def _job(work: FoldWork, table: TableFold, buckets: BucketOnly | None, compares_in: int | None, *, only_changed: bool) -> TableJob:
    names = {c.id: c.lake_name for c in work.fold.columns}
    written = work.target.table
    return TableJob(
        fold=table,
        location=written.table.location(),
        columns=columns_of_files(written).serialize().to_pybytes().hex(),
        names=tuple(c.name if c.source_id is None else names.get(c.source_id) for c in written.columns()),
        bucketed=buckets is not None,
        only_changed=only_changed,
        compares_in=compares_in,
    )
