"""Writes a table's first snapshot from a Spark frame, for seed, and checks its keys."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidelake.compact.fold_target import Folded, FoldTarget, folded, not_unique, work_of
from tidelake.config.lake_paths import CATALOG
from tidelake.lake.branches import begin_branch, sql_name
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.folding.fold import Fold
from tidelake.lake.tables import bucket_column, key_columns
from tidelake.spark.spread import by_bucket
from tidelake.spark.sql_text import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHOWN = 3  # number of duplicate keys that are shown


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
    bucket = bucket_column(key_columns(fold.feed, fold.incarnation, fold.columns))
    if bucket is not None:
        by = F.expr(f"{CATALOG}.system.bucket({target.buckets}, {quote(bucket)})")
        rows = by_bucket(rows.withColumn("_bucket", by), target.buckets).drop("_bucket")
    columns = rows.selectExpr(*(quote(c.name) for c in target.table.columns()))
    columns.writeTo(sql_name(target.table.identifier, branch)).option("snapshot-property.tidelake.run", branch).append()
    staged = replace(target, table=catalog.load(target.table.identifier))
    if fold.key:
        _check_keys(spark, fold, staged, branch)
    return folded(replace(work, target=staged), "all")


def _check_keys(spark: SparkSession, fold: Fold, staged: FoldTarget, branch: str) -> None:
    head = staged.table.branch(branch)
    frame = spark.read.option("versionAsOf", head).table(sql_name(staged.table.identifier))
    twice = _twice(frame.select(*(quote(name) for name in fold.key)))
    if twice:
        raise not_unique(fold, [str(key) for key in twice])


def _twice(keys: DataFrame) -> list[dict[str, Any]]:
    """A few duplicate keys."""
    from pyspark.sql import functions as F

    grouped = keys.groupBy(*(quote(c) for c in keys.columns)).agg(F.count("*").alias("_count"))
    few = grouped.where("_count > 1").drop("_count").limit(_SHOWN)
    row = few.agg(F.collect_list(F.struct("*")).alias("found")).first()  # a limit at the end would scan one partition after another
    return [r.asDict() for r in row["found"]] if row else []
