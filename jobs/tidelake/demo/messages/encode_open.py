"""Open Protocol encoder like classic TiCDC (docs/reference/protocols.md 2).

key := u64be 1 { u64be length, key JSON }*    value := { u64be length, value JSON }*    columns in alphabetic order
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from tidelake.demo.messages.gotext import json_number, json_string, quote
from tidelake.demo.messages.model import Ddl, Row, SourceChange, SourceColumn, SourceTable, TopicRecord
from tidelake.tso import wrap

_VERSION = (1).to_bytes(8, "big")
_ROW, _DDL, _RESOLVED = 1, 2, 3
_Cell = Callable[[Any], str]


class OpenEncoder:
    """Encodes row changes, DDL and resolved ts as Open Protocol records."""

    def __init__(self) -> None:
        self._plans: dict[SourceTable, list[tuple[int, str, _Cell]]] = {}

    def rows(self, changes: Sequence[SourceChange], build_ms: int = 0) -> TopicRecord:
        """Encode one batch."""
        keys, values = [_VERSION], list[bytes]()
        for change in changes:
            keys.append(_framed(_row_key(change)))
            values.append(_framed(self._row_value(change)))
        return b"".join(keys), b"".join(values)

    def ddl(self, ddl: Ddl, build_ms: int = 0) -> TopicRecord:
        """Encode one statement."""
        key = f'{{"ts":{ddl.commit_ts}{_names(ddl.database, ddl.table)},"t":{_DDL}}}'
        return _VERSION + _framed(key), _framed(f'{{"q":{json_string(ddl.query)},"t":{ddl.code}}}')

    def resolved(self, ts: int, build_ms: int = 0) -> TopicRecord:
        """Encode a resolved ts. The value is one zero length."""
        return _VERSION + _framed(f'{{"ts":{ts},"t":{_RESOLVED}}}'), bytes(8)

    def _row_value(self, change: SourceChange) -> str:
        if change.after is None:
            return f'{{"d":{self._columns(change.table, change.before)}}}'
        new = f'{{"u":{self._columns(change.table, change.after)}'
        return f"{new}}}" if change.before is None else f'{new},"p":{self._columns(change.table, change.before)}}}'

    def _columns(self, table: SourceTable, row: Row | None) -> str:
        assert row is not None
        plan = self._plans.get(table) or self._plans.setdefault(table, _plan(table))
        cells = [f"{head}null}}" if (v := row[i]) is None else f"{head}{cell(v)}}}" for i, head, cell in plan]
        return "{" + ",".join(cells) + "}"


def _framed(text: str) -> bytes:
    raw = text.encode()
    return len(raw).to_bytes(8, "big") + raw


def _names(database: str, table: str) -> str:
    return (f',"scm":{json_string(database)}' if database else "") + (f',"tbl":{json_string(table)}' if table else "")


def _row_key(change: SourceChange) -> str:
    row_id = f',"rid":{wrap(change.row_id)}' if change.row_id else ""
    part = "" if change.physical_id is None else f',"ptn":{change.physical_id}'
    return f'{{"ts":{change.commit_ts}{_names(change.table.database, change.table.name)}{row_id}{part},"t":{_ROW}}}'


def _plan(table: SourceTable) -> list[tuple[int, str, _Cell]]:
    """For each column in name order: its position, the text before its value, and the function that writes the value."""
    order = sorted(range(len(table.columns)), key=lambda i: table.columns[i].name.encode())
    return [(i, _head(table.columns[i], i in table.key), _cell(table.columns[i])) for i in order]


def _head(column: SourceColumn, handle: bool) -> str:
    mark = '"h":true,' if handle else ""
    return f'{json_string(column.name)}:{{"t":{column.code},{mark}"f":{column.flag},"v":'


def _cell(column: SourceColumn) -> _Cell:
    if column.code in (4, 5):
        return json_number
    if column.code in (15, 253, 254):
        return (lambda v: json_string(quote(v))) if column.is_binary else json_string
    if column.code in (249, 250, 251, 252):
        return _base64
    if column.code in (7, 10, 11, 12, 225, 245, 246):
        return json_string
    return str


def _base64(value: str | bytes) -> str:
    raw = value.encode() if isinstance(value, str) else value
    return f'"{base64.b64encode(raw).decode()}"'
