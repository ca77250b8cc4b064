"""Where a column's value stands in the rows of a window."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.searches import examples
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ddl.statement import parse
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.history.evolution import apply
from tidelake.history.incarnations import ALWAYS, Catalog, Incarnation
from tidelake.history.projection import CellPlace, lived, project

INT, BIG = MysqlType("int"), MysqlType("bigint")
START = "CREATE TABLE t (k INT PRIMARY KEY, a INT)"


def table(*clauses: tuple[int, str], create: str = START) -> Incarnation:
    """A table from before the window, after these clauses of ALTER TABLE."""
    catalog = Catalog()
    for ts, query in [(ALWAYS, create), *((ts, f"ALTER TABLE t {clause}") for ts, clause in clauses)]:
        for change in parse(query, "db"):
            catalog = apply(catalog, ts, change)
    (found,) = catalog.incarnations.values()
    return found


def sent(*names: str) -> RowSchema:
    return RowSchema(tuple(SchemaColumn(name=n) for n in names))


def places(i: Incarnation, *row_schemas: RowSchema) -> dict[str, list[tuple[int, int, str, int, int | None]]]:
    """Column → (number of the schema, position, type, after_ts, until_ts)."""
    numbers = {s.id: n for n, s in enumerate(row_schemas)}
    return {
        p.column.name: [(numbers[x.row_schema], x.position, x.type.sql, x.after_ts, x.until_ts) for x in p.places]
        for p in project(i, row_schemas)
    }


def test_a_window_without_statements_has_one_place_a_schema() -> None:
    assert places(table(), sent("k", "a"), sent("a", "k"), sent("k")) == {
        "k": [(0, 0, "int", -1, None), (1, 1, "int", -1, None), (2, 0, "int", -1, None)],
        "a": [(0, 1, "int", -1, None), (1, 0, "int", -1, None)],
    }


def test_statements_that_leave_a_column_alone_leave_it_one_place() -> None:
    i = table((10, "ADD b INT"), (20, "MODIFY b BIGINT"), (30, "COMMENT 'x'"))
    assert places(i, sent("k", "a", "b")) == {
        "k": [(0, 0, "int", -1, None)],
        "a": [(0, 1, "int", -1, None)],
        "b": [(0, 2, "int", 10, 20), (0, 2, "bigint", 20, None)],
    }


def test_a_cell_from_before_a_modify_is_of_the_type_it_was_then() -> None:
    assert places(table((10, "MODIFY a VARCHAR(9)")), sent("k", "a"))["a"] == [(0, 1, "int", -1, 10), (0, 1, "varchar(9)", 10, None)]


def test_a_renamed_column_is_found_under_both_names_each_in_its_time() -> None:
    i = table((10, "RENAME COLUMN a TO b"))
    assert places(i, sent("k", "a"), sent("k", "b"))["b"] == [(0, 1, "int", -1, 10), (1, 1, "int", 10, None)]


def test_a_name_that_another_column_had_means_each_in_its_time() -> None:
    i = table((10, "DROP a"), (20, "RENAME COLUMN b TO a"), create="CREATE TABLE t (k INT PRIMARY KEY, a INT, b BIGINT)")
    found = project(i, [sent("k", "a", "b"), sent("k", "a")])
    assert [(p.column.id, p.column.name, [(x.position, x.after_ts, x.until_ts) for x in p.places]) for p in found] == [
        (1, "k", [(0, ALWAYS, None), (0, ALWAYS, None)]),
        (3, "a", [(2, ALWAYS, 20), (1, 20, None), (1, 20, None)]),
        (2, "a", [(1, ALWAYS, 10), (1, ALWAYS, 10)]),
    ]


def test_dropped_columns_come_last_as_they_were_last() -> None:
    i = table((10, "ADD b INT FIRST"), (20, "RENAME COLUMN a TO c"), (30, "DROP c"), (40, "ADD a TEXT"))
    assert [(c.id, c.name, c.type.word) for c in lived(i)] == [(3, "b", "int"), (1, "k", "int"), (4, "a", "text"), (2, "c", "int")]


def test_a_column_that_was_never_sent_has_no_place() -> None:
    assert places(table((10, "ADD b INT")), sent("k"))["b"] == []
    assert places(table((10, "ADD b INT"))) == {"k": [], "a": [], "b": []}


def test_a_row_sent_with_a_name_of_other_case_is_found() -> None:
    assert places(table(), sent("K", "A")) == {"k": [(0, 0, "int", -1, None)], "a": [(0, 1, "int", -1, None)]}


def test_a_sanitised_name_is_found_unless_another_column_is_called_just_so() -> None:
    dotted = "CREATE TABLE t (`a.b` INT, k INT)"
    assert places(table(create=dotted), sent("a_b"))["a.b"] == [(0, 0, "int", -1, None)]
    both = table(create="CREATE TABLE t (`a.b` INT, a_b INT)")
    assert places(both, sent("a_b"), sent("a.b", "a_b")) == {
        "a.b": [(1, 0, "int", -1, None)],
        "a_b": [(0, 0, "int", -1, None), (1, 1, "int", -1, None)],
    }


# against a model that replays statements on a list of [number, name, type]

NAMES = ["a", "b", "c", "d"]
Model = list[tuple[int, str, MysqlType]]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[int, str]], list[tuple[int, Model]]]:
    """Clauses by ts, and the columns after each."""
    columns: Model = [(1, "k", INT), (2, "a", INT)]
    clauses: list[tuple[int, str]] = []
    states: list[tuple[int, Model]] = [(ALWAYS, columns)]
    ts, made = 10, 2
    for _ in range(draw(st.integers(0, 10))):
        ts += draw(st.integers(0, 3))
        free, used = [n for n in NAMES if n not in [c[1] for c in columns]], [c for c in columns if c[1] != "k"]
        kind = draw(st.sampled_from("add drop rename modify move".split()))
        if kind == "add" and free:
            made += 1
            name, first = draw(st.sampled_from(free)), draw(st.booleans())
            new = (made, name, BIG)
            columns = [new, *columns] if first else [*columns, new]
            clauses.append((ts, f"ADD {name} BIGINT {'FIRST' if first else ''}"))
        elif kind == "drop" and used:
            gone = draw(st.sampled_from(used))
            columns = [c for c in columns if c != gone]
            clauses.append((ts, f"DROP {gone[1]}"))
        elif kind == "rename" and used and free:
            old, name = draw(st.sampled_from(used)), draw(st.sampled_from(free))
            columns = [(c[0], name, c[2]) if c == old else c for c in columns]
            clauses.append((ts, f"RENAME COLUMN {old[1]} TO {name}"))
        elif kind == "modify" and used:
            old, wide = draw(st.sampled_from(used)), draw(st.sampled_from([INT, BIG]))
            columns = [(*c[:2], wide) if c == old else c for c in columns]
            clauses.append((ts, f"MODIFY {old[1]} {wide.sql}"))
        elif kind == "move" and used:
            old = draw(st.sampled_from(used))
            columns = [old, *(c for c in columns if c != old)]
            clauses.append((ts, f"MODIFY {old[1]} {old[2].sql} FIRST"))
        states.append((ts, columns))
    return clauses, states


@settings(max_examples=examples(150))
@given(histories(), st.data())
def test_every_value_is_found_where_the_model_says(
    history: tuple[list[tuple[int, str]], list[tuple[int, Model]]], data: st.DataObject
) -> None:
    clauses, states = history
    i = table(*clauses)
    rows: list[tuple[int, RowSchema, Model]] = []
    for ts in range(9, states[-1][0] + 3):
        columns = next(c for at, c in reversed(states) if at < ts)  # a row exactly at a statement is older
        part = [c for c in columns if data.draw(st.booleans())] if data.draw(st.booleans()) else columns
        rows.append((ts, sent(*(c[1] for c in part)), columns))
    found = project(i, {s.id: s for _, s, _ in rows}.values())
    assert len({p.column.id for p in found}) == len(found)
    assert {c[0] for _, columns in states for c in columns} >= {p.column.id for p in found} >= {c[0] for c in states[-1][1]}
    for ts, row_schema, columns in rows:
        for p in found:
            met = [x for x in p.places if meets(x, row_schema, ts)]
            then = next((c for c in columns if c[0] == p.column.id), None)
            position = next((n for n, c in enumerate(row_schema.columns) if then and c.name == then[1]), None)
            assert [(x.position, x.type) for x in met] == ([] if position is None or then is None else [(position, then[2])])


def meets(place: CellPlace, row_schema: RowSchema, ts: int) -> bool:
    return place.row_schema == row_schema.id and place.after_ts < ts and (place.until_ts is None or ts <= place.until_ts)
