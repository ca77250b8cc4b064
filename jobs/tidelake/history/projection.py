"""Positions of columns in the rows of a window: schema × segment → position (docs/architecture.md 8.3). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import RowSchema
from tidelake.history.incarnations import Column, Incarnation
from tidelake.history.names import sanitised


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlace:
    """Position (from 0) and type of a cell in rows of a schema with a commit ts in (after_ts, until_ts]."""

    row_schema: int
    position: int
    type: MysqlType
    after_ts: int
    until_ts: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A column of a table with all places of its value. Rows that fit none have NULL."""

    column: Column
    places: tuple[CellPlace, ...]


def project(incarnation: Incarnation, row_schemas: Iterable[RowSchema]) -> list[Projection]:
    """Return every column that existed in the window: final ones first in table order, then dropped ones."""
    row_schemas = list(row_schemas)
    sent = [_first_positions(s) for s in row_schemas]
    places: dict[int, dict[int, list[CellPlace]]] = {c.id: {} for c in lived(incarnation)}
    for segment in incarnation.segments:
        names = {c.name.lower() for c in segment.columns}
        for row_schema, positions in zip(row_schemas, sent, strict=True):
            for column in segment.columns:
                position = _position(positions, column.name, names)
                if position is not None:
                    new = CellPlace(
                        row_schema=row_schema.id, position=position, type=column.type, after_ts=segment.after_ts, until_ts=segment.until_ts
                    )
                    of_column = places[column.id]
                    of_column[row_schema.id] = _joined(of_column.get(row_schema.id, []), new)
    return [Projection(column=c, places=tuple(chain.from_iterable(places[c.id].values()))) for c in lived(incarnation)]


def lived(incarnation: Incarnation) -> list[Column]:
    """Return the columns of all segments, each in its last version, final ones first."""
    last = {c.id: c for s in incarnation.segments for c in s.columns}
    return list(({c.id: last[c.id] for c in incarnation.columns} | last).values())


def _first_positions(row_schema: RowSchema) -> dict[str, int]:
    """The first position of each name in a schema, in lower case."""
    out = dict[str, int]()
    for position, c in enumerate(row_schema.columns):
        out.setdefault(c.name.lower(), position)
    return out


def _position(positions: dict[str, int], name: str, names: set[str]) -> int | None:
    """Position of a column in a schema. A sanitised name matches unless another column of the table has exactly that name."""
    if (exact := positions.get(name.lower())) is not None:
        return exact
    safe = sanitised(name).lower()
    return None if safe in names else positions.get(safe)


def _joined(places: list[CellPlace], new: CellPlace) -> list[CellPlace]:
    """Join adjacent segments in which cells of a schema have the same place: in most windows it has one."""
    for i, old in enumerate(places):
        if (old.position, old.type, old.until_ts) == (new.position, new.type, new.after_ts):
            return [*places[:i], replace(old, until_ts=new.until_ts), *places[i + 1 :]]
    return [*places, new]
