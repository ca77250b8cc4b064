"""The tables of a feed that are known before its messages are read: for decoders of messages without columns, and for the names that the
feed needs.

The columns are those of tables.sql, as of the feed's start. Columns that later statements add are not included.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelake.config.feed import Feed
from tidelake.history.contract import TableContract, read_tables
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.history.incarnations import ALWAYS, Catalog, create
from tidelake.lake.cut import Cut

UNTYPED = frozenset({"csv", "debezium", "maxwell"})  # protocols whose messages lack types, or may

KnownTables = list[tuple[str, str, str]]  # database, table, its RowSchema as JSON


def needs_tables(feed: Feed) -> bool:
    """Return whether decoding needs columns: for messages without types, and for Avro's checksums, which may cover columns that were not
    sent.
    """
    return feed.protocol in UNTYPED or (feed.protocol == "avro" and feed.options.enable_row_checksum)


def opening(feed: Feed, cut: Cut | None) -> Catalog:
    """Return the tables at the start of a window: those of the cut before it, and those that only tables.sql has. Raises ContractError."""
    names = cut.catalog.opened() if cut is not None else Catalog()
    borne = {(n.database.lower(), n.table.lower()) for i in names.incarnations.values() for n in i.names}
    for t in read_tables(feed.folder):
        if (t.database.lower(), t.table.lower()) not in borne:  # a definition describes the first incarnation of a name
            names = create(names, t.database, t.table, t.definition, ALWAYS)
    return names


def known_tables(feed: Feed) -> KnownTables:
    """Return the tables of tables.sql; none if the messages contain all column facts. Raises ContractError."""
    tables = read_tables(feed.folder) if needs_tables(feed) else []
    return [(t.database, t.table, _row_schema(t).json) for t in tables]


def columns_of(known: KnownTables) -> Callable[[str, str], tuple[SchemaColumn, ...] | None] | None:
    """Return the lookup of a table's columns for decoders, None without known tables. It ignores the case of names."""
    row_schemas = {(database.lower(), table.lower()): RowSchema.from_json(text).columns for database, table, text in known}
    return (lambda database, table: row_schemas.get((database.lower(), table.lower()))) if row_schemas else None


def _row_schema(table: TableContract) -> RowSchema:
    handle = table.definition.handle
    keys = {name.lower() for name in handle.columns} if handle else set()
    visible = table.definition.visible
    return RowSchema(tuple(SchemaColumn(c.name, c.type.name, c.name.lower() in keys, full_type=_full(c.type)) for c in visible))


def _full(kind: MysqlType) -> str | None:
    """Return the full type if it has more than the word: the number of digits that values are printed with."""
    return kind.sql if kind.word in ("decimal", "datetime", "timestamp", "time", "bit") and kind.length is not None else None
