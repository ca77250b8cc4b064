"""Rows that are put aside because they fit no schema of their table. Workers import this module."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.wire.kernels.arrays import Flags, Longs


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAside:
    """Rows of one name and schema with a commit ts from first_ts up to and including until_ts (TSO; None: without end)."""

    database: str
    table: str
    row_schema: int
    first_ts: int
    until_ts: int | None

    def among(self, events: pa.Table, ts: Longs) -> Flags:
        """Return which events are these rows. ts: their commit ts."""
        held: Flags = ts >= self.first_ts
        if self.until_ts is not None:
            held = held & (ts <= self.until_ts)
        held = held & _is(sent_schemas(events), self.row_schema)
        for column, name in (("database", self.database), ("table", self.table)):
            if held.any():
                held = held & _is(events.column(column).cast(pa.string()), name)
        return held


def sent_schemas(events: pa.Table) -> pa.ChunkedArray:
    """Return the number of each event's schema: of the row after the change, else of the row before it."""
    return pc.coalesce(events.column("row_schema"), events.column("before_schema"))


def _is(column: pa.ChunkedArray, value: object) -> Flags:
    return np.asarray(pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False))
