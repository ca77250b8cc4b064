"""Writes TiCDC's Avro schemas and messages (docs/reference/protocols.md 4), by hand, and reads what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from tests.protocols.both_paths import both
from tests.protocols.craft_messages import varint
from tidelake.errors import DecodeError
from tidelake.history.event import Event, SchemaColumn
from tidelake.protocols import Context

EXTENSION: list[dict[str, Any]] = [
    {"name": "_tidb_op", "type": "string", "default": ""},
    {"name": "_tidb_commit_ts", "type": "long", "default": 0},
    {"name": "_tidb_commit_physical_time", "type": "long", "default": 0},
]
CHECKSUM: list[dict[str, Any]] = [
    {"name": "_tidb_row_level_checksum", "type": "string", "default": ""},
    {"name": "_tidb_corrupted", "type": "boolean", "default": False},
    {"name": "_tidb_checksum_version", "type": "int", "default": 0},
]


def kind(avro: str, tidb: str, *, decimal: tuple[int, int] | None = None, **parameters: str) -> dict[str, Any]:
    """A type object."""
    out: dict[str, Any] = {"type": avro, "connect.parameters": {"tidb_type": tidb, **parameters}}
    return out | {"logicalType": "decimal", "precision": decimal[0], "scale": decimal[1]} if decimal else out


def field(name: str, avro: object, *, null: int | None = None) -> dict[str, Any]:
    """null: the branch of NULL, None for a NOT NULL column."""
    if null is None:
        return {"name": name, "type": avro}
    return {"name": name, "type": ["null", avro] if null == 0 else [avro, "null"], "default": None}


def schema(*fields: Mapping[str, Any], name: str = "t", namespace: str | None = "default.test") -> dict[str, Any]:
    out: dict[str, Any] = {"type": "record", "name": name, "fields": list(fields)}
    return out | {"namespace": namespace} if namespace is not None else out


def context(schemas: Mapping[int | str, Any]) -> Context:
    """Schemas as objects or as text; UNKNOWN_SCHEMA for any other id."""

    def find(schema_id: int | str) -> str:
        if schema_id not in schemas:
            raise DecodeError(f"no schema {schema_id}", code="UNKNOWN_SCHEMA")
        found = schemas[schema_id]
        return found if isinstance(found, str) else json.dumps(found)

    return Context(avro_schema=find)


def confluent(schema_id: int, *values: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + b"".join(values)


def glue(schema_id: str, *values: bytes) -> bytes:
    return b"\3\0" + UUID(schema_id).bytes + b"".join(values)


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(len(data)) + data


def extension(op: str, ts: int) -> bytes:
    return text(op) + varint(ts) + varint(ts >> 18)


def some(branch: int, value: bytes = b"") -> bytes:
    """A branch of a union."""
    return varint(branch) + value


def unscaled(number: int, size: int | None = None) -> bytes:
    """A decimal's bytes, as few as possible."""
    return text(number.to_bytes(size or number.bit_length() // 8 + 1, "big", signed=True))


INT = kind("int", "INT")
ID: Sequence[Mapping[str, Any]] = [field("id", INT)]
KEY = confluent(1, varint(7))
UUIDS = ("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63", "00000000-0000-0000-0000-00000000000f")


def event(value: bytes | None, value_schema: object = None, key: bytes | None = KEY, key_schema: object = None) -> Event:
    """The only event of a message whose key has schema 1 and whose value has schema 2, equal by both paths."""
    schemas = {1: key_schema or schema(*ID), 2: value_schema or schema(*ID)}
    ((found,),) = both("avro", [(key, value)], context(schemas))
    return found


def cell(avro: object, value: bytes, *, null: int | None = None) -> tuple[bytes | None, SchemaColumn]:
    """The text and column of one value beside the key column."""
    found = event(confluent(2, varint(7), value), schema(*ID, field("v", avro, null=null)))
    assert found.kind == "row", found.error
    assert found.after is not None
    assert found.row_schema is not None
    return found.after[1], found.row_schema.columns[1]


def error(value: bytes | None, value_schema: object = None, key: bytes | None = KEY, key_schema: object = None) -> tuple[str | None, str]:
    found = event(value, value_schema, key, key_schema)
    assert (found.kind, found.raw_key, found.raw_value) == ("rejected", key, value)
    return found.error_code, found.error or ""
