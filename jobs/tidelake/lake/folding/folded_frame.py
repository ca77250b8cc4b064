"""A table's rows at any TSO, folded by workers: for queries, and for rows that a statement moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelake.lake.columns.pieces import CHANGE_SEQ, CHANGE_TYPE, COMMIT_TS, PARTIAL
from tidelake.lake.folding.files import base_files, buckets_of, change_files
from tidelake.lake.folding.fold import Fold
from tidelake.lake.folding.folded_source import FoldedJob, FoldedReader
from tidelake.lake.folding.table_fold import TableAt, table_fold
from tidelake.lake.folding.units import SideFiles, units_of
from tidelake.spark.part_reader import read_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def folded_reader(fold: Fold, base: TableAt | None, changes: TableAt | None, *, only_moved: bool = False) -> tuple[FoldedReader, list[int]]:
    """Return what reads a table's rows with the fold's columns, and the bytes of files of each of its parts.

    A part is a bucket, if snapshot and changelog have the same buckets, else the table.

    Args:
        fold: What to fold.
        base: The snapshot at fold.applied_ts, if there is one.
        changes: The changelog, if there is one.
        only_moved: Only changes that come from no event count.

    Raises:
        OrderError: UNSUPPORTED_DDL: the partitioning column of removed rows is gone or masked.
        QualityError: KEY_NOT_UNIQUE, when the rows are read.
    """
    base = base if fold.emptied_ts <= fold.applied_ts else None
    table = table_fold(fold, base, changes)
    if only_moved:
        table = table.model_copy(update={"rules": table.rules.model_copy(update={"only_moved": True})})
    at = changes or base
    buckets = buckets_of(fold, at) if at is not None else None
    stood, came = base_files(base, table, buckets), change_files(changes, table, buckets)
    if not (stood.bucketed and came.bucketed):
        buckets = None
    found = units_of(0, stood, came, buckets, every=True, shares=table.rules)
    job = FoldedJob(name=fold.incarnation.name, table=table, units=tuple(unit for _, unit in found), columns=())
    return FoldedReader(job), [size for size, _ in found]


def snapshot_frame(spark: SparkSession, fold: Fold, base: TableAt) -> DataFrame:
    """Return the rows of a snapshot with the fold's columns, and `_commit_ts`."""
    table = table_fold(fold, base, None)
    files = base_files(base, table, None)
    units = tuple(unit for f in files.files for _, unit in units_of(0, SideFiles([f]), SideFiles(), None, every=True))
    return read_parts(spark, FoldedReader(FoldedJob(name=fold.incarnation.name, table=table, units=units, rows="snapshot")))


def changes_frame(spark: SparkSession, fold: Fold, changes: TableAt) -> DataFrame:
    """Return the changes of a fold: its columns, `_change_type`, `_change_seq`, `_commit_ts`, and `_partial` if the changelog has it."""
    table = table_fold(fold, None, changes)
    files = change_files(changes, table, None)
    units = tuple(unit for f in files.files for _, unit in units_of(0, SideFiles(), SideFiles([f]), None, every=True))
    columns = (CHANGE_TYPE, CHANGE_SEQ, COMMIT_TS, *((PARTIAL,) if table.rules.partial else ()))
    job = FoldedJob(name=fold.incarnation.name, table=table, units=units, rows="changes", columns=columns)
    return read_parts(spark, FoldedReader(job))
