"""Folds all tables of a window: those that fold_plan accepts in one Spark job of workers, the others with Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tidelake.compact.fold_files import Unit
from tidelake.compact.fold_plan import FoldPlan, plan
from tidelake.compact.fold_source import FoldJob, FoldSource
from tidelake.compact.fold_target import Folded, FoldWork, folded
from tidelake.compact.snapshot import base_frame, change_frame, fold_table, not_unique, said
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import ImageCounts
from tidelake.lake.data_files import WrittenFile, stage_files
from tidelake.lake.images import reconciled
from tidelake.spark.data_source import read_source
from tidelake.spark.spread import THREADS, in_parts
from tidelake.spark.worker_errors import errors_of_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class _Found:
    """Results of workers for a table. refused: why a unit was not folded; duplicate_keys: keys that the snapshot has twice."""

    files: list[WrittenFile] = field(default_factory=list)
    compared: int = 0
    suspects: int = 0
    refused: str | None = None
    duplicate_keys: list[str] = field(default_factory=list)

    def add(self, row: Any) -> None:
        """Add a row of fold_files.FOLDED."""
        if row["path"] is not None:
            file = WrittenFile(path=row["path"], partition=(row["bucket"],), size=row["size"], footer=bytes(row["footer"]))
            self.files.append(file)
        self.compared += row["compared"] or 0
        self.suspects += row["suspects"] or 0
        self.refused = self.refused or row["refused"]
        self.duplicate_keys += row["duplicate_keys"] or []


def fold_tables(
    spark: SparkSession, catalog: LakeCatalog, works: Sequence[FoldWork], folded: Callable[[str, Folded], None]
) -> dict[str, Folded]:
    """Fold each table on its branch. Return those that changed, by incarnation.

    Args:
        spark: The session.
        catalog: The lake's catalog.
        works: Tables to fold.
        folded: Called with each table's name and result.

    Raises:
        QualityError: KEY_NOT_UNIQUE.
    """

    def done(work: FoldWork, result: Folded | None) -> tuple[str, Folded | None]:
        if result is not None:
            folded(work.fold.incarnation.name, result)
        return work.fold.incarnation.id, result

    def by_sql(work: FoldWork) -> tuple[str, Folded | None]:
        return done(work, fold_table(spark, catalog, work))

    def by_workers(p: FoldPlan, found: _Found) -> tuple[str, Folded | None]:
        return done(p.work, _finished(spark, catalog, p, found))

    with ThreadPoolExecutor(THREADS) as pool:
        plans = list(pool.map(plan, works))
        others = [pool.submit(by_sql, w) for w, p in zip(works, plans, strict=True) if isinstance(p, str)]
        planned = [p for p in plans if isinstance(p, FoldPlan)]
        mine = [pool.submit(by_workers, p, f) for p, f in zip(planned, _run(spark, planned), strict=True)]
        results = dict(f.result() for f in (*others, *mine))
    return {i: f for w in works if (f := results[i := w.fold.incarnation.id]) is not None}


def _run(spark: SparkSession, plans: Sequence[FoldPlan]) -> list[_Found]:
    """Run the workers for all plans in one job. Raises QualityError (KEY_NOT_UNIQUE); then no file is left."""
    if not plans:
        return []
    units = {
        f"{n:06} {b.number:06}": (b.size, Unit(table=n, bucket=b.number, base=b.base, changes=b.changes))
        for n, p in enumerate(plans)
        for b in p.buckets
    }
    parts = in_parts(spark, {key: size for key, (size, _) in units.items()})
    job = FoldJob(tables={n: p.table for n, p in enumerate(plans)}, parts=[[units[key][1] for key in part] for part in parts])
    found = [_Found() for _ in plans]
    with errors_of_workers():
        for row in read_source(spark, FoldSource, job=job).collect():
            found[row["table"]].add(row)
    for p, f in zip(plans, found, strict=True):
        if f.duplicate_keys:
            for each, of_it in zip(plans, found, strict=True):
                _remove(each, of_it)
            raise not_unique(p.work.fold, f.duplicate_keys)
    return found


def _finished(spark: SparkSession, catalog: LakeCatalog, p: FoldPlan, found: _Found) -> Folded | None:
    """Commit a table's files to its branch, or fold the table with Spark SQL if a worker refused a unit."""
    work, target = p.work, p.work.target
    if found.refused is not None:
        _remove(p, found)
        return fold_table(spark, catalog, work)
    summary = {"tidelake.run": work.branch}
    staged = stage_files(catalog, target.table.identifier, work.branch, target.start, frozenset(p.gone), found.files, summary)
    return folded(replace(work, target=replace(target, table=staged)), said(p.touched, p.choice), images=_images(spark, p, found))


def _images(spark: SparkSession, p: FoldPlan, found: _Found) -> ImageCounts | None:
    """Result of comparing old values. If some keys do not match, Spark SQL finds out which."""
    if p.images is None:
        return None
    if not found.suspects:
        return ImageCounts(compared=found.compared)
    work, changes = p.work, p.work.changes
    assert changes is not None
    base = base_frame(spark, work.target, work.fold, p.touched.condition)
    return reconciled(p.images, found.compared, found.suspects, base, change_frame(spark, changes, work.fold))


def _remove(p: FoldPlan, found: _Found) -> None:
    store = open_store(p.table.base.location)
    for file in found.files:
        store.delete(file.path)
