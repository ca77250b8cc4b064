"""Commit ts of deletes that were sent without one: what `deletes` computed, looked up for the events that a worker reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel

from tidelake.io.object_store import Store
from tidelake.order.arrow.deletes import PLACED
from tidelake.wire.kernels.arrays import Longs

_DATED = -1  # of rows that came with a commit ts


class DeletesObject(BaseModel, frozen=True):
    """An object with the placed deletes of one partition, as PLACED."""

    topic: str
    partition: int
    key: str


class PlacedDeletes:
    """Placed deletes of all partitions; a partition's object is read when its first event is met."""

    def __init__(self, store: Store, objects: Sequence[DeletesObject], folder: Path) -> None:
        self._store, self._folder = store, folder
        self._objects: Mapping[tuple[str, int], str] = {(o.topic, o.partition): o.key for o in objects}
        self._read: dict[tuple[str, int], pa.Table] = {}

    def dated(self, events: pa.Table) -> tuple[pa.Table, Longs]:
        """Return (the events with the commit ts of placed deletes, for each event: 1 may be after the cut, 0 is not, -1 came with a ts)."""
        column = events.column("commit_ts").combine_chunks()
        bare = np.flatnonzero(np.asarray(column.is_null()))
        unsettled = np.full(events.num_rows, _DATED, np.int64)
        if not len(bare):
            return events, unsettled
        ts, known = np.asarray(column.fill_null(0)).copy(), np.asarray(column.is_valid()).copy()
        few = events.select(["topic", "partition", "offset", "ordinal"]).take(pa.array(bare))
        topics = few.column("topic").cast(pa.string())
        for topic, partition in {*zip(topics.to_pylist(), few.column("partition").to_pylist(), strict=True)} & {*self._objects}:
            mine = np.flatnonzero(np.asarray(pc.and_(pc.equal(topics, topic), pc.equal(few.column("partition"), partition))))
            rows, found = self._matches(few.take(pa.array(mine)), self._of(topic, partition))
            at = bare[mine[rows]]
            ts[at], known[at] = np.asarray(found.column("commit_ts")), True
            unsettled[at] = np.asarray(found.column("unsettled")).astype(np.int64)
        place = events.schema.get_field_index("commit_ts")
        return events.set_column(place, events.schema.field(place), pa.array(ts, pa.int64(), mask=~known)), unsettled

    @staticmethod
    def _matches(rows: pa.Table, placed: pa.Table) -> tuple[Longs, pa.Table]:
        """Return (row numbers, their places), joined by offset and ordinal."""
        ordinal = rows.column("ordinal").cast(pa.int64())
        left = pa.table({"offset": rows.column("offset"), "ordinal": ordinal, "row": np.arange(rows.num_rows)})
        joined = left.join(placed, ["offset", "ordinal"], join_type="inner", use_threads=False)
        return np.asarray(joined.column("row")), joined

    def _of(self, topic: str, partition: int) -> pa.Table:
        if (topic, partition) not in self._read:
            path = self._store.fetch(self._objects[topic, partition], self._folder / "placed.parquet")
            self._read[topic, partition] = pq.read_table(path, schema=PLACED, use_threads=False)
        return self._read[topic, partition]
