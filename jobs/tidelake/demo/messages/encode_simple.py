"""Simple JSON encoder like TiCDC (docs/reference/protocols.md 9.1): one event per message, values as strings, columns in alphabetic order.

A row names the version of its table's schema. A BOOTSTRAP message, or the statement that created the version, describes it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tidelake.demo.messages.encode_canal_json import DDL_WORDS
from tidelake.demo.messages.gotext import json_string, plain_number
from tidelake.demo.messages.model import PRIMARY_KEY, Ddl, Row, SourceChange, SourceColumn, SourceTable, TopicRecord
from tidelake.history.ddl.column_types import MysqlType
from tidelake.wire.cells.mysql_codes import NULLABLE, UNSIGNED

_OPS = {"insert": "INSERT", "update": "UPDATE", "delete": "DELETE"}
_FIRST_VERSION = 1 << 58
_ZONE = "UTC"
_WIDTHS = {"datetime": 19, "timestamp": 19, "time": 10, "date": 10}
_Cell = Callable[[Any], str]


class SimpleEncoder:
    """Encodes row changes, DDL, watermarks and table schemas as Simple records. Versions number the definitions in order of first use.

    led_to: the definitions after each statement, in order; a DROP has none.
    """

    def __init__(self, led_to: Iterable[SourceTable] = ()) -> None:
        self._versions: dict[str, int] = {}
        self._known: dict[SourceTable, int] = {}
        self._definitions = iter(led_to)
        self._statements: dict[int, SourceTable | None] = {}
        self._last: dict[str, SourceTable] = {}
        self._plans: dict[SourceTable, list[tuple[int, str, _Cell]]] = {}

    def rows(self, changes: Sequence[SourceChange], build_ms: int) -> TopicRecord:
        """Encode one row event."""
        (change,) = changes
        t = change.table
        head = f'{{"version":1,"database":{json_string(t.database)},"table":{json_string(t.name)},"tableID":{_table_id(change)}'
        head += f',"type":"{_OPS[change.op]}","commitTs":{change.commit_ts},"buildTs":{build_ms},"schemaVersion":{self._version(t)}'
        data = "" if change.after is None else f',"data":{self._image(t, change.after)}'
        old = "" if change.before is None else f',"old":{self._image(t, change.before)}'
        return b"", f"{head}{data}{old}}}".encode()

    def ddl(self, ddl: Ddl, build_ms: int) -> TopicRecord:
        """Encode one statement."""
        kind = next((w for w, codes in DDL_WORDS.items() if ddl.code in codes), "ALTER")
        if ddl.commit_ts not in self._statements:
            self._statements[ddl.commit_ts] = None if kind == "ERASE" else next(self._definitions, None)
        after = self._statements[ddl.commit_ts]
        schema = f',"tableSchema":{self._schema(after)}' if after else f',"preTableSchema":{self._schema(self._last[ddl.table])}'
        return None, f'{{"version":1,"type":"{kind}","sql":{json_string(ddl.query)},{_times(ddl.commit_ts, build_ms)}{schema}}}'.encode()

    def resolved(self, ts: int, build_ms: int) -> TopicRecord:
        """Encode a watermark."""
        return None, f'{{"version":1,"type":"WATERMARK",{_times(ts, build_ms)}}}'.encode()

    def bootstrap(self, table: SourceTable, build_ms: int) -> TopicRecord:
        """Encode the table's schema."""
        return None, f'{{"version":1,"type":"BOOTSTRAP",{_times(0, build_ms)},"tableSchema":{self._schema(table)}}}'.encode()

    def _schema(self, table: SourceTable) -> str:
        said = {
            "schema": table.database,
            "table": table.name,
            "tableID": table.physical_ids[0],
            "version": self._version(table),
            "columns": [_described(c) for c in table.columns],
            "indexes": [_index(table)] if table.key else [],
        }
        return json.dumps(said, ensure_ascii=False, separators=(",", ":"))

    def _version(self, table: SourceTable) -> int:
        known = self._known.get(table)
        if known is None:  # an equal definition can be another object
            known = self._known[table] = self._versions.setdefault(repr(table), _FIRST_VERSION + len(self._versions))
            self._last[table.name] = table
        return known

    def _image(self, table: SourceTable, row: Row) -> str:
        plan = self._plans.get(table) or self._plans.setdefault(table, _plan(table))
        return "{" + ",".join([f"{name}:null" if (v := row[i]) is None else f"{name}:{cell(v)}" for i, name, cell in plan]) + "}"


def _times(commit_ts: int, build_ms: int) -> str:
    return f'"commitTs":{commit_ts},"buildTs":{build_ms}'


def _table_id(change: SourceChange) -> int:
    return change.table.physical_ids[0] if change.physical_id is None else change.physical_id


def _plan(table: SourceTable) -> list[tuple[int, str, _Cell]]:
    """For each column in name order: its position, its name as a member, and the function that writes the value."""
    order = sorted(range(len(table.columns)), key=lambda i: table.columns[i].name.encode())
    return [(i, json_string(table.columns[i].name), _cell(table.columns[i])) for i in order]


def _cell(column: SourceColumn) -> _Cell:
    if column.code in (4, 5):
        return lambda v: f'"{plain_number(v)}"'
    if column.code == 7:
        return lambda v: f'{{"location":"{_ZONE}","value":"{v}"}}'
    if column.code in (15, 249, 250, 251, 252, 253, 254):
        return _base64 if column.is_binary else json_string
    return json_string if column.code == 245 else lambda v: f'"{v}"'


def _base64(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _described(column: SourceColumn) -> dict[str, Any]:
    kind = MysqlType.parse(column.type)
    charset = "binary" if column.is_binary else "utf8mb4"
    said: dict[str, Any] = {"mysqlType": kind.word, "charset": charset, "collate": charset if column.is_binary else "utf8mb4_bin"}
    said |= {"length": length} if (length := _length(kind)) is not None else {}
    said |= {"decimal": kind.scale} if kind.scale else {}
    said |= {"elements": list(kind.elements)} if kind.elements else {}
    said |= {"unsigned": True} if column.flag & UNSIGNED else {}
    return {"name": column.name, "dataType": said, "nullable": bool(column.flag & NULLABLE), "default": column.default}


def _length(kind: MysqlType) -> int | None:
    """Length as TiDB counts it: for temporal types the width of the text."""
    if kind.word not in _WIDTHS:
        return kind.length
    return _WIDTHS[kind.word] + (1 + kind.length if kind.length else 0)


def _index(table: SourceTable) -> dict[str, Any]:
    columns = [table.columns[i] for i in table.key]
    primary = all(c.flag & PRIMARY_KEY for c in columns)
    name = "primary" if primary else f"uk_{columns[0].name}"
    return {"name": name, "unique": True, "primary": primary, "nullable": False, "columns": [c.name for c in columns]}
