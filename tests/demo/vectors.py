"""What a vector of tests/data/vectors/ticdc_encoders.json.xz was made from, as our model's changes (docs/reference/protocols.md 12)."""

from __future__ import annotations

import json
import struct
from functools import cache
from typing import Any

from tests.data_files import data_bytes
from tidelake.demo.messages.model import Ddl, SourceChange, SourceColumn, SourceTable, Value
from tidelake.tso import from_ms

_OTHER_IMAGES = ("delete_only_output_handle_key_columns", "only_output_updated_columns")


def load(protocol: str) -> list[dict[str, Any]]:
    """The protocol's messages whose bytes follow from `expected`: no claim-check, compression or reduced rows."""
    every = [v for v in json.loads(data_bytes("vectors/ticdc_encoders.json.xz")) if v["protocol"] == protocol and "container" not in v]
    return [v for v in every if not _reduced(v.get("options") or {}, protocol) and not _large(v)]


def events(vector: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a message."""
    expected: dict[str, Any] = vector["expected"]
    return list(expected.get("events", [expected]))


def change(event: dict[str, Any], *, full_types: bool = False) -> SourceChange:
    """A row event."""
    columns = event.get("columns") or event["old_columns"]
    parsed = tuple(_column(c, event, full_types) for c in columns)
    table = SourceTable(event["schema"], event["table"], parsed)
    after = tuple(value(c) for c in columns) if "columns" in event else None
    before = None
    if "old_columns" in event:  # the changed ones only, if content-compatible
        old = {c["name"]: value(c) for c in event["old_columns"]}
        before = tuple(old.get(c["name"], value(c)) for c in columns)
    part = event.get("physical_table_id", event.get("partition_table_id", -1))
    return SourceChange(table, commit_ts(event), event["op"], before, after, event.get("row_id"), None if part == -1 else part)


def ddl(event: dict[str, Any]) -> Ddl:
    """A DDL event; where the protocol has no number for the statement, that of another protocol's vector."""
    code = event["ddl"].get("code") or _codes()[event["ddl"]["query"]]
    return Ddl(commit_ts(event), event["schema"], event["table"], event["ddl"]["query"], code)


def commit_ts(event: dict[str, Any]) -> int:
    """The commit ts; without the TiDB extension one of the same millisecond."""
    return int(event["commit_ts"]) if event["commit_ts"] is not None else from_ms(event.get("es_ms", 0))


@cache
def _codes() -> dict[str, int]:
    return {e["ddl"]["query"]: e["ddl"]["code"] for v in load("craft") for e in events(v) if e["type"] == "ddl"}


def value(column: dict[str, Any]) -> Value:
    """A column's value before encoding; a FLOAT as the float64 that Craft sends for it."""
    if "bytes_hex" in column:
        return bytes.fromhex(column["bytes_hex"])
    if "wire_f64_le_hex" in column:
        return float(struct.unpack("<d", bytes.fromhex(column["wire_f64_le_hex"]))[0])
    found: Value = column["value"]
    return found


def _column(c: dict[str, Any], event: dict[str, Any], full_types: bool) -> SourceColumn:
    flag = c["flag"] | (0x08 if c["name"] in event.get("pk_names", []) else 0)
    return SourceColumn(c["name"], c.get("mysql_type", "") if full_types or "zerofill" in c.get("mysql_type", "") else "", c["type"], flag)


def _reduced(options: dict[str, Any], protocol: str) -> bool:
    small = any(options.get(name) for name in _OTHER_IMAGES) or options.get("open_output_old_value") is False
    return (small and protocol != "avro") or options.get("large_message_handle_compression", "none") != "none"


def _large(vector: dict[str, Any]) -> bool:
    return any(e.get("only_handle_key") or e.get("claim_check_location") for e in events(vector))
