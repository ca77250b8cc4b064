"""Stages changelogs in Python workers, which read, type, order and write rows in Arrow: one Spark job for all tables that qualify.

Spark only shuffles, with many rows of a table and bucket in one of its rows. No query is planned per table and no row passes the JVM. An
hour of 1,000,000 row events takes a third of the CPU time of order.sql.rows. Tables that arrow_plan does not accept, or that a worker
refuses, are staged by order.sql.changelog. The changes are the same.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelake.history.event import CHECKSUMS
from tidelake.history.window import Window
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Advance, TableCounts, TableCut
from tidelake.lake.data_files import WrittenFile, stage_files
from tidelake.order.arrow.arrow_plan import arrow_table, can_be_read
from tidelake.order.arrow.arrow_source import OrderJob, RowsSource
from tidelake.order.arrow.arrow_writer import STAGED, TableOutcome, Writer
from tidelake.order.repeated_offsets import Again
from tidelake.order.replay_epochs import Steps
from tidelake.order.sql.changelog import advanced, counts_of, open_changelog
from tidelake.order.sql.rows import TableRows
from tidelake.spark.data_source import read_source
from tidelake.spark.spread import in_parts
from tidelake.spark.worker_errors import errors_of_workers
from tidelake.spark.worker_secrets import handed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_ROW_BYTES = 256  # approximate size of an event, to balance tasks
Sized = tuple[TableRows, int]  # (table, number of its row events)
StagedTable = tuple[TableRows, Advance | None, TableCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """What all tables share.

    Attributes:
        catalog: The lake's catalog.
        events: The events table.
        window: The window.
        hours: Hours whose events are read.
        branch: Branch to write.
        previous: Incarnation → its changelog at the last cut.
        kept: UUIDs of the tables that published cuts need.
        again: Offsets that do not count, because an earlier hour has them.
        steps: Offsets at which the resolved ts went back.
        threads: Number of threads for commits.
    """

    catalog: LakeCatalog
    events: LakeTable
    window: Window
    hours: Sequence[str]
    branch: str
    previous: dict[str, TableCut]
    kept: Container[str]
    again: Sequence[Again]
    steps: Steps
    threads: int


def stage_by_workers(spark: SparkSession, o: Ordering, todo: Sequence[Sized]) -> tuple[list[StagedTable], list[TableRows]]:
    """Stage the changelogs of the tables that workers can order. Return (what was staged, tables that are left)."""
    tables, events = [(t, rows) for t, rows in todo if can_be_read(t, rows)], _events(o)
    if not tables or events is None:
        return [], [t for t, _ in todo]
    with ThreadPoolExecutor(o.threads) as pool:
        opened = list(pool.map(lambda t: _opened(o, t[0]), tables))
        files, outcomes = _run(spark, _job(spark, o, events, tables, [target for target, _ in opened]))

        def finish(n: int) -> StagedTable | None:
            return _finished(o, tables[n][0], *opened[n], files.get(n, []), outcomes.get(n, TableOutcome()))

        staged = [s for s in pool.map(finish, range(len(tables))) if s is not None]
    for n, outcome in outcomes.items():
        if outcome.refused:
            log.info(f"{tables[n][0].incarnation.name}: left to Spark's SQL: {outcome.refused}")
    done = {t.incarnation.id for t, _, _ in staged}
    return staged, [t for t, _ in todo if t.incarnation.id not in done]


def _finished(
    o: Ordering, table: TableRows, target: LakeTable, base: int, files: Sequence[WrittenFile], outcome: TableOutcome
) -> StagedTable | None:
    """Commit a table's files. Return None if the table was refused; its files and what was created for them are removed."""
    if outcome.refused:
        store = open_store(target.table.location())
        for file in files:
            store.delete(file.path)
    elif files:
        target = stage_files(o.catalog, target.identifier, o.branch, base, (), files, {"tidelake.run": o.branch})
    advance, written = advanced(o.catalog, table, target, o.branch, base, o.previous.get(table.incarnation.id))
    if outcome.refused:
        return None
    before = {"events": outcome.seen.get("", 0)} | {word: outcome.seen.get(word, 0) for word in CHECKSUMS}
    return table, advance, counts_of(table, before, outcome.counted).model_copy(update={"changes": written})


def _opened(o: Ordering, table: TableRows) -> tuple[LakeTable, int]:
    return open_changelog(o.catalog, table, o.previous.get(table.incarnation.id), o.kept)


def _events(o: Ordering) -> dict[str, int] | None:
    """Sizes of the events' files by key below the table's location; None if a file is elsewhere."""
    location = f"{o.events.table.location()}/"
    found = list(o.events.files({"kind": "row", "hour": list(o.hours)}, [], o.events.main))
    return {f.path.removeprefix(location): f.size for f in found} if all(f.path.startswith(location) for f in found) else None


def _job(spark: SparkSession, o: Ordering, events: Mapping[str, int], tables: Sequence[Sized], targets: Sequence[LakeTable]) -> OrderJob:
    weights = {f"{n} {b}": rows * _ROW_BYTES // t.buckets for n, (t, rows) in enumerate(tables) for b in range(t.buckets)}
    tasks = [[0] * t.buckets for t, _ in tables]
    for task, groups in enumerate(in_parts(spark, weights)):
        for n, b in (map(int, g.split()) for g in groups):
            tasks[n][b] = task
    return OrderJob(
        events=o.events.table.location(),
        parts=in_parts(spark, events),
        after_ts=o.window.applied_ts,
        until_ts=o.window.resolved_ts,
        tables=[arrow_table(t, target) for (t, _), target in zip(tables, targets, strict=True)],
        tasks=tasks,
        again=list(o.again),
        steps=[(topic, partition, offsets) for (topic, partition), offsets in o.steps.items()],
    )


def _run(spark: SparkSession, job: OrderJob) -> tuple[dict[int, list[WrittenFile]], dict[int, TableOutcome]]:
    """Run the job. Return the files and the outcome of each table, by its number."""
    from pyspark.sql.pandas.types import from_arrow_schema

    many = 1 + max(max(t) for t in job.tasks)
    rows = read_source(spark, RowsSource, job=job).repartitionById(many, "task")
    staged = rows.mapInArrow(Writer(job, handed(spark)), from_arrow_schema(STAGED))
    files, outcomes = dict[int, list[WrittenFile]](), dict[int, TableOutcome]()
    with errors_of_workers():
        found = staged.collect()
    for r in found:
        if r["path"] is not None:
            partition = (r["day"],) if job.tables[r["table"]].bucket is None else (r["bucket"], r["day"])
            file = WrittenFile(path=r["path"], partition=partition, size=r["size"], footer=bytes(r["footer"]))
            files.setdefault(r["table"], []).append(file)
            continue
        told, before = TableOutcome.model_validate_json(r["outcome"]), outcomes.get(r["table"], TableOutcome())
        outcomes[r["table"]] = TableOutcome(
            refused=before.refused or told.refused,
            seen=dict(Counter(before.seen) + Counter(told.seen)),
            counted=dict(Counter(before.counted) + Counter(told.counted)),
        )
    return files, outcomes
