"""Row events that may be repeats and those that they may repeat, from the events' files, in workers: as hashes of what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.history.event import EVENT
from tidelake.history.source_names import binlog_of
from tidelake.order.arrow.event_groups import HOUR, among, coded, event_groups, numbers
from tidelake.order.arrow.row_streams import sent, stream
from tidelake.order.repeats.runs_reader import NAMED, RunsJob, in_window
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets
from tidelake.wire.kernels.arrays import Flags, Words
from tidelake.wire.row_hashes import row_hashes

_SAID = ("source", "database", "table", "op", "after", "before")  # what a repeat says again
_READ = tuple(dict.fromkeys((*NAMED, *_SAID)))
# rows: PLACES of the events as a stream of Arrow's IPC
COPIES = pa.schema([("hour", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("rows", pa.binary())])
# ours: of a message that may hold repeats; named: with a name that may have come twice; back: with a name that may have come before;
# h0, h1: hash of what it says
PLACES = pa.schema(
    [
        ("offset", pa.int64()),
        ("ordinal", pa.int32()),
        ("ours", pa.bool_()),
        ("named", pa.bool_()),
        ("back", pa.bool_()),
        ("h0", pa.uint64()),
        ("h1", pa.uint64()),
    ]
)
_MARKS = ("ours", "named", "back")
_ORDINAL_BITS = 17  # a message has at most 2^16 rows, and statements beside them


class Wanted(NamedTuple):
    """Names of a partition that may have come twice.

    Attributes:
        low: The lowest one, of some binlog.
        high: The highest one, of the same binlog.
        offsets: Offsets of the window's messages that may be repeats, ascending ranges.
    """

    topic: str
    partition: int
    low: str
    high: str
    offsets: tuple[tuple[int, int], ...]


class CopiesJob(RunsJob):
    """What to read.

    Attributes:
        parts: Keys of the window's files, then of earlier ones, by the task that reads them.
        wanted: Which events.
        late: Events of earlier hours that no table has, because they came after their hour was published.
        pass_of: (number of this pass, number of passes): a pass takes a share of the hashes.
    """

    wanted: list[Wanted]
    late: list[tuple[str, str, int, list[tuple[int, int]]]]
    pass_of: tuple[int, int]


class CopiesReader(PartReader[Sequence[str]]):
    """Reads rows of COPIES; a part is some files."""

    def __init__(self, job: CopiesJob) -> None:
        super().__init__(job.parts, COPIES)
        self.job = job

    def rows(self, part: Sequence[str], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        for events in event_groups(self.job.events, part, _READ):
            for place, found in copies_of(events, self.job):
                yield sent(COPIES, *place, stream(found))


def copies_of(events: pa.Table, job: CopiesJob) -> Iterator[tuple[tuple[str, str, int], pa.Table]]:
    """Yield the wanted events of a row group as (hour, topic, partition), PLACES. events: with the columns of _READ that the file has."""
    if "source" not in events.column_names:
        events = events.append_column("source", pa.nulls(events.num_rows, pa.string()))
    events = _counted(events, job)
    if not events.num_rows:
        return
    (hour, hours), (topic, topics) = coded(events, HOUR), coded(events, "topic")
    partition = numbers(events.column("partition").combine_chunks(), -1)
    inside = numbers(events.column("commit_ts").combine_chunks(), -1) > job.after_ts
    offset = numbers(events.column("offset").combine_chunks(), -1)
    for t, p in sorted({(w.topic, w.partition) for w in job.wanted}):
        if t not in topics:
            continue
        here = (topic == topics.index(t)) & (partition == p)
        mine = [w for w in job.wanted if (w.topic, w.partition) == (t, p)]
        marks = {mark: np.zeros(events.num_rows, np.bool_) for mark in _MARKS}
        for w in mine:
            ours, named = here & inside & among(offset, w.offsets), here & _has_name(events, w)
            for mark, those in zip(_MARKS, (ours, named, ours & named), strict=True):
                marks[mark] |= those
        chosen = np.flatnonzero(marks["ours"] | marks["named"])
        for h in np.unique(hour[chosen]).tolist():
            rows = chosen[hour[chosen] == h]
            yield (hours[h], t, p), _places(events.take(pa.array(rows)), [marks[m][rows] for m in _MARKS], job)


def _counted(events: pa.Table, job: CopiesJob) -> pa.Table:
    """The window's events, and earlier ones that tables have."""
    ts = numbers(events.column("commit_ts").combine_chunks(), -1)
    early = (ts >= 0) & (ts <= job.after_ts)
    if not early.any():
        return in_window(events, job)
    (hour, hours), (topic, topics) = coded(events, HOUR), coded(events, "topic")
    partition, offset, ordinal = (numbers(events.column(c).combine_chunks(), -1) for c in ("partition", "offset", "ordinal"))
    for h, t, p, places in job.late:
        if h in hours and t in topics:
            here = (hour == hours.index(h)) & (topic == topics.index(t)) & (partition == p)
            early &= ~(here & np.isin(offset << _ORDINAL_BITS | ordinal, [o << _ORDINAL_BITS | n for o, n in places]))
    return pa.concat_tables([events.filter(pa.array(early)), in_window(events, job)]).unify_dictionaries().combine_chunks()


def _has_name(events: pa.Table, wanted: Wanted) -> Flags:
    names = events.column("source")
    between = pc.and_(pc.greater_equal(names, wanted.low), pc.less_equal(names, wanted.high))
    return np.asarray(pc.fill_null(pc.and_(between, pc.starts_with(names, f"{binlog_of(wanted.low)}.")), False))


def _places(events: pa.Table, marks: Sequence[Flags], job: CopiesJob) -> pa.Table:
    columns = [events.column(c).combine_chunks().cast(EVENT.field(c).type) for c in _SAID]
    hashes: Words = row_hashes(columns, (job.until_ts, job.after_ts))
    h0, h1 = (pa.array(np.ascontiguousarray(hashes[:, n])) for n in (0, 1))
    columns = [*(events.column(c).combine_chunks() for c in ("offset", "ordinal")), *map(pa.array, marks), h0, h1]
    found = pa.table([c.cast(f.type) for c, f in zip(columns, PLACES, strict=True)], schema=PLACES)
    number, many = job.pass_of
    return found if many == 1 else found.filter(pa.array(np.asarray(h0) % np.uint64(many) == np.uint64(number)))
