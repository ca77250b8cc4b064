"""Columns of a snapshot or changelog as a fold has them: physical columns converted and joined, and defaults of added columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.lake.columns.cells import CellType, arrow_type, values
from tidelake.lake.columns.conversions import converted


class Holder(BaseModel, frozen=True):
    """A physical column. field_id: Iceberg's id; type: lake type."""

    field_id: int
    type: str


class Default(BaseModel, frozen=True):
    """The value of rows that are older than the column.

    Attributes:
        cell: The value's canonical bytes, as hex digits.
        kind: How it is read.
        until_ts: Rows up to this commit ts have it even where a physical column exists; None for those without physical column alone.
    """

    cell: str
    kind: CellType
    until_ts: int | None = None

    def value(self, to: str, zone: str) -> pa.Scalar:
        """Return the value in a lake type. zone: of the feed."""
        found, _ = values(pa.array([bytes.fromhex(self.cell)], pa.binary()), self.kind)
        return converted(found, self.kind.lake, to, zone)[0]


class FoldColumn(BaseModel, frozen=True):
    """A column of a fold.

    Attributes:
        name: Its name in the fold.
        type: Its lake type in the fold.
        holders: The physical columns that have its values, in the order in which they are asked.
        default: The value of older rows; None for NULL.
        zone: Time zone of the feed, for timestamps that become texts and the reverse.
        coded: Its values are long and may repeat, so its cells are dictionaries where they do (lake.columns.repeated).
    """

    name: str
    type: str
    holders: tuple[Holder, ...]
    default: Default | None = None
    zone: str = "UTC"
    coded: bool = False

    @property
    def needs_ts(self) -> bool:
        """Whether a row's value depends on its commit ts."""
        return self.default is not None and self.default.until_ts is not None

    @cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type."""
        return arrow_type(self.type)

    def cells(self, held: Sequence[pa.Array], rows: int, commit_ts: pa.Array | None) -> pa.Array:
        """Return the column.

        Args:
            held: Cells of the holders, in their order.
            rows: Number of rows.
            commit_ts: Commit ts of the rows; needed only if needs_ts.

        Raises:
            OrderError: UNSUPPORTED_DDL for values that cannot be converted.
        """
        found = [c if h.type == self.type else converted(c, h.type, self.type, self.zone) for h, c in zip(self.holders, held, strict=True)]
        if not found:
            return pa.nulls(rows, self.arrow) if self.default is None else _repeated(self._older, rows, self.arrow)
        cells = found[0] if len(found) == 1 else pc.coalesce(*found)
        if self.default is None or self.default.until_ts is None:
            return cells
        older = pc.less_equal(commit_ts, self.default.until_ts)
        if pa.types.is_list(self.arrow):  # if_else knows no lists
            both = pa.concat_arrays([cells, _repeated(self._older, 1, self.arrow)])
            return both.take(pa.array(np.where(np.asarray(older), rows, np.arange(rows))))
        return pc.if_else(older, self._older, cells)

    @cached_property
    def _older(self) -> pa.Scalar:
        assert self.default is not None
        return self.default.value(self.type, self.zone)


def _repeated(value: pa.Scalar, rows: int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, kind)
