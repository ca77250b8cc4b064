"""Folds all tables of a window in jobs of workers, and commits their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from tidelake.compact.fold_files import UnitOutcome
from tidelake.compact.fold_plan import FoldPlan, plan
from tidelake.compact.fold_source import FoldJob, FoldReader
from tidelake.compact.fold_target import Folded, FoldWork, folded, not_unique
from tidelake.history.incarnations import Incarnation
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.columns.image_findings import EXAMPLES
from tidelake.lake.cut import ImageCounts
from tidelake.lake.data_files import WrittenFile, stage_files
from tidelake.lake.folding.images import images_without_key
from tidelake.spark.run_parts import WorkersFor
from tidelake.spark.spread import THREADS, in_parts

AT_ONCE = 100  # tables of one job; the driver holds the metadata of three jobs, about 0.1 MiB a table


@dataclass(frozen=True, slots=True)
class _Planned:
    """A table's incarnation, and its plan; if no row changes its result, None if nothing changes at all."""

    incarnation: Incarnation
    plan: FoldPlan | Folded | None


@dataclass(slots=True)
class _Found:
    """Results of workers for a table. outcomes: of its units, by bucket."""

    files: list[WrittenFile] = field(default_factory=list)
    deletes: list[WrittenFile] = field(default_factory=list)
    outcomes: list[tuple[int | None, UnitOutcome]] = field(default_factory=list)

    def add(self, row: Any, *, bucketed: bool) -> None:
        """Add a row of fold_files.FOLDED."""
        if row["outcome"] is not None:
            self.outcomes.append((row["bucket"], UnitOutcome.model_validate_json(row["outcome"])))
            return
        partition = (row["bucket"],) if bucketed else ()
        file = WrittenFile(path=row["path"], partition=partition, size=row["size"], sha256=row["sha256"], footer=bytes(row["footer"]))
        (self.deletes if row["deletes"] else self.files).append(file)

    @property
    def duplicate_keys(self) -> list[str]:
        """Keys that the snapshot has twice."""
        return [k for _, o in self.outcomes for k in o.duplicate_keys]

    @property
    def missing(self) -> int:
        """Number of deletes that met no row, in a table without key."""
        return sum(o.missing for _, o in self.outcomes)


def fold_tables(
    workers: WorkersFor, catalog: LakeCatalog, works: Sequence[Callable[[], FoldWork]], told: Callable[[str, Folded], None]
) -> dict[str, Folded]:
    """Fold each table on its branch. Return those that changed, by incarnation.

    While a job of AT_ONCE tables runs, the files of the job before are committed and the next job is planned.

    Args:
        workers: Read and write the tables' files.
        catalog: The lake's catalog.
        works: Make the work of each table; called in threads.
        told: Called with each table's name and result, in threads.

    Raises:
        QualityError: KEY_NOT_UNIQUE.
        OrderError: UNSUPPORTED_DDL.
    """

    def planned(begin: int) -> list[Future[_Planned]]:
        return [pool.submit(_planned, works[n], n) for n in range(begin, min(begin + AT_ONCE, len(works)))]

    def finished(p: _Planned, found: _Found) -> tuple[str, Folded] | None:
        result = _committed(catalog, p.plan, found) if isinstance(p.plan, FoldPlan) else p.plan
        if result is None:
            return None
        told(p.incarnation.name, result)
        return p.incarnation.id, result

    results, sizes, committed = list[tuple[str, Folded] | None](), list[int](), list[Future[tuple[str, Folded] | None]]()
    with ThreadPoolExecutor(THREADS) as pool:
        coming = planned(0)
        for begin in range(0, len(works), AT_ONCE):
            plans = [f.result() for f in coming]
            coming = planned(begin + AT_ONCE)
            found = _run(workers, sizes, {n: p.plan for n, p in enumerate(plans, begin) if isinstance(p.plan, FoldPlan)})
            results += [f.result() for f in committed]
            committed = [pool.submit(finished, p, found.get(n, _Found())) for n, p in enumerate(plans, begin)]
        results += [f.result() for f in committed]
    return dict(r for r in results if r is not None)


def _planned(work: Callable[[], FoldWork], number: int) -> _Planned:
    made = work()
    return _Planned(made.fold.incarnation, plan(made, number))


def _run(workers: WorkersFor, sizes: list[int], plans: dict[int, FoldPlan]) -> dict[int, _Found]:
    """Run the workers for all plans in one job. Raises QualityError (KEY_NOT_UNIQUE); then the job leaves no file.

    sizes: of the units of earlier jobs, in bytes; those of this one are added. Together they decide where it runs.
    """
    units = {f"{n:06} {k:06}": unit for n, p in plans.items() for k, unit in enumerate(p.units)}
    found = {n: _Found() for n in plans}
    if not units:
        return found
    own = {key: size for key, (size, _) in units.items()}
    sizes += own.values()
    folding = workers(sizes)
    parts = [[units[key][1] for key in part] for part in in_parts(folding.tasks, own)]
    if len(units) == 1:
        parts = [[unit.model_copy(update={"alone": True}) for unit in part] for part in parts]
    job = FoldJob(tables={n: p.job for n, p in plans.items()}, parts=parts)
    for row in folding.rows(FoldReader(job)):
        found[row["table"]].add(row, bucketed=plans[row["table"]].job.bucketed)
    for n, f in found.items():
        if f.duplicate_keys:
            for k, of_table in found.items():
                _remove(plans[k], of_table)
            raise not_unique(plans[n].work.fold, f.duplicate_keys)
    return found


def _committed(catalog: LakeCatalog, p: FoldPlan, found: _Found) -> Folded:
    """Commit a table's files to its branch."""
    work, target = p.work, p.work.target
    changed = {bucket for bucket, outcome in found.outcomes if outcome.changed}
    gone = p.replaced | {path for bucket in changed for path in p.by_bucket.get(bucket, ())}
    summary = {"tidelake.run": work.branch}
    staged = stage_files(catalog, target.table.identifier, work.branch, target.start, gone, found.files, summary, found.deletes)
    done = folded(replace(work, target=replace(target, table=staged.table)), p.written(len(changed)), found.missing, _images(p, found))
    return replace(done, advance=done.advance.model_copy(update={"files": staged.change}))


def _images(p: FoldPlan, found: _Found) -> ImageCounts | None:
    """Result of comparing old values."""
    work, rules = p.work, p.job.fold.rules
    if not rules.key:
        counts = work.changes.counts if work.changes else None
        compares = work.target.base is not None and not p.appends
        return images_without_key(work.fold, counts, found.missing) if compares else None
    if rules.images is None:
        return None
    outcomes = [outcome for _, outcome in found.outcomes]
    codes, columns = Counter[str](), Counter[str]()
    for o in outcomes:
        codes.update(o.found.counts)
        columns.update(o.found.columns)
    first = sorted(e for o in outcomes for e in o.found.examples)[:EXAMPLES]
    return ImageCounts(compared=sum(o.compared for o in outcomes), **codes, columns=dict(columns), examples=[text for _, text in first])


def _remove(p: FoldPlan, found: _Found) -> None:
    store = open_store(p.job.location)
    for file in (*found.files, *found.deletes):
        store.delete(file.path)
