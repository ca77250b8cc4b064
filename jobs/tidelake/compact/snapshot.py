"""Folds a window into a snapshot table on a branch with Spark SQL, and checks the result."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.compact.fold_target import (
    AT_HAND,
    ChangelogSlice,
    Folded,
    FoldTarget,
    FoldWork,
    bucket_of,
    catalog_view,
    folded,
    key_names,
    work_of,
)
from tidelake.compact.merge import MergeChoice, changed_keys, choose, delete_rows, live_rows, within
from tidelake.config.lake_paths import CATALOG
from tidelake.errors import QualityError
from tidelake.lake.branches import begin_branch, sql_name
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import ImageCounts, Reshape, TableCounts
from tidelake.lake.fold import Fold, base_rows, change_rows, fold_keyed, fold_multiset, standing, weighed
from tidelake.lake.images import images_of, images_without_key, observed, reconciled, verdicts
from tidelake.lake.tables import PARTIAL
from tidelake.spark.observed_counts import Observed
from tidelake.spark.spread import by_bucket
from tidelake.spark.sql_casts import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession


_SHOWN = 3  # number of duplicate keys that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """The buckets with changes. condition: SQL for their rows by the table's columns; share: of all buckets; written: text for people."""

    condition: str
    share: float
    written: str


ALL = Touched(condition="true", share=1, written="all")


def fold_table(spark: SparkSession, catalog: LakeCatalog, work: FoldWork) -> Folded | None:
    """Fold a window's changes into a table's snapshot, on a branch. Return None if nothing changes.

    Raises:
        QualityError: KEY_NOT_UNIQUE: the result has a duplicate key.
    """
    target, fold, changes, branch = work.target, work.fold, work.changes, work.branch
    same, base = work.goes_on, work.target.start
    if changes is None and same and target.reshape is None and base == target.table.main:
        if target.carries_its_columns:
            return None
        target = replace(target, reshape=Reshape())  # its commit gives the cut a snapshot with these columns
    if changes is None and same:
        return folded(replace(work, target=target), "column names only" if target.reshape else "set back")
    begin_branch(catalog, target.table, branch, base)
    frame = None if changes is None else change_frame(spark, changes, fold)
    if same and changes is not None and changes.only_inserts and not fold.incarnation.key:
        assert frame is not None
        _writer(_physical(frame.drop("_change_type"), target, fold), target, branch).append()
        return folded(replace(work, target=catalog_view(catalog, target)), "appended")
    counts = changes.counts if changes else None
    touched = _touched(frame, target, fold) if same else ALL
    choice = choose(target.table, base, counts, touched.share) if same and fold.incarnation.key else MergeChoice(merges=False, why="")
    if choice.merges and frame is not None:
        missing, images = 0, _merge(spark, frame, touched.condition, target, fold, branch, counts)
    else:
        missing, images = _overwrite(spark, frame, touched.condition, target, fold, branch, counts)
    staged = catalog_view(catalog, target)
    if fold.incarnation.key:
        _check_keys(spark, fold, staged, touched.condition, branch, frame if choice.merges else None)
    return folded(replace(work, target=staged), said(touched, choice), missing, images)


def said(touched: Touched, choice: MergeChoice) -> str:
    """Return what is rewritten and why, for people."""
    return choice.why if choice.merges else f"{touched.written}: {choice.why}" if choice.why else touched.written


def fill_table(
    spark: SparkSession, catalog: LakeCatalog, fold: Fold, rows: DataFrame, branch: str, buckets: int, kept: Container[str] = ()
) -> Folded:
    """Write a table's first snapshot from rows, on a branch.

    Args:
        spark: The session.
        catalog: The lake's catalog.
        fold: The table.
        rows: The fold's columns and `_commit_ts`.
        branch: Branch to write.
        buckets: Number of buckets.
        kept: UUIDs of the tables that published cuts need.

    Raises:
        QualityError: KEY_NOT_UNIQUE.
    """
    from pyspark.sql import functions as F

    work = work_of(catalog, fold, None, None, branch, buckets, kept)
    target = work.target
    begin_branch(catalog, target.table, branch, target.start)
    bucket = bucket_of(target, fold)
    if bucket is not None:
        rows = by_bucket(rows.withColumn("_bucket", F.expr(_spelled(bucket[0], target))), target.buckets).drop("_bucket")
    _writer(_physical(rows, target, fold), target, branch).append()
    staged = catalog_view(catalog, target)
    if fold.incarnation.key:
        _check_keys(spark, fold, staged, "true", branch, None)
    return folded(replace(work, target=staged), "all")


def change_frame(spark: SparkSession, changes: ChangelogSlice, fold: Fold) -> DataFrame:
    """Return the window's changes with the fold's columns."""
    frame = spark.read.option("versionAsOf", changes.snapshot_id).table(sql_name(changes.table.identifier))
    rows = change_rows(frame, changes.table.columns(changes.snapshot_id), fold)
    return rows if changes.counts is None or changes.counts.partial else rows.drop(PARTIAL.name)


def _touched(frame: DataFrame | None, target: FoldTarget, fold: Fold) -> Touched:
    bucket = bucket_of(target, fold)
    if frame is None or bucket is None or target.buckets == 1:
        return ALL
    found = frame.selectExpr(f"{_spelled(bucket[0], target)} AS b").distinct().collect()
    return touched_by([r[0] for r in found], target, fold)


def touched_by(numbers: Sequence[int], target: FoldTarget, fold: Fold) -> Touched:
    """Return the buckets with these numbers, for a table with buckets."""
    bucket = bucket_of(target, fold)
    if bucket is None or len(numbers) >= target.buckets:
        return ALL
    listed = ", ".join(str(b) for b in sorted(numbers)) or "-1"
    return Touched(
        condition=f"{_spelled(bucket[1], target)} IN ({listed})",
        share=len(numbers) / target.buckets,
        written=f"{len(numbers)} of {target.buckets} buckets",
    )


def _spelled(column: str, target: FoldTarget) -> str:
    return f"{CATALOG}.system.bucket({target.buckets}, {quote(column)})"


def _overwrite(
    spark: SparkSession, frame: DataFrame | None, condition: str, target: FoldTarget, fold: Fold, branch: str, counts: TableCounts | None
) -> tuple[int, ImageCounts | None]:
    """Write the folded rows in place of those that meet the condition. Return (deletes that met no row, result of comparing old values)."""
    from pyspark.sql import functions as F

    old = base_frame(spark, target, fold, condition)
    if old is None and frame is None:
        nothing = spark.read.option("versionAsOf", target.table.main).table(sql_name(target.table.identifier)).where("false")
        _writer(nothing, target, branch).overwrite(F.expr("true"))
        return 0, None
    if not fold.incarnation.key:
        counted = Observed(fold_multiset(old, frame, fold), F.coalesce(F.sum("_missing"), F.lit(0)).alias("missing"))
        rows = counted.rows.where("_missing IS NULL").drop("_missing")
        _writer(_physical(rows, target, fold), target, branch).overwrite(F.expr(condition))
        missing = int(counted.values()["missing"])
        return missing, images_without_key(fold, counts, missing) if target.base else None
    bucket = bucket_of(target, fold)
    spelled = _spelled(bucket[0], target) if bucket else None
    images = images_of(fold, target.base.columns(target.base_snapshot) if target.base else None, counts)
    if images is None or frame is None:
        _write_sorted(fold_keyed(old, frame, fold, spelled, target.buckets), condition, target, fold, branch)
        return 0, None
    newest = Observed(weighed(old, frame, fold, spelled, images, target.buckets), observed())
    _write_sorted(standing(newest.rows, fold), condition, target, fold, branch)
    return 0, reconciled(images, *verdicts(newest.values()), old, frame)


def _merge(
    spark: SparkSession, frame: DataFrame, condition: str, target: FoldTarget, fold: Fold, branch: str, counts: TableCounts | None
) -> ImageCounts | None:
    """Fold by merge-on-read: delete the rows of changed keys, append the final ones.

    Of the table only keys are read, and the rows whose old values are compared.
    """
    names = key_names(fold, target)
    delete_rows(spark, target.table, branch, changed_keys(frame, names), condition)
    assert target.base is not None
    assert target.base_snapshot is not None
    bucket = bucket_of(target, fold)
    spelled = _spelled(bucket[0], target) if bucket else None
    images = images_of(fold, target.base.columns(target.base_snapshot), counts)
    if images is None:
        _writer(_physical(fold_keyed(None, frame, fold, spelled, target.buckets), target, fold), target, branch).append()
        return None
    if bucket is not None and fold.feed.policy.before_images == "sample":
        number = images.bucket(target.buckets)
        images = images.in_bucket(f"{spelled} = {number}", target.buckets)
        condition = f"({condition}) AND {_spelled(bucket[1], target)} = {number}"
    base = base_frame(spark, target, fold, condition)
    assert base is not None
    old = within(base, changed_keys(frame, {k: k for k in fold.key}))
    newest = Observed(weighed(old, frame, fold, spelled, images, target.buckets), observed())
    _writer(_physical(standing(newest.rows, fold), target, fold), target, branch).append()
    return reconciled(images, *verdicts(newest.values()), old, frame)


def _write_sorted(rows: DataFrame, condition: str, target: FoldTarget, fold: Fold, branch: str) -> None:
    """Write a table with a key. Bucketed rows are already in the table's order, so Iceberg need not sort them."""
    from pyspark.sql import functions as F

    writer = _writer(_physical(rows, target, fold), target, branch)
    if bucket_of(target, fold) is not None:
        writer = writer.option("use-table-distribution-and-ordering", "false")
    writer.overwrite(F.expr(condition))


def base_frame(spark: SparkSession, target: FoldTarget, fold: Fold, condition: str) -> DataFrame | None:
    """Return the rows that are folded onto and meet the condition, with the fold's columns; None if there are none."""
    if target.base is None or target.base_snapshot is None or fold.emptied_ts > fold.applied_ts:
        return None
    frame = spark.read.option("versionAsOf", target.base_snapshot).table(sql_name(target.base.identifier))
    return base_rows(frame.where(condition), target.base.columns(target.base_snapshot), fold)


def _physical(rows: DataFrame, target: FoldTarget, fold: Fold) -> DataFrame:
    """The rows with the table's present column names, in its order; columns that will be dropped are NULL."""
    names = {c.id: c.lake_name for c in fold.columns}
    spelled = []
    for c in target.table.columns():
        if c.source_id is None:
            spelled.append(quote(c.name))
        elif c.source_id in names:
            spelled.append(f"{quote(names[c.source_id])} AS {quote(c.name)}")
        else:
            spelled.append(f"CAST(NULL AS {c.type}) AS {quote(c.name)}")
    return rows.selectExpr(*spelled)


def _writer(rows: DataFrame, target: FoldTarget, branch: str) -> DataFrameWriterV2:
    writer = rows.writeTo(sql_name(target.table.identifier, branch)).option("snapshot-property.tidelake.run", branch)
    writer = writer.option("validate-from-snapshot-id", str(target.start))
    return writer.option("isolation-level", "serializable")


def _check_keys(spark: SparkSession, fold: Fold, staged: FoldTarget, condition: str, branch: str, changes: DataFrame | None) -> None:
    """Raise QualityError (KEY_NOT_UNIQUE) for duplicate keys. changes: only their keys are checked; None: all keys."""
    names, head = key_names(fold, staged), staged.table.branch(branch)
    if changes is None and live_rows(staged.table, head) <= AT_HAND:
        keys = staged.table.scan(columns=tuple(names.values()), snapshot_id=head).read_all()
        twice = _twice_at_hand(keys)
    else:
        frame = spark.read.option("versionAsOf", head).table(sql_name(staged.table.identifier)).where(condition)
        rows = frame.select(*(quote(name) for name in names.values()))
        twice = _twice(rows if changes is None else within(rows, changed_keys(changes, names)))
    if twice:
        raise not_unique(fold, [str(key) for key in twice])


def not_unique(fold: Fold, twice: Sequence[str]) -> QualityError:
    """Return the error for duplicate keys."""
    return QualityError(f"{fold.incarnation.name}: keys occur twice in the snapshot: {', '.join(twice)}", code="KEY_NOT_UNIQUE")


def _twice(keys: DataFrame) -> list[dict[str, Any]]:
    """A few duplicate keys."""
    from pyspark.sql import functions as F

    grouped = keys.groupBy(*(quote(c) for c in keys.columns)).agg(F.count("*").alias("_count"))
    few = grouped.where("_count > 1").drop("_count").limit(_SHOWN)
    row = few.agg(F.collect_list(F.struct("*")).alias("found")).first()  # a limit at the end would scan one partition after another
    return [r.asDict() for r in row["found"]] if row else []


def _twice_at_hand(keys: pa.Table) -> list[dict[str, Any]]:
    """A few duplicate keys, found without Spark."""
    grouped = keys.group_by(keys.column_names, use_threads=False).aggregate([([], "count_all")])
    twice = grouped.filter(pc.greater(grouped["count_all"], 1)).drop_columns(["count_all"])
    return list(twice.slice(0, _SHOWN).to_pylist())
