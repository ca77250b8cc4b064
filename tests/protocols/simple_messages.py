"""Writes Simple's messages (docs/reference/protocols.md 9.1), in JSON and in Avro, from the same descriptions."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.protocols.craft_messages import varint

VERSION, TABLE_ID, TS = 470615200617725953, 116, 455000614502400000
Message = tuple[bytes | None, bytes | None]
AvroValue = tuple[int, Any]  # branch of the union, and the value
NULL, LONG, FLOAT, DOUBLE, STRING, BYTES, TIME, UNSIGNED = range(8)
_OPS = ("INSERT", "UPDATE", "DELETE")
_DDL = ("CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY")


def column(name: str, mysql_type: str = "int", **data_type: Any) -> dict[str, Any]:
    """A column of a table schema; `bigint unsigned` sets the flag."""
    word, _, unsigned = mysql_type.partition(" ")
    described = {"mysqlType": word, "charset": "binary", "collate": "binary", "length": 11} | data_type
    return {"name": name, "dataType": described | ({"unsigned": True} if unsigned else {}), "nullable": True, "default": None}


def index(*columns: str, primary: bool = False, unique: bool = True, nullable: bool = False) -> dict[str, Any]:
    return {"name": "i", "unique": unique, "primary": primary, "nullable": nullable, "columns": list(columns)}


def table_schema(
    columns: Sequence[dict[str, Any]],
    indexes: Sequence[dict[str, Any]] = (),
    database: str = "db",
    table: str = "t",
    version: int = VERSION,
) -> dict[str, Any]:
    return {
        "schema": database,
        "table": table,
        "tableID": TABLE_ID,
        "version": version,
        "columns": list(columns),
        "indexes": list(indexes),
    }


def compact(value: Any) -> bytes:
    """JSON as Go writes it: no blanks, <, > and & escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def json_message(members: Mapping[str, Any]) -> Message:
    return b"", compact(members)


def json_row(op: str = "INSERT", data: Any = None, old: Any = None, **more: Any) -> Message:
    """A row as TiCDC orders it; `more` replaces or adds members, before the row, and None takes one away."""
    members = {
        "version": 1,
        "database": "db",
        "table": "t",
        "tableID": TABLE_ID,
        "type": op,
        "commitTs": TS,
        "buildTs": 5,
        "schemaVersion": VERSION,
    }
    members |= more
    sides = {"data": data, "old": old}
    return json_message({k: v for k, v in (members | sides).items() if v is not None})


def json_schema_message(schema: Any, word: str = "BOOTSTRAP", **more: Any) -> Message:
    return json_message({"version": 1, "type": word} | more | {"commitTs": 0, "buildTs": 5, "tableSchema": schema})


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(len(data)) + data


def some(value: bytes | None) -> bytes:
    """A union of null and something."""
    return b"\0" if value is None else b"\2" + value


def array(values: Iterable[bytes]) -> bytes:
    """An array or a map: one block."""
    values = list(values)
    return varint(len(values)) + b"".join(values) + b"\0" if values else b"\0"


def avro_value(value: AvroValue) -> bytes:
    branch, plain = value
    writers: dict[int, Callable[[Any], bytes]] = {
        NULL: lambda _: b"",
        LONG: varint,
        FLOAT: lambda v: struct.pack("<f", v),
        DOUBLE: lambda v: struct.pack("<d", v),
        STRING: text,
        BYTES: text,
        TIME: lambda v: text("UTC") + text(v),
        UNSIGNED: lambda v: varint(v - (1 << 64) if v >> 63 else v),
    }
    return varint(branch) + writers[branch](plain)


def avro_map(values: Mapping[str, AvroValue]) -> bytes:
    return array(text(name) + avro_value(value) for name, value in values.items())


def avro_message(kind: int, *payload: bytes) -> Message:
    return b"", b"\x16" + varint(kind) + varint(kind) + b"\2" + b"".join(payload)


def avro_row(
    op: str = "INSERT",
    data: Mapping[str, AvroValue] | None = None,
    old: Mapping[str, AvroValue] | None = None,
    *,
    database: str = "db",
    table: str = "t",
    version: int = VERSION,
    ts: int = TS,
    claim: str | None = None,
    handle_only: bool | None = None,
    checksum: bytes | None = None,
) -> Message:
    return avro_message(
        3,
        text(database) + text(table) + varint(TABLE_ID) + varint(_OPS.index(op)) + varint(ts) + varint(5) + varint(version),
        some(None if claim is None else text(claim)),
        some(None if handle_only is None else bytes([handle_only])),
        some(checksum),
        *(some(None if side is None else avro_map(side)) for side in (data, old)),
    )


def avro_schema(schema: Mapping[str, Any]) -> bytes:
    """A table schema, described as in JSON."""
    columns = array(_avro_column(c) for c in schema["columns"])
    indexes = array(
        text(i["name"]) + bytes([i["unique"], i["primary"], i["nullable"]]) + array(map(text, i["columns"])) for i in schema["indexes"]
    )
    return text(schema["schema"]) + text(schema["table"]) + varint(schema["tableID"]) + varint(schema["version"]) + columns + indexes


def _avro_column(described: Mapping[str, Any]) -> bytes:
    kind, default = described["dataType"], described["default"]
    words = text(described["name"]) + text(kind["mysqlType"]) + text(kind["charset"]) + text(kind["collate"])
    elements = some(array(map(text, kind["elements"]))) if "elements" in kind else some(None)
    flags = b"".join(some(bytes([kind[flag]]) if flag in kind else None) for flag in ("unsigned", "zerofill"))
    decimal = some(varint(kind["decimal"])) if "decimal" in kind else some(None)
    rest = bytes([described["nullable"]]) + some(None if default is None else text(default))
    return words + varint(kind["length"]) + decimal + elements + flags + rest


def avro_bootstrap(schema: Mapping[str, Any]) -> Message:
    return avro_message(1, varint(5), avro_schema(schema))


def avro_ddl(word: str, sql: str, schema: Mapping[str, Any] | None = None, former: Mapping[str, Any] | None = None) -> Message:
    schemas = (some(None if s is None else avro_schema(s)) for s in (schema, former))
    return avro_message(2, varint(_DDL.index(word)) + text(sql) + varint(TS) + varint(5), *schemas)


def bootstrap(protocol: str, schema: Mapping[str, Any]) -> Message:
    """In either encoding."""
    return json_schema_message(schema) if protocol == "simple-json" else avro_bootstrap(schema)
