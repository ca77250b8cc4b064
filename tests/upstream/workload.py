"""What happens in the source: tables of all types, random transactions on them, statements that change them, and marks.

Transactions and statements are drawn at random and run one after the other, so a seed gives the same binlog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.io.sql_server import SqlServer
from tests.tidb.present import mysql_type
from tests.tidb.values import BITS, BYTES, ENUMS, EXACT, FLOATS, FOREIGN, MOMENTS, NUMBERS, TEXTS, literal
from tidelake.query.verify.cell_texts import quoted

DATABASE = "shop"
TYPES = [*NUMBERS, *EXACT, *FLOATS, *MOMENTS, *TEXTS, *FOREIGN, *BYTES, *BITS, *ENUMS, "JSON"]
ODD_NAMES = ["order", "Ünï köl", "x-y", "a.b", "select"]
KEYLESS = "log"
_PLAIN = {"YEAR": "1999", "FLOAT": "-1.5", "FLOAT UNSIGNED": "1.5", "DOUBLE(10,3)": "0.5"}
_TAILS = {  # by SqlServer.kind
    "mariadb": "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
    "mysql": "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
}


@dataclass
class Table:
    """A table as the workload made it.

    columns: SQL types by name, the key's first; key: how many of them are the key's; tail: its character set.
    """

    name: str
    columns: dict[str, str]
    key: int
    tail: str
    made: int = 0

    @property
    def sql(self) -> str:
        """Its name, with the database."""
        return f"{DATABASE}.{quoted(self.name)}"

    @property
    def create(self) -> str:
        """Its definition."""
        keys = list(self.columns)[: self.key]
        parts = [f"{quoted(n)} {sql}{' NOT NULL' if n in keys else ' NULL'}" for n, sql in self.columns.items()]
        if keys:
            parts.append(f"PRIMARY KEY ({', '.join(quoted(n) for n in keys)})")
        return f"CREATE TABLE {self.sql} ({', '.join(parts)}) {self.tail}"

    @property
    def fields(self) -> list[str]:
        """The columns beside the key."""
        return list(self.columns)[self.key :]


@dataclass
class Workload:
    """Draws what happens.

    Attributes:
        types: Types of columns, where a producer cannot send all.
        truncates: Whether tables are truncated.
        plain: A SELECT says all of a row: no YEAR 0000, no digits of FLOAT that the server's own texts lack.
    """

    server: SqlServer
    random: Random
    types: Sequence[str] = tuple(TYPES)
    truncates: bool = True
    plain: bool = False
    tables: list[Table] = field(default_factory=list)
    _marks: int = 0
    _new: int = 0

    def begin(self) -> str:
        """Make the database and its tables, with nothing in them. Returns tables.sql."""
        tail = _TAILS[self.server.kind]
        pairs = {"word": "VARCHAR(20) COLLATE utf8mb4_bin", "n": "INT UNSIGNED", "v": "VARCHAR(40)", "at": "TIMESTAMP(6)"}
        self.tables = [
            Table("every", {"id": "BIGINT UNSIGNED", **{f"c{i}": sql for i, sql in enumerate(self.types)}}, 1, tail),
            Table("pairs", pairs, 2, tail),
            Table("Odd-näme", {"id": "INT", **dict.fromkeys(ODD_NAMES, "VARCHAR(40)")}, 1, tail),
            Table(KEYLESS, {"line": "TEXT", "n": "INT", "raw": "VARBINARY(16)"}, 0, tail),
        ]
        marks = Table("marks", {"token": "VARCHAR(40)"}, 1, tail)
        creates = [t.create for t in (*self.tables, marks)]
        self.server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE} {tail}", *creates)
        return "".join(f"{create};\n" for create in [f"USE {DATABASE}", *creates])

    def transact(self, times: int) -> None:
        """Random transactions, a few of them taken back."""
        for _ in range(times):
            table = self.random.choice(self.tables)
            changes = [self._change(table) for _ in range(self.random.randint(1, 5))]
            end = "ROLLBACK" if self.random.random() < 0.1 else "COMMIT"
            self.server.execute("BEGIN", *changes, end)

    def alter(self, times: int) -> None:
        """Random statements on tables."""
        for _ in range(times):
            common = [self._add, self._add, self._drop, self._widen, self._rename, self._truncate, self._rename_table, self._index]
            own = {"mysql": [self._add_instantly, self._hidden_index]}.get(self.server.kind, [])
            kind = self.random.choice([*common, *own])
            table = self.random.choice(self.tables)
            self.server.execute(kind(table))

    def mark(self) -> str:
        """Commit a row with a text that no other row has: when it was sent, all before it was. Returns the text."""
        self._marks += 1
        token = f"mark-{self._marks:06}-quiet"
        self.server.execute(f"INSERT INTO {DATABASE}.marks VALUES ('{token}')")
        return token

    def _change(self, table: Table) -> str:
        kind = self.random.choice(["insert", "insert", "update", "update", "delete", "key", "replace"])
        if kind == "insert" or not table.made:
            rows = ", ".join(self._row(table) for _ in range(self.random.randint(1, 4)))
            return f"INSERT INTO {table.sql} VALUES {rows}"
        where = self._where(table)
        if kind == "update":
            names = self.random.sample(table.fields, k=self.random.randint(1, min(4, len(table.fields))))
            sets = ", ".join(f"{quoted(n)} = {self._cell(table.columns[n])}" for n in names)
            return f"UPDATE {table.sql} SET {sets} WHERE {where}"
        if kind == "key" and table.key:
            name = list(table.columns)[table.key - 1]
            table.made += 1
            return f"UPDATE {table.sql} SET {quoted(name)} = {100_000 + table.made} WHERE {where} LIMIT 1"
        if kind == "replace":
            return f"REPLACE INTO {table.sql} VALUES {self._row(table, self.random.randint(1, table.made))}"
        return f"DELETE FROM {table.sql} WHERE {where}"

    def _where(self, table: Table) -> str:
        number = self.random.randint(1, table.made)
        if table.key == 2:
            return f"`n` = {number}"
        return f"`id` = {number}" if table.key else f"`n` % 7 = {number % 7} LIMIT 2"

    def _row(self, table: Table, number: int | None = None) -> str:
        if number is None:
            table.made += 1
            number = table.made
        keys = {0: [], 1: [str(number)], 2: [f"'w{number % 5}'", str(number)]}[table.key]
        cells = [*keys, *(self._cell(table.columns[n]) for n in table.fields)]
        if not table.key:
            cells[1] = str(number)
        return f"({', '.join(cells)})"

    def _cell(self, sql: str) -> str:
        cell = "NULL" if self.random.random() < 0.2 else literal(self.random, mysql_type(sql), "words")
        return _PLAIN[sql] if self.plain and sql in _PLAIN and cell != "NULL" else cell

    def _fresh(self) -> str:
        self._new += 1
        return f"new{self._new}"

    def _add(self, table: Table) -> str:
        name, sql = self._fresh(), self.random.choice(self.types)
        table.columns[name] = sql
        default = " DEFAULT 7" if mysql_type(sql).word in ("int", "bigint", "decimal", "varchar") and self.random.random() < 0.5 else ""
        return f"ALTER TABLE {table.sql} ADD COLUMN {quoted(name)} {sql} NULL{default}"

    def _add_instantly(self, table: Table) -> str:
        return f"{self._add(table)}, ALGORITHM = INSTANT"

    def _drop(self, table: Table) -> str:
        new = [n for n in table.fields if n.startswith("new")]
        if not new:
            return self._add(table)
        name = self.random.choice(new)
        del table.columns[name]
        return f"ALTER TABLE {table.sql} DROP COLUMN {quoted(name)}"

    def _widen(self, table: Table) -> str:
        wider = {"INT": "BIGINT", "VARCHAR(5)": "VARCHAR(40)", "VARCHAR(40)": "VARCHAR(60)", "SMALLINT": "INT", "TINYTEXT": "TEXT"}
        names = [n for n in table.fields if table.columns[n] in wider and (table.key or n != "n")]
        if not names:
            return self._index(table)
        name = self.random.choice(names)
        table.columns[name] = wider[table.columns[name]]
        return f"ALTER TABLE {table.sql} MODIFY COLUMN {quoted(name)} {table.columns[name]} NULL"

    def _rename(self, table: Table) -> str:
        new = [n for n in table.fields if n.startswith("new")]
        if not new:
            return self._add(table)
        old, name = self.random.choice(new), self._fresh()
        table.columns = {name if n == old else n: sql for n, sql in table.columns.items()}
        return f"ALTER TABLE {table.sql} RENAME COLUMN {quoted(old)} TO {quoted(name)}"

    def _truncate(self, table: Table) -> str:
        return f"TRUNCATE TABLE {table.sql}" if self.truncates else self._add(table)

    def _rename_table(self, table: Table) -> str:
        old = table.sql
        table.name = f"{table.name.split('+')[0]}+{self._fresh()}"
        return f"RENAME TABLE {old} TO {table.sql}"

    def _index(self, table: Table) -> str:
        name = next(n for n in table.columns if "TEXT" not in table.columns[n])
        return f"ALTER TABLE {table.sql} ADD INDEX {quoted(f'i{self._fresh()}')} ({quoted(name)})"

    def _hidden_index(self, table: Table) -> str:
        return f"{self._index(table).removesuffix(')')} DESC) INVISIBLE"
