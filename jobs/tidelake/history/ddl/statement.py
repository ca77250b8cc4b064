"""Parses DDL text into changes, for what TiDB's parser prints (docs/reference/protocols.md 1.8) and what people write in tables.sql.

A statement that can change rows or columns in an unknown way is `Unsupported`; one that cannot change them is `NoEffect`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidelake.history.ddl.alter import alter_table
from tidelake.history.ddl.changes import (
    AddUnique,
    Change,
    CreateTable,
    DropDatabase,
    DropIndex,
    DropTable,
    Index,
    NoEffect,
    RecoverDatabase,
    RecoverTable,
    RenameTable,
    TruncateTable,
    Unsupported,
)
from tidelake.history.ddl.definition import table_def
from tidelake.history.ddl.partition_clauses import partitioning
from tidelake.history.ddl.tokens import END, Cursor


def parse(query: str, database: str) -> list[Change]:
    """Return the changes that a statement makes, in order. Raises ContractError for text that is not SQL.

    Args:
        query: The statement.
        database: Database of unqualified names.
    """
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
    if cursor.next.upper != "(" or cursor.peek(1).upper == "SELECT":
        shown = any(t.upper == "SELECT" for t in cursor.tokens)
        return [CreateTable(*name, None, None, if_not_exists) if shown else Unsupported(*name, "CREATE TABLE without columns")]
    definition = table_def(cursor)
    while cursor.next is not END:
        if cursor.skip("SELECT"):
            return [CreateTable(*name, None, None, if_not_exists)]  # CREATE … SELECT adds the columns of the query
        if cursor.skip("PARTITION", "BY"):
            definition = replace(definition, partitioning=partitioning(cursor))
        else:
            cursor.take()
    return [CreateTable(*name, definition, None, if_not_exists)]


def _replace_table(cursor: Cursor, database: str) -> list[Change]:
    """Parse MariaDB's CREATE OR REPLACE TABLE: DROP TABLE IF EXISTS and CREATE TABLE in one."""
    made = _create_table(cursor, database)
    return [DropTable(made[0].database, made[0].table, True), *made]


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


def _recover_table(cursor: Cursor, database: str) -> list[Change]:
    """Parse RECOVER TABLE t and FLASHBACK TABLE t TO u. BY JOB names no table; TO TIMESTAMP changes rows."""
    if cursor.next.upper == "BY":
        return [Unsupported(database, "", "RECOVER TABLE BY JOB")]
    old = cursor.table(database)
    if cursor.next is END:
        return [RecoverTable(*old)]
    if not cursor.skip("TO") or cursor.next.upper == "TIMESTAMP" or cursor.next is END:
        return [Unsupported(*old, "FLASHBACK TABLE … TO TIMESTAMP")]
    return [RecoverTable(*cursor.table(database), old)]


def _recover_database(cursor: Cursor, database: str) -> list[Change]:
    old = cursor.identifier()
    if cursor.next is END:
        return [RecoverDatabase(old, "", old)]
    if not cursor.skip("TO") or cursor.next.upper == "TIMESTAMP" or cursor.next is END:
        return [Unsupported(old, "", "FLASHBACK DATABASE … TO TIMESTAMP")]
    return [RecoverDatabase(old, "", cursor.identifier())]


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


# Statements that do not change rows or columns, by their first words; of those that begin alike the longest first.
_HARMLESS = (
    ("CREATE DATABASE",),
    ("CREATE SCHEMA", "CREATE DATABASE"),
    ("ALTER DATABASE",),
    ("ALTER SCHEMA", "ALTER DATABASE"),
    ("CREATE VIEW",),
    ("CREATE OR REPLACE", "CREATE VIEW"),
    ("CREATE ALGORITHM", "CREATE VIEW"),
    ("CREATE DEFINER", "CREATE VIEW"),
    ("CREATE SQL", "CREATE VIEW"),
    ("ALTER VIEW",),
    ("ALTER ALGORITHM", "ALTER VIEW"),
    ("ALTER DEFINER", "ALTER VIEW"),
    ("ALTER SQL", "ALTER VIEW"),
    ("DROP VIEW",),
    ("CREATE SEQUENCE",),
    ("ALTER SEQUENCE",),
    ("DROP SEQUENCE",),
    ("CREATE PLACEMENT", "CREATE PLACEMENT POLICY"),
    ("ALTER PLACEMENT", "ALTER PLACEMENT POLICY"),
    ("DROP PLACEMENT", "DROP PLACEMENT POLICY"),
    ("CREATE RESOURCE GROUP",),
    ("ALTER RESOURCE GROUP",),
    ("DROP RESOURCE GROUP",),
    ("CREATE TEMPORARY TABLE",),
    ("CREATE GLOBAL TEMPORARY TABLE",),
    ("DROP TEMPORARY TABLE",),
    ("DROP GLOBAL TEMPORARY TABLE",),
    *(
        (f"{verb} {kind}",)
        for kind in ("TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "USER", "ROLE", "SERVER")
        for verb in ("CREATE", "ALTER", "DROP")
    ),
    ("CREATE AGGREGATE FUNCTION", "CREATE FUNCTION"),
    ("CREATE GLOBAL BINDING", "CREATE BINDING"),
    ("DROP GLOBAL BINDING", "DROP BINDING"),
    ("RENAME USER",),
    ("GRANT",),
    ("REVOKE",),
    ("SET",),
    ("ANALYZE",),
    ("OPTIMIZE",),
    ("REPAIR",),
    ("CHECK TABLE",),
    ("ADMIN",),
    ("SPLIT TABLE",),
    ("SPLIT PARTITION TABLE",),
    ("FLUSH",),
    ("LOCK TABLES",),
    ("UNLOCK TABLES",),
    ("LOCK STATS",),
    ("UNLOCK STATS",),
    ("BEGIN",),
    ("COMMIT",),
    ("SAVEPOINT",),
    ("XA",),
)
_STATEMENTS: tuple[tuple[tuple[str, ...], Callable[[Cursor, str], list[Change]]], ...] = (
    (("CREATE", "TABLE"), _create_table),
    (("CREATE", "OR", "REPLACE", "TABLE"), _replace_table),
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
    (("DROP", "TABLES"), _drop_table),
    (("RENAME", "TABLES"), _rename_table),
    (("ALTER", "ONLINE", "TABLE"), alter_table),
    (("ALTER", "IGNORE", "TABLE"), alter_table),
    (("CREATE", "SPATIAL", "INDEX"), lambda c, d: _create_index(c, d, unique=False)),
    (("RECOVER", "TABLE"), _recover_table),
    (("FLASHBACK", "TABLE"), _recover_table),
    (("FLASHBACK", "DATABASE"), _recover_database),
    (("FLASHBACK", "SCHEMA"), _recover_database),
    *((tuple(words[0].split()), _harmless(words[-1])) for words in _HARMLESS),
)
