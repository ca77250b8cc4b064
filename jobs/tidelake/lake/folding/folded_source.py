"""Reads a table's folded rows, or the rows of one side as a fold has them, in workers, a task per unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from tidelake.errors import QualityError
from tidelake.lake.columns.fold import BucketFold
from tidelake.lake.columns.fold_rules import TableFold
from tidelake.lake.columns.pieces import CHANGE_TYPE, COMMIT_TS, Piece
from tidelake.lake.columns.survivors import KeyTwice
from tidelake.lake.folding.units import Unit, sides_of
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets
from tidelake.wire.kernels.arrays import Flags


class FoldedJob(BaseModel, frozen=True):
    """What to read.

    Attributes:
        name: The table, for messages.
        table: How it is folded.
        units: Each is read by a task of its own.
        rows: The folded rows, or those of the snapshot or of the changelog that count.
        columns: The columns, besides those of the table.
    """

    name: str
    table: TableFold
    units: tuple[Unit, ...]
    rows: Literal["folded", "snapshot", "changes"] = "folded"
    columns: tuple[str, ...] = (COMMIT_TS,)

    @property
    def schema(self) -> pa.Schema:
        """The frame's columns."""
        side = {c.name: c for c in (self.table.changes if self.rows == "changes" else self.table.base)}
        return pa.schema([(name, side[name].arrow) for name in (*self.table.rules.columns, *self.columns)])


class FoldedReader(PartReader[Unit]):
    """Reads folded rows; a part is a unit."""

    def __init__(self, job: FoldedJob) -> None:
        super().__init__(job.units, job.schema)
        self.job = job

    def rows(self, part: Unit, secrets: Secrets) -> Iterator[pa.RecordBatch]:
        for batch in self._rows(part):
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in self.schema.names], schema=self.schema)

    def _rows(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        job, rules = self.job, self.job.table.rules
        with sides_of(job.table, unit) as (_, base, changes):
            if job.rows == "folded":
                try:
                    yield from BucketFold(base, changes, rules).rows()
                except KeyTwice as e:
                    raise QualityError(f"{job.name}: keys occur twice in the snapshot: {e}", code="KEY_NOT_UNIQUE") from e
                return
            side, counts = (base, rules.standing) if job.rows == "snapshot" else (changes, rules.inside)
            for piece in side.pieces(list(dict.fromkeys((*job.schema.names, COMMIT_TS)))):
                yield _chosen(piece, counts(piece), job.schema.names)


def _chosen(piece: Piece, alive: Flags | None, names: Sequence[str]) -> pa.RecordBatch:
    columns = [c.cast(pa.string()) if n == CHANGE_TYPE else c for n in names for c in (piece.cells(n),)]
    rows = pa.RecordBatch.from_arrays(columns, names=list(names))
    return rows if alive is None else rows.take(pa.array(np.flatnonzero(alive)))
