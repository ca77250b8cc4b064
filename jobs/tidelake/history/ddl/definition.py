"""Parses a table's definition between the parentheses of CREATE TABLE: columns, primary key, unique indexes."""

from __future__ import annotations

from dataclasses import replace

from tidelake.errors import ContractError
from tidelake.history.ddl.changes import ColumnDef, Index, TableDef
from tidelake.history.ddl.columns import column_def
from tidelake.history.ddl.tokens import END, Cursor

_INDEX_WORDS = ("INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK")
_INDEX_KINDS = ("VECTOR", "COLUMNAR")


def table_def(cursor: Cursor) -> TableDef:
    """Parse `( … )`; the table's options are left. Raises ContractError."""
    binary = _is_binary(cursor)
    columns: list[ColumnDef] = []
    primary: tuple[str, ...] = ()
    unique: list[Index] = []
    cursor.expect("(")
    while True:
        found = index(cursor)
        if found is None:
            columns.append(column_def(cursor, binary=binary))
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
    names = [c.name.lower() for c in columns]
    if doubled := next((n for n in names if names.count(n) > 1), None):
        raise ContractError(f"column {doubled!r} is defined twice in {cursor.sql!r}")
    members = {name.lower() for name in primary}
    if missing := sorted(members.difference(c.name.lower() for c in columns if not c.virtual)):
        raise ContractError(f"the primary key names {missing[0]!r}, which is no stored column in {cursor.sql!r}")
    columns = [replace(c, nullable=False) if c.name.lower() in members else c for c in columns]
    return TableDef(columns=tuple(columns), primary_key=primary, unique=tuple(unique), binary=binary)


def index(cursor: Cursor) -> Index | None:
    """Parse an index or constraint at the cursor; None for a column. Its name is PRIMARY, that of a unique index, or empty (irrelevant)."""
    start, symbol = cursor.at, ""
    if cursor.skip("CONSTRAINT") and cursor.next.upper not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        symbol = cursor.identifier()
    if cursor.skip("PRIMARY", "KEY"):
        _until_parenthesis(cursor)
        return Index(name="PRIMARY", columns=cursor.names())
    if cursor.skip("UNIQUE"):
        return _unique(cursor, symbol)
    if cursor.next.upper in _INDEX_WORDS or (cursor.next.upper in _INDEX_KINDS and cursor.peek(1).upper in ("INDEX", "KEY")):
        return Index(name="", columns=())
    cursor.at = start
    return None


def _is_binary(cursor: Cursor) -> bool:
    """Whether the table's options make columns without a charset binary."""
    start, found = cursor.at, False
    cursor.parenthesised()
    while cursor.next is not END:
        if cursor.skip("CHARACTER", "SET") or cursor.skip("CHARSET") or cursor.skip("COLLATE"):
            cursor.skip("=")
            found = cursor.next.text.lower() == "binary"
        else:
            cursor.take()
    cursor.at = start
    return found


def _unique(cursor: Cursor, symbol: str) -> Index:
    cursor.skip("INDEX") or cursor.skip("KEY")
    cursor.skip("IF", "NOT", "EXISTS")
    name = symbol if cursor.next.upper in ("(", "USING") else cursor.identifier()
    _until_parenthesis(cursor)
    columns = cursor.names()
    return Index(name=name or columns[0], columns=columns)


def _until_parenthesis(cursor: Cursor) -> None:
    while cursor.next.upper != "(":
        cursor.take()
