"""How a table is folded, as planned by the driver and read by workers, and which rows a statement removed."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.config.lake_paths import EVENT
from tidelake.history.incarnations import ALWAYS
from tidelake.lake.columns.fold_columns import FoldColumn
from tidelake.lake.columns.pieces import COMMIT_TS, ORIGIN, Piece
from tidelake.wire.kernels.arrays import Flags

_WHOLE = pa.decimal128(38, 0)  # holds all integers that MySQL has


class Removed(BaseModel, frozen=True):
    """Rows up to ts that left with their partition (history.incarnations.Removal), by the names of the partition columns."""

    ts: int
    column: str
    low: str | None = None
    high: str | None = None
    values: tuple[str, ...] | None = None
    null: bool = False
    text: bool = False
    modulus: int | None = None
    hashed: tuple[str, ...] = ()
    also: tuple[Removed, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The partition columns."""
        return self.hashed or (self.column, *(a.column for a in self.also))

    def of(self, piece: Piece) -> Flags:
        """Return which rows belong to the partition, by all partition columns."""
        if self.hashed and self.modulus and self.values:
            from tidelake.lake.columns.key_partitions import key_partitions  # compiles; plans and queries at a cut need none of it

            number = key_partitions([piece.cells(c) for c in self.hashed], self.modulus)
            return np.isin(number, [int(v) for v in self.values])
        out = self.has(piece.cells(self.column))
        for a in self.also:
            out = out & a.has(piece.cells(a.column))
        return out

    def has(self, cells: pa.Array) -> Flags:
        """Return which cells of the partition column belong to the partition."""
        shown = self._shown(cells)
        if self.values is not None:
            inside = pc.is_in(shown, self._bounds(shown, self.values))
        else:
            sides = ((pc.greater_equal, self.low), (pc.less, self.high))
            inside = pc.is_valid(shown)
            for compares, bound in sides:
                if bound is not None:
                    inside = pc.and_(inside, compares(shown, self._bounds(shown, (bound,))[0]))
        found = np.asarray(pc.fill_null(inside, False))
        null = np.asarray(cells.is_null())
        return np.where(null, self.null, found)

    def _shown(self, cells: pa.Array) -> pa.Array:
        """The cells as the bounds are compared with: as text, as a remainder or as a number."""
        if self.text:
            return cells.cast(pa.string())
        if self.modulus is None:
            return cells.cast(_WHOLE)
        signed = not pa.types.is_decimal(cells.type)  # only BIGINT UNSIGNED is a decimal here
        number = np.asarray(cells.fill_null(0).cast(pa.int64() if signed else pa.uint64())).view(np.int64)  # as HASH takes it
        rest = np.abs(np.fmod(number, np.int64(self.modulus)))
        return pa.array(rest, mask=np.asarray(cells.is_null())).cast(_WHOLE)

    def _bounds(self, shown: pa.Array, texts: Sequence[str]) -> pa.Array:
        return pa.array([t if self.text else Decimal(t) for t in texts], shown.type)


class ComparedImages(BaseModel, frozen=True):
    """How old values are compared (docs/before-images.md).

    Attributes:
        columns: Columns to compare.
        share: One of so many keys is compared.
        key_only_deletes: Deletes have only the key's columns.
    """

    columns: tuple[str, ...]
    share: int
    key_only_deletes: bool


class FoldRules(BaseModel, frozen=True):
    """How to fold.

    Attributes:
        columns: Names of the table's columns, without `_commit_ts`.
        key: Those of the key, in key order; () for a table without key.
        after_ts: Changes after this TSO count.
        until_ts: Changes up to and including this TSO count.
        emptied_ts: Rows of the snapshot up to this TSO do not count (TRUNCATE).
        removed: Partitions whose rows left.
        partial: Some changes may have only their key.
        merges: Only rows whose key changes are looked up in the snapshot (merge-on-read).
        images: None if no old values are compared.
        only_moved: Only changes that come from no event count.
        leading: The column by whose ranges tasks can share a bucket; None if there is none.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]
    after_ts: int
    until_ts: int
    emptied_ts: int = ALWAYS
    removed: tuple[Removed, ...] = ()
    partial: bool = False
    merges: bool = False
    images: ComparedImages | None = None
    only_moved: bool = False
    leading: str | None = None

    @property
    def hash_key(self) -> tuple[int, int]:
        """Key of the hashes of a fold. Nobody knows until_ts before the rows are written."""
        return self.until_ts, self.after_ts

    @property
    def decisive(self) -> tuple[str, ...]:
        """Columns that say whether a row of the snapshot was removed."""
        partition = dict.fromkeys(c for r in self.removed for c in r.columns)
        return (*partition, COMMIT_TS) if self.removed or self.emptied_ts > ALWAYS else ()

    @property
    def counting(self) -> tuple[str, ...]:
        """Columns that say whether a change counts, and for what."""
        return tuple(dict.fromkeys((COMMIT_TS, *(c for r in self.removed for c in r.columns), *((ORIGIN,) if self.only_moved else ()))))

    def standing(self, piece: Piece) -> Flags | None:
        """Return which rows of the snapshot are neither deleted by position nor removed by a statement; None for all."""
        alive = piece.alive
        if self.emptied_ts > ALWAYS:
            alive = _both(alive, np.asarray(pc.greater(piece.cells(COMMIT_TS), self.emptied_ts)))
        return _both(alive, ~self.left(piece)) if self.removed else alive

    def inside(self, piece: Piece) -> Flags | None:
        """Return which changes count, by their commit ts; None for all. In a table without key, those of removed rows do not."""
        ts = piece.cells(COMMIT_TS)
        bounds = pc.min_max(ts).as_py()
        alive = piece.alive
        if piece.count and (bounds["min"] is None or bounds["min"] <= self.after_ts or bounds["max"] > self.until_ts or ts.null_count):
            of_window = pc.and_(pc.greater(ts, self.after_ts), pc.less_equal(ts, self.until_ts))
            alive = _both(alive, np.asarray(pc.fill_null(of_window, False)))
        if self.only_moved:
            alive = _both(alive, np.asarray(pc.fill_null(pc.not_equal(piece.cells(ORIGIN), EVENT), False)))
        return _both(alive, ~self.left(piece)) if self.removed and not self.key else alive

    def left(self, piece: Piece) -> Flags:
        """Return which rows left with a partition."""
        out = np.zeros(piece.count, np.bool_)
        ts = np.asarray(piece.cells(COMMIT_TS).fill_null(np.iinfo(np.int64).max))
        for r in self.removed:
            out |= (ts <= r.ts) & r.of(piece)
        return out


class TableFold(BaseModel, frozen=True):
    """A table to fold. base, changes: columns of the snapshot and of the changelog, as the fold has them."""

    rules: FoldRules
    base: tuple[FoldColumn, ...]
    changes: tuple[FoldColumn, ...]


def _both(one: Flags | None, other: Flags) -> Flags:
    return other if one is None else one & other
