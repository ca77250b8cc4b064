"""All that a worker must know of a table whose rows it orders (order.arrow.arrow_plan says which). Workers import it: no pyiceberg here."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pydantic import BaseModel

from tidelake.order.arrow.arrow_cells import CellType


class CellPosition(BaseModel, frozen=True):
    """In rows of this shape with a commit ts in (after_ts, until_ts] the cell is at `position`."""

    shape: int
    position: int
    after_ts: int
    until_ts: int | None


class ArrowColumn(BaseModel, frozen=True):
    """A source column: its name in the changelog, and where its cells are."""

    id: int
    name: str
    type: CellType
    positions: tuple[CellPosition, ...]


class SentName(BaseModel, frozen=True):
    """A name that means the table in (after_ts, until_ts]."""

    database: str
    table: str
    after_ts: int
    until_ts: int | None


class ArrowTable(BaseModel, frozen=True):
    """A table. key, bucket: ids of columns; location, columns: of the changelog's files, as event_files.EventsPlace has them."""

    names: tuple[SentName, ...]
    columns: tuple[ArrowColumn, ...]
    key: tuple[int, ...]
    bucket: int
    buckets: int
    location: str
    schema_hex: str

    @property
    def schema(self) -> pa.Schema:
        """Of the changelog's files."""
        return pa.ipc.read_schema(pa.BufferReader(bytes.fromhex(self.schema_hex)))


def names_of(tables: Sequence[ArrowTable]) -> dict[tuple[str, str], list[int]]:
    """Numbers of the tables that a (database, table) as sent may mean."""
    out: dict[tuple[str, str], list[int]] = {}
    for number, table in enumerate(tables):
        for name in table.names:
            numbers = out.setdefault((name.database, name.table), [])
            numbers += [number] if number not in numbers else []
    return out
