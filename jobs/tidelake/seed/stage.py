"""Seed: loads a full export as the first cut of a feed, at the export's TSO; changes continue from there (docs/seed.md).

Rows use the same casts, masks and tables as changes: the export's files are read as events at its TSO. Nothing is visible until the cut is
published, like any cut. A seed that is interrupted before that starts again from the beginning; one interrupted later is finished.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tidelake import __version__
from tidelake.compact.filled_table import fill_table
from tidelake.compact.fold_target import Folded
from tidelake.config.lake_paths import BRANCH, events_table, seed_report_key, seed_reports
from tidelake.errors import ConfigError, QualityError
from tidelake.history.incarnations import Incarnation
from tidelake.io.documents import read_document
from tidelake.io.texts import plural
from tidelake.lake.columns.cells import LOSSES
from tidelake.lake.cut import Cut, Staged, TableCounts
from tidelake.lake.cut_documents import next_seq
from tidelake.lake.folding.fold import Fold
from tidelake.lake.namespaces import clear_way, take
from tidelake.lake.opened import Lake
from tidelake.lake.tables import kept
from tidelake.order.incomplete import Lack, reasons, refuse
from tidelake.publish.certificate import proof_of
from tidelake.publish.certify import certify
from tidelake.publish.intent import intent_of
from tidelake.publish.recovery import recover
from tidelake.publish.steps import carry_out, declare
from tidelake.seed.export_jobs import export_job
from tidelake.seed.export_source import MOST_EXAMPLES, ExportJob, ExportReader
from tidelake.seed.exports.dialect import PLAIN, Dialect
from tidelake.seed.exports.export_rows import FileReport
from tidelake.seed.seed_plan import Prepared, SeedPlan, dialect_of, prepare
from tidelake.spark.part_reader import read_parts
from tidelake.spark.spread import THREADS
from tidelake.spark.worker_errors import errors_of_workers
from tidelake.validate.invalid_setting import setting
from tidelake.validate.quality.judge import judge_measures
from tidelake.validate.quality.verdict import Verdict
from tidelake.validate.stage import table_measures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

OnBytesRead = Callable[[int, int], None]  # (bytes of files read, bytes in all)
_LOOK_SECONDS = 2.0


class Seeded(BaseModel):
    """Result of a seed. rows: by table; refused: rows that this run could not read and left out by policy."""

    plan: SeedPlan
    cut: int
    rows: dict[str, int]
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What all steps share. first: number of each table's first file, by incarnation."""

    lake: Lake
    prepared: Prepared
    name: str
    seq: int
    first: Mapping[str, int]

    @property
    def ts(self) -> int:
        return self.prepared.plan.ts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filled:
    """A table's staged snapshot and the findings on the way."""

    incarnation: Incarnation
    folded: Folded
    counts: TableCounts
    null_keys: int
    reports: list[FileReport]


def seed(
    lake: Lake,
    source: str,
    ts: int | None = None,
    tables: Sequence[str] = (),
    dialect: Dialect = PLAIN,
    progress: OnBytesRead | None = None,
) -> Seeded:
    """Load an export and publish it as cut 1. Holds the lease.

    Args:
        lake: The feed's lake.
        source: URI of the export.
        ts: TSO of the export; None means from its metadata.
        tables: Tables to load; empty means all.
        dialect: Format of its text files.
        progress: Called with (bytes of files read, bytes in all).

    Raises:
        ContractError: OTHER_COLUMNS, TIME_ZONE, of a file's content.
        StorageError: CHANGED, BAD_OBJECT.
        QualityError: ROWS_REFUSED, EXPECTATION_FAILED, KEY_NOT_UNIQUE.
        OrderError: INCOMPLETE.
        TidelakeError: What `prepare` raises.
    """
    started, feed = time.time(), lake.feed
    with lake.hold("seed") as fence:
        resumed = recover(lake.catalog, lake.store, feed.name)
        prepared = prepare(lake, source, ts, tables, dialect, resumed)
        if resumed is not None:
            return _resumed(prepared, resumed)
        take(lake.catalog, feed, prepared.names)
        seq = next_seq(lake.store, feed.name, 0)
        run = _Run(lake=lake, prepared=prepared, name=f"{BRANCH}{seq}_{fence}", seq=seq, first=_numbers(prepared))
        spark = lake.spark  # start it once, not in every thread
        with errors_of_workers(), _watched(run, progress), ThreadPoolExecutor(THREADS) as pool:
            filled = list(pool.map(lambda i: _fill(run, spark, i), prepared.names.alive()))
        refused = _refused(run, filled)
        staged = Staged(cut=_cut(run, filled, refused), counts={f.incarnation.id: f.counts for f in filled})
        refuse(feed, staged.cut)
        verdict = _judged(run, staged, filled)
        folded = {f.incarnation.id: f.folded for f in filled}
        intent = intent_of(feed, staged, folded)
        seconds = {"seed": round(time.time() - started, 3)}
        intent.certificate = proof_of(staged, verdict, folded, None, intent.cut, seconds) | {"seed": _source(run, filled)}
        clear_way(lake.catalog, intent, ())
        certify(lake, intent, "seed")
        declare(lake.store, intent)
        cut = carry_out(lake.catalog, lake.store, intent)
    rows = {f.incarnation.name: f.folded.table.rows for f in filled}
    return Seeded(plan=prepared.plan, cut=cut.seq, rows=rows, refused=refused)


def _resumed(prepared: Prepared, cut: Cut) -> Seeded:
    """Result of the seed whose interrupted publication was just finished. Raises ConfigError (CUT_EXISTS) if it was of another export."""
    names = {i: life.name for i, life in cut.catalog.incarnations.items()}
    if not cut.is_seed or cut.seeded_ts != prepared.plan.ts or set(names.values()) != {t.name for t in prepared.plan.tables}:
        raise ConfigError(
            f"cut {cut.seq}, whose publication was interrupted, is now published and is not from this export; "
            "a seed can only be the first cut",
            code="CUT_EXISTS",
        )
    return Seeded(plan=prepared.plan, cut=cut.seq, rows={names[i]: t.rows for i, t in cut.snapshots.items()})


def _numbers(prepared: Prepared) -> dict[str, int]:
    first, out = 0, dict[str, int]()
    for i, t in prepared.of_export.items():
        out[i] = first
        first += len(t.files)
    return out


def _fill(run: _Run, spark: SparkSession, i: Incarnation) -> _Filled:
    """Read and type one table and write it to a branch."""
    lake, feed = run.lake, run.lake.feed
    fold = Fold(feed=feed, incarnation=i, columns=kept(feed, i, i.columns), applied_ts=0, until_ts=run.ts)
    buckets = next(t.buckets for t in run.prepared.plan.tables if t.name == run.prepared.of_export[i.id].name)
    folded = fill_table(spark, lake.catalog, fold, read_parts(spark, ExportReader(_job(run, i))), run.name, buckets)
    reports = [_report(run, i, k) for k in range(len(run.prepared.of_export[i.id].files))]
    counts = _counts(reports)
    _refuse_invalid_values(i, counts, reports)
    log.info(f"{i.name}: {plural(folded.table.rows, 'row')}")
    return _Filled(incarnation=i, folded=folded, counts=counts, null_keys=sum(r.null_keys for r in reports), reports=reports)


def _job(run: _Run, i: Incarnation) -> ExportJob:
    return export_job(run.lake.feed, run.prepared.export, run.prepared.of_export[i.id], i, run.name, run.first[i.id])


def _report(run: _Run, i: Incarnation, k: int) -> FileReport:
    """The worker's report of a file."""
    key = seed_report_key(run.lake.feed.name, run.name, run.first[i.id] + k)
    return read_document(run.lake.store, key, FileReport)


def _counts(reports: Sequence[FileReport]) -> TableCounts:
    lost: dict[str, Counter[str]] = {kind: Counter() for kind in LOSSES}
    for r in reports:
        for kind, found in r.losses.items():
            lost[kind].update(found)
    read = sum(r.rows for r in reports)
    return TableCounts.model_validate({"events": read, "inserts": read} | lost)


def _refuse_invalid_values(i: Incarnation, counts: TableCounts, reports: Sequence[FileReport]) -> None:
    """Raise QualityError (EXPECTATION_FAILED) for values that do not fit their type, with the places of the first ones."""
    if not counts.invalid_values:
        return
    column, n = next(iter(counts.invalid_values.items()))
    places = [f"{r.key} row {row}" for r in reports for row in r.invalid_rows.get(column, ())][:MOST_EXAMPLES]
    raise QualityError(
        f"{i.name}.{column}: {plural(n, 'value')} cannot be read as {i.column(column).type.sql}: {', '.join(places)}; nothing is published",
        code="EXPECTATION_FAILED",
        remedy=f'correct them, or set how they are handled: {setting(i.name, column, "null")}, or "string" (docs/types.md)',
    )


def _refused(run: _Run, filled: Sequence[_Filled]) -> int:
    """Number of rows that could not be read. Raises QualityError (ROWS_REFUSED) if the feed does not publish without them."""
    bad = [r for f in filled for r in f.reports if r.refused]
    total = sum(r.refused for r in bad)
    if not total or run.lake.feed.policy.on_reject != "block":
        return total
    first = bad[0].examples[0]
    where = run.lake.store.uri_of(seed_reports(run.lake.feed.name, run.name))
    raise QualityError(
        f"{plural(total, 'row')} of {plural(len(bad), 'file')} cannot be read, the first: {bad[0].key} row {first.row} "
        f"at byte {first.byte}: {first.code}: {first.error}; nothing is published",
        code="ROWS_REFUSED",
        remedy=f"the others are in {where}; correct the files, set their format (--csv-…), or accept the loss: "
        '[policy] on_reject = "publish_incomplete"',
    )


def _cut(run: _Run, filled: Sequence[_Filled], refused: int) -> Cut:
    """The cut of the seed. refused: number of rows that could not be read."""
    plan, names = run.prepared.plan, run.prepared.names
    lacks = [Lack("ROWS_REFUSED", f"{plural(refused, 'row')} of the export could not be read")] if refused else []
    for f in filled:
        names = names.with_(replace(f.incarnation, empty=f.folded.table.rows == 0))
    events = run.lake.catalog.find_own(events_table(plan.feed), plan.feed)
    return Cut(
        feed=plan.feed,
        seq=run.seq,
        seeded_ts=plan.ts,
        hour=plan.hour,
        applied_ts=0,
        resolved_ts=plan.ts,
        run=run.name,
        version=__version__,
        events_snapshot_id=events.main if events else None,
        incomplete=refused > 0,
        incomplete_because=reasons(lacks, 1, plan.hour, None),
        catalog=names,
    )


def _judged(run: _Run, staged: Staged, filled: Sequence[_Filled]) -> Verdict:
    """Verdict by the rules that every table gets. Raises QualityError (EXPECTATION_FAILED)."""
    at = {"first_ts": run.ts, "last_ts": run.ts}
    measures = [
        m
        for f in filled
        for m in table_measures(f.incarnation, f.counts, at | {"INSERT": f.folded.table.rows, "null_keys": f.null_keys}, staged)
    ]
    cut = staged.cut
    verdict = Verdict(feed=cut.feed, hour=cut.hour, seq=cut.seq, run=cut.run, checks=judge_measures(measures))
    verdict.refuse()
    return verdict


def _source(run: _Run, filled: Sequence[_Filled]) -> dict[str, Any]:
    """The certificate's section about the export."""
    plan = run.prepared.plan
    return {
        "source": plan.source,
        "ts": plan.ts,
        "dialect": dialect_of(run.prepared.export.dialect, plan),
        "rows": {f.incarnation.name: f.folded.table.rows for f in filled},
        "refused": sum(r.refused for f in filled for r in f.reports),
        "left_out": plan.left_out,
        "files": [r.model_dump() for f in filled for r in f.reports],
    }


@contextmanager
def _watched(run: _Run, progress: OnBytesRead | None) -> Iterator[None]:
    """Call progress with the bytes read so far, taken from the files' reports."""
    if progress is None:
        yield
        return
    files = [f.size for t in run.prepared.of_export.values() for f in t.files]
    over, prefix = Event(), seed_reports(run.lake.feed.name, run.name)

    def look() -> None:
        while not over.wait(_LOOK_SECONDS):
            numbers = [int(o.key.removeprefix(prefix).removesuffix(".json")) for o in run.lake.store.objects(prefix)]
            progress(sum(files[n] for n in numbers), sum(files))

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
