"""Groups the row events of a window by names, schemas and place in time, in workers: a task per some files of the events table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BaseModel

from tidelake.order.arrow.event_groups import HOUR, any_of, coded, event_groups
from tidelake.order.repeated_offsets import Again
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets
from tidelake.wire.kernels.arrays import Longs

PLACES = ("undated", "huge", "waiting", "window", "published", "seeded", "late", "repeated")
_GROUP = [
    ("database", pa.string()),
    ("table", pa.string()),
    ("row_schema", pa.int64()),
    ("before_schema", pa.int64()),
    ("place", pa.int8()),
    ("hour", pa.string()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
]
_AGGREGATES = [
    ("rows", pa.int64(), "sum"),
    ("deletes", pa.int64(), "sum"),
    ("first_ts", pa.int64(), "min"),
    ("last_ts", pa.int64(), "max"),
    ("first_offset", pa.int64(), "min"),
    ("last_offset", pa.int64(), "max"),
    ("last_ordinal", pa.int64(), "max"),
]
# place: number in PLACES; hour, topic, partition: NULL unless the feed is ordered by offsets; *_ts: TSO
OBSERVED = pa.schema([*_GROUP, *((name, kind) for name, kind, _ in _AGGREGATES)])
_READ = (HOUR, "topic", "partition", "offset", "ordinal", "op", "commit_ts", "database", "table", "row_schema", "before_schema")


class PlaceRules(BaseModel):
    """What says where a row event lies, of PLACES.

    Attributes:
        again: Offsets that do not count, because an earlier hour has them.
        new: Hours that the last cut does not have.
        applied_ts: Start of the window (TSO), exclusive.
        resolved_ts: End of the window (TSO), inclusive.
        seeded_ts: TSO of the export that the last cut builds on, else 0.
        repeated: Rows of the window that the producer had sent before.
    """

    again: list[Again]
    new: list[str]
    applied_ts: int
    resolved_ts: int
    seeded_ts: int
    repeated: list[Again] = []


class ObservedJob(BaseModel):
    """What to group.

    Attributes:
        events: Location of the events table.
        parts: Keys of its files, by the task that reads them.
        rules: Where its rows lie.
        by_offsets: Also group by hour, topic and partition.
    """

    events: str
    parts: list[list[str]]
    rules: PlaceRules
    by_offsets: bool


class ObservedReader(PartReader[Sequence[str]]):
    """Reads rows of OBSERVED; a part is some files."""

    def __init__(self, job: ObservedJob) -> None:
        super().__init__(job.parts, OBSERVED)
        self.job = job

    def rows(self, part: Sequence[str], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        groups = (groups_of(e, self.job) for e in event_groups(self.job.events, part, _READ))
        yield from merged(groups).to_batches()


def groups_of(events: pa.Table, job: ObservedJob) -> pa.Table:
    """Return the groups of these events, as OBSERVED."""
    events = counted(events, job.rules)
    words = {name: coded(events, name) for name in ("database", "table", "op", HOUR, "topic")}
    ones = pa.repeat(pa.scalar(1, pa.int64()), events.num_rows)
    columns = {name: pa.array(codes) for name, (codes, _) in words.items() if name != "op"}
    columns |= {c: events.column(c) for c in ("row_schema", "before_schema", "partition")}
    columns |= {"place": pa.array(places_of(events, job.rules)), "rows": ones, "deletes": _is(*words["op"], "delete")}
    columns |= {f"{end}_{c}": events.column(s) for c, s in (("ts", "commit_ts"), ("offset", "offset")) for end in ("first", "last")}
    columns["last_ordinal"] = events.column("ordinal")
    grouped = _grouped(pa.table(columns), [n for n, _ in _GROUP if job.by_offsets or n not in (HOUR, "topic", "partition")])
    for name, (_, known) in words.items():
        if name in grouped.column_names:
            at = grouped.column_names.index(name)
            grouped = grouped.set_column(at, name, pa.array(known, pa.string()).take(grouped.column(name)))
    nothing = pa.nulls(grouped.num_rows)
    every = [(grouped.column(f.name) if f.name in grouped.column_names else nothing).cast(f.type) for f in OBSERVED]
    return pa.table(every, schema=OBSERVED)


def counted(events: pa.Table, rules: PlaceRules) -> pa.Table:
    """Return the events that no earlier hour has."""
    return events.filter(pa.array(~any_of(rules.again, events))) if rules.again else events


def places_of(events: pa.Table, rules: PlaceRules) -> npt.NDArray[np.int8]:
    """Return the place of each row, by its number in PLACES. events: what `counted` returns."""
    hour, hours = coded(events, HOUR)
    column = events.column("commit_ts").combine_chunks().cast(pa.int64())
    ts, new = np.asarray(column.fill_null(0)), np.array([h in rules.new for h in hours], np.bool_)[hour]
    cases = [np.asarray(column.is_null()), ts < 0, ts > rules.resolved_ts, ts > rules.applied_ts, ~new, ts <= rules.seeded_ts]
    places = np.select(cases, range(len(cases)), len(cases)).astype(np.int8)
    places[any_of(rules.repeated, events)] = PLACES.index("repeated")
    return places


def merged(groups: Iterable[pa.Table]) -> pa.Table:
    """Return groups of several tables as one table, each group once."""
    every = pa.concat_tables([OBSERVED.empty_table(), *groups])
    return _grouped(every, [n for n, _ in _GROUP]).select(OBSERVED.names).cast(OBSERVED)


def _grouped(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    found = rows.group_by(list(by), use_threads=False).aggregate([(name, how) for name, _, how in _AGGREGATES])
    return pa.table({n: found.column(n) for n in by} | {name: found.column(f"{name}_{how}") for name, _, how in _AGGREGATES})


def _is(codes: Longs, words: Sequence[str], word: str) -> pa.Array:
    return pa.array((codes == (words.index(word) if word in words else -2)).astype(np.int64))
