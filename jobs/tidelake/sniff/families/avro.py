"""Avro with Confluent's or AWS Glue's framing, and TiCDC's own watermarks and statements (docs/reference/protocols.md 4.1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from tidelake.errors import TidelakeError
from tidelake.sniff.families.hint import Hint, OptionValue, SchemaId, View, plausible, start

_CONFLUENT, _GLUE = 0, 3
_DDL, _WATERMARK = 1, 2
_WATERMARKS: dict[str, OptionValue] = {"avro_enable_watermark": True, "enable_tidb_extension": True}
_STATEMENT = frozenset({"query", "commitTs", "schema", "table"})
_MODES = {"DECIMAL": "avro_decimal_handling_mode", "BIGINT UNSIGNED": "avro_bigint_unsigned_handling_mode"}


def look(view: View) -> Hint | None:
    """Recognise Avro."""
    key, value = view.key, view.value
    if not key and value:
        return _ours(value) or _row(None, value)
    return _row(key, value) if key else None


def _ours(value: bytes) -> Hint | None:
    """Recognise what TiCDC writes without a schema and without a key."""
    if value[0] == _WATERMARK and len(value) == 9:
        ts = int.from_bytes(value[1:], "big")
        told = {"watermark": f"value is 0x02 and 8 bytes, the resolved ts {ts}: avro-enable-watermark is on"}
        return Hint(protocol="avro", evidence=told, framing="no schema id", options=_WATERMARKS, weak=not plausible(ts))
    if value[0] == _DDL and value[1:2] == b"{":
        try:
            said = json.loads(value[1:])
        except (ValueError, RecursionError):
            return None
        if isinstance(said, dict) and said.keys() >= _STATEMENT:
            told = {"ddl": "value is 0x01 and a JSON object with `query` and `commitTs`: a statement beside Avro's rows"}
            return Hint(protocol="avro", evidence=told, framing="no schema id", options=_WATERMARKS)
    return None


def _row(key: bytes | None, value: bytes | None) -> Hint | None:
    of_key, of_value = (_schema_id(side) if side else None for side in (key, value))
    if (key and of_key is None) or (value is not None and of_value is None) or (of_key is None and of_value is None):
        return None
    ids = tuple(i for i in (of_key, of_value) if i is not None)
    framing = "Confluent" if isinstance(ids[-1], int) else "AWS Glue"
    if value is None:
        told = {"tombstone": f"value is null and key begins with {_header(key, ids[0])}: a delete; other protocols write the same"}
    elif key:
        told = {framing: f"value begins with {_header(value, ids[-1])}, and so does the key: {framing} framing"}
    else:
        told = {framing: f"value begins with {_header(value, ids[-1])}: {framing} framing, but there is no key"}
    return Hint(protocol="avro", evidence=told, framing=framing, schema_ids=ids, weak=value is None or not key)


def _schema_id(data: bytes) -> SchemaId | None:
    """The schema id in the header; None for another header."""
    if data[0] == _CONFLUENT and len(data) >= 5:
        schema_id = int.from_bytes(data[1:5], "big")
        return schema_id if 0 < schema_id < 1 << 31 else None  # registries count from 1; Open Protocol's version word begins with 0
    if data[0] == _GLUE and len(data) >= 18 and data[1] in (0, 5):
        return str(UUID(bytes=data[2:18]))
    return None


def _header(data: bytes | None, schema_id: SchemaId) -> str:
    if isinstance(schema_id, int):
        return f"0x00 and a 4-byte schema id ({schema_id})"
    return f"{start((data or b'')[:2])} and the UUID of a schema version ({schema_id})"


def from_schemas(ids: tuple[SchemaId, ...], schema: Callable[[SchemaId], str]) -> tuple[dict[str, str], dict[str, OptionValue]]:
    """Return (evidence, sink options) that the schemas show. Unknown and unreadable schemas are skipped."""
    evidence, options = dict[str, str](), dict[str, OptionValue]()
    for schema_id in ids:
        try:
            parsed = json.loads(schema(schema_id))
        except (TidelakeError, ValueError, RecursionError):
            continue
        for name, kind in _fields(parsed):
            if name == "_tidb_commit_ts":
                evidence["extension"] = f"schema {schema_id} has the field `_tidb_commit_ts`: the TiDB extension is on"
                options["enable_tidb_extension"] = True
            elif name == "_tidb_row_level_checksum":
                evidence["checksum"] = f"schema {schema_id} has the field `_tidb_row_level_checksum`: row checksums are on"
                options["enable_row_checksum"] = True
            elif (word := _tidb_type(kind)) in _MODES and kind.get("type") == "string":
                evidence[word] = f"schema {schema_id} has {word} columns as strings"
                options[_MODES[word]] = "string"
    return evidence, options


def _fields(schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and type of each field; of a union the type other than null."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    for field in fields if isinstance(fields, list) else ():
        kind = field.get("type") if isinstance(field, dict) else None
        branches = kind if isinstance(kind, list) else [kind]
        described = next((branch for branch in branches if isinstance(branch, dict)), {})
        if isinstance(field, dict):
            yield str(field.get("name")), described


def _tidb_type(kind: Mapping[str, Any]) -> str:
    parameters = kind.get("connect.parameters")
    return str(parameters.get("tidb_type", "")) if isinstance(parameters, dict) else ""
