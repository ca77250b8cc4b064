"""Snapshot tables: fold a window into one table on a branch, and check what was written."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.errors import QualityError
from tidelake.lake.casts import quote
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.changelog import begin_branch, sql_name
from tidelake.lake.cut import Advance, ImageCounts, Reshape, TableCounts, TableCut
from tidelake.lake.fold import Fold, base_rows, change_rows, fold_keyed, fold_multiset, standing, weighed
from tidelake.lake.images import images_of, images_without_key, observed, reconciled
from tidelake.lake.merge import Choice, changed_keys, choose, delete_rows, live_rows, within
from tidelake.lake.observed import Observed
from tidelake.lake.spread import by_bucket
from tidelake.lake.tables import PARTIAL, bucket_column, create_snapshot, key_columns, reshape, snapshot_name, vacant
from tidelake.layout import CATALOG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession


AT_HAND = 100_000  # rows that one task folds, and whose keys are looked at here: Spark plans longer than that takes
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The table that is written. base: the one folded onto, None = nothing to fold onto; rebuilt: it takes the place of base."""

    table: LakeTable
    base: LakeTable | None
    base_snapshot: int | None
    reshape: Reshape | None
    rebuilt: bool
    buckets: int

    @property
    def start(self) -> int:
        """The snapshot that the branch starts at; in a redo not the newest one."""
        return self.table.main if self.rebuilt or self.base_snapshot is None else self.base_snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """The buckets that changes fall into: SQL for their rows by the table's columns, which share of all buckets they are, for people."""

    condition: str
    share: float
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A staged snapshot. written: for people, what was rewritten; missing: deletes of a table without key that met no row; images: None
    where no old values were compared."""

    advance: Advance
    table: TableCut
    replaced: TableCut | None
    written: str
    missing: int = 0
    images: ImageCounts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A table's staged changelog. counts: of the changes that are folded, None where some are of earlier windows."""

    table: LakeTable
    snapshot_id: int
    counts: TableCounts | None

    @property
    def only_inserts(self) -> bool:
        """Nothing that was there is touched."""
        c = self.counts
        return c is not None and c.updates == c.deletes == c.upserts == c.left == 0


def fold_table(
    spark: SparkSession,
    catalog: LakeCatalog,
    fold: Fold,
    changes: Changes | None,
    previous: TableCut | None,
    branch: str,
    buckets: int,
    kept: Container[str] = (),
) -> Folded | None:
    """Fold a window's changes into a table's snapshot, on a branch; None where nothing changes.

    buckets: of a new table; kept: uuids of the tables that published cuts need. Raises QualityError (KEY_NOT_UNIQUE) if what was written
    holds a key twice.
    """
    target = _target(catalog, fold, previous, buckets, kept)
    fold = replace(fold, few=_few(target, changes))
    same = target.base is not None and not target.rebuilt and not fold.rewrites_all and _reads_on(target)
    base = target.start
    if changes is None and same and target.reshape is None and base == target.table.main:
        if _carries_its_columns(target):
            return None
        target = replace(target, reshape=Reshape())  # the commit that comes with it gives the cut a snapshot that knows them
    if changes is None and same:
        return _folded(target, previous, base, branch, "column names only" if target.reshape else "set back", 0)
    begin_branch(catalog, target.table, branch, base)
    frame = None if changes is None else _change_frame(spark, changes, fold)
    if same and changes is not None and changes.only_inserts and not fold.incarnation.key:
        assert frame is not None
        _writer(_physical(frame.drop("_change_type"), target, fold), target, branch).append()
        return _folded(catalog_view(catalog, target, branch), previous, base, branch, "appended", 0)
    counts = changes.counts if changes else None
    touched = _touched(frame, target, fold) if same else Touched(condition="true", share=1, written="all")
    choice = choose(target.table, base, counts, touched.share) if same and fold.incarnation.key else Choice(merges=False, why="")
    if choice.merges and frame is not None:
        missing, images = 0, _merge(spark, frame, touched.condition, target, fold, branch, counts)
    else:
        missing, images = _overwrite(spark, frame, touched.condition, target, fold, branch, counts)
    staged = catalog_view(catalog, target, branch)
    if fold.incarnation.key:
        _check_keys(spark, fold, staged, touched.condition, branch, frame if choice.merges else None)
    written = choice.why if choice.merges else f"{touched.written}: {choice.why}" if choice.why else touched.written
    return replace(_folded(staged, previous, base, branch, written, missing), images=images)


def fill_table(
    spark: SparkSession, catalog: LakeCatalog, fold: Fold, rows: DataFrame, branch: str, buckets: int, kept: Container[str] = ()
) -> Folded:
    """Make a table's first snapshot of these rows, on a branch. rows: the fold's columns and `_commit_ts`.

    kept: uuids of the tables that published cuts need. Raises QualityError (KEY_NOT_UNIQUE).
    """
    from pyspark.sql import functions as F

    target = _target(catalog, fold, None, buckets, kept)
    begin_branch(catalog, target.table, branch, target.start)
    bucket = _bucket(target, fold)
    if bucket is not None:
        rows = by_bucket(rows.withColumn("_bucket", F.expr(_bucket_of(bucket[0], target))), target.buckets).drop("_bucket")
    _writer(_physical(rows, target, fold), target, branch).append()
    staged = catalog_view(catalog, target, branch)
    if fold.incarnation.key:
        _check_keys(spark, fold, staged, "true", branch, None)
    return _folded(staged, None, target.start, branch, "all", 0)


def catalog_view(catalog: LakeCatalog, target: Target, branch: str) -> Target:
    """The target as it stands after a write to the branch."""
    return replace(target, table=catalog.load(target.table.identifier))


def _reads_on(target: Target) -> bool:
    """Whether files of the base read with the table's present columns give the same values: not where a column left since and came
    again as another, or bears another name (a redo over statements)."""
    if target.base_snapshot is None or target.base_snapshot == target.table.main:
        return True
    then, now = target.table.fields(target.base_snapshot), target.table.fields()
    return all(now[k] == f for k, f in then.items() if k in now)


def _few(target: Target, changes: Changes | None) -> bool:
    """Whether all that is folded is little."""
    if changes is None or changes.counts is None:
        return False
    held = live_rows(target.base, target.base_snapshot) if target.base and target.base_snapshot else 0
    return held + changes.counts.changes <= AT_HAND


def _carries_its_columns(target: Target) -> bool:
    """Whether the snapshot that the cut would keep has the table's columns: not where one came, or became wider, and no row did."""
    return target.table.columns(target.base_snapshot) == target.table.columns()


def _target(catalog: LakeCatalog, fold: Fold, previous: TableCut | None, buckets: int, kept: Container[str]) -> Target:
    feed, i = fold.feed, fold.incarnation
    if previous is None:
        table = _new(catalog, fold, buckets, kept)
        return Target(table=table, base=None, base_snapshot=None, reshape=None, rebuilt=False, buckets=buckets)
    base, buckets = catalog.load(previous.identifier), previous.buckets
    shaped = reshape(catalog, feed, i, base)
    table, later = shaped if shaped is not None else (_new(catalog, fold, buckets, kept), None)
    return Target(table=table, base=base, base_snapshot=previous.snapshot_id, reshape=later, rebuilt=shaped is None, buckets=buckets)


def _new(catalog: LakeCatalog, fold: Fold, buckets: int, kept: Container[str]) -> LakeTable:
    identifier = vacant(catalog, snapshot_name(fold.feed, fold.incarnation), fold.incarnation, kept)
    return create_snapshot(catalog, fold.feed, fold.incarnation, identifier, buckets)


def _change_frame(spark: SparkSession, changes: Changes, fold: Fold) -> DataFrame:
    frame = spark.read.option("versionAsOf", changes.snapshot_id).table(sql_name(changes.table.identifier))
    rows = change_rows(frame, changes.table.columns(changes.snapshot_id), fold)
    return rows if changes.counts is None or changes.counts.partial else rows.drop(PARTIAL.name)


def _touched(frame: DataFrame | None, target: Target, fold: Fold) -> Touched:
    bucket = _bucket(target, fold)
    if frame is None or bucket is None or target.buckets == 1:
        return Touched(condition="true", share=1, written="all")
    final, physical = bucket
    ids = [r[0] for r in frame.selectExpr(f"{_bucket_of(final, target)} AS b").distinct().collect()]
    if len(ids) >= target.buckets:
        return Touched(condition="true", share=1, written="all")
    listed = ", ".join(str(b) for b in sorted(ids)) or "-1"
    return Touched(
        condition=f"{_bucket_of(physical, target)} IN ({listed})",
        share=len(ids) / target.buckets,
        written=f"{len(ids)} of {target.buckets} buckets",
    )


def _bucket(target: Target, fold: Fold) -> tuple[str, str] | None:
    """The bucketed column's final name and its name in the table now."""
    name = bucket_column(key_columns(fold.feed, fold.incarnation, fold.columns))
    if name is None:
        return None
    number = next(c.id for c in fold.columns if c.name == name)
    return name, next(c.name for c in target.table.columns() if c.source_id == number)


def _bucket_of(column: str, target: Target) -> str:
    return f"{CATALOG}.system.bucket({target.buckets}, {quote(column)})"


def _overwrite(
    spark: SparkSession, frame: DataFrame | None, condition: str, target: Target, fold: Fold, branch: str, counts: TableCounts | None
) -> tuple[int, ImageCounts | None]:
    """Write the folded rows in place of those that meet the condition; how many deletes met no row, and what old values say."""
    from pyspark.sql import functions as F

    old = _base(spark, target, fold, condition)
    if old is None and frame is None:
        nothing = spark.read.option("versionAsOf", target.table.main).table(sql_name(target.table.identifier)).where("false")
        _writer(nothing, target, branch).overwrite(F.expr("true"))
        return 0, None
    if not fold.incarnation.key:
        folded = Observed(fold_multiset(old, frame, fold), F.coalesce(F.sum("_missing"), F.lit(0)).alias("missing"))
        rows = folded.rows.where("_missing IS NULL").drop("_missing")
        _writer(_physical(rows, target, fold), target, branch).overwrite(F.expr(condition))
        missing = int(folded.values()["missing"])
        return missing, images_without_key(fold, counts, missing) if target.base else None
    bucket = _bucket(target, fold)
    spelled = _bucket_of(bucket[0], target) if bucket else None
    images = images_of(fold, target.base.columns(target.base_snapshot) if target.base else None, counts)
    if images is None or frame is None:
        _write_sorted(fold_keyed(old, frame, fold, spelled, target.buckets), condition, target, fold, branch)
        return 0, None
    newest = Observed(weighed(old, frame, fold, spelled, images, target.buckets), observed())
    _write_sorted(standing(newest.rows, fold), condition, target, fold, branch)
    return 0, reconciled(images, newest.values(), old, frame)


def _merge(
    spark: SparkSession, frame: DataFrame, condition: str, target: Target, fold: Fold, branch: str, counts: TableCounts | None
) -> ImageCounts | None:
    """The same by merge-on-read: what stood under the changed keys is deleted, what stands in the end is appended. Of the table only keys
    are read, and the rows whose old values are compared."""
    names = _key_names(fold, target)
    delete_rows(spark, target.table, branch, changed_keys(frame, names), condition)
    assert target.base is not None
    assert target.base_snapshot is not None
    bucket = _bucket(target, fold)
    spelled = _bucket_of(bucket[0], target) if bucket else None
    images = images_of(fold, target.base.columns(target.base_snapshot), counts)
    if images is None:
        _writer(_physical(fold_keyed(None, frame, fold, spelled, target.buckets), target, fold), target, branch).append()
        return None
    if bucket is not None and fold.feed.policy.before_images == "sample":
        number = images.bucket(target.buckets)
        images = images.in_bucket(f"{spelled} = {number}", target.buckets)
        condition = f"({condition}) AND {_bucket_of(bucket[1], target)} = {number}"
    base = _base(spark, target, fold, condition)
    assert base is not None
    old = within(base, changed_keys(frame, {k: k for k in fold.key}))
    newest = Observed(weighed(old, frame, fold, spelled, images, target.buckets), observed())
    _writer(_physical(standing(newest.rows, fold), target, fold), target, branch).append()
    return reconciled(images, newest.values(), old, frame)


def _key_names(fold: Fold, target: Target) -> dict[str, str]:
    """Of the key's columns in a fold → in the table now."""
    physical = {c.source_id: c.name for c in target.table.columns()}
    return {name: physical[k] for name, k in zip(fold.key, fold.incarnation.key, strict=True)}


def _write_sorted(rows: DataFrame, condition: str, target: Target, fold: Fold, branch: str) -> None:
    """Of a table with a key. Rows that are bucketed come as the table wants them: Iceberg need not sort them again."""
    from pyspark.sql import functions as F

    writer = _writer(_physical(rows, target, fold), target, branch)
    if _bucket(target, fold) is not None:
        writer = writer.option("use-table-distribution-and-ordering", "false")
    writer.overwrite(F.expr(condition))


def _base(spark: SparkSession, target: Target, fold: Fold, condition: str) -> DataFrame | None:
    if target.base is None or target.base_snapshot is None or fold.emptied_ts > fold.applied_ts:
        return None
    frame = spark.read.option("versionAsOf", target.base_snapshot).table(sql_name(target.base.identifier))
    return base_rows(frame.where(condition), target.base.columns(target.base_snapshot), fold)


def _physical(rows: DataFrame, target: Target, fold: Fold) -> DataFrame:
    """The rows with the table's columns as they are called now, in its order; those that will leave are NULL."""
    names = {c.id: c.name for c in fold.columns}
    spelled = []
    for c in target.table.columns():
        if c.source_id is None:
            spelled.append(quote(c.name))
        elif c.source_id in names:
            spelled.append(f"{quote(names[c.source_id])} AS {quote(c.name)}")
        else:
            spelled.append(f"CAST(NULL AS {c.type}) AS {quote(c.name)}")
    return rows.selectExpr(*spelled)


def _writer(rows: DataFrame, target: Target, branch: str) -> DataFrameWriterV2:
    writer = rows.writeTo(sql_name(target.table.identifier, branch)).option("snapshot-property.tidelake.run", branch)
    writer = writer.option("validate-from-snapshot-id", str(target.start))
    return writer.option("isolation-level", "serializable")


def _check_keys(spark: SparkSession, fold: Fold, staged: Target, condition: str, branch: str, changes: DataFrame | None) -> None:
    """changes: only their keys may stand twice, None: all."""
    names, head = _key_names(fold, staged), staged.table.branch(branch)
    if changes is None and live_rows(staged.table, head) <= AT_HAND:
        keys = staged.table.scan(columns=tuple(names.values()), snapshot_id=head).read_all()
        twice = _twice_at_hand(keys)
    else:
        frame = spark.read.option("versionAsOf", head).table(sql_name(staged.table.identifier)).where(condition)
        rows = frame.select(*(quote(name) for name in names.values()))
        twice = _twice(rows if changes is None else within(rows, changed_keys(changes, names)))
    if twice:
        shown = ", ".join(map(str, twice))
        raise QualityError(f"{fold.incarnation.name}: keys stand twice in the snapshot: {shown}", code="KEY_NOT_UNIQUE")


def _twice(keys: DataFrame) -> list[dict[str, Any]]:
    """A few keys that are there more than once."""
    from pyspark.sql import functions as F

    grouped = keys.groupBy(*(quote(c) for c in keys.columns)).agg(F.count("*").alias("_count"))
    few = grouped.where("_count > 1").drop("_count").limit(_SHOWN)
    row = few.agg(F.collect_list(F.struct("*")).alias("found")).first()  # a limit at the end would look into one partition after another
    return [r.asDict() for r in row["found"]] if row else []


def _twice_at_hand(keys: pa.Table) -> list[dict[str, Any]]:
    """The same without Spark."""
    grouped = keys.group_by(keys.column_names, use_threads=False).aggregate([([], "count_all")])
    twice = grouped.filter(pc.greater(grouped["count_all"], 1)).drop_columns(["count_all"])
    return list(twice.slice(0, _SHOWN).to_pylist())


def _folded(target: Target, previous: TableCut | None, base: int, branch: str, written: str, missing: int) -> Folded:
    table = target.table
    head = table.branch(branch) if branch in table.branches else base
    return Folded(
        advance=Advance(
            identifier=table.identifier,
            uuid=table.uuid,
            base=base,
            to=head,
            branch=branch,
            incarnation=table.properties.get("tidelake.incarnation", ""),
            buckets=target.buckets,
            reshape=target.reshape,
        ),
        table=TableCut(
            identifier=table.identifier,
            uuid=table.uuid,
            snapshot_id=head,
            rows=live_rows(table, head),
            buckets=target.buckets,
        ),
        replaced=previous if target.rebuilt else None,
        written=written,
        missing=missing,
    )
