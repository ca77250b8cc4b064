"""Groups the window's rows that fit no schema, in workers: a task per some files of the events table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.order.arrow.event_groups import HOUR, event_groups, numbers
from tidelake.order.observed_source import PLACES, PlaceRules, counted, places_of
from tidelake.order.rows_aside import RowsAside, sent_schemas
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets

_GROUP = ("hour", "database", "table", "sent")
_PLACE = ("topic", "partition", "offset")
_ANY = pc.ScalarAggregateOptions(skip_nulls=False)
_AGGREGATES = [*((name, "first", _ANY) for name in (*_PLACE, "timestamp_ms")), ("first_ts", "min", None), ("rows", "sum", None)]
# sent: number of the schema; topic, partition, offset, timestamp_ms: of the first row; first_ts: the lowest commit ts (TSO)
GROUPS = pa.schema(
    [
        ("hour", pa.string()),
        ("database", pa.string()),
        ("table", pa.string()),
        ("sent", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("first_ts", pa.int64()),
        ("rows", pa.int64()),
    ]
)
_READ = (HOUR, "topic", "partition", "offset", "ordinal", "timestamp_ms", "commit_ts", "database", "table", "row_schema", "before_schema")


class MismatchJob(BaseModel):
    """What to group.

    Attributes:
        events: Location of the events table.
        parts: Keys of its files, by the task that reads them.
        rules: Which rows are the window's.
        aside: Rows that fit no schema.
    """

    events: str
    parts: list[list[str]]
    rules: PlaceRules
    aside: list[RowsAside]


class MismatchReader(PartReader[Sequence[str]]):
    """Reads rows of GROUPS; a part is some files."""

    def __init__(self, job: MismatchJob) -> None:
        super().__init__(job.parts, GROUPS)
        self.job = job

    def rows(self, part: Sequence[str], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        groups = (groups_of(e, self.job) for e in event_groups(self.job.events, part, _READ, self._wanted))
        yield from merged(groups).to_batches()

    def _wanted(self, low: int, high: int) -> bool:
        return any(high >= a.first_ts and (a.until_ts is None or low <= a.until_ts) for a in self.job.aside)


def groups_of(events: pa.Table, job: MismatchJob) -> pa.Table:
    """Return the groups of these events, as GROUPS."""
    events = events.filter(pc.is_in(sent_schemas(events), pa.array({a.row_schema for a in job.aside}, pa.int64())))
    events = counted(events, job.rules)
    events = events.filter(pa.array(places_of(events, job.rules) == PLACES.index("window")))
    ts = numbers(events.column("commit_ts").combine_chunks(), -1)
    found = np.zeros(events.num_rows, np.bool_)
    for a in job.aside:
        found |= a.among(events, ts)
    columns = {name: events.column(name) for name in ("hour", "database", "table", *_PLACE, "timestamp_ms")}
    columns |= {"sent": sent_schemas(events), "first_ts": pa.array(ts), "rows": pa.repeat(pa.scalar(1, pa.int64()), events.num_rows)}
    return merged([pa.table([columns[f.name].cast(f.type) for f in GROUPS], schema=GROUPS).filter(pa.array(found))])


def merged(groups: Iterable[pa.Table]) -> pa.Table:
    """Return groups of several tables as one table, each group once."""
    every = pa.concat_tables([GROUPS.empty_table(), *groups]).sort_by([(name, "ascending") for name in _PLACE])
    found = every.group_by(list(_GROUP), use_threads=False).aggregate(_AGGREGATES)
    columns = {n: found.column(n) for n in _GROUP} | {name: found.column(f"{name}_{how}") for name, how, _ in _AGGREGATES}
    return pa.table([columns[f.name] for f in GROUPS], schema=GROUPS)
