"""Hand-made messages of Debezium's own connectors, as the recorded ones are (docs/reference/protocols.md 9.2.1)."""

from __future__ import annotations

from typing import Any

from tests.protocols.both_paths import Message
from tests.protocols.json_messages import compact

DECIMAL = "org.apache.kafka.connect.data.Decimal"
PLACE = {"server_id": 7, "file": "binlog.000012", "pos": 4567, "row": 3}
PLACE_NAME = "7/binlog.0000000012:0000000000000004567:0000000003"


def upstream(op: str | None, *columns: dict[str, Any], key: Any = None, source: Any = (), bare: bool = False, **more: Any) -> Message:
    """A message of the MariaDB connector. columns: of both images in the schema; bare: JsonConverter's schemas are off."""
    place = {"connector": "mariadb", "snapshot": "false", "db": "db", "table": "t", **PLACE} | dict(source)
    payload = {"source": place, "ts_ms": 1} | ({} if op is None else {"op": op, "transaction": None}) | more
    sides = [{"type": "struct", "optional": True, "field": side, "fields": list(columns)} for side in ("before", "after")]
    schema = {"type": "struct", "fields": sides, "name": "x.db.t.Envelope"}
    message = payload if bare else {"schema": schema, "payload": payload}
    return None if key is None else compact(key if bare else {"schema": {}, "payload": key}), compact(message)


def column(name: str, kind: str = "string", meaning: str | None = None, **parameters: str) -> dict[str, Any]:
    """A column in the schema."""
    said = {"type": kind, "optional": True, "field": name} | ({"name": meaning, "version": 1} if meaning else {})
    return said | ({"parameters": parameters} if parameters else {})


def decimal(name: str, precision: int | None, scale: int) -> dict[str, Any]:
    """A DECIMAL of decimal.handling.mode=precise; without precision a BIGINT UNSIGNED."""
    known = {} if precision is None else {"connect.decimal.precision": str(precision)}
    return column(name, "bytes", DECIMAL, scale=str(scale), **known)


STATEMENT = upstream(None, ddl="ALTER TABLE t ADD c INT", databaseName="db", schemaName=None, tableChanges=[{"type": "ALTER", "id": "x"}])
HEARTBEAT: Message = (compact({"schema": {}, "payload": {"serverName": "x"}}), compact({"schema": {}, "payload": {"ts_ms": 1}}))
TRANSACTION: Message = (
    compact({"id": "0-7-21"}),
    compact({"status": "END", "id": "0-7-21", "event_count": 2, "data_collections": [], "ts_ms": 1}),
)
TOMBSTONE: Message = (compact({"schema": {}, "payload": {"id": 1}}), None)
_ROW = {"id": 1, "n": "Kg==", "bin": "/wA=", "e": "b", "y": 1900, "at": 1_703_680_043_000_001, "t": -1, "b": "/wE="}
_COLUMNS = [
    column("id", "int64"),
    decimal("n", 10, 2),
    column("bin", "bytes"),
    column("e", "string", "io.debezium.data.Enum", allowed="a,b\\,c"),
    column("y", "int32", "io.debezium.time.Year"),
    column("at", "int64", "io.debezium.time.MicroTimestamp"),
    column("t", "int32", "io.debezium.time.Time"),
    column("b", "bytes", "io.debezium.data.Bits", length="9"),
]
OWN: list[Message] = [
    upstream("r", *_COLUMNS, key={"id": 1}, before=None, after=_ROW, source={"snapshot": "first"}),
    upstream("u", *_COLUMNS, key={"id": 1}, before=_ROW, after=_ROW),
    upstream("d", *_COLUMNS, key={"id": 1}, before=_ROW, after=None),
    upstream("c", key={"id": 1}, bare=True, before=None, after=_ROW),
    upstream("t", before=None, after=None),
    STATEMENT,
    HEARTBEAT,
    TRANSACTION,
]
