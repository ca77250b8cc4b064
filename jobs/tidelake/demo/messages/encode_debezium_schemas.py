"""`schema` members of Debezium's messages, and the tables in its statements, like TiCDC (docs/reference/protocols.md 9.2)."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tidelake.demo.messages.encode_canal_json import jdbc_type
from tidelake.demo.messages.model import SourceColumn, SourceTable
from tidelake.history.ddl.column_types import MysqlType
from tidelake.wire.cells.mysql_codes import NULLABLE, UNSIGNED, word

Said = dict[str, Any]

_TYPES = {1: "int16", 2: "int16", 3: "int32", 4: "float", 5: "double", 7: "string", 8: "int64", 9: "int32", 10: "int32", 11: "int64"}
_TYPES |= {12: "int64", 13: "int32", 16: "bytes", 246: "double"}  # others are string
_UNSIGNED_TYPES = {2: "int32", 3: "int64"}
_MEANINGS = {7: "ZonedTimestamp", 10: "Date", 11: "MicroTime", 12: "Timestamp", 13: "Year"}
_DATA = {16: "Bits", 225: "TiDBVectorFloat32", 245: "Json", 247: "Enum", 248: "EnumSet"}
_NUMBERS = frozenset({1, 2, 3, 4, 5, 8, 9, 13, 246})
_BARE = frozenset({13, 15, 16, 246, 254})  # types whose word is written without `unsigned`
_WITH_CHARSET = frozenset({15, 249, 250, 251, 252, 254, 247, 248})
_MILLI_DIGITS = 3


def compact(said: Any) -> str:
    """Format JSON without spaces."""
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def row_schema(cluster: str, table: SourceTable) -> str:
    """Return the schema of a row's value."""
    name, fields = f"{cluster}.{table.database}.{table.name}", [_field(c) for c in table.columns]
    images = [
        {"type": "struct", "optional": True, "name": f"{name}.Value", "field": side, "fields": fields} for side in ("before", "after")
    ]
    return compact(_envelope(name, [*images, _SOURCE, *_TAIL]))


def key_schema(cluster: str, table: SourceTable) -> str:
    """Return the schema of a row's key."""
    fields = [_field(table.columns[i]) for i in table.key]
    return compact({"type": "struct", "name": f"{cluster}.{table.database}.{table.name}.Key", "optional": False, "fields": fields})


@cache
def watermark_schemas(cluster: str) -> tuple[str, str]:
    """Return the schemas of a watermark's key and value."""
    key = {"type": "struct", "name": f"{cluster}.watermark.Key", "optional": False, "fields": list[Said]()}
    return compact(key), compact(_envelope(f"{cluster}.watermark", [_SOURCE, *_TAIL]))


@cache
def statement_schemas() -> tuple[str, str]:
    """Return the schemas of a statement's key and value."""
    key: Said = {"type": "struct", "name": "io.debezium.connector.mysql.SchemaChangeKey", "optional": False, "version": 1}
    key["fields"] = [{"field": "databaseName", "optional": False, "type": "string"}]
    value: Said = {"optional": False, "type": "struct", "version": 1, "name": "io.debezium.connector.mysql.SchemaChangeValue"}
    texts = [{"field": name, "optional": True, "type": "string"} for name in ("databaseName", "schemaName", "ddl")]
    value["fields"] = [_SOURCE, {"field": "ts_ms", "optional": False, "type": "int64"}, *texts, _CHANGES]
    return compact(key), compact(value)


def changed_table(table: SourceTable) -> Said:
    """Return a table as it is after a statement."""
    columns = [_described(c, i) for i, c in enumerate(table.columns, 1)]
    return {"defaultCharsetName": "utf8mb4", "primaryKeyColumnNames": list(table.primary), "columns": columns, "comment": None}


def _envelope(name: str, fields: list[Said]) -> Said:
    return {"type": "struct", "optional": False, "name": f"{name}.Envelope", "version": 1, "fields": fields}


def _field(c: SourceColumn) -> Said:
    kind, data = MysqlType.parse(c.type), _DATA.get(c.code)
    said: Said = {"tidb_type": (word(c.code, c.flag) or "").partition(" ")[0] if c.code in _BARE else word(c.code, c.flag)}
    said["type"] = (
        "boolean"
        if kind.length == 1 and c.code == 16
        else (_UNSIGNED_TYPES if c.flag & UNSIGNED else {}).get(c.code) or (_TYPES.get(c.code, "string"))
    )
    said["optional"] = bool(c.flag & NULLABLE)
    if c.code in _MEANINGS:
        micros = c.code == 12 and (kind.length or 0) > _MILLI_DIGITS
        said |= {"name": f"io.debezium.time.{'Micro' if micros else ''}{_MEANINGS[c.code]}", "version": 1}
    elif data and said["type"] != "boolean":
        said |= {"name": f"io.debezium.data.{data}"} | ({} if c.code == 225 else {"version": 1})
        said |= _parameters(c, kind)
    said["field"] = c.name
    if c.default is not None:
        said["default"] = _number(c.default) if c.code in _NUMBERS else c.default
    return said


def _parameters(c: SourceColumn, kind: MysqlType) -> Said:
    if c.code == 16:
        return {"parameters": {"length": str(kind.length)}}
    if not c.elements:
        return {}
    members = [e.replace(",", "\\,") for e in c.elements] if c.code == 247 else c.elements
    return {"parameters": {"allowed": ",".join(members)}}


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _described(c: SourceColumn, position: int) -> Said:
    kind = MysqlType.parse(c.type)
    name = (word(c.code, c.flag) or "").upper()
    return {
        "name": c.name,
        "jdbcType": jdbc_type(c),
        "nativeType": None,
        "comment": None,
        "defaultValueExpression": c.default,
        "enumValues": [f"'{e}'" for e in c.elements] or None,
        "typeName": name,
        "typeExpression": name,
        "charsetName": "utf8mb4" if c.code in _WITH_CHARSET and not c.is_binary else None,
        "length": kind.length,
        "scale": (kind.scale or 0) if c.code == 246 else None,
        "position": position,
        "optional": bool(c.flag & NULLABLE),
        "autoIncremented": False,
        "generated": False,
    }


def _struct(name: str, kind: str, optional: bool) -> Said:
    return {"type": kind, "optional": optional, "field": name}


_SNAPSHOT = {
    "type": "string",
    "optional": True,
    "name": "io.debezium.data.Enum",
    "version": 1,
    "parameters": {"allowed": "true,last,false,incremental"},
    "default": "false",
    "field": "snapshot",
}
_SOURCE: Said = {
    "type": "struct",
    "fields": [
        _struct("version", "string", False),
        _struct("connector", "string", False),
        _struct("name", "string", False),
        _struct("ts_ms", "int64", False),
        _SNAPSHOT,
        _struct("db", "string", False),
        _struct("sequence", "string", True),
        _struct("table", "string", True),
        _struct("server_id", "int64", False),
        _struct("gtid", "string", True),
        _struct("file", "string", False),
        _struct("pos", "int64", False),
        _struct("row", "int32", False),
        _struct("thread", "int64", True),
        _struct("query", "string", True),
    ],
    "optional": False,
    "name": "io.debezium.connector.mysql.Source",
    "field": "source",
}
_TRANSACTION: Said = {
    "type": "struct",
    "fields": [_struct("id", "string", False), _struct("total_order", "int64", False), _struct("data_collection_order", "int64", False)],
    "optional": True,
    "name": "event.block",
    "version": 1,
    "field": "transaction",
}
_TAIL = [_struct("op", "string", False), _struct("ts_ms", "int64", True), _TRANSACTION]
_CHANGES: Said = {  # the fields of a change are left out
    "field": "tableChanges",
    "optional": False,
    "type": "array",
    "items": {"name": "io.debezium.connector.schema.Change", "optional": False, "type": "struct", "version": 1},
}
