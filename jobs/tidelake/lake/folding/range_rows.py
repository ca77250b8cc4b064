"""The rows of one side of a fold whose key begins with a value of a range, so that several tasks share a bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from tidelake.lake.columns.pieces import Piece
from tidelake.lake.folding.file_rows import FileRows, numbers_of
from tidelake.wire.kernels.arrays import Flags

_LARGEST = 2.0**63 - 1024  # of the float64 numbers that are an int64
Span = tuple[int, int, int]  # of a file: number of rows, lowest and highest value


class LeadingRange(BaseModel, frozen=True):
    """A range of a key's first column, as int64 (dates in days, times in microseconds).

    Attributes:
        column: The column.
        low: The lowest value; None for no limit and NULL.
        high: The first value above the range; None for no limit.
    """

    column: str
    low: int | None
    high: int | None


def key_ranges(column: str, spans: Sequence[Span], many: int) -> list[LeadingRange]:
    """Divide the values of a column into ranges with about as many rows each, as if the values of a file were evenly distributed.

    Args:
        column: The column.
        spans: Of each file: number of rows, lowest and highest value.
        many: Number of ranges that are wanted.

    Returns:
        The ranges; fewer than `many` if there are fewer values, none if one is enough.
    """
    if many < 2 or not spans:
        return []
    rows, low, high = np.array(spans, np.float64).T
    at = np.unique(np.concatenate([low, high + 1]))
    below = np.array([np.sum(rows * np.clip((p - low) / np.maximum(high + 1 - low, 1), 0, 1)) for p in at])
    wanted = np.interp(np.arange(1, many) * (rows.sum() / many), below, at)
    cuts = np.unique(np.minimum(wanted, _LARGEST).astype(np.int64)).tolist()
    edges = [None, *(c for c in cuts if low.min() < c <= high.max()), None]
    return [LeadingRange(column=column, low=a, high=b) for a, b in pairwise(edges)] if len(edges) > 2 else []


def rows_read(spans: Sequence[Span], ranges: Sequence[LeadingRange]) -> int:
    """Return how many rows are read if each range reads all files that may have rows of it. spans: as of key_ranges."""
    rows, low, high = np.array(spans, np.int64).reshape(-1, 3).T
    cuts = np.array([r.high for r in ranges if r.high is not None], np.int64)
    first, last = (np.searchsorted(cuts, values, "right") for values in (low, high))
    return int(np.sum(rows * (last - first + 1)))


class RangeRows:
    """Those rows of files that are in a range. Others are treated like deleted rows, and their row groups are not read."""

    def __init__(self, rows: FileRows, only: LeadingRange) -> None:
        self._rows, self._only = rows, only
        self._near = rows.may_lie(only.column, only.low, only.high)

    @property
    def count(self) -> int:
        """Number of rows of all ranges."""
        return int(self._rows.count)

    @cached_property
    def reached(self) -> int:
        """Number of rows of this range. They are counted: a large row group may hold many ranges."""
        return sum(p.count if p.alive is None else int(p.alive.sum()) for p in self.pieces(()))

    def pieces(self, columns: Sequence[str], wanted: Flags | None = None) -> Iterator[Piece]:
        """Yield the rows in order (lake.columns.pieces.Rows.pieces)."""
        near = self._near if wanted is None else self._near & wanted
        for piece in self._rows.pieces(list(dict.fromkeys((*columns, self._only.column))), near):
            mine = self._inside(piece.cells(self._only.column))
            yield replace(piece, alive=mine if piece.alive is None else mine & piece.alive)

    def may_hold(self, column: str, values: pa.Array) -> Flags:
        """Return which rows may have one of the values (lake.columns.pieces.Rows.may_hold)."""
        return self._near & self._rows.may_hold(column, values)

    def _inside(self, cells: pa.Array) -> Flags:
        valid, low, high = np.asarray(cells.is_valid()), self._only.low, self._only.high
        numbers = numbers_of(cells.fill_null(0))
        out = np.ones(len(cells), np.bool_)
        if low is not None:
            out &= numbers >= low
        if high is not None:
            out &= numbers < high
        return np.where(valid, out, low is None)
