"""A table's definition between the parentheses of CREATE TABLE: columns, primary key, unique indexes."""

from __future__ import annotations

from dataclasses import replace

from tidelake.ddl.changes import ColumnDef, Index, TableDef
from tidelake.ddl.columns import column_def
from tidelake.ddl.tokens import Cursor

_INDEX_WORDS = ("INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK")


def table_def(cursor: Cursor) -> TableDef:
    """Read `( … )`. Raises ContractError."""
    columns: list[ColumnDef] = []
    primary: tuple[str, ...] = ()
    unique: list[Index] = []
    cursor.expect("(")
    while True:
        found = index(cursor)
        if found is None:
            columns.append(column_def(cursor))
        elif found.name == "PRIMARY":
            primary = found.columns
        elif found.name:
            unique.append(found)
        cursor.skip_clause()
        if not cursor.skip(","):
            break
    cursor.expect(")")
    primary = primary or tuple(c.name for c in columns if c.primary)
    unique += [Index(name=c.name, columns=(c.name,)) for c in columns if c.unique]
    members = {name.lower() for name in primary}
    columns = [replace(c, nullable=False) if c.name.lower() in members else c for c in columns]
    return TableDef(columns=tuple(columns), primary_key=primary, unique=tuple(unique))


def index(cursor: Cursor) -> Index | None:
    """An index or constraint at the cursor: named PRIMARY, named (unique), or with an empty name (of no account); None for a column."""
    start = cursor.at
    if cursor.skip("CONSTRAINT") and cursor.next.upper not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        cursor.identifier()
    if cursor.skip("PRIMARY", "KEY"):
        _until_parenthesis(cursor)
        return Index(name="PRIMARY", columns=cursor.names())
    if cursor.skip("UNIQUE"):
        cursor.skip("INDEX") or cursor.skip("KEY")
        name = "" if cursor.next.upper == "(" else cursor.identifier()
        _until_parenthesis(cursor)
        columns = cursor.names()
        return Index(name=name or columns[0], columns=columns)
    if cursor.next.upper in _INDEX_WORDS:
        return Index(name="", columns=())
    cursor.at = start
    return None


def _until_parenthesis(cursor: Cursor) -> None:
    while cursor.next.upper != "(":
        cursor.take()
