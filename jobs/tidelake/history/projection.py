"""Positions of columns in the rows of a window: schema × segment → position (docs/architecture.md 8.3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import RowSchema
from tidelake.history.incarnations import Column, Incarnation
from tidelake.history.names import same_name


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
    return [Projection(column=c, places=tuple(_places(incarnation, c, row_schemas))) for c in lived(incarnation)]


def lived(incarnation: Incarnation) -> list[Column]:
    """Return the columns of all segments, each in its last version, final ones first."""
    last = {c.id: c for s in incarnation.segments for c in s.columns}
    final = [c.id for c in incarnation.columns]
    return [last[i] for i in final] + [c for i, c in last.items() if i not in final]


def _places(incarnation: Incarnation, column: Column, row_schemas: Sequence[RowSchema]) -> list[CellPlace]:
    out: list[CellPlace] = []
    for segment in incarnation.segments:
        then = next((c for c in segment.columns if c.id == column.id), None)
        if then is None:
            continue
        for row_schema in row_schemas:
            position = _position(row_schema, then.name, {c.name.lower() for c in segment.columns})
            if position is not None:
                new = CellPlace(
                    row_schema=row_schema.id, position=position, type=then.type, after_ts=segment.after_ts, until_ts=segment.until_ts
                )
                out = _joined(out, new)
    return out


def _position(row_schema: RowSchema, name: str, names: set[str]) -> int | None:
    """Position of a column in a schema. A sanitised name matches unless another column of the table has exactly that name."""
    exact = next((i for i, c in enumerate(row_schema.columns) if c.name.lower() == name.lower()), None)
    if exact is not None:
        return exact
    return next((i for i, c in enumerate(row_schema.columns) if same_name(c.name, name) and c.name.lower() not in names), None)


def _joined(places: list[CellPlace], new: CellPlace) -> list[CellPlace]:
    """Join adjacent segments with the same place: in most windows a schema has one place."""
    for i, old in enumerate(places):
        if (old.row_schema, old.position, old.type, old.until_ts) == (new.row_schema, new.position, new.type, new.after_ts):
            both = CellPlace(row_schema=old.row_schema, position=old.position, type=old.type, after_ts=old.after_ts, until_ts=new.until_ts)
            return [*places[:i], both, *places[i + 1 :]]
    return [*places, new]
