"""Types of the simulated upstream: columns, tables, transactions of row changes, DDL statements.

Values are TiCDC's own before any protocol encodes them (docs/reference/protocols.md 1.3): ENUM and SET as numbers, DECIMAL, times and JSON
as text, BINARY and BLOB as bytes. An encoder turns changes into the key and value of one Kafka message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

from tidelake.wire.cells.mysql_codes import BINARY, HANDLE_KEY, NULLABLE, UNSIGNED

PRIMARY_KEY = 0x08
UNIQUE_KEY = 0x10
MULTIPLE_KEY = 0x20

Value = int | float | str | bytes | None
Row = tuple[Value, ...]

_CODES = {
    "tinyint": 1,
    "smallint": 2,
    "int": 3,
    "double": 5,
    "timestamp": 7,
    "bigint": 8,
    "date": 10,
    "time": 11,
    "datetime": 12,
    "varchar": 15,
    "varbinary": 15,
    "bit": 16,
    "json": 245,
    "decimal": 246,
    "enum": 247,
    "set": 248,
    "text": 252,
    "blob": 252,
    "char": 254,
}
_WITH_CHARSET = frozenset({"varchar", "char", "text", "enum", "set"})  # all other types have the charset `binary`
_WIDTHS = {  # display widths that TiDB adds (docs/reference/protocols.md 5.3)
    "bigint": "bigint(20)",
    "bigint unsigned": "bigint(20) unsigned",
    "int": "int(11)",
    "int unsigned": "int(10) unsigned",
    "smallint unsigned": "smallint(5) unsigned",
}
_COLUMN = re.compile(r"(\w+) (.+?)(?: (NOT NULL|NULL))?(?: DEFAULT (.+))?")


@dataclass(frozen=True)
class SourceColumn:
    """A column as TiCDC knows it.

    type: full SQL type as TiDB prints it; code, flag: docs/reference/protocols.md 1.1, 1.2; default: its text.
    """

    name: str
    type: str
    code: int
    flag: int
    default: str | None = None

    @classmethod
    def parse(cls, sql: str) -> SourceColumn:
        """Parse `price DECIMAL(12,2) NOT NULL DEFAULT 0.00`, without the flags that keys and indexes add."""
        match = _COLUMN.fullmatch(sql)
        if not match:
            raise ValueError(f"not a column: {sql!r}")
        name, declared, null, default = match.groups()
        parts = re.fullmatch(r"(\w+)(\(.*\))?( UNSIGNED)?", declared)
        if not parts:
            raise ValueError(f"not a type: {declared!r}")
        kind = parts[1].lower() + (parts[2] or "") + (parts[3] or "").lower()
        word = parts[1].lower()
        flag = 0 if word in _WITH_CHARSET else BINARY
        flag |= UNSIGNED if parts[3] or word == "bit" else 0
        flag |= 0 if null == "NOT NULL" else NULLABLE
        return cls(name, _WIDTHS.get(kind, kind), _CODES[word], flag, default.strip("'") if default else None)

    @cached_property
    def elements(self) -> tuple[str, ...]:
        """The members of an ENUM or SET, in order."""
        return tuple(e.replace("''", "'") for e in re.findall(r"'((?:[^']|'')*)'", self.type))

    @property
    def is_binary(self) -> bool:
        """Whether the column's charset is `binary`."""
        return bool(self.flag & BINARY)

    def names(self, number: int) -> str:
        """Return the names for an ENUM's index or a SET's bitmap, joined by commas."""
        if self.code == _CODES["enum"]:
            return self.elements[number - 1]
        return ",".join(e for i, e in enumerate(self.elements) if number >> i & 1)


@dataclass(frozen=True, eq=False)
class SourceTable:
    """One definition of a table; a DDL statement creates another. Compared by identity.

    physical_ids: ids of the partitions of a hash-partitioned table, else its own id. clustered: the primary key is the row's handle in
    TiKV; else rows have a hidden row id.
    """

    database: str
    name: str
    columns: tuple[SourceColumn, ...]
    physical_ids: tuple[int, ...] = (0,)
    clustered: bool = True

    @cached_property
    def key(self) -> tuple[int, ...]:
        """Positions of the columns that identify a row (the handle index, docs/reference/protocols.md 1.2); empty without one."""
        return tuple(i for i, c in enumerate(self.columns) if c.flag & HANDLE_KEY)

    @cached_property
    def primary(self) -> tuple[str, ...]:
        """Names of the primary key's columns."""
        return tuple(c.name for c in self.columns if c.flag & PRIMARY_KEY)

    @cached_property
    def split_by(self) -> tuple[int, ...]:
        """Positions of the columns whose change splits an update into delete and insert (docs/reference/protocols.md 1.6)."""
        return tuple(i for i, c in enumerate(self.columns) if c.flag & (HANDLE_KEY | UNIQUE_KEY))

    def key_of(self, row: Row) -> Row:
        """Return the identifying values of a row."""
        return tuple([row[i] for i in self.key])

    def at(self, name: str) -> int:
        """Return the position of a column."""
        return next(i for i, c in enumerate(self.columns) if c.name == name)

    def with_columns(self, columns: Sequence[SourceColumn]) -> SourceTable:
        """Return the table with other columns."""
        return replace(self, columns=tuple(columns))


class SourceChange(NamedTuple):
    """One row event. row_id: TiDB's handle or hidden row id, None for other handles; physical_id: id of the partition."""

    table: SourceTable
    commit_ts: int
    op: str
    before: Row | None
    after: Row | None
    row_id: int | None = None
    physical_id: int | None = None

    @property
    def key(self) -> Row:
        """The identifying values: of the old row for deletes, else of the new one."""
        row = self.before if self.after is None else self.after
        assert row is not None
        return self.table.key_of(row)


class Transaction(NamedTuple):
    """Net changes of one transaction, in TiCDC's order. Never empty."""

    commit_ts: int
    rows: list[SourceChange]


class Ddl(NamedTuple):
    """A DDL statement. table: as TiCDC names it, for RENAME TABLE the new name; code: TiDB's job type (docs/reference/protocols.md 1.8)."""

    commit_ts: int
    database: str
    table: str
    query: str
    code: int

    @property
    def json(self) -> str:
        """Return the line of a feed's ddl.jsonl."""
        return json.dumps({"commit_ts": self.commit_ts, "database": self.database, "query": self.query})


Commit = Transaction | Ddl
TopicRecord = tuple[bytes | None, bytes | None]


class Encoder(Protocol):
    """Encodes changes as Kafka key and value. build_ms: the encoder's clock (ms since the epoch)."""

    def rows(self, changes: Sequence[SourceChange], build_ms: int) -> TopicRecord:
        """Return one message of row changes, at most as many as the sink's batch limit allows."""

    def ddl(self, ddl: Ddl, build_ms: int) -> TopicRecord:
        """Return one message of a DDL statement."""

    def resolved(self, ts: int, build_ms: int) -> TopicRecord:
        """Return one message of a resolved ts (TSO)."""
