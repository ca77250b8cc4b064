"""Masks in the order stage: hashes of cells that decode left unmasked, computed in Python workers.

Spark could hash by itself, but then its plans, which the UI and the event log keep, would contain the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.errors import OrderError
from tidelake.history.projection import CellPlace, Projection, lived
from tidelake.lake.tables import mask_of
from tidelake.order.sql.rows import TableRows
from tidelake.spark.worker_errors import errors_as_text
from tidelake.spark.worker_secrets import handed
from tidelake.wire.masks import SIDES, MaskPlaces, check_mask, masked_cells, refuse_other_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def hashed(rows: DataFrame, table: TableRows) -> DataFrame:
    """Hash all cells that the feed wants hashed. Rows pass through Python only if some cells are not hashed yet.

    Raises:
        ConfigError: The column cannot have its mask.
        OrderError: MASKED: cells have another mask.
    """
    todo = cells_in_clear(table)
    if not todo:
        return rows
    marks = {m for p in table.projections if (m := mask_of(table.feed, table.incarnation, p.column)) is not None}
    given = handed(rows.sparkSession)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key = given.secrets().mask_key.encode()
        with errors_as_text():
            refuse_other_key(marks, key)
        for batch in batches:
            yield _masked(batch, todo, key)

    return rows.mapInArrow(work, rows.schema)


def cells_in_clear(table: TableRows) -> list[CellPlace]:
    """Return the places of cells that must be hashed and are not.

    Raises:
        ConfigError: A column cannot have its mask.
        OrderError: MASKED: cells have another mask.
    """
    i = table.incarnation
    for c in lived(i):
        if (mask := mask_of(table.feed, i, c)) is not None:
            check_mask(i.name, c.name, mask, c.id in i.key, c.type)
    return [place for p in table.projections for place in _in_clear(p, table)]


def _in_clear(p: Projection, table: TableRows) -> list[CellPlace]:
    """The places of cells to hash."""
    wanted = mask_of(table.feed, table.incarnation, p.column)
    columns = {s.id: s.columns for s in table.row_schemas}
    for place in p.places:
        have = columns[place.row_schema][place.position].mask
        if have is not None and have != wanted:
            raise OrderError(
                f"column {p.column.name} of {table.incarnation.name} was decoded with mask {have}, the feed sets {wanted or 'none'}",
                code="MASKED",
                remedy=f"decode the hours after the last cut again: `tidelake decode --feed {table.feed.name} --hour … --redo`",
            )
    hashes = wanted is not None and wanted.startswith("hash")
    return [place for place in p.places if hashes and columns[place.row_schema][place.position].mask is None]


def _masked(batch: pa.RecordBatch, todo: Iterable[CellPlace], key: bytes) -> pa.RecordBatch:
    ts = batch.column("commit_ts")
    for side, said in SIDES.items():
        places: MaskPlaces = {}
        for place in todo:
            there = pc.equal(batch.column(said), place.row_schema)
            there = pc.and_(there, pc.fill_null(pc.greater(ts, place.after_ts), True))
            if place.until_ts is not None:
                there = pc.and_(there, pc.fill_null(pc.less_equal(ts, place.until_ts), True))
            rows = np.flatnonzero(np.array(pc.fill_null(there, False)))
            places.setdefault("hash", []).append((rows, place.position))
        at = batch.schema.get_field_index(side)
        cells = masked_cells(batch.column(side), places, key).cast(batch.schema.field(at).type)
        batch = batch.set_column(at, batch.schema.field(at), cells)
    return batch
