"""The values of a row image's columns, read from the cells as they were sent (docs/types.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.decode import late_cells, late_maxwell
from tidelake.history.ddl.column_types import MysqlType
from tidelake.lake.columns.cells import INVALID, NULLED, CellType, Codes, values
from tidelake.lake.columns.conversions import converted
from tidelake.order.arrow.event_groups import inside, numbers
from tidelake.order.arrow.table_models import ArrowColumn, ArrowTable, CellPosition, Reading
from tidelake.wire.cells.maxwell_cells import FORM
from tidelake.wire.hashes import Hashes, hex_digits
from tidelake.wire.kernels.arrays import Flags, Longs
from tidelake.wire.masks import SIDES, MaskPlaces, masked_cells, truncated

_NEVER = 2**63 - 1  # a ts after every row


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column of one image of every row: values, cells as sent, losses (None if nothing is lost), and whether the image has the column."""

    values: pa.Array
    cells: pa.Array
    lost: Codes | None
    sent: Flags

    def or_else(self, other: TypedColumn, where: Flags) -> TypedColumn:
        """Return the other column's values in these rows."""
        if not where.any():
            return self
        there, none = pa.array(where), np.zeros(len(where), np.int8)
        lost = None
        if self.lost is not None or other.lost is not None:
            lost = np.where(where, none if other.lost is None else other.lost, none if self.lost is None else self.lost)
        return TypedColumn(
            pc.if_else(there, other.values, self.values), pc.if_else(there, other.cells, self.cells), lost, self.sent | where
        )


class RowImages:
    """One image (before or after) of every row."""

    def __init__(self, events: pa.Table, side: str) -> None:
        lists, schemas = events.column(side).combine_chunks(), events.column(SIDES[side]).combine_chunks()
        self.absent = np.asarray(pc.is_null(schemas))
        self._ts = numbers(events.column("commit_ts").combine_chunks(), -1)
        self._span = int(self._ts.min(initial=_NEVER)), int(self._ts.max(initial=-1))
        encoded = schemas.dictionary_encode()
        self._code = numbers(encoded.indices, len(encoded.dictionary))
        self._codes = {schema: code for code, schema in enumerate(encoded.dictionary.to_pylist())}
        offsets = np.asarray(lists.offsets).astype(np.int64)
        self._first, self._end = offsets[:-1], offsets[1:]
        self._cells = lists.values.cast(pa.binary())
        self._none = np.asarray(pc.is_null(lists))

    def column(self, column: ArrowColumn, time_zone: str, *, as_sent: bool = False) -> TypedColumn:
        """Return a column's values, or the cells as they were sent. time_zone: the feed's."""
        position, reading = self._places(column)
        at, sent = self._first + position, position >= 0
        missing = ~sent | self.absent | self._none | (at >= self._end)
        cells = self._cells.take(pa.array(np.where(missing, 0, at), mask=missing))
        found, lost = (cells, None) if as_sent else _values(cells, reading, column, time_zone)
        return TypedColumn(found, cells, lost, sent & ~self.absent)

    def _places(self, column: ArrowColumn) -> tuple[Longs, Longs]:
        """Position (-1: none) and reading of the column's cell in every row. Rows of many schemas are looked up at once."""
        (first, last), whole, partly = self._span, list[CellPosition](), list[CellPosition]()
        for p in column.positions:
            if p.row_schema in self._codes:
                (whole if p.after_ts < first and (p.until_ts is None or last <= p.until_ts) else partly).append(p)
        of_schema = np.array([[-1], [0]]).repeat(len(self._codes) + 1, axis=1)  # the last one: no schema
        of_schema[:, [self._codes[p.row_schema] for p in whole]] = [[p.position for p in whole], [p.reading for p in whole]]
        position, reading = (known.take(self._code, mode="clip") for known in of_schema)  # all codes are known: numpy need not check them
        for p in partly:
            mine = (self._code == self._codes[p.row_schema]) & inside(self._ts, p)
            position[mine], reading[mine] = p.position, p.reading
        return position, reading


def _values(cells: pa.Array, reading: Longs, column: ArrowColumn, time_zone: str) -> tuple[pa.Array, Codes | None]:
    """Values of the column's type, each cell by its own reading."""
    if len(column.readings) == 1 or len(cells) == 0:
        return _read(cells, column.readings[0], column.type, time_zone)
    parts, losses, order = list[pa.Array](), list[Codes](), list[Longs]()
    for n in np.unique(reading).tolist():
        rows = np.flatnonzero(reading == n)
        found, lost = _read(cells.take(pa.array(rows)), column.readings[n], column.type, time_zone)
        parts.append(found)
        losses.append(np.zeros(len(rows), np.int8) if lost is None else lost)
        order.append(rows)
    place = np.argsort(np.concatenate(order))
    together = np.concatenate(losses)[place]
    return pa.concat_arrays(parts).take(pa.array(place)), together if together.any() else None


def _read(cells: pa.Array, reading: Reading, to: CellType, time_zone: str) -> tuple[pa.Array, Codes | None]:
    if reading.untyped:
        mysql = MysqlType.parse(reading.untyped)
        is_maxwell = reading.form == FORM
        late = late_maxwell.canonical(cells, mysql) if is_maxwell else late_cells.canonical(cells, mysql, time_zone)
        cells = cells if late is None else late
    found, lost = values(cells, reading.type)
    if reading.type.lake == to.lake:
        return found, lost
    moved = converted(found, reading.type.lake, to.lake, time_zone)
    gone = np.asarray(pc.and_(found.is_valid(), moved.is_null()))
    if not gone.any():
        return moved, lost
    none = np.zeros(len(cells), np.int8) if lost is None else lost
    return moved, np.where(gone, np.int8(INVALID if to.invalid == "reject" else NULLED), none)


def hashed(events: pa.Table, table: ArrowTable, key: bytes) -> pa.Table:
    """Return the events with the hashes of cells that were decoded in clear."""
    if not table.clear:
        return events
    ts, sides = numbers(events.column("commit_ts").combine_chunks(), -1), list[tuple[pa.ListArray, MaskPlaces]]()
    for side, said in SIDES.items():
        schemas, places = numbers(events.column(said).combine_chunks(), 0), MaskPlaces()
        for p in table.clear:
            places.setdefault("hash", []).append((np.flatnonzero((schemas == p.row_schema) & inside(ts, p)), p.position))
        sides.append((events.column(side).combine_chunks().cast(pa.list_(pa.binary())), places))
    for side, cells in zip(SIDES, masked_cells(sides, Hashes(key)), strict=True):
        at = events.schema.get_field_index(side)
        events = events.set_column(at, events.schema.field(at), cells.cast(events.schema.field(at).type))
    return events


def shown(cells: pa.Array, column: ArrowColumn) -> pa.Array:
    """Return cells as people may see them: under the column's mask."""
    mask = column.type.mask
    if mask == "hash":
        return hex_digits(cells.cast(pa.binary())).cast(pa.binary())
    return truncated(cells, mask, column.type.of_bytes) if mask is not None and mask.startswith("truncate") else cells
