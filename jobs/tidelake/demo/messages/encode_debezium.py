"""Debezium JSON encoder like TiCDC, with the TiDB extension (docs/reference/protocols.md 9.2).

One event per message; the types are only in its schema.

It loses the same values as TiCDC: a zero DATETIME is NULL, or 0 if NULL is not allowed; a DECIMAL is a double. TiCDC also replaces NULLs of
nullable columns with a default, but no table of the bazaar has such a column.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from tidelake.demo.messages.encode_debezium_schemas import (
    changed_table,
    compact,
    key_schema,
    row_schema,
    statement_schemas,
    watermark_schemas,
)
from tidelake.demo.messages.gotext import json_number, raw_string
from tidelake.demo.messages.model import Ddl, Row, SourceChange, SourceColumn, SourceTable, TopicRecord
from tidelake.history.ddl.column_types import MysqlType
from tidelake.tso import physical_ms
from tidelake.wire.cells.mysql_codes import NULLABLE

CLUSTER = "default"
_OPS = {"insert": "c", "update": "u", "delete": "d"}
_CREATE, _DROP, _TRUNCATE, _RENAME = 3, 4, 11, 14
_ZERO = "0000-00-00"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  a DATETIME has no zone
_MILLI_DIGITS = 3
_Cell = Callable[[Any], str]


class DebeziumEncoder:
    """Encodes row changes, DDL and watermarks as Debezium records. schema: off with debezium-disable-schema.

    led_to: the definitions after each statement, in order; a DROP has none.
    """

    def __init__(self, led_to: Iterable[SourceTable] = (), *, schema: bool = True) -> None:
        self._schema = schema
        self._definitions = iter(led_to)
        self._statements: dict[int, SourceTable | None] = {}
        self._plans: dict[SourceTable, _Plan] = {}

    def rows(self, changes: Sequence[SourceChange], build_ms: int) -> TopicRecord:
        """Encode one row event."""
        (change,) = changes
        t = change.table
        plan = self._plans.get(t) or self._plans.setdefault(t, _Plan(t))
        row = change.before if change.after is None else change.after
        assert row is not None
        payload = f'{{{_source(t.database, t.name, change.commit_ts)},"ts_ms":{build_ms},"transaction":null,"op":"{_OPS[change.op]}"'
        match change.op:
            case "insert":
                payload += f',"before":null,"after":{plan.image(row)}}}'
            case "delete":
                payload += f',"after":null,"before":{plan.image(row)}}}'
            case _:
                before = "" if change.before is None else f',"before":{plan.image(change.before)}'
                payload += f'{before},"after":{plan.image(row)}}}'
        return self._message(plan.key(row), plan.key_schema), self._message(payload, plan.schema)

    def ddl(self, ddl: Ddl, build_ms: int) -> TopicRecord:
        """Encode one statement, with the table's columns afterwards; TRUNCATE TABLE has no columns."""
        if ddl.commit_ts not in self._statements:
            self._statements[ddl.commit_ts] = None if ddl.code == _DROP else next(self._definitions, None)
        database, after = raw_string(ddl.database), self._statements[ddl.commit_ts]
        names = f'"databaseName":{database},"schemaName":null,"ddl":{raw_string(ddl.query)}'
        payload = f'{{{_source(ddl.database, ddl.table, ddl.commit_ts)},"ts_ms":{build_ms},{names}'
        payload += f',"tableChanges":[{"" if ddl.code == _TRUNCATE else self._change(ddl, after)}]}}'
        of_key, of_value = statement_schemas()
        return self._message(f'{{"databaseName":{database}}}', of_key), self._message(payload, of_value)

    def resolved(self, ts: int, build_ms: int) -> TopicRecord:
        """Encode a watermark."""
        payload = f'{{{_source("", "", ts)},"ts_ms":{build_ms},"transaction":null,"op":"m"}}'
        of_key, of_value = watermark_schemas(CLUSTER)
        return self._message("{}", of_key), self._message(payload, of_value)

    def _message(self, payload: str, schema: str) -> bytes:
        return f'{{"payload":{payload},"schema":{schema}}}'.encode() if self._schema else f'{{"payload":{payload}}}'.encode()

    def _change(self, ddl: Ddl, after: SourceTable | None) -> str:
        kind = {_CREATE: "CREATE", _DROP: "DROP"}.get(ddl.code, "ALTER")
        name = f'"{ddl.database}"."{ddl.table}"'
        if ddl.code == _RENAME:
            name = f'"{ddl.database}"."{ddl.query.split("`")[1]}",{name}'
        return compact({"type": kind, "id": name, "table": None if after is None else changed_table(after)})


def _source(database: str, table: str, commit_ts: int) -> str:
    names = f'"snapshot":"false","db":{raw_string(database)},"table":{raw_string(table)}'
    head = f'"version":"2.4.0.Final","connector":"TiCDC","name":"{CLUSTER}","ts_ms":{physical_ms(commit_ts)},{names}'
    rest = '"server_id":0,"gtid":null,"file":"","pos":0,"row":0,"thread":0,"query":null'
    return f'"source":{{{head},{rest},"commit_ts":{commit_ts},"cluster_id":"{CLUSTER}"}}'


class _Plan:
    """What all messages of a table's definition share."""

    def __init__(self, table: SourceTable) -> None:
        self._cells = [(f"{raw_string(c.name)}:", _cell(c)) for c in table.columns]
        self._handle = table.key
        self.schema, self.key_schema = row_schema(CLUSTER, table), key_schema(CLUSTER, table)

    def image(self, row: Row) -> str:
        """Return all columns."""
        return "{" + ",".join([name + ("null" if v is None else cell(v)) for v, (name, cell) in zip(row, self._cells, strict=True)]) + "}"

    def key(self, row: Row) -> str:
        """Return the columns of the handle; empty if the table has no key."""
        return "{" + ",".join([self._cells[i][0] + self._cells[i][1](row[i]) for i in self._handle]) + "}"


def _cell(column: SourceColumn) -> _Cell:
    """Function that writes a column's values other than NULL."""
    kind = MysqlType.parse(column.type)
    if column.elements:
        return lambda v: raw_string(column.names(v))
    if column.code == 16:
        return _bits(kind.length or 1)
    if column.code in (15, 249, 250, 251, 252, 253, 254):
        return _base64 if column.is_binary else raw_string
    if column.code in (225, 245):
        return raw_string
    if column.code in (4, 5, 246):
        return lambda v: json_number(float(v))
    return _temporal(column, kind.fraction_digits or 0) or _integer


def _temporal(column: SourceColumn, digits: int) -> _Cell | None:
    match column.code:
        case 7:
            return lambda v: f'"{_instant(v)}"'
        case 10:
            return _not_zero(column, lambda v: str((date.fromisoformat(v) - _EPOCH.date()).days))
        case 11:
            return lambda v: str(_micros(v))
        case 12:
            unit = timedelta(milliseconds=1) if digits <= _MILLI_DIGITS else timedelta(microseconds=1)
            return _not_zero(column, lambda v: str((datetime.fromisoformat(v) - _EPOCH) // unit))
        case _:
            return None


def _integer(value: int) -> str:
    """BIGINT UNSIGNED wraps into the signed range."""
    return str(value - (1 << 64) if value >= 1 << 63 else value)


def _bits(length: int) -> _Cell:
    """BIT(1) is a boolean; more bits are bytes, the lowest first."""
    if length == 1:
        return lambda v: "true" if v else "false"
    return lambda v: _base64(v.to_bytes((length + 7) // 8, "little"))


def _base64(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _not_zero(column: SourceColumn, cell: _Cell) -> _Cell:
    """Zero dates have no number."""
    zero = "null" if column.flag & NULLABLE else "0"
    return lambda v: zero if v.startswith(_ZERO) else cell(v)


def _instant(value: str) -> str:
    """TIMESTAMP in UTC, as the demo's changefeeds print it."""
    return "1970-01-01T00:00:00Z" if value.startswith(_ZERO) else f"{value.replace(' ', 'T')}Z"


def _micros(value: str) -> int:
    hours, minutes, seconds = value.removeprefix("-").split(":")
    whole, _, fraction = seconds.partition(".")
    micros = (int(hours) * 3600 + int(minutes) * 60 + int(whole)) * 1_000_000 + int(fraction.ljust(6, "0") or 0)
    return -micros if value.startswith("-") else micros
