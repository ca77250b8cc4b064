"""A table as its server describes it now, and its rows as TiCDC would send them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from tests.tidb.dialect import Dialect
from tests.tidb.values import string
from tidelake.history.ddl.changes import CreateTable
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ddl.statement import parse
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.query.verify.cell_texts import SourceCell, quoted

DATABASE = "d"
_WHOLE = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_NUMBERED = frozenset({"bit", "enum", "set"})
Cells = tuple[bytes | None, ...]


class Source(Protocol):
    """A server with one session for statements.

    Attributes:
        kind: What `verify` takes it for.
        float_text: SQL of a FLOAT or DOUBLE with all its digits; {} is the column.
        dialect: What its tables and statements are made of.
    """

    kind: SourceCell
    float_text: str
    dialect: Dialect

    @property
    def url(self) -> str:
        """For --connect."""

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run them; the rows of the last. Values are as the server writes them, as text or bytes. Raises pymysql.Error."""

    def ts(self) -> int:
        """A TSO after everything that was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceField:
    """A column. generated: `VIRTUAL`, `STORED` or nothing; float_text: Source.float_text."""

    name: str
    sql: str
    type: MysqlType
    nullable: bool
    default: str | None
    generated: str
    key: bool
    float_text: str = "{}"

    @property
    def sent(self) -> bool:
        """Whether messages carry it."""
        return self.generated != "VIRTUAL"

    @property
    def cell(self) -> str:
        """SQL of its cell: numbers for ENUM and SET, as Open Protocol has them, and hexadecimal digits for bytes."""
        name = quoted(self.name)
        if self.type.word in _NUMBERED:
            return f"CAST({name} AS UNSIGNED)"
        if self.type.word in _WHOLE:
            return f"({name}+0)"  # without the zeros of ZEROFILL
        if self.type.word in ("float", "double"):
            return self.float_text.format(name)
        return f"HEX({name})" if self.type.is_binary else name


@dataclass(frozen=True)
class Present:
    """A table of the server's database d. dialect: of the server."""

    name: str
    create: str
    fields: tuple[SourceField, ...]
    indexes: tuple[str, ...]
    partitions: tuple[str, ...]
    dialect: Dialect

    @property
    def sql(self) -> str:
        """The name as SQL, with the database."""
        return f"{DATABASE}.{quoted(self.name)}"

    @property
    def clustered(self) -> bool:
        """Whether the primary key is the row's handle in TiKV; else rows have a hidden row id."""
        return "[clustered_index] CLUSTERED" in self.create

    @cached_property
    def sent(self) -> tuple[SourceField, ...]:
        """The columns that messages carry."""
        return tuple(f for f in self.fields if f.sent)

    @cached_property
    def row_schema(self) -> RowSchema:
        """The columns as a message of Open Protocol describes them."""
        return RowSchema(tuple(SchemaColumn(f.name, f.type.name, f.key) for f in self.sent))

    def field(self, name: str) -> SourceField:
        """The column of this name."""
        return next(f for f in self.fields if f.name == name)


def present(server: Source, table: str) -> Present:
    """The table as it is now."""
    create = str(server.execute(f"SHOW CREATE TABLE {DATABASE}.{quoted(table)}")[0][1])
    (made,) = parse(create, DATABASE)
    assert isinstance(made, CreateTable)
    assert made.definition is not None
    key = made.definition.handle.columns if made.definition.handle else ()
    columns = _described(server, table, "COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA", "columns", "ORDINAL_POSITION")
    indexes = _described(server, table, "DISTINCT INDEX_NAME", "statistics", "INDEX_NAME")
    parts = _described(server, table, "PARTITION_NAME", "partitions", "PARTITION_ORDINAL_POSITION")
    return Present(
        name=table,
        create=create,
        fields=tuple(
            SourceField(
                name=name,
                sql=_said(kind),
                type=mysql_type(_said(kind)),
                nullable=nullable == "YES",
                default=default,
                generated=next((w for w in ("VIRTUAL", "STORED") if w in extra), ""),
                key=name in key,
                float_text=server.float_text,
            )
            for name, kind, nullable, default, extra in columns
        ),
        indexes=tuple(str(i) for (i,) in indexes if i != "PRIMARY"),
        partitions=tuple(str(p) for (p,) in parts if p is not None),
        dialect=server.dialect,
    )


def _described(server: Source, table: str, columns: str, source: str, order: str) -> list[tuple[Any, ...]]:
    where = f"TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = {string(table)}"
    return server.execute(f"SELECT {columns} FROM information_schema.{source} WHERE {where} ORDER BY {order}")


def mysql_type(sql: str) -> MysqlType:
    """The type of a column's definition, with the lengths that SQL leaves out."""
    (made,) = parse(f"CREATE TABLE x (c {sql})", DATABASE)
    assert isinstance(made, CreateTable)
    assert made.definition is not None
    return made.definition.columns[0].type


def rows(server: Source, table: Present, *, handle: str = "") -> list[Cells]:
    """The cells of all rows. handle: SQL of a first cell besides."""
    wanted = [handle] * bool(handle) + [f.cell for f in table.sent]
    found = server.execute(f"SELECT {', '.join(wanted)} FROM {table.sql}")
    binary = [False] * bool(handle) + [f.type.is_binary for f in table.sent]
    return [tuple(_cell(v, b) for v, b in zip(row, binary, strict=True)) for row in found]


def _cell(value: str | bytes | None, binary: bool) -> bytes | None:
    if value is None:
        return None
    if binary:
        return bytes.fromhex(_said(value))
    return value if isinstance(value, bytes) else value.encode()


def _said(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
