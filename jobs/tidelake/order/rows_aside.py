"""Rows that are put aside because they fit no schema of their table. Workers import this module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.spark.sql_text import literal
from tidelake.wire.kernels.arrays import Flags, Longs

SENT_SCHEMA = "coalesce(row_schema, before_schema)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAside:
    """Rows of one name and schema with a commit ts from first_ts up to and including until_ts (TSO; None: without end)."""

    database: str
    table: str
    row_schema: int
    first_ts: int
    until_ts: int | None

    @property
    def sql(self) -> str:
        """Return the SQL condition for these rows."""
        until = "" if self.until_ts is None else f" AND commit_ts <= {self.until_ts}"
        sent = f"database = {literal(self.database)} AND table = {literal(self.table)} AND {SENT_SCHEMA} = {self.row_schema}"
        return f"({sent} AND commit_ts >= {self.first_ts}{until})"

    def among(self, events: pa.Table, ts: Longs) -> Flags:
        """Return which events are these rows. ts: their commit ts."""
        held: Flags = ts >= self.first_ts
        if self.until_ts is not None:
            held = held & (ts <= self.until_ts)
        schemas = pc.coalesce(events.column("row_schema"), events.column("before_schema"))
        held = held & _is(schemas, self.row_schema)
        for column, name in (("database", self.database), ("table", self.table)):
            if held.any():
                held = held & _is(events.column(column).cast(pa.string()), name)
        return held


def outside(aside: Sequence[RowsAside]) -> str:
    """Return the SQL condition for all other rows."""
    return "".join(f" AND NOT {a.sql}" for a in aside)


def _is(column: pa.ChunkedArray, value: object) -> Flags:
    return np.asarray(pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False))
