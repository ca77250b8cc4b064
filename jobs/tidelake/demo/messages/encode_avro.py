"""Avro encoder with Confluent framing and the TiDB extension, like classic TiCDC (docs/reference/protocols.md 4).

value := 00, i32be schema id, record; null for deletes    key := 00, i32be schema id, record of the handle columns
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tidelake.demo.messages.encode_avro_schemas import Schema, key_schema, value_schema
from tidelake.demo.messages.model import Ddl, SourceChange, SourceTable, TopicRecord, Value
from tidelake.demo.messages.varints import zigzag
from tidelake.tso import physical_ms, wrap

_Writer = Callable[[Any], bytes]

_OPS = {"insert": b"c", "update": b"u"}


class AvroEncoder:
    """Encodes row changes as Avro records, with decimals and BIGINT UNSIGNED as strings. `schemas`: the registry's content, id → text.

    Schemas are registered on first use; those of `definitions` beforehand, so that their ids do not depend on the rows.
    """

    def __init__(self, definitions: Iterable[SourceTable] = ()) -> None:
        self.schemas: dict[int, str] = {}
        self._ids: dict[str, int] = {}
        self._plans: dict[SourceTable, tuple[_Record, _Record]] = {}
        for definition in definitions:
            self._plan(definition)

    def rows(self, changes: Sequence[SourceChange], build_ms: int = 0) -> TopicRecord:
        """Encode one row event. The value of a delete is null."""
        (change,) = changes
        key, value = self._plans.get(change.table) or self._plan(change.table)
        row = change.before if change.after is None else change.after
        assert row is not None
        names = change.table.columns
        cells = [names[i].names(v) if names[i].code in (247, 248) and isinstance(v := row[i], int) else row[i] for i in range(len(row))]
        framed_key = key.write([cells[i] for i in change.table.key])
        if change.op == "delete":
            return framed_key, None
        return framed_key, value.write([*cells, _OPS[change.op], change.commit_ts, physical_ms(change.commit_ts)])

    def ddl(self, ddl: Ddl, build_ms: int = 0) -> TopicRecord:
        """Encode a statement. Sent only with avro-enable-watermark (4.1); the demo's feeds do not use it."""
        members = {"query": ddl.query, "type": ddl.code, "schema": ddl.database, "table": ddl.table, "commitTs": ddl.commit_ts}
        return None, b"\x01" + json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()

    def resolved(self, ts: int, build_ms: int = 0) -> TopicRecord:
        """Encode a resolved ts. Sent only with avro-enable-watermark (4.1); the demo's feeds do not use it."""
        return None, b"\x02" + ts.to_bytes(8, "big")

    def _plan(self, table: SourceTable) -> tuple[_Record, _Record]:
        """Register and return the table's key and value records."""
        records = [_Record(self._register(s), s) for s in (key_schema(table), value_schema(table))]
        self._plans[table] = records[0], records[1]
        return self._plans[table]

    def _register(self, schema: Schema) -> int:
        text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
        number = self._ids.setdefault(text, len(self._ids) + 1)
        self.schemas[number] = text
        return number


class _Record:
    """A record schema with its id, compiled to one writer per field."""

    def __init__(self, schema_id: int, schema: Schema) -> None:
        self._frame = b"\x00" + schema_id.to_bytes(4, "big")
        self._writers = [writer(f["type"]) for f in schema["fields"]]

    def write(self, values: Sequence[Value]) -> bytes:
        """Return the framed record."""
        return b"".join([self._frame, *[write(v) for write, v in zip(self._writers, values, strict=True)]])


def record(schema_id: int, schema: Schema, values: Sequence[Value]) -> bytes:
    """Return one framed record. values: in the order of the schema's fields, ENUM and SET as names."""
    return _Record(schema_id, schema).write(values)


def writer(schema: Any) -> _Writer:
    """Return the function that writes a field's values, from its schema alone; other handling modes and checksums work as well."""
    if isinstance(schema, list):
        null = schema.index("null")
        branch, other = zigzag(1 - null), writer(schema[1 - null])
        return lambda v: zigzag(null) if v is None else branch + other(v)
    if not isinstance(schema, dict):
        return _PRIMITIVES[schema]
    if schema.get("logicalType") == "decimal":
        return lambda v: _bytes(_unscaled(v, schema["scale"]))
    kind = schema["connect.parameters"]["tidb_type"]
    return _bit if kind == "BIT" else _PRIMITIVES[schema["type"]]


def _bytes(raw: bytes) -> bytes:
    return zigzag(len(raw)) + raw


def _string(value: Any) -> bytes:
    return _bytes(value if isinstance(value, bytes) else str(value).encode())


def _bit(value: int) -> bytes:
    return _bytes(value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))


def _unscaled(text: str, scale: int) -> bytes:
    """A decimal as big-endian two's complement of its unscaled number, in as few bytes as possible."""
    whole, _, digits = text.partition(".")
    number = int(whole + digits.ljust(scale, "0"))
    size = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return number.to_bytes(size, "big", signed=True)


_PRIMITIVES: dict[str, _Writer] = {
    "int": zigzag,
    "long": lambda v: zigzag(wrap(v)),
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "bytes": _bytes,
    "string": _string,
    "boolean": lambda v: b"\x01" if v else b"\x00",
}
