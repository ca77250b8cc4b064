"""Schemas of the batches between stages: MESSAGE (landed Kafka records) and EVENT (their content).

EVENT has one row per event. Cells are canonical text (docs/architecture.md 6) as bytes, raw bytes for binary columns, in the order of the
row's schema. A null element is NULL; an absent column is not in the schema. Each batch has a schema once, as a row of kind `row_schema`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import pyarrow as pa

from tidelake.errors import Coordinates
from tidelake.tso import wrap

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

MESSAGE = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp_ms", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
    ]
)

KINDS = ("row", "ddl", "resolved", "bootstrap", "rejected", "row_schema")
OPS = ("insert", "update", "delete", "upsert")
CHECKSUMS = ("verified", "mismatch", "unverifiable")

EVENT = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),  # null in schema rows
        pa.field("ordinal", pa.int32()),  # position inside the message
        pa.field("timestamp_ms", pa.int64()),  # the message's timestamp
        pa.field("kind", pa.string(), nullable=False),
        pa.field("op", pa.string()),
        pa.field("commit_ts", pa.int64()),  # TSO wrapped to int64; null if the protocol has none
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("physical_table_id", pa.int64()),
        pa.field("row_schema", pa.int64()),  # schema of `after`; in schema rows the schema itself
        pa.field("before_schema", pa.int64()),
        pa.field("after", pa.list_(pa.binary())),
        pa.field("before", pa.list_(pa.binary())),
        pa.field("handle_only", pa.bool_()),
        pa.field("claim_check", pa.string()),
        pa.field("ddl", pa.string()),
        pa.field("ddl_type", pa.string()),  # TiDB job type as digits, or Canal's word
        pa.field("schema_version", pa.int64()),  # rejected rows that wait for their table's schema: its version, wrapped to int64
        pa.field("columns", pa.string()),  # schema rows: the schema's columns as JSON
        pa.field("error_code", pa.string()),
        pa.field("error", pa.string()),
        pa.field("raw_key", pa.binary()),
        pa.field("raw_value", pa.binary()),
        pa.field("checksum", pa.string()),  # one of CHECKSUMS; null if the message has none
        pa.field("source", pa.string()),  # source_names.source_name of rows and statements without commit ts; null if the message has none
    ]
)


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """One column as the protocol describes it.

    Attributes:
        type: MySQL word with `unsigned` (`bigint unsigned`); None if the protocol does not send it.
        key: Part of the row's handle.
        flag: TiDB's column flags (docs/reference/protocols.md 1.2).
        full_type: Complete SQL type, if sent.
        elements: ENUM or SET members, if sent.
        mask: Mask that the cells already have, in the spelling of wire.masks.
        form: How cells are written whose type the message lacks (decode.late_cells); None if only the protocol says it.
    """

    name: str
    type: str | None = None
    key: bool = False
    flag: int | None = None
    full_type: str | None = None
    elements: tuple[str, ...] | None = None
    mask: str | None = None
    form: str | None = None


_MEMBERS = [f.name for f in fields(SchemaColumn)]


@dataclass(frozen=True)
class RowSchema:
    """The columns of a row image, in order. Its id is a hash of them, so equal schemas have equal ids everywhere."""

    columns: tuple[SchemaColumn, ...]

    @cached_property
    def json(self) -> str:
        """Canonical JSON: a list of objects without null members."""
        plain = [{k: v for k in _MEMBERS if (v := getattr(c, k)) is not None} for c in self.columns]
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))

    @cached_property
    def id(self) -> int:
        """Signed 64-bit hash of the JSON."""
        return int.from_bytes(hashlib.blake2b(self.json.encode(), digest_size=8).digest(), "big", signed=True)

    @classmethod
    def from_json(cls, text: str) -> RowSchema:
        """The inverse of `json`."""
        columns = (dict(c) for c in json.loads(text))
        return cls(tuple(SchemaColumn(**(c | {"elements": tuple(c["elements"])} if "elements" in c else c)) for c in columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event in plain Python, for general readers and tests.

    Attributes:
        commit_ts: TSO, unsigned.
        source: The producer's own name of the change (source_names.source_name). Events of a partition that have one name, table, operation
            and cells are one change that was sent again. Or the name of its batch (source_names.batch_names), which many changes have.
    """

    kind: str
    op: str | None = None
    commit_ts: int | None = None
    database: str | None = None
    table: str | None = None
    physical_table_id: int | None = None
    row_schema: RowSchema | None = None
    before_schema: RowSchema | None = None
    after: Sequence[bytes | None] | None = None
    before: Sequence[bytes | None] | None = None
    handle_only: bool = False
    claim_check: str | None = None
    ddl: str | None = None  # can be Utf8Text
    ddl_type: str | None = None
    schema_version: int | None = None
    error_code: str | None = None
    error: str | None = None
    raw_key: bytes | None = None
    raw_value: bytes | None = None
    checksum: str | None = None
    source: str | None = None


@dataclass(slots=True)
class EventRows:
    """Builds an EVENT batch from plain events: for the few messages that the columnar path does not handle, and for tests."""

    rows: list[dict[str, object]] = field(default_factory=list)
    row_schemas: dict[int, RowSchema] = field(default_factory=dict)

    def add(self, at: Coordinates, timestamp_ms: int | None, events: Iterable[Event]) -> None:
        """Append all events of one message, numbered from 0."""
        for ordinal, e in enumerate(events):
            for row_schema in (e.row_schema, e.before_schema):
                if row_schema is not None:
                    self.row_schemas.setdefault(row_schema.id, row_schema)
            row = {name: getattr(e, name) for name in _PLAIN}
            row |= {
                "ddl": None if e.ddl is None else e.ddl.encode(),  # can be Utf8Text
                "topic": at.topic,
                "partition": at.partition,
                "offset": at.offset,
                "ordinal": ordinal,
                "timestamp_ms": timestamp_ms,
                "commit_ts": None if e.commit_ts is None else wrap(e.commit_ts),
                "schema_version": None if e.schema_version is None else wrap(e.schema_version),
                "row_schema": e.row_schema.id if e.row_schema else None,
                "before_schema": e.before_schema.id if e.before_schema else None,
            }
            self.rows.append(row)

    def batch(self, *, row_schemas: bool = False) -> pa.RecordBatch:
        """Return the events added so far, in one batch. row_schemas: include the rows of kind `row_schema`."""
        rows = [*self.rows, *_schema_rows(self.row_schemas.values())] if row_schemas else self.rows
        batch = pa.RecordBatch.from_pylist(rows, schema=_SENT)
        return batch.set_column(_DDL, EVENT.field(_DDL), batch.column(_DDL).cast(pa.string()))


_DDL = EVENT.get_field_index("ddl")
_SENT = EVENT.set(_DDL, pa.field("ddl", pa.binary()))  # binary first: to check bytes for a string column Arrow would make a str of them
_PLAIN = (
    "kind op database table physical_table_id after before handle_only claim_check ddl ddl_type error_code error raw_key raw_value "
    "checksum source"
).split()


def schema_rows(row_schemas: Iterable[RowSchema]) -> pa.RecordBatch:
    """Return the EVENT rows of kind `row_schema` for these schemas, in order of their ids."""
    return pa.RecordBatch.from_pylist(_schema_rows(row_schemas), schema=EVENT)


def _schema_rows(row_schemas: Iterable[RowSchema]) -> list[dict[str, object]]:
    return [{"kind": "row_schema", "row_schema": s.id, "columns": s.json} for s in sorted(row_schemas, key=lambda s: s.id)]
