"""Writes Canal protobuf messages (docs/reference/protocols.md 9.4), right ones and, part by part, wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.protocols.craft_messages import uvarint

INSERT, UPDATE, DELETE, CREATE, ALTER, QUERY = 1, 2, 3, 4, 5, 7
BEGIN, ROWDATA, END, HEARTBEAT, GTID = range(1, 6)


@dataclass(frozen=True)
class Column:
    """A column; value None is NULL."""

    name: str | bytes
    type: str | bytes
    value: str | bytes | None = ""
    key: bool = False
    sql_type: int = 4


ID = Column("id", "int", "1", key=True)
NAME = Column("name", "varchar", "näme", sql_type=12)


def number(field: int, value: int) -> bytes:
    return uvarint(field << 3) + uvarint(value % (1 << 64))


def text(field: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return uvarint(field << 3 | 2) + uvarint(len(data)) + data


def column_fields(c: Column) -> list[bytes]:
    """As TiCDC writes it: proto3, with those fields of a oneof that are zero."""
    fields = [number(2, c.sql_type), text(3, c.name)] + [number(4, 1)] * c.key
    return [*fields, number(5, 1), number(6, c.value is None)] + [text(8, c.value or "")] * bool(c.value) + [text(10, c.type)]


def column(c: Column) -> bytes:
    return b"".join(column_fields(c))


def row_data(after: Sequence[Column] = (), before: Sequence[Column] = ()) -> bytes:
    return b"".join([text(1, column(c)) for c in before] + [text(2, column(c)) for c in after])


def change(kind: int, *rows: bytes, ddl: int = 0, sql: str | bytes = "", schema: str = "") -> bytes:
    parts = [number(2, kind), number(10, ddl)] + [text(11, sql)] * bool(sql) + [text(12, r) for r in rows]
    return b"".join(parts + [text(14, schema)] * bool(schema))


@dataclass(frozen=True)
class At:
    """Where a change stands in the binlog. TiCDC writes none."""

    position: int
    file: str | bytes = "mysql-bin.000012"
    server: int = 1


def header(schema: str | bytes = "s", table: str | bytes = "t", kind: int = INSERT, at: At | None = None) -> bytes:
    place = [] if at is None else [text(2, at.file), number(3, at.position), number(4, at.server)]
    parts = [number(1, 1), *place, text(5, "UTF-8"), number(6, 1735689600000), number(7, 2)]
    parts += [text(8, schema)] * bool(schema) + [text(9, table)] * bool(table)
    return b"".join([*parts, number(11, kind), text(12, text(1, "rowsCount") + text(2, "1"))])


def entry(head: bytes, store: bytes, kind: int = ROWDATA) -> bytes:
    return text(1, head) + number(2, kind) + text(3, store)


def packet(*entries: bytes, extra: bytes = b"", batch: int = 0) -> bytes:
    body = (number(1, batch) if batch else b"") + b"".join(text(2, e) for e in entries)
    return number(2, 1) + number(3, 7) + extra + text(5, body)


def insert(*columns: Column, schema: str | bytes = "s", table: str | bytes = "t") -> bytes:
    """An entry."""
    return entry(header(schema, table), change(INSERT, row_data(columns)))


def update(before: Sequence[Column], after: Sequence[Column]) -> bytes:
    return entry(header(kind=UPDATE), change(UPDATE, row_data(after, before)))


def delete(*columns: Column) -> bytes:
    return entry(header(kind=DELETE), change(DELETE, row_data(before=columns)))


def ddl(sql: str, kind: int = ALTER, schema: str = "s", table: str = "t") -> bytes:
    return entry(header(schema, table, kind), change(kind, ddl=1, sql=sql, schema=schema))


def server_column(index: int, c: Column) -> bytes:
    """As Alibaba Canal's own server writes it: with the column's place, and full types."""
    return number(1, index) + column(c)
