"""Positions of columns in the rows of a window: shape × segment → position (docs/architecture.md 8.3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import Shape
from tidelake.history.incarnations import Column, Incarnation
from tidelake.history.window import same_name


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlace:
    """Position (from 0) and type of a cell in rows of a shape with a commit ts in (after_ts, until_ts]."""

    shape: int
    position: int
    type: MysqlType
    after_ts: int
    until_ts: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A column of a table with all places of its value. Rows that fit none have NULL."""

    column: Column
    places: tuple[CellPlace, ...]


def project(incarnation: Incarnation, shapes: Iterable[Shape]) -> list[Projection]:
    """Return every column that existed in the window: final ones first in table order, then dropped ones."""
    shapes = list(shapes)
    return [Projection(column=c, places=tuple(_places(incarnation, c, shapes))) for c in lived(incarnation)]


def lived(incarnation: Incarnation) -> list[Column]:
    """Return the columns of all segments, each in its last version, final ones first."""
    last = {c.id: c for s in incarnation.segments for c in s.columns}
    final = [c.id for c in incarnation.columns]
    return [last[i] for i in final] + [c for i, c in last.items() if i not in final]


def _places(incarnation: Incarnation, column: Column, shapes: Sequence[Shape]) -> list[CellPlace]:
    out: list[CellPlace] = []
    for segment in incarnation.segments:
        then = next((c for c in segment.columns if c.id == column.id), None)
        if then is None:
            continue
        for shape in shapes:
            position = _position(shape, then.name, {c.name.lower() for c in segment.columns})
            if position is not None:
                new = CellPlace(shape=shape.id, position=position, type=then.type, after_ts=segment.after_ts, until_ts=segment.until_ts)
                out = _joined(out, new)
    return out


def _position(shape: Shape, name: str, names: set[str]) -> int | None:
    """Position of a column in a shape. A sanitised name matches unless another column of the table has exactly that name."""
    exact = next((i for i, c in enumerate(shape.columns) if c.name.lower() == name.lower()), None)
    if exact is not None:
        return exact
    return next((i for i, c in enumerate(shape.columns) if same_name(c.name, name) and c.name.lower() not in names), None)


def _joined(places: list[CellPlace], new: CellPlace) -> list[CellPlace]:
    """Join adjacent segments with the same place: in most windows a shape has one place."""
    for i, old in enumerate(places):
        if (old.shape, old.position, old.type, old.until_ts) == (new.shape, new.position, new.type, new.after_ts):
            both = CellPlace(shape=old.shape, position=old.position, type=old.type, after_ts=old.after_ts, until_ts=new.until_ts)
            return [*places[:i], both, *places[i + 1 :]]
    return [*places, new]
