"""The table schemas of Simple (docs/reference/protocols.md 9.1): what a row's schema version names, and a row image by it.

A row has database, table and schema version; BOOTSTRAP and DDL messages contain the columns of that version. A version never changes,
so a schema may be used for rows that came before it. A row whose schema is not known has its columns by name, without types; where
schemas are kept from batch to batch and hour to hour (a shelf), it waits for its schema instead.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeVar

from tidelake.errors import ContractError, DecodeError, WaitingError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.wire.json.json_text import refuse_width
from tidelake.wire.kernels.utf8_text import head

V = TypeVar("V")

DDL_TYPES = ("CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY")  # in the order of Avro's enum
VERSION = 1  # of the protocol
MAX_TS = (1 << 64) - 1
MAX_ID = (1 << 63) - 1

_ADDING = threading.Lock()  # of the module: schemas travel to other processes
_MEMORY = "simple schemas"
_MAX_SCHEMAS = 1 << 13
_MAX_COLUMNS = 1 << 19  # of all schemas
_LENGTHS = frozenset({"char", "varchar", "binary", "varbinary", "bit"})  # whose length is part of the type
_WIDTHS = {"datetime": 19, "timestamp": 19, "time": 10}  # of the text without a fraction
_DATABASE = re.compile(
    r"\s*(?:CREATE|ALTER|DROP)\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?"
    r"(?:`((?:[^`]|``)+)`|(?!(?:DEFAULT|CHARACTER|CHARSET|COLLATE|SET|PLACEMENT|ENCRYPTION)\b)(\w+))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIndex:
    """An index of a table; nullable: one of its columns may be NULL."""

    unique: bool
    primary: bool
    nullable: bool
    columns: tuple[str, ...]


@dataclass(frozen=True)
class SimpleTableSchema:
    """A version of a table. columns: all of them, also those that rows do not carry."""

    database: str
    table: str
    version: int
    columns: tuple[SchemaColumn, ...]

    @classmethod
    def of(
        cls, database: str, table: str, version: int, columns: Sequence[SchemaColumn], indexes: Sequence[TableIndex]
    ) -> SimpleTableSchema:
        """With the columns of the row's handle marked. Raises DecodeError."""
        if len({c.name for c in columns}) < len(columns):
            raise DecodeError(f"the schema of table {table[:80]!r} has two columns of one name", code="BAD_STRUCTURE")
        key = _handle(indexes)
        return cls(database, table, version, tuple(replace(c, key=c.name in key) for c in columns))

    @cached_property
    def whole(self) -> RowSchema:
        """The schema of a row with all columns."""
        return RowSchema(self.columns)

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the columns."""
        return frozenset(c.name for c in self.columns)

    def says_the_same(self, other: SimpleTableSchema) -> bool:
        """In what values are read by; TiCDC may compute `nullable` of one and the same index differently."""
        return [(c.name, c.type) for c in self.columns] == [(c.name, c.type) for c in other.columns]

    @property
    def json(self) -> str:
        """For keeping."""
        said = {"database": self.database, "table": self.table, "version": self.version, "columns": json.loads(self.whole.json)}
        return json.dumps(said, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> SimpleTableSchema:
        """The inverse of `json`."""
        said = json.loads(text)
        return cls(said["database"], said["table"], said["version"], RowSchema.from_json(json.dumps(said["columns"])).columns)


class Shelf(Protocol):
    """Where the schemas of a feed are kept for other workers and later hours."""

    def find(self, database: str, table: str, version: int) -> SimpleTableSchema | None:
        """None if no message has brought it so far."""

    def keep(self, schema: SimpleTableSchema) -> None:
        """Keep it; the first of a version stays."""


def _handle(indexes: Sequence[TableIndex]) -> frozenset[str]:
    """The primary key; else the first unique index without NULLs of those with the fewest columns (docs/reference/protocols.md 1.2)."""
    primary = [i for i in indexes if i.primary]
    unique = sorted((i for i in indexes if i.unique and not i.nullable), key=lambda i: len(i.columns))
    return frozenset(next(iter(primary + unique)).columns if primary or unique else ())


def column(name: str, mysql_type: str, *, unsigned: bool, length: int | None, decimal: int | None, elements: Sequence[str]) -> SchemaColumn:
    """A column as a schema describes it. Raises DecodeError (UNKNOWN_TYPE)."""
    if len(mysql_type) > 64 or "(" in mysql_type:
        raise DecodeError(f"column {name[:80]!r}: {mysql_type[:80]!r} is no MySQL type", code="UNKNOWN_TYPE")
    try:
        parsed = MysqlType.parse(f"{mysql_type} unsigned" if unsigned else mysql_type)
    except ContractError as e:
        raise DecodeError(f"column {name[:80]!r}: {mysql_type!r} is no MySQL type", code="UNKNOWN_TYPE") from e
    full = replace(parsed, elements=tuple(elements) if elements and parsed.word in ("enum", "set") else None)
    if length is not None and length > 0:
        number, scale = _numbers(parsed.word, length, decimal)
        full = replace(full, length=number, scale=scale)
    return SchemaColumn(name, parsed.name, full_type=full.sql if full.sql != parsed.name else None, elements=full.elements)


def _numbers(word: str, length: int, decimal: int | None) -> tuple[int | None, int | None]:
    """The numbers in the type's parentheses; JSON leaves zeros out, Avro the fraction digits of times."""
    if word == "decimal":
        return length, max(decimal or 0, 0)
    if word in _LENGTHS:
        return length, None
    if word in _WIDTHS and length > _WIDTHS[word] + 1:
        return min(length - _WIDTHS[word] - 1, 6), None
    return None, None


@dataclass
class SimpleSchemas:
    """The schemas met so far, the oldest forgotten first. generation: changes when one is added."""

    known: dict[tuple[str, str, int], SimpleTableSchema] = field(default_factory=dict)
    columns: int = 0
    generation: int = 0

    def add(self, schema: SimpleTableSchema, shelf: Shelf | None = None) -> None:
        """Remember it; the first of a version stays. Raises DecodeError if it has other columns than that."""
        first = self.get(schema.database, schema.table, schema.version, shelf)
        if first is None and shelf is not None:
            shelf.keep(schema)
        if first is None:
            self._remember(schema)
        elif not schema.says_the_same(first):
            place = f"{schema.database[:80]}.{schema.table[:80]}"
            raise DecodeError(f"a second schema with other columns for version {schema.version} of {place}", code="BAD_STRUCTURE")

    def get(self, database: str, table: str, version: int, shelf: Shelf | None = None) -> SimpleTableSchema | None:
        """None if neither memory nor shelf has it."""
        found = self.known.get((database, table, version))
        if found is None and shelf is not None:
            found = shelf.find(database, table, version)
            if found is not None:
                self._remember(found)
        return found

    def _remember(self, schema: SimpleTableSchema) -> None:
        name = (schema.database, schema.table, schema.version)
        with _ADDING:
            self.columns += len(schema.columns) if name not in self.known else 0
            self.known[name] = schema
            while len(self.known) > _MAX_SCHEMAS or (self.columns > _MAX_COLUMNS and len(self.known) > 1):
                self.columns -= len(self.known.pop(next(iter(self.known))).columns)
            self.generation += 1


def schema_of_row(
    memory: dict[str, object], shelf: Shelf | None, database: str, table: str, version: int, commit_ts: int
) -> SimpleTableSchema | None:
    """The schema that a row names; None where it is not known and nothing is kept.

    Raises WaitingError where schemas are kept and this one has not come yet.
    """
    found = schemas(memory).get(database, table, version, shelf)
    if found is None and shelf is not None:
        text = f"schema version {version} of {database[:80]}.{table[:80]} has not come yet"
        raise WaitingError(text, database=database, table=table, version=version, commit_ts=commit_ts)
    return found


def schemas(memory: dict[str, object]) -> SimpleSchemas:
    """The schemas that a decoder's memory holds."""
    found = memory.get(_MEMORY)
    if not isinstance(found, SimpleSchemas):
        found = memory[_MEMORY] = SimpleSchemas()
    return found


def image(
    values: Mapping[str, V], schema: SimpleTableSchema | None, cell: Callable[[V, str | None, str], bytes | None], what: str
) -> tuple[RowSchema, list[bytes | None]]:
    """A row image in the schema's order, by name without a schema. cell: a value, its column's type and what it is. Raises DecodeError."""
    if not values:
        raise DecodeError(f"{what} has no columns", code="BAD_STRUCTURE")
    refuse_width(values, what)
    if schema is None:
        row_schema = RowSchema(tuple(SchemaColumn(name) for name in sorted(values)))
    elif not values.keys() <= schema.names:
        extra = min(values.keys() - schema.names)
        raise DecodeError(f"{what} has a column {extra[:80]!r}, which schema version {schema.version} has not", code="BAD_STRUCTURE")
    else:
        row_schema = schema.whole if len(values) == len(schema.columns) else RowSchema(tuple(c for c in schema.columns if c.name in values))
    return row_schema, [cell(values[c.name], c.type, f"column {c.name[:80]!r} of {what}") for c in row_schema.columns]


_HEAD = 1 << 16  # bytes of a statement, in which its database is named


def database_of(sql: str) -> str | None:
    """The name in CREATE, ALTER or DROP DATABASE, whose messages have it nowhere else."""
    found = _DATABASE.match(head(sql, _HEAD))
    return None if found is None else found[2] or found[1].replace("``", "`")
