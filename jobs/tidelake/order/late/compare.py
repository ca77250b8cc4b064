"""Compares late events with published ones in workers, and writes the ledger's files: equal facts meet in one task."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.io.storage import open_store
from tidelake.order.arrow.event_groups import coded, event_groups
from tidelake.order.arrow.row_streams import read_streams, received, sent, streams
from tidelake.order.late.facts import READ, ROW, facts
from tidelake.order.late.verdicts import VERDICTS, verdicts
from tidelake.order.observed_source import PLACES, PlaceRules, counted, places_of
from tidelake.spark.parquet_files import OpenFile, footer, kept_if_whole
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Handed, Secrets
from tidelake.spark.workers import worker
from tidelake.wire.kernels.arrays import Flags

# share: of the hashes of rows; rows: facts as a stream of Arrow's IPC
SENT = pa.schema([("task", pa.int32()), ("share", pa.int32()), ("rows", pa.binary())])
# counts: table → verdict → late events, as JSON; path: NULL if all are replays
COMPARED = pa.schema([("counts", pa.string()), ("path", pa.string()), ("size", pa.int64()), ("footer", pa.binary())])


class LateJob(BaseModel):
    """What to compare.

    Attributes:
        events: Location of the events table.
        parts: Keys of its files, by the task that reads them.
        late: Files that may hold late events.
        published: Files that hold published events.
        rules: Which events are late.
        from_ts: Lowest commit ts (TSO) of the late events.
        names: Tables of the late events, as sent.
        keys: Schema → positions of the key's cells, for schemas with a key.
        steps: Topic and partition → offsets at which the resolved ts went back.
        shares: Number of shares; one is in memory at a time.
        tasks: Number of tasks that compare.
        ledger: Location of the ledger.
        schema_hex: Arrow schema of the ledger's files, as hex.
        seq: Number of the cut.
    """

    events: str
    parts: list[list[str]]
    late: set[str]
    published: set[str]
    rules: PlaceRules
    from_ts: int
    names: list[tuple[str, str]]
    keys: dict[int, list[int]]
    steps: list[tuple[str, int, list[int]]]
    shares: int
    tasks: int
    ledger: str
    schema_hex: str
    seq: int

    @property
    def hash_key(self) -> tuple[int, int]:
        """Key of the hashes."""
        return self.rules.applied_ts, self.rules.resolved_ts


class FactsReader(PartReader[Sequence[str]]):
    """Reads rows of SENT; a part is some files."""

    def __init__(self, job: LateJob) -> None:
        super().__init__(job.parts, SENT)
        self.job = job

    def rows(self, part: Sequence[str], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        job = self.job
        for key in part:
            for events in event_groups(job.events, [key], READ, self._may_hold):
                for late in (late for late, keys in ((True, job.late), (False, job.published)) if key in keys):
                    wanted = _late(events, job) if late else _published(events, job)
                    if wanted.num_rows:
                        yield from _sent(facts(wanted, job.keys, job.hash_key, late), job)

    def _may_hold(self, low: int, high: int) -> bool:
        return low <= self.job.rules.applied_ts and high >= self.job.from_ts


def _late(events: pa.Table, job: LateJob) -> pa.Table:
    events = counted(events, job.rules)
    return events.filter(pa.array(places_of(events, job.rules) == PLACES.index("late")))


def _published(events: pa.Table, job: LateJob) -> pa.Table:
    ts = events.column("commit_ts")
    inside = pc.and_(pc.greater_equal(ts, job.from_ts), pc.less_equal(ts, job.rules.applied_ts))
    return events.filter(pc.and_(pc.fill_null(inside, False), pa.array(_named(events, job.names))))


def _named(events: pa.Table, names: Sequence[tuple[str, str]]) -> Flags:
    """Return which events have one of these names."""
    (database, databases), (table, tables) = coded(events, "database"), coded(events, "table")
    numbers = {(databases.index(d), tables.index(t)) for d, t in names if d in databases and t in tables}
    wanted = [d * len(tables) + t for d, t in numbers]
    found: Flags = np.isin(database * len(tables) + table, wanted)
    return found


def _sent(found: pa.Table, job: LateJob) -> Iterator[pa.RecordBatch]:
    share = np.asarray(found.column(ROW[0])).view(np.uint64) % np.uint64(job.shares)
    for s in np.unique(share).tolist():
        for rows in streams(found.filter(pa.array(share == s))):
            yield sent(SENT, s % job.tasks, s, rows)


@dataclass(frozen=True, slots=True)
class Comparer:
    """The function that Spark calls in a worker: compares the shares that it gets, and writes a file of the ledger."""

    job: LateJob
    handed: Handed

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job, counts = self.job, dict[str, Counter[str]]()
        store, schema = open_store(job.ledger), pa.ipc.read_schema(pa.BufferReader(bytes.fromhex(job.schema_hex)))
        with worker(self.handed.secrets()), TemporaryDirectory(prefix="tidelake-order-") as folder, kept_if_whole(store) as keys:
            path = Path(folder) / "late.parquet"
            with OpenFile(path, schema) as file:
                for share in _received(batches, Path(folder)):
                    found = _compared(read_streams(share), job, counts)
                    if found.num_rows:
                        file.write(found)
                    share.unlink()
            written = dict[str, object]()
            if file.rows:
                keys.append(f"data/seq={job.seq}/{uuid4()}.parquet")
                store.upload(keys[-1], path)
                written = {"path": keys[-1], "size": path.stat().st_size, "footer": footer(path)}
            yield pa.RecordBatch.from_pylist([{"counts": json.dumps(counts), **written}], schema=COMPARED)


def _received(batches: Iterable[pa.RecordBatch], folder: Path) -> list[Path]:
    """Write the facts to this machine's disk, one file for each share."""
    paths = dict[int, Path]()
    for batch in batches:
        for share, rows in zip(batch.column("share").to_pylist(), received(batch.column("rows")), strict=True):
            with paths.setdefault(share, folder / str(share)).open("ab") as out:
                out.write(rows)
    return [paths[s] for s in sorted(paths)]


def _compared(found: pa.Table, job: LateJob, counts: dict[str, Counter[str]]) -> pa.Table:
    """Return the rows for the ledger; add to the counts."""
    late = np.asarray(found.column("late"))
    events, published = (found.filter(pa.array(side)) for side in (late, ~late))
    verdict = verdicts(events, published, job.steps)
    events = events.append_column("verdict", pa.array(VERDICTS).take(pa.array(verdict)))
    events = events.append_column("seq", pa.array(np.full(events.num_rows, job.seq, np.int32)))
    for row in events.group_by(["database", "table", "verdict"]).aggregate([([], "count_all")]).to_pylist():
        name = json.dumps([row["database"], row["table"]])
        counts.setdefault(name, Counter())[row["verdict"]] += row["count_all"]
    return events.filter(pa.array(verdict > 0))
