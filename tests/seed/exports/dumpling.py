"""Files as Dumpling writes them (pingcap/tidb, pkg/dumpformat, dumpling/export/metadata.go), from values as a server sends them."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tidelake.history.ddl.column_types import MysqlType

Value = bytes | None
NUMBERS = {"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "decimal"}
TS = 463368564662075392
COMMENTS = "/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n/*!40101 SET NAMES binary*/;\n"


@dataclass(frozen=True, kw_only=True)
class Writing:
    """The options that change bytes."""

    escape: bool = True
    header: bool = True
    separator: bytes = b","
    newline: bytes = b"\r\n"
    null: bytes = b"\\N"


Columns = Sequence[tuple[str, str]]  # names and types
Rows = Sequence[Sequence[Value]]
PLAIN = Writing()


def kind(mysql: str) -> str:
    """How a type is written: a number, text or bytes."""
    t = MysqlType.parse(mysql)
    return "number" if t.word in NUMBERS else "bytes" if t.is_binary or t.word == "bit" else "text"


def csv(columns: Columns, rows: Rows, how: Writing = PLAIN) -> bytes:
    """A CSV file."""
    kinds = [kind(t) for _, t in columns]
    lines = [how.separator.join(_field(name.encode(), "text", how) for name, _ in columns)] if how.header else []
    lines += [how.separator.join(_field(v, k, how) for v, k in zip(row, kinds, strict=True)) for row in rows]
    return b"".join(line + how.newline for line in lines)


def _field(value: Value, kind: str, how: Writing) -> bytes:
    if value is None or kind == "number":
        return how.null if value is None else value
    if not how.escape:
        return b'"' + value.replace(b'"', b'""') + b'"'
    return b'"' + _escaped(value, {0: b"0", 13: b"r", 10: b"n", 92: b"\\", 34: b'"'}) + b'"'


def sql(table: str, columns: Columns, rows: Rows, how: Writing = PLAIN, *, names: bool = False) -> bytes:
    """An SQL file of statements with two rows each."""
    kinds = [kind(t) for _, t in columns]
    listed = f" ({','.join(f'`{n}`' for n, _ in columns)})" if names else ""
    head = f"INSERT INTO `{table}`{listed} VALUES\n".encode()
    texts = [b"(" + b",".join(_value(v, k, how) for v, k in zip(row, kinds, strict=True)) + b")" for row in rows]
    statements = [head + b",\n".join(texts[i : i + 2]) + b";\n" for i in range(0, len(texts), 2)]
    return COMMENTS.encode() + b"".join(statements)


def _value(value: Value, kind: str, how: Writing) -> bytes:
    if value is None or kind == "number":
        return b"NULL" if value is None else value
    if kind == "bytes":
        return b"x'" + value.hex().encode() + b"'"
    if not how.escape:
        return b"'" + value.replace(b"'", b"''") + b"'"
    return b"'" + _escaped(value, {0: b"0", 10: b"n", 13: b"r", 92: b"\\", 39: b"'", 34: b'"', 26: b"Z"}) + b"'"


def _escaped(value: bytes, letters: dict[int, bytes]) -> bytes:
    return b"".join(b"\\" + letters[c] if c in letters else bytes([c]) for c in value)


def metadata(ts: int = TS, log: str = "tidb-binlog") -> str:
    """The file of that name."""
    status = f"SHOW MASTER STATUS:\n\tLog: {log}\n\tPos: {ts}\n\tGTID:\n\n"
    return f"Started dump at: 2026-01-05 10:00:00\n{status}Finished dump at: 2026-01-05 10:00:07\n"


@dataclass(frozen=True)
class Dump:
    """A folder that an export is written to."""

    folder: Path

    def begin(self, ts: int = TS) -> Dump:
        """With its metadata and a database."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "metadata").write_text(metadata(ts))
        self.write("d-schema-create.sql", b"/*!40101 SET NAMES binary*/;\nCREATE DATABASE `d`;\n")
        return self

    def table(self, name: str, definition: str) -> None:
        """`db.table` with what stands behind its name in CREATE TABLE."""
        statement = f"CREATE TABLE `{name.partition('.')[2]}` {definition};\n"
        self.write(f"{name}-schema.sql", f"{COMMENTS}{statement}".encode())

    def write(self, name: str, content: bytes) -> None:
        """A file; compressed if its name says so."""
        if name.endswith(".gz"):
            content = gzip.compress(content)
        elif name.endswith(".zst"):
            content = pa.Codec("zstd").compress(content, asbytes=True)
        (self.folder / name).write_bytes(content)
