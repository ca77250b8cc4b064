"""Parses the clauses of ALTER TABLE into changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tidelake.history.ddl.changes import (
    AddColumn,
    AddPartitions,
    AddPrimary,
    AddUnique,
    Change,
    CoalescePartitions,
    DropColumn,
    DropIndex,
    DropPrimary,
    EmptyPartitions,
    ExchangePartition,
    Index,
    ModifyColumn,
    NoEffect,
    RenameColumn,
    RenameIndex,
    RenameTable,
    Repartition,
    ReplacePartitions,
    TableCharset,
    Unsupported,
)
from tidelake.history.ddl.columns import column_def, position
from tidelake.history.ddl.definition import index
from tidelake.history.ddl.partition_clauses import definitions, names, partition_count, partitioning
from tidelake.history.ddl.tokens import END, Cursor

QualifiedName = tuple[str, str]
# Clauses that do not change rows or columns, by their first words.
_HARMLESS = (
    ("DROP", "FOREIGN"),
    ("DROP", "CHECK"),
    ("DROP", "CONSTRAINT"),
    ("COMMENT",),
    ("AUTO_INCREMENT",),
    ("AUTO_ID_CACHE",),
    ("AUTO_RANDOM_BASE",),
    ("SHARD_ROW_ID_BITS",),
    ("PLACEMENT",),
    ("ATTRIBUTES",),
    ("CACHE",),
    ("NOCACHE",),
    ("SET", "TIFLASH"),
    ("TTL",),
    ("TTL_ENABLE",),
    ("REMOVE", "TTL"),
    ("ENGINE",),
    ("ROW_FORMAT",),
    ("STATS_OPTIONS",),
    ("ADD", "STATS_EXTENDED"),
    ("DROP", "STATS_EXTENDED"),
    ("ALTER",),  # a column's default: existing rows keep their values
    ("ALGORITHM",),
    ("LOCK",),
    ("FORCE",),
    ("ENABLE", "KEYS"),
    ("DISABLE", "KEYS"),
    ("WITH", "VALIDATION"),
    ("WITHOUT", "VALIDATION"),
    ("KEY_BLOCK_SIZE",),
    ("COMPRESSION",),
    ("AVG_ROW_LENGTH",),
    ("MAX_ROWS",),
    ("MIN_ROWS",),
    ("CHECKSUM",),
    ("STATS_BUCKETS",),
    ("STATS_TOPN",),
    ("STATS_COL_CHOICE",),
    ("STATS_COL_LIST",),
    ("STATS_SAMPLE_RATE",),
    ("TTL_JOB_INTERVAL",),
    ("PRE_SPLIT_REGIONS",),
    ("INSERT_METHOD",),
    ("PACK_KEYS",),
    ("DELAY_KEY_WRITE",),
    ("ENCRYPTION",),
    ("CONNECTION",),
    ("AFFINITY",),
    ("ANALYZE", "PARTITION"),
    ("CHECK", "PARTITION"),
    ("OPTIMIZE", "PARTITION"),
    ("REBUILD", "PARTITION"),
    ("REPAIR", "PARTITION"),
    ("ORDER", "BY"),
    ("STATS_PERSISTENT",),
    ("STATS_AUTO_RECALC",),
    ("STATS_SAMPLE_PAGES",),
)


def alter_table(cursor: Cursor, database: str) -> list[Change]:
    """Parse the table's name and all clauses. Raises ContractError."""
    name = cursor.table(database)
    if cursor.next is END:
        return [NoEffect(*name, "ALTER TABLE")]  # only feature comments
    out: list[Change] = []
    while True:
        changes = _clause(cursor, name, database)
        out += changes
        for change in changes:
            if isinstance(change, RenameTable):
                name = (change.to_database, change.to_table)
        if cursor.next is not END and cursor.next.upper != ",":
            cursor.skip_clause()
        if not cursor.skip(","):
            cursor.expect_end()
            return _with_key_in_place(out)


def _with_key_in_place(changes: list[Change]) -> list[Change]:
    """Put the change of the primary key behind clauses that make its columns, before those that drop what was the key.

    The clauses are one step for the server. ADD PRIMARY KEY says more than DROP PRIMARY KEY.
    """
    every = [c for c in changes if isinstance(c, AddPrimary | DropPrimary)]
    keys = [c for c in every if isinstance(c, AddPrimary)] or every
    others = [c for c in changes if not isinstance(c, AddPrimary | DropPrimary)]
    at = max((n for n, c in enumerate(others, 1) if any(map(partial(_makes, c), keys))), default=0)
    later = (DropColumn, RenameTable, *((DropIndex,) if any(isinstance(k, AddPrimary) for k in keys) else ()))
    at = next((n for n, c in enumerate(others) if n >= at and isinstance(c, later)), len(others))
    return [*others[:at], *keys, *others[at:]]


def _makes(change: Change, key: AddPrimary | DropPrimary) -> bool:
    """Whether a clause gives the key a column, replaces a key that is dropped, or names the table as the key does."""
    match change:
        case AddColumn() | ModifyColumn():
            name = change.column.name
        case RenameColumn():
            name = change.to
        case RenameTable():
            return (change.to_database, change.to_table) == (key.database, key.table)
        case _:
            return isinstance(change, AddUnique) and isinstance(key, DropPrimary)
    return isinstance(key, AddPrimary) and name.lower() in (c.lower() for c in key.columns)


def _clause(cursor: Cursor, name: QualifiedName, database: str) -> list[Change]:
    what = f"ALTER TABLE … {cursor.preview()}"
    if cursor.next.upper == "PARTITION" and cursor.peek(1).upper != "BY":
        cursor.at = len(cursor.tokens)
        return [NoEffect(*name, what)]  # PARTITION p ATTRIBUTES …, PLACEMENT POLICY …
    if any(cursor.skip(*words) for words in _HARMLESS):
        cursor.skip_clause()
        return [NoEffect(*name, what)]
    for words, reader in _CLAUSES:
        if cursor.skip(*words):
            return reader(cursor, name)
    if cursor.skip("RENAME"):
        return [_renamed(cursor, name, database)]
    if cursor.skip("EXCHANGE", "PARTITION"):
        return [_exchanged(cursor, name, database)]
    return [_charset(cursor, name, what) or _unsupported(cursor, name, what)]


def _charset(cursor: Cursor, name: QualifiedName, what: str) -> Change | None:
    """Parse `[DEFAULT] CHARACTER SET x COLLATE y`, `COLLATE y`, `CONVERT TO CHARACTER SET x`; None for another clause, or text to bytes."""
    start, converts = cursor.at, cursor.skip("CONVERT", "TO")
    cursor.skip("DEFAULT")
    if cursor.skip("CHARACTER", "SET") or cursor.skip("CHARSET") or cursor.skip("COLLATE"):
        cursor.skip("=")
        binary = cursor.next.text.lower() == "binary"
        if not (converts and binary):
            cursor.skip_clause()
            return TableCharset(*name, what, binary, converts)
    cursor.at = start
    return None


def _unsupported(cursor: Cursor, name: QualifiedName, what: str) -> Change:
    cursor.at = len(cursor.tokens)
    return Unsupported(*name, what)


def _add(cursor: Cursor, name: QualifiedName) -> list[Change]:
    found = index(cursor)
    if found is not None:
        return _add_index(cursor, name, found)
    cursor.skip("COLUMN")
    cursor.skip("IF", "NOT", "EXISTS")
    if cursor.skip("("):
        out = _added(cursor, name)
        while cursor.skip(","):
            out += _added(cursor, name)
        cursor.expect(")")
        return out
    return _added(cursor, name)


def _add_index(cursor: Cursor, name: QualifiedName, found: Index) -> list[Change]:
    cursor.skip_clause()
    if found.name == "PRIMARY":
        return [AddPrimary(*name, found.columns)]
    return [AddUnique(*name, found)] if found.name else [NoEffect(*name, "ALTER TABLE … ADD INDEX or constraint")]


def _added(cursor: Cursor, name: QualifiedName) -> list[Change]:
    column = column_def(cursor)
    added = AddColumn(*name, column, position(cursor))
    if column.primary:
        return [added, AddPrimary(*name, (column.name,))]
    return [added, AddUnique(*name, Index(name=column.name, columns=(column.name,)))] if column.unique else [added]


def _add_partitions(cursor: Cursor, name: QualifiedName) -> list[Change]:
    cursor.skip("IF", "NOT", "EXISTS")
    _local(cursor)
    if cursor.next.upper == "(":
        return [AddPartitions(*name, definitions(cursor))]
    cursor.skip("PARTITIONS")
    return [AddPartitions(*name, (), partition_count(cursor))]


def _coalesce(cursor: Cursor, name: QualifiedName) -> list[Change]:
    _local(cursor)
    return [CoalescePartitions(*name, partition_count(cursor))]


def _drop_partitions(cursor: Cursor, name: QualifiedName) -> list[Change]:
    cursor.skip("IF", "EXISTS")
    return [EmptyPartitions(*name, names(cursor), True)]


def _truncate_partitions(cursor: Cursor, name: QualifiedName) -> list[Change]:
    return [EmptyPartitions(*name, names(cursor))]


def _reorganize(cursor: Cursor, name: QualifiedName) -> list[Change]:
    if cursor.next is END:
        return [ReplacePartitions(*name, (), ())]
    old = names(cursor)
    cursor.expect("INTO")
    return [ReplacePartitions(*name, old, definitions(cursor))]


def _repartition(cursor: Cursor, name: QualifiedName) -> list[Change]:
    return [Repartition(*name, partitioning(cursor))]


def _local(cursor: Cursor) -> None:
    cursor.skip("NO_WRITE_TO_BINLOG") or cursor.skip("LOCAL")


def _unpartition(cursor: Cursor, name: QualifiedName) -> list[Change]:
    cursor.skip_clause()
    return [Repartition(*name, None)]


def _drop_column(cursor: Cursor, name: QualifiedName) -> list[Change]:
    if_exists = cursor.skip("IF", "EXISTS")
    return [DropColumn(*name, cursor.identifier(), if_exists)]


def _drop(cursor: Cursor, name: QualifiedName) -> list[Change]:
    if cursor.skip("PRIMARY", "KEY"):
        return [DropPrimary(*name)]
    if cursor.skip("INDEX") or cursor.skip("KEY"):
        cursor.skip("IF", "EXISTS")
        return [DropIndex(*name, cursor.identifier())]
    return _drop_column(cursor, name)


def _modify(cursor: Cursor, name: QualifiedName) -> list[Change]:
    cursor.skip("COLUMN")
    cursor.skip("IF", "EXISTS")
    column = column_def(cursor)
    return [ModifyColumn(*name, column.name, column, position(cursor))]


def _change(cursor: Cursor, name: QualifiedName) -> list[Change]:
    cursor.skip("COLUMN")
    cursor.skip("IF", "EXISTS")
    old = cursor.identifier()
    column = column_def(cursor)
    return [ModifyColumn(*name, old, column, position(cursor))]


def _rename_column(cursor: Cursor, name: QualifiedName) -> list[Change]:
    old = cursor.identifier()
    cursor.expect("TO")
    return [RenameColumn(*name, old, cursor.identifier())]


def _rename_index(cursor: Cursor, name: QualifiedName) -> list[Change]:
    old = cursor.identifier()
    cursor.expect("TO")
    return [RenameIndex(*name, old, cursor.identifier())]


def _renamed(cursor: Cursor, name: QualifiedName, database: str) -> Change:
    cursor.skip("TO") or cursor.skip("AS") or cursor.skip("=")
    return RenameTable(*name, *cursor.table(database))


def _exchanged(cursor: Cursor, name: QualifiedName, database: str) -> Change:
    """Parse `p WITH TABLE t [WITH | WITHOUT VALIDATION]`. Rows are checked in both cases."""
    partition = cursor.identifier()
    cursor.expect("WITH", "TABLE")
    exchange = ExchangePartition(*name, partition, *cursor.table(database))
    cursor.skip("WITH", "VALIDATION") or cursor.skip("WITHOUT", "VALIDATION")
    return exchange


_CLAUSES: tuple[tuple[tuple[str, ...], Callable[[Cursor, QualifiedName], list[Change]]], ...] = (
    (("ADD", "PARTITION"), _add_partitions),
    (("ADD",), _add),
    (("DROP", "PARTITION"), _drop_partitions),
    (("TRUNCATE", "PARTITION"), _truncate_partitions),
    (("REORGANIZE", "PARTITION"), _reorganize),
    (("PARTITION", "BY"), _repartition),
    (("REMOVE", "PARTITIONING"), _unpartition),
    (("COALESCE", "PARTITION"), _coalesce),
    (("DROP", "COLUMN"), _drop_column),
    (("DROP",), _drop),
    (("MODIFY",), _modify),
    (("CHANGE",), _change),
    (("RENAME", "COLUMN"), _rename_column),
    (("RENAME", "INDEX"), _rename_index),
    (("RENAME", "KEY"), _rename_index),
)
