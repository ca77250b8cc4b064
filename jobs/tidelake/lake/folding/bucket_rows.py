"""The rows of one bucket, of files that are not bucketed like the table that is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from tidelake.lake.columns.pieces import Piece, Rows
from tidelake.spark.buckets import buckets_of
from tidelake.wire.kernels.arrays import Flags


class BucketOnly(BaseModel, frozen=True):
    """A bucket. column: the column that rows are bucketed by; buckets: number of buckets; number: of this one, None for NULL."""

    column: str
    buckets: int
    number: int | None


class BucketRows:
    """Those of some rows that are in a bucket. Others are treated like deleted rows."""

    def __init__(self, rows: Rows, only: BucketOnly) -> None:
        self._rows, self._only = rows, only

    @property
    def count(self) -> int:
        """Number of rows of all buckets."""
        return self._rows.count

    @property
    def reached(self) -> int:
        """Number of rows that are read, of all buckets."""
        return self._rows.reached

    def pieces(self, columns: Sequence[str], wanted: Flags | None = None) -> Iterator[Piece]:
        """Yield the rows in order (lake.columns.pieces.Rows.pieces)."""
        for piece in self._rows.pieces(list(dict.fromkeys((*columns, self._only.column))), wanted):
            mine = self._inside(piece.cells(self._only.column))
            yield replace(piece, alive=mine if piece.alive is None else mine & piece.alive)

    def may_hold(self, column: str, values: pa.Array) -> Flags:
        """Return which rows may have one of the values (lake.columns.pieces.Rows.may_hold)."""
        return self._rows.may_hold(column, values)

    def _inside(self, cells: pa.Array) -> Flags:
        valid = np.asarray(cells.is_valid())
        if self._only.number is None:
            return ~valid
        out = np.zeros(len(cells), np.bool_)
        out[valid] = buckets_of(cells.drop_null(), self._only.buckets) == self._only.number
        return out
