"""What a worker must know of a table that it orders (order.arrow.table_jobs says it). Workers import it, so no pyiceberg here."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pydantic import BaseModel

from tidelake.lake.columns.cells import CellType
from tidelake.order.change_sequence import ChangeSequence


class CellPosition(BaseModel, frozen=True):
    """Position of a cell in rows of a schema with a commit ts in (after_ts, until_ts]. reading: which of the column's readings it has."""

    row_schema: int
    position: int
    after_ts: int
    until_ts: int | None
    reading: int = 0


class Reading(BaseModel, frozen=True):
    """How cells of a column become values.

    Attributes:
        type: The type that the cells have. Values of another lake type than the column's are converted.
        untyped: The MySQL type, if its messages did not state it and sent the cells in a form of their own; else empty.
        form: That form, if the schema's column states it (history.event.SchemaColumn).
    """

    type: CellType
    untyped: str = ""
    form: str | None = None


class ArrowColumn(BaseModel, frozen=True):
    """A source column.

    Attributes:
        id: Its number in the table.
        name: Its name in the changelog.
        shown: Its name at the source, for people.
        type: The type of its values.
        readings: How its cells are read; several if a statement of the window changed the type.
        positions: Where its cells are.
    """

    id: int
    name: str
    shown: str
    type: CellType
    readings: tuple[Reading, ...]
    positions: tuple[CellPosition, ...]


class SentName(BaseModel, frozen=True):
    """A name that belongs to the table in (after_ts, until_ts]."""

    database: str
    table: str
    after_ts: int
    until_ts: int | None


class ArrowTable(BaseModel, frozen=True):
    """A table.

    Attributes:
        names: Names as sent.
        columns: Its columns.
        key: Column ids; empty for a table without key.
        bucket: Id of the column that rows are bucketed by; None if the table has no buckets.
        buckets: Number of buckets, 1 without them.
        shares: Into how many shares each bucket is divided, so that several tasks work on it.
        location: Location of the changelog's files, as in event_files.EventsPlace.
        schema_hex: Arrow schema of the changelog's files, as hex.
        sequence: How its changes are numbered.
        every: Every event counts: offsets order the feed, and known repeats are taken out before (order.repeats).
        time_zone: The feed's time zone.
        clear: Cells that must be hashed and are not yet.
        marks: The marks of the table's hashes, which the worker's key must match.
    """

    names: tuple[SentName, ...]
    columns: tuple[ArrowColumn, ...]
    key: tuple[int, ...]
    bucket: int | None
    buckets: int
    shares: int
    location: str
    schema_hex: str
    sequence: ChangeSequence
    every: bool
    time_zone: str
    clear: tuple[CellPosition, ...] = ()
    marks: tuple[str, ...] = ()

    def bucket_of(self, share: int) -> int:
        """Return the bucket of a share."""
        return share // self.shares

    def repeats(self, column: ArrowColumn) -> bool:
        """Return whether values of a column are long and may repeat: hashes. A key is compared, so it is never a dictionary."""
        return column.type.mask == "hash" and column.id not in self.key

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the changelog's files."""
        return pa.ipc.read_schema(pa.BufferReader(bytes.fromhex(self.schema_hex)))


def names_of(tables: Sequence[ArrowTable]) -> dict[tuple[str, str], list[int]]:
    """Return (database, table) as sent → numbers of the tables that it may belong to."""
    out: dict[tuple[str, str], list[int]] = {}
    for number, table in enumerate(tables):
        for name in table.names:
            numbers = out.setdefault((name.database, name.table), [])
            numbers += [number] if number not in numbers else []
    return out
