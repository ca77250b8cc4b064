"""DDL text → changes, for what TiDB's parser prints (protocols.md 1.8) and what people write into tables.sql.

A statement that may change rows or columns beyond this version is `Unsupported`, one that cannot is `NoEffect`; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelake.ddl.alter import alter_table
from tidelake.ddl.changes import (
    AddUnique,
    Change,
    CreateTable,
    DropDatabase,
    DropIndex,
    DropTable,
    Index,
    NoEffect,
    RenameTable,
    TruncateTable,
    Unsupported,
)
from tidelake.ddl.definition import table_def
from tidelake.ddl.tokens import END, Cursor


def parse(query: str, database: str) -> list[Change]:
    """The changes a statement makes, in order; unqualified names are in `database`. Raises ContractError for what is not SQL."""
    cursor = Cursor(query)
    for words, reader in _STATEMENTS:
        if cursor.skip(*words):
            return reader(cursor, database)
    return [Unsupported(database, "", cursor.preview())]


def _create_table(cursor: Cursor, database: str) -> list[Change]:
    if_not_exists = cursor.skip("IF", "NOT", "EXISTS")
    name = cursor.table(database)
    if cursor.skip("LIKE") or (cursor.next.upper == "(" and cursor.peek(1).upper == "LIKE"):
        cursor.skip("(", "LIKE")
        return [CreateTable(*name, None, cursor.table(database), if_not_exists)]
    if cursor.next.upper != "(":
        return [Unsupported(*name, "CREATE TABLE without columns")]
    definition = table_def(cursor)
    while cursor.next is not END:
        if cursor.skip("SELECT"):
            return [Unsupported(*name, "CREATE TABLE … SELECT")]
        cursor.take()
    return [CreateTable(*name, definition, None, if_not_exists)]


def _drop_table(cursor: Cursor, database: str) -> list[Change]:
    if_exists = cursor.skip("IF", "EXISTS")
    out: list[Change] = [DropTable(*cursor.table(database), if_exists)]
    while cursor.skip(","):
        out.append(DropTable(*cursor.table(database), if_exists))
    return out


def _truncate(cursor: Cursor, database: str) -> list[Change]:
    cursor.skip("TABLE")
    return [TruncateTable(*cursor.table(database))]


def _rename_table(cursor: Cursor, database: str) -> list[Change]:
    out: list[Change] = []
    while True:
        source = cursor.table(database)
        cursor.expect("TO")
        out.append(RenameTable(*source, *cursor.table(database)))
        if not cursor.skip(","):
            return out


def _drop_database(cursor: Cursor, database: str) -> list[Change]:
    cursor.skip("IF", "EXISTS")
    return [DropDatabase(cursor.identifier(), "")]


def _create_index(cursor: Cursor, database: str, *, unique: bool) -> list[Change]:
    cursor.skip("IF", "NOT", "EXISTS")
    name = cursor.identifier()
    while not cursor.skip("ON"):
        cursor.take()
    table = cursor.table(database)
    return [AddUnique(*table, Index(name=name, columns=cursor.names()))] if unique else [NoEffect(*table, "CREATE INDEX")]


def _drop_index(cursor: Cursor, database: str) -> list[Change]:
    cursor.skip("IF", "EXISTS")
    name = cursor.identifier()
    cursor.expect("ON")
    return [DropIndex(*cursor.table(database), name)]


def _harmless(what: str) -> Callable[[Cursor, str], list[Change]]:
    return lambda cursor, database: [NoEffect(database, "", what)]


_STATEMENTS: tuple[tuple[tuple[str, ...], Callable[[Cursor, str], list[Change]]], ...] = (
    (("CREATE", "TABLE"), _create_table),
    (("DROP", "TABLE"), _drop_table),
    (("TRUNCATE",), _truncate),
    (("RENAME", "TABLE"), _rename_table),
    (("ALTER", "TABLE"), alter_table),
    (("DROP", "DATABASE"), _drop_database),
    (("DROP", "SCHEMA"), _drop_database),
    (("CREATE", "UNIQUE", "INDEX"), lambda c, d: _create_index(c, d, unique=True)),
    (("CREATE", "INDEX"), lambda c, d: _create_index(c, d, unique=False)),
    (("CREATE", "FULLTEXT", "INDEX"), lambda c, d: _create_index(c, d, unique=False)),
    (("CREATE", "VECTOR", "INDEX"), lambda c, d: _create_index(c, d, unique=False)),
    (("CREATE", "COLUMNAR", "INDEX"), lambda c, d: _create_index(c, d, unique=False)),
    (("DROP", "INDEX"), _drop_index),
    (("CREATE", "DATABASE"), _harmless("CREATE DATABASE")),
    (("CREATE", "SCHEMA"), _harmless("CREATE DATABASE")),
    (("ALTER", "DATABASE"), _harmless("ALTER DATABASE")),
    (("ALTER", "SCHEMA"), _harmless("ALTER DATABASE")),
    (("CREATE", "VIEW"), _harmless("CREATE VIEW")),
    (("CREATE", "OR", "REPLACE"), _harmless("CREATE VIEW")),
    (("CREATE", "ALGORITHM"), _harmless("CREATE VIEW")),
    (("CREATE", "DEFINER"), _harmless("CREATE VIEW")),
    (("DROP", "VIEW"), _harmless("DROP VIEW")),
    (("CREATE", "SEQUENCE"), _harmless("CREATE SEQUENCE")),
    (("ALTER", "SEQUENCE"), _harmless("ALTER SEQUENCE")),
    (("DROP", "SEQUENCE"), _harmless("DROP SEQUENCE")),
    (("CREATE", "PLACEMENT"), _harmless("CREATE PLACEMENT POLICY")),
    (("ALTER", "PLACEMENT"), _harmless("ALTER PLACEMENT POLICY")),
    (("DROP", "PLACEMENT"), _harmless("DROP PLACEMENT POLICY")),
)
