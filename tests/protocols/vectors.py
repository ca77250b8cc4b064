"""Test vectors of tests/data/vectors and what our events must be for them (docs/reference/protocols.md 12), both in one plain form.

Plain form of an event: a dict of the members that the vector speaks of; columns as [(name, key?, cell)], cells as bytes, None for
NULL, or a float for FLOAT and DOUBLE (compared as the type's own precision).
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from functools import cache
from typing import Any

from tests.data_files import data_bytes
from tests.protocols import simple_messages, untyped
from tidelake.config.options import SinkOptions
from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema
from tidelake.protocols import Context, decoder
from tidelake.wire.cells.mysql_codes import word

PROTOCOLS = ("open", "craft", "avro", "canal-json", "canal", "debezium", "maxwell", "csv", "simple-json", "simple-avro")
FILES = ("ticdc_encoders.json.xz", "ticdc.json.xz")


@cache
def every() -> tuple[dict[str, Any], ...]:
    """All vectors of both files, those that are no Kafka messages too."""
    return tuple(v for name in FILES for v in json.loads(data_bytes(f"vectors/{name}")))


@cache
def load(protocol: str) -> list[dict[str, Any]]:
    """All vectors of a protocol that are Kafka messages."""
    return [v for v in every() if v["protocol"] == protocol and v["expected"]["type"] != "avro-record"]


def context(vector: dict[str, Any]) -> Context:
    """The decoding context: the vector's options, and its schemas under every id that its messages name."""
    schemas: dict[int | str, str] = {}
    for side, payload in zip(("key", "value"), record(vector), strict=True):
        if f"{side}_schema" in vector and payload:
            schemas[schema_id(payload)] = json.dumps(vector[f"{side}_schema"])

    def schema(wanted: int | str) -> str:
        try:
            return schemas[wanted]
        except KeyError as e:
            raise DecodeError(f"no schema {wanted!r}", code="UNKNOWN_SCHEMA") from e

    found = Context(options=SinkOptions(**options(vector)), avro_schema=schema, columns=untyped.columns(vector["protocol"]))
    plain_feed = replace(found, options=SinkOptions())
    for message in before(vector):
        decoder(vector["protocol"]).read(*message, plain_feed)
    return found


def options(vector: dict[str, Any]) -> dict[str, Any]:
    """The sink options in force."""
    said: dict[str, Any] = vector.get("options") or {}
    if vector.get("container", "").startswith("claim-check"):  # the hand-collected file says it nowhere else
        return {"large_message_handle_option": "claim-check"} | said
    return said


def parts(vector: dict[str, Any], value: bytes | None) -> list[bytes | None]:
    """One value, or several where the vector is a file of lines."""
    if vector.get("container") != "lines" or value is None:
        return [value]
    return list(filter(None, value.split(bytes.fromhex(vector["terminator_hex"]))))


def before(vector: dict[str, Any]) -> list[tuple[bytes | None, bytes | None]]:
    """What a feed of Simple carries before the row: the schema that it names, as wide as any row of it. The hand-collected rows, whose
    types the vectors do not say, come without."""
    if not vector["protocol"].startswith("simple-") or vector["expected"]["type"] != "row":
        return []
    every = [v["expected"] for v in load(vector["protocol"]) if v["expected"]["type"] == "row"]
    named = [e for e in every if all(e[n] == vector["expected"].get(n) for n in ("schema", "table", "schema_version"))]
    columns: list[dict[str, Any]] = max((e.get("columns") or e["old_columns"] for e in named), key=len, default=[])
    if not columns or "flag" not in columns[0]:
        return []
    e = named[0]
    described = [simple_messages.column(c["name"], word(c["type"], c["flag"]) or "") for c in columns]
    key = simple_messages.index(*(c["name"] for c in columns if c["handle"]), primary=True)
    schema = simple_messages.table_schema(described, [key], e["schema"], e["table"], e["schema_version"])
    return [simple_messages.bootstrap(vector["protocol"], schema)]


def record(vector: dict[str, Any]) -> tuple[bytes | None, bytes | None]:
    """Key and value as Kafka carries them. The hand-made Glue vector has one id for two schemas: its key gets another."""
    key, value = (None if vector[k] is None else bytes.fromhex(vector[k]) for k in ("key_hex", "value_hex"))
    return b"\3\0" + bytes(16) + key[18:] if key and value and key[:1] == b"\3" and key[:18] == value[:18] else key, value


def expected(vector: dict[str, Any]) -> list[dict[str, Any]]:
    """The plain events that the vector wants."""
    events = [_expected(e, vector["protocol"]) for e in vector["expected"].get("events", [vector["expected"]])]
    return [untyped.carried(e, vector) for e in events]


def plain(event: Event, like: dict[str, Any]) -> dict[str, Any]:
    """One of our events in plain form, reduced to the members that `like` has."""
    members: dict[str, Any] = {
        "kind": event.kind,
        "op": event.op,
        "commit_ts": event.commit_ts,
        "database": event.database or "",
        "table": event.table or "",
        "columns": _cells(event.row_schema, event.after),
        "old_columns": _cells(event.before_schema, event.before),
        "physical_table_id": event.physical_table_id,
        "handle_only": event.handle_only,
        "claim_check": event.claim_check,
        "ddl": event.ddl,
        "ddl_type": event.ddl_type,
    }
    return {name: members[name] for name in like}


def from_row(row: dict[str, Any], row_schemas: dict[int, RowSchema]) -> Event:
    """An EVENT row (as a dict) back as an Event."""
    fields = {k: v for k, v in row.items() if k in Event.__slots__ and k not in ("row_schema", "before_schema")}
    ts = fields["commit_ts"]
    fields["commit_ts"] = ts + (1 << 64) if ts is not None and ts < 0 else ts
    return Event(**fields, row_schema=row_schemas.get(row["row_schema"]), before_schema=row_schemas.get(row["before_schema"]))


def _expected(e: dict[str, Any], protocol: str) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": e["type"], "commit_ts": e.get("commit_ts")}
    if e["type"] == "resolved":
        return out
    out |= {"database": e["schema"] or "", "table": e["table"] or ""}
    if e["type"] == "bootstrap":
        return {name: out[name] for name in ("kind", "database", "table", *(["commit_ts"] if "commit_ts" in e else []))}
    if e["type"] == "ddl":
        kinds = [str(e["ddl"][name]) for name in ("code", "canal_type", "simple_type") if name in e["ddl"]]
        return out | {"ddl": e["ddl"]["query"]} | ({"ddl_type": kinds[0]} if kinds else {})
    if protocol == "avro":
        out |= {"database": avro_name(e["schema"]), "table": avro_name(e["table"])}
    out |= {"op": e["op"], "handle_only": bool(e.get("only_handle_key")), "claim_check": e.get("claim_check_location")}
    if e.get("physical_table_id") is not None or e.get("partition_table_id") is not None:
        number = e.get("physical_table_id", e.get("partition_table_id"))
        out["physical_table_id"] = None if number == -1 else number
    if "values" in e and protocol == "csv":  # no names, no types
        side = "old_columns" if e["op"] == "delete" else "columns"
        out[side] = [(f"c{i}", None, None if v is None else v.encode()) for i, v in enumerate(e["values"], 1)]
    elif "values" in e:  # hand-made Avro vectors: a map
        out["columns"] = [(name, None, _avro_cell(v)) for name, v in e["values"].items()]
    for side in ("columns", "old_columns"):
        if side in e:
            out[side] = [_column(c, protocol, e) for c in e[side]]
    return out


def _column(c: dict[str, Any], protocol: str, e: dict[str, Any]) -> tuple[str, bool | None, Any]:
    name = c.get("avro_name", c["name"]) if protocol == "avro" else c["name"]
    key = c["name"] in e["pk_names"] if "pk_names" in e else c.get("handle")
    return name, key, _cell(c, protocol)


def _cell(c: dict[str, Any], protocol: str) -> Any:
    if "bytes_hex" in c:
        raw = bytes.fromhex(c["bytes_hex"])
        text = not c.get("flag", 0) & 1 and protocol in ("open", "canal-json", "simple-json") and "flag" in c
        return raw.decode(errors="replace").encode() if text else raw  # the JSON encoder wrote U+FFFD for each bad byte
    if "wire_f64_le_hex" in c:
        return _number(struct.unpack("<d", bytes.fromhex(c["wire_f64_le_hex"]))[0])
    if isinstance(c["value"], float):
        return c["value"]
    if protocol in ("avro", "debezium", "csv") and "text" in c and c.get("type") in (247, 248):
        return c["text"].encode()
    return None if c["value"] is None else str(c["value"]).encode()


def avro_name(name: str) -> str:
    """A name as Avro schemas carry it (docs/reference/protocols.md 4.2)."""
    name = re.sub("[^A-Za-z0-9_]", "_", name)
    return f"_{name}" if name[:1].isdigit() else name


def _avro_cell(v: Any) -> Any:
    if isinstance(v, dict):
        v = v.get("$value", v.get("$decimal", bytes.fromhex(v.get("$bytes_hex", ""))))
    return v if v is None or isinstance(v, float | bytes) else str(v).encode()


def _cells(row_schema: RowSchema | None, cells: Any) -> list[tuple[str, bool, Any]] | None:
    if row_schema is None:
        return None
    return [(c.name, c.key, _ours(c.type, cell)) for c, cell in zip(row_schema.columns, cells, strict=True)]


def _ours(word: str | None, cell: bytes | None) -> Any:
    if cell is not None and (word or "").split(" ")[0] in ("float", "double"):
        return _number(float(cell))
    return cell


def _number(x: float) -> float | str:
    return "NaN" if x != x else x


def schema_id(payload: bytes) -> int | str:
    """The id of the schema that a payload of Avro names: Confluent's number or Glue's UUID."""
    if payload[0] == 3:
        h = payload[2:18].hex()
        return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
    return int.from_bytes(payload[1:5], "big")


def same(got: list[dict[str, Any]], want: list[dict[str, Any]]) -> bool:
    """Equality up to what a vector leaves open: keys given as None, floats equal as float32."""
    return len(got) == len(want) and all(_same_event(g, w) for g, w in zip(got, want, strict=True))


def _same_event(got: dict[str, Any], want: dict[str, Any]) -> bool:
    return all(_same_columns(got[k], v) if k in ("columns", "old_columns") else got[k] == v for k, v in want.items())


def _same_columns(got: Any, want: Any) -> bool:
    if got is None or want is None:
        return got is want
    if [w[0] for w in want] == sorted(w[0] for w in want):  # hand-collected: by name, whatever the message's order
        got = sorted(got, key=lambda g: g[0])
    return len(got) == len(want) and all(
        g[0] == w[0] and w[1] in (None, g[1]) and same_cell(g[2], w[2]) for g, w in zip(got, want, strict=True)
    )


def same_cell(got: Any, want: Any) -> bool:
    """Equality of two cells; of numbers as float32."""
    if isinstance(got, float) and isinstance(want, bytes):  # hand-collected: as text
        want = float(want)
    if isinstance(got, bytes) and isinstance(want, float):  # Debezium's decimals, and columns whose type is not known
        got = float(got)
    if isinstance(got, float) and isinstance(want, float):
        return got == want or struct.pack("<f", got) == struct.pack("<f", want)
    return bool(got == want)
