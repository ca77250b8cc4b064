"""Runs of row events whose names ascend, from the events' files, in workers: a task per some files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.history.source_names import PLACE_WIDTH, is_batch
from tidelake.order.arrow.event_groups import HOUR, any_of, coded, event_groups, numbers
from tidelake.order.repeated_offsets import Again
from tidelake.order.repeats.names_seen import Run
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets
from tidelake.wire.kernels.arrays import Flags, Longs

MOST_RUNS = 1024  # of a row group and a partition; more are one run that is mixed
NAMED = (HOUR, "topic", "partition", "offset", "ordinal", "op", "commit_ts", "source")  # columns to read
RUNS = pa.schema(
    [
        ("hour", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first", pa.int64()),
        ("first_ordinal", pa.int32()),
        ("last", pa.int64()),
        ("low", pa.string()),
        ("high", pa.string()),
        ("newest", pa.string()),
        ("rows", pa.int64()),
        ("mixed", pa.bool_()),
    ]
)


class RunsJob(BaseModel):
    """What to read.

    Attributes:
        events: Location of the events table.
        parts: Keys of its files, by the task that reads them.
        after_ts: Start of the window (TSO), exclusive.
        until_ts: End of the window (TSO), inclusive.
        again: Offsets that do not count, because an earlier hour has them.
        objects: First offset of every landed object, by topic and partition, ascending. A task has whole objects, in any order.
    """

    events: str
    parts: list[list[str]]
    after_ts: int
    until_ts: int
    again: list[Again]
    objects: dict[str, dict[int, list[int]]]


class RunsReader(PartReader[Sequence[str]]):
    """Reads rows of RUNS; a part is some files."""

    def __init__(self, job: RunsJob) -> None:
        super().__init__(job.parts, RUNS)
        self.job = job

    def rows(self, part: Sequence[str], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        for events in event_groups(self.job.events, part, NAMED):
            if found := runs_of(events, self.job):
                yield pa.RecordBatch.from_pylist([r._asdict() for r in found], schema=RUNS)


def in_window(events: pa.Table, job: RunsJob) -> pa.Table:
    """Return the window's events among these."""
    ts = numbers(events.column("commit_ts").combine_chunks(), -1)
    held = (ts > job.after_ts) & (ts <= job.until_ts) & ~any_of(job.again, events)
    return events if held.all() else events.filter(pa.array(held))


def runs_of(events: pa.Table, job: RunsJob) -> list[Run]:
    """Return the runs of the window's events that have names. events: NAMED of a row group."""
    events = in_window(events, job)
    events = events.filter(pc.is_valid(events.column("source")))
    if not events.num_rows:
        return []
    binlog = pc.utf8_slice_codeunits(events.column("source"), 0, -PLACE_WIDTH).combine_chunks().dictionary_encode()
    events = events.append_column("binlog", binlog)
    group = np.zeros(events.num_rows, np.int64)
    for name in (HOUR, "topic", "binlog"):
        code, words = coded(events, name)
        group = group * len(words) + code
    partition = numbers(events.column("partition").combine_chunks(), -1)
    group = group * (int(partition.max()) + 1) + partition
    offset, ordinal = (numbers(events.column(c).combine_chunks(), -1) for c in ("offset", "ordinal"))
    order = np.lexsort((ordinal, offset, group))
    ends = np.append(np.flatnonzero(np.diff(group[order])) + 1, len(order))
    return [run for first, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True) for run in _runs(events, order[first:end], job)]


def _runs(events: pa.Table, order: Longs, job: RunsJob) -> Iterator[Run]:
    """The runs of one hour, partition and binlog. order: its events in the order of their offsets."""
    mine = events.take(pa.array(order)).combine_chunks()
    names, offset, ordinal = mine.column("source").chunk(0), np.asarray(mine.column("offset")), np.asarray(mine.column("ordinal"))
    hour, topic, partition = (mine.column(c)[0].as_py() for c in (HOUR, "topic", "partition"))
    begins = np.array(job.objects.get(topic, {}).get(partition, []), np.int64)
    part = np.searchsorted(begins, offset, side="right")
    breaks = np.flatnonzero(~_follows(names, mine.column("op").chunk(0)) | (part[1:] != part[:-1])) + 1
    mixed = len(breaks) >= MOST_RUNS
    ends = [len(order)] if mixed else [*breaks.tolist(), len(order)]
    first = 0
    for end in ends:
        low, high = (names[first], names[end - 1]) if not mixed else pc.min_max(names).values()
        yield Run(
            hour=hour,
            topic=topic,
            partition=partition,
            first=int(offset[first]),
            first_ordinal=int(ordinal[first]),
            last=int(offset[end - 1]),
            low=low.as_py(),
            high=high.as_py(),
            newest=names[end - 1].as_py(),
            rows=end - first,
            mixed=mixed,
        )
        first = end


def _follows(names: pa.StringArray, op: pa.DictionaryArray) -> Flags:
    """Whether each event but the first has a higher name than the one before it, or is the second of two that an update became.

    An update that changes a key is sent as a delete and an insert with one name. A batch has any number of events with one name.
    """
    if is_batch(names[0].as_py()):
        return np.asarray(pc.greater_equal(names[1:], names[:-1]))
    higher = np.asarray(pc.greater(names[1:], names[:-1]))
    if higher.all():
        return higher
    codes = numbers(op.indices, -1)
    second = np.asarray(pc.equal(names[1:], names[:-1])) & (codes[1:] != codes[:-1])
    second[1:] &= higher[:-1]  # the first of the two has a higher name than the one before it
    found: Flags = higher | second
    return found
