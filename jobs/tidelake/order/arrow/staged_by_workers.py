"""Stages changelogs: workers read, type, order and write rows in Arrow, in one Spark job for all tables of a window.

Spark only shuffles, with many rows of a table and bucket in one of its rows. No query is planned per table and no row passes the JVM.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from tidelake.config.evidence import MOST_COLUMNS
from tidelake.errors import OrderError
from tidelake.io.storage import open_store
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Advance, InvalidValue, TableCounts, TableCut
from tidelake.lake.data_files import WrittenFile, stage_files
from tidelake.order.arrow.changelog_writer import STAGED, TableOutcome, Writer
from tidelake.order.arrow.delete_source import DeletesJob, place_deletes
from tidelake.order.arrow.deletes import DeleteRules
from tidelake.order.arrow.invalid_examples import Example
from tidelake.order.arrow.rows_reader import OrderJob, RowsReader
from tidelake.order.arrow.rows_reading import NO_BUCKET
from tidelake.order.arrow.table_jobs import arrow_table
from tidelake.order.arrow.table_models import ArrowTable
from tidelake.order.changelogs import advanced, counts_of, open_changelog
from tidelake.order.event_keys import event_keys
from tidelake.order.repeated_offsets import Again
from tidelake.order.replay_epochs import Steps
from tidelake.order.rows_aside import RowsAside
from tidelake.order.table_rows import TableRows
from tidelake.spark.run_parts import Workers, WorkersFor
from tidelake.spark.spread import THREADS, in_parts

_ROW_BYTES = 256  # approximate size of an event, to balance tasks
_TABLE_ROWS = 500  # row events of a table that take a task as long to read as to begin with the table
Sized = tuple[TableRows, int]  # (table, number of its row events)
StagedTable = tuple[TableRows, Advance | None, TableCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """What all tables share.

    Attributes:
        catalog: The lake's catalog.
        events: The events table.
        rules: The window, and how deletes without commit ts get theirs.
        hours: Hours whose events are read.
        branch: Branch to write.
        previous: Incarnation → its changelog at the last cut.
        kept: UUIDs of the tables that published cuts need.
        again: Offsets that do not count, because an earlier hour has them.
        aside: Rows that fit no schema.
        steps: Offsets at which the resolved ts went back.
        lake_uri: URI of the lake.
        deletes: Folder for the commit ts of deletes without one, below lake_uri; None if all messages have one.
    """

    catalog: LakeCatalog
    events: LakeTable
    rules: DeleteRules
    hours: Sequence[str]
    branch: str
    previous: dict[str, TableCut]
    kept: Container[str]
    again: Sequence[Again]
    aside: Sequence[RowsAside]
    steps: Steps
    lake_uri: str
    deletes: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A changelog: its name, where the branch begins, and what workers need to know. Not its metadata, which grows with its snapshots."""

    identifier: str
    base: int
    described: ArrowTable


def stage_by_workers(workers: WorkersFor, o: Ordering, todo: Sequence[Sized]) -> list[StagedTable]:
    """Stage the changelogs of these tables. workers: read the events' files.

    Raises:
        OrderError: HANDLE_ONLY: partial rows of a table without a key cannot be identified; MASKED.
        ConfigError: A column cannot have its mask; MASK_KEY.
        StorageError: TABLE_MOVED: a file of the events table is not in its folder.
    """
    if not todo:
        return []
    for table, _ in todo:
        table.clear_cells()  # refuses masks before anything is made
    events = event_keys(o.events, o.hours)
    ordering = workers(events.values())
    with ThreadPoolExecutor(THREADS) as pool:
        opened = list(pool.map(lambda t: _open(o, t, ordering.tasks), todo))
        files, outcomes = _run(ordering, _job(ordering, o, events, todo, [a.described for a in opened]))
        for n, (table, _) in enumerate(todo):
            if (partial := outcomes.get(n, TableOutcome()).counted.get("partial", 0)) and not table.incarnation.key:
                _remove([(opened[k].described.location, found) for k, found in files.items()])
                raise _without_key(table, partial)

        def finish(n: int) -> StagedTable:
            return _finished(o, todo[n][0], opened[n], files.get(n, []), outcomes.get(n, TableOutcome()))

        return list(pool.map(finish, range(len(todo))))


def _open(o: Ordering, sized: Sized, tasks: int) -> _Opened:
    table, rows = sized
    target, base = open_changelog(o.catalog, table, o.previous.get(table.incarnation.id), o.kept)
    return _Opened(identifier=target.identifier, base=base, described=arrow_table(table, target, rows, tasks))


def _finished(o: Ordering, table: TableRows, opened: _Opened, files: Sequence[WrittenFile], outcome: TableOutcome) -> StagedTable:
    """Commit a table's files."""
    identifier, base, change = opened.identifier, opened.base, None
    if files:
        staged = stage_files(o.catalog, identifier, o.branch, base, (), files, {"tidelake.run": o.branch})
        target, change = staged.table, staged.change
    else:
        target = o.catalog.load(identifier)
    advance, written = advanced(o.catalog, table, target, o.branch, base, o.previous.get(table.incarnation.id))
    if advance is not None:
        advance = advance.model_copy(update={"files": change})
    counts = counts_of(table, outcome.seen, outcome.counted)
    names = {p.column.id: p.column.name for p in table.projections}
    wanted = list(counts.invalid_values)[:MOST_COLUMNS]
    examples = {names[k]: [_invalid_value(e) for e in found] for k, found in outcome.examples.items()}
    shown = {name: examples[name] for name in wanted if name in examples}
    return table, advance, counts.model_copy(update={"changes": written, "invalid_value_examples": shown})


def _invalid_value(e: Example) -> InvalidValue:
    topic, partition, offset, ordinal, commit_ts, cell, key = e
    return InvalidValue(topic=topic, partition=partition, offset=offset, ordinal=ordinal, commit_ts=commit_ts, cell=cell, key=dict(key))


def _without_key(table: TableRows, partial: int) -> OrderError:
    return OrderError(
        f"{plural(partial, 'row')} of {table.incarnation.name}, which has no key, arrived with only their handle",
        code="HANDLE_ONLY",
        remedy='say the table\'s key in tables.sql, or set handle_only = "quarantine" and decode the hours again',
    )


def _remove(written: Sequence[tuple[str, Sequence[WrittenFile]]]) -> None:
    """Delete files that no commit will name. written: location of a table, its files."""
    for location, files in written:
        store = open_store(location)
        for file in files:
            store.delete(file.path)


def _job(workers: Workers, o: Ordering, events: Mapping[str, int], tables: Sequence[Sized], described: Sequence[ArrowTable]) -> OrderJob:
    shares = [t.buckets * t.shares for t in described]
    weights = {f"{n} {s}": rows * _ROW_BYTES // shares[n] for n, (_, rows) in enumerate(tables) for s in range(shares[n])}
    spread = [[0] * many for many in shares]
    for task, groups in enumerate(in_parts(workers.tasks, weights)):
        for n, s in (map(int, g.split()) for g in groups):
            spread[n][s] = task
    location, deletes = o.events.table.location(), None
    if o.deletes is not None:
        job = DeletesJob(
            events=location,
            parts=in_parts(workers.tasks, events),
            again=list(o.again),
            rules=o.rules,
            store=o.lake_uri,
            folder=o.deletes,
            tasks=workers.tasks,
        )
        deletes = place_deletes(workers, job)
    return OrderJob(
        events=location,
        parts=in_parts(_readers(workers, tables), events),
        after_ts=o.rules.after_ts,
        until_ts=o.rules.until_ts,
        tables=list(described),
        tasks=spread,
        again=list(o.again),
        aside=list(o.aside),
        steps=[(topic, partition, offsets) for (topic, partition), offsets in o.steps.items()],
        deletes=deletes,
        store=o.lake_uri,
    )


def _readers(workers: Workers, tables: Sequence[Sized]) -> int:
    """The number of tasks that read events: fewer where tables have few, because every task begins with every table."""
    return max(1, min(workers.tasks, -(-sum(rows for _, rows in tables) // (_TABLE_ROWS * len(tables)))))


def _run(workers: Workers, job: OrderJob) -> tuple[dict[int, list[WrittenFile]], dict[int, TableOutcome]]:
    """Run the job. Return the files and the outcome of each table, by its number."""
    many = 1 + max(max(t) for t in job.tasks)
    files, outcomes = dict[int, list[WrittenFile]](), dict[int, TableOutcome]()
    for r in workers.exchanged(RowsReader(job), many, partial(Writer, job), STAGED):
        if r["path"] is None:
            outcomes.setdefault(r["table"], TableOutcome()).add(TableOutcome.model_validate_json(r["outcome"]))
            continue
        bucket = None if r["bucket"] == NO_BUCKET else r["bucket"]
        partition = (r["day"],) if job.tables[r["table"]].bucket is None else (bucket, r["day"])
        file = WrittenFile(path=r["path"], partition=partition, size=r["size"], sha256=r["sha256"], footer=bytes(r["footer"]))
        files.setdefault(r["table"], []).append(file)
    return files, outcomes
