"""Rows of one side of a fold, snapshot or changelog, that are read piece by piece: never all of them are in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tidelake.wire.kernels.arrays import Flags

CHANGE_TYPE, CHANGE_SEQ, COMMIT_TS, PARTIAL = "_change_type", "_change_seq", "_commit_ts", "_partial"
ORIGIN = "_origin"
PLACE = ("_topic", "_kafka_partition", "_offset")  # where a change comes from


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive rows. first: number of the first one on its side; alive: rows that are not deleted by position, None for all."""

    first: int
    rows: pa.RecordBatch
    alive: Flags | None = None

    @property
    def count(self) -> int:
        """Number of rows, deleted ones included."""
        return int(self.rows.num_rows)

    def cells(self, column: str) -> pa.Array:
        """Return a column."""
        return self.rows.column(column)


class Rows(Protocol):
    """One side of a fold. count: number of its rows, those included that are deleted by position."""

    @property
    def count(self) -> int:
        """Number of rows, deleted ones included."""

    @property
    def reached(self) -> int:
        """Number of rows that `pieces` yields if all are wanted, or more: as many keys may have to be held."""

    def pieces(self, columns: Sequence[str], wanted: Flags | None = None) -> Iterator[Piece]:
        """Yield the rows in order, with these columns in the fold's names and types.

        Args:
            columns: Columns to read.
            wanted: Rows that are needed; pieces without any may be left out. None means all.
        """

    def may_hold(self, column: str, values: pa.Array) -> Flags:
        """Return which rows may have one of the values, as far as statistics of files tell.

        Args:
            column: A column.
            values: Values without NULL, in the fold's type, ascending.
        """
