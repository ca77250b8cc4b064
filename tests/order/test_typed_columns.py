"""Cells are found by their schema and commit ts as a loop over the rows would find them."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.searches import examples
from tidelake.history.ddl.column_types import MysqlType
from tidelake.lake.columns.cells import CastRules, cell_type
from tidelake.order.arrow.table_models import ArrowColumn, CellPosition, Reading
from tidelake.order.arrow.typed_columns import RowImages

Row = tuple[int | None, int, list[str | None] | None]  # schema, commit ts, cells
RULES = CastRules(time_zone="UTC", names_sent=False)
TEXT, NUMBER = (cell_type(m, RULES) for m in (MysqlType("varchar", length=9), MysqlType("int")))
READ = (lambda cell: cell, lambda cell: str(int(cell)))  # a number becomes text without leading zeros
SCHEMAS = st.sampled_from([-5, 7, 9])
ROW = st.tuples(
    SCHEMAS | st.none(), st.integers(1, 20), st.none() | st.lists(st.none() | st.sampled_from(["07", "0", "12"]), min_size=1, max_size=3)
)


@st.composite
def positions(draw: st.DrawFn) -> list[CellPosition]:
    """Places of a column, of which a schema has one at a time, or none."""
    out = []
    for schema in draw(st.sets(SCHEMAS)):
        ends: list[int | None] = [-1, *sorted(draw(st.sets(st.integers(1, 20), max_size=2))), None]
        for after, until in pairwise(ends):
            if draw(st.booleans()):
                at, reading = draw(st.integers(0, 2)), draw(st.integers(0, 1))
                out.append(CellPosition(row_schema=schema, position=at, after_ts=after or 0, until_ts=until, reading=reading))
    return draw(st.permutations(out))


def _by_a_loop(row: Row, places: list[CellPosition]) -> tuple[bool, str | None]:
    """Whether the row has the column, and its value."""
    schema, ts, cells = row
    found = [p for p in places if p.row_schema == schema and p.after_ts < ts and (p.until_ts is None or ts <= p.until_ts)]
    if not found or cells is None or found[0].position >= len(cells):
        return bool(found), None
    cell = cells[found[0].position]
    return True, None if cell is None else READ[found[0].reading](cell)


@settings(max_examples=examples(300))
@given(st.lists(ROW, max_size=12), positions())
def test_cells_are_found_by_schema_and_commit_ts(rows: list[Row], places: list[CellPosition]) -> None:
    schemas, stamps, cells = (pa.array([r[n] for r in rows], t) for n, t in enumerate((pa.int64(), pa.int64(), pa.list_(pa.string()))))
    events = pa.table({"after": cells, "row_schema": schemas, "commit_ts": stamps})
    readings = (Reading(type=TEXT), Reading(type=NUMBER))
    column = ArrowColumn(id=1, name="a", shown="a", type=TEXT, readings=readings, positions=tuple(places))
    found = RowImages(events, "after").column(column, "UTC")
    expected = [_by_a_loop(row, places) for row in rows]
    assert [(bool(sent), value) for sent, value in zip(found.sent, found.values.to_pylist(), strict=True)] == expected
    assert found.lost is None
