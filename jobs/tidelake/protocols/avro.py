"""Avro: one row change per message, key and value in Avro with their schemas in a registry (docs/reference/protocols.md 4, 7).

key, value := 00 i32be-schema-id record      Confluent
            | 03 00 16-byte-schema-uuid record      AWS Glue, uncompressed
record     := value of each field, in the schema's order; a union of null and a type starts with the branch
value      := null      a delete: the key is all there is
message with a null or empty key:
value      := 02 u64be-resolved-ts | 01 {"query", "type", "schema", "table", "commitTs"}      only with avro-enable-watermark

The key is the record of the handle columns; names come from it. Fields `_tidb_…` of the value are TiDB's extension, not columns.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import cast
from uuid import UUID

import numpy as np
import pyarrow as pa

from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema
from tidelake.protocols import Context
from tidelake.wire.binary import avro_scan, avro_schema
from tidelake.wire.binary.avro_schema import AvroField, AvroRecord
from tidelake.wire.checksum import checksums
from tidelake.wire.json.json_text import integer, load, statement, string
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.binary_floats import double, single
from tidelake.wire.kernels.binary_known import KnownKeys
from tidelake.wire.kernels.binary_out import KEY, leave, new_out, scanned, values
from tidelake.wire.kernels.columnar import Scanned
from tidelake.wire.kernels.varint import Region

DDL, WATERMARK = 1, 2  # first bytes, beside those of the registries
_OPS = {b"c": "insert", b"u": "update"}
_MEMORY = "avro"
_RULES = checksums.ChecksumRules(names_sent=True, mended=False)
_MAX_RECORDS = 4096

_SchemaId = int | str  # Confluent's number, Glue's UUID
_Cells = list[bytes | None]


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The event of one message. Raises DecodeError."""
    if not key and value is None:
        raise DecodeError("neither key nor value", code="NULL_VALUE")
    if not key and value and value[0] == WATERMARK:
        return [_watermark(value)]
    if not key and value and value[0] == DDL:
        return [_ddl(value)]
    memory = _memory(context)
    key_record, key_cells, _ = _record(key, "the key", memory, context) if key else (None, [], {})
    record, cells, extension = _record(value, "the value", memory, context) if value is not None else (None, [], {})
    plan = _plan(key_record, record, context)
    event = Event(kind="row", op="upsert", database=plan.name[0], table=plan.name[1])
    if record is None:
        return [replace(event, op="delete", before_schema=plan.row_schema, before=key_cells)]
    op, ts = extension.get(avro_schema.OPERATION), extension.get(avro_schema.COMMIT)
    if op is not None and op not in _OPS:
        raise DecodeError(f"_tidb_op is {op!r}, expected c or u", code="UNKNOWN_TYPE")
    event = replace(event, op=_OPS[op] if op is not None else "upsert", row_schema=plan.row_schema, after=cells)
    event = replace(event, checksum=_verdict(extension, plan, cells, context))
    return [replace(event, commit_ts=int(ts) % (1 << 64)) if ts is not None else event]


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """The rows of a batch, compiled; watermarks, DDL and anything unusual are left."""
    keys, column = values(messages.column("key")), values(messages.column("value"))
    total = sum(int(np.diff(c.bounds)[wanted].sum(dtype=np.int64)) for c in (keys, column))
    out = new_out(len(messages), len(wanted), total, 4 * total)  # a field costs a byte, a number's text may be longer than its bytes
    work, memory = avro_scan.new_work(len(wanted)), _memory(context)
    first = 0
    while first < len(wanted):
        first, _ = avro_scan.scan_messages(keys, column, wanted, first, memory.plans.table, work, out)
        if first < len(wanted) and not memory.learn(out.key[: out.used[KEY]].tobytes(), context):
            leave(out, wanted[first])
            first += 1
    plans = memory.plans.values
    found = scanned(out, [p.name for p in plans], [p.row_schema for p in plans], np.zeros(0, np.int32))
    whole = np.array([p.whole for p in plans], np.bool_)
    return checksums.with_verdicts(replace(found, whole=whole), work.sent, [context.time_zone], _RULES, context.memory)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What follows from the schemas of key and value: the event's names, the schema of its only side, and the kernel's steps. whole: the
    table has no more columns, as far as that is known: names are not compared, Avro's may differ (docs/reference/protocols.md 4.2)."""

    name: tuple[str | None, str | None]
    row_schema: RowSchema
    steps: list[list[int]]
    whole: bool


def _plan(key: AvroRecord | None, value: AvroRecord | None, context: Context) -> _Plan:
    """At least one of them is there. Of a delete the schema is the key's."""
    named, shaped = cast(AvroRecord, key or value), cast(AvroRecord, value or key)
    handle = {f.name for f in key.fields} if key else set()
    row_schema = RowSchema(tuple(replace(c, key=c.name in handle) for c in shaped.columns))
    key_fields, value_fields = (r.fields if r else () for r in (key, value))
    steps = [_step(f) for f in (*key_fields, *value_fields)]
    columns = context.columns_of(named.database or "", named.table) or ()
    whole = len(row_schema.columns) >= len(columns)
    return _Plan((named.database, named.table), row_schema, [[len(key_fields)] + [0] * (avro_scan.STEP_WIDTH - 1), *steps], whole)


def _verdict(extension: dict[int, bytes], plan: _Plan, cells: _Cells, context: Context) -> str | None:
    """Whether the row adds up to its checksum, None where it has none."""
    text, corrupted = extension.get(avro_schema.CHECKSUM, b""), extension.get(avro_schema.CORRUPTED) == b"1"
    if not text and not corrupted:
        return None
    image = checksums.Image(row_schema=plan.row_schema, cells=cells, number=checksums.sum_of_text(text), whole=plan.whole)
    return checksums.verdict([image], corrupted=corrupted, zone=context.time_zone, rules=_RULES, refuse=context.refuse_mismatches)


def _step(f: AvroField) -> list[int]:
    """In the order of avro_scan.CODE …"""
    return [f.step, -1 if f.null_branch is None else f.null_branch, f.target, f.precision, f.scale]


def _record(data: bytes, what: str, memory: _Memory, context: Context) -> tuple[AvroRecord, _Cells, dict[int, bytes]]:
    """A framed record: its schema, its columns' texts, and the extension's values by target."""
    region = Region(data, 0, len(data), what)
    record = memory.record(_schema_id(region), context)
    cells: _Cells = []
    extension: dict[int, bytes] = {}
    for f in record.fields:
        cell = _field(region, f)
        if f.target == avro_schema.COLUMN:
            cells.append(cell)
        elif cell is not None:
            extension[f.target] = cell
    region.finish()
    return record, cells, extension


def _schema_id(region: Region) -> _SchemaId:
    """Read the header."""
    magic = region.fixed(1, "the magic byte")[0]
    if magic == avro_scan.CONFLUENT:
        return int.from_bytes(region.fixed(4, "the schema id"), "big")
    if magic != avro_scan.GLUE:
        known = f"{avro_scan.CONFLUENT} (Confluent) or {avro_scan.GLUE} (Glue)"
        raise DecodeError(f"{region.what} starts with byte {magic}, expected {known}", code="UNKNOWN_VERSION")
    compression = region.fixed(1, "the compression byte")[0]
    if compression != avro_scan.UNCOMPRESSED:
        raise DecodeError(f"{region.what} has Glue compression {compression}, TiCDC writes none", code="BAD_COMPRESSION")
    return str(UUID(bytes=region.fixed(16, "the schema version id")))


def _field(region: Region, f: AvroField) -> bytes | None:
    """A field's text, None for NULL."""
    if f.null_branch is not None:
        branch = region.varint(f"the branch of {f.name!r}")
        if branch not in (0, 1):
            raise DecodeError(f"field {f.name!r} has branch {branch} of a union of 2", code="BAD_VALUE")
        if branch == f.null_branch:
            return None
    if f.step in (avro_schema.RAW, avro_schema.BIT, avro_schema.DECIMAL):
        data = region.take(region.varint(f"the length of {f.name!r}"), f"field {f.name!r}")
        return data if f.step == avro_schema.RAW else _big(data, f)
    if f.step in (avro_schema.INT, avro_schema.LONG, avro_schema.UNSIGNED):
        return _integer(region.varint(f"field {f.name!r}"), f)
    return _fixed(region, f)


def _big(data: bytes, f: AvroField) -> bytes:
    """BIT, unsigned, and DECIMAL, two's complement; both big-endian."""
    largest = 8 if f.step == avro_schema.BIT else avro_schema.MAX_DECIMAL_BYTES
    if not 1 <= len(data) <= largest:
        raise DecodeError(f"field {f.name!r} has {len(data)} bytes, expected 1 to {largest}", code="BAD_VALUE")
    if f.step == avro_schema.BIT:
        return b"%d" % int.from_bytes(data, "big")
    unscaled = int.from_bytes(data, "big", signed=True)
    digits = str(abs(unscaled))
    if len(digits) > f.precision:
        raise DecodeError(f"field {f.name!r} has {len(digits)} digits, its precision is {f.precision}", code="BAD_VALUE")
    digits = digits.zfill(f.scale + 1)
    text = f"{digits[: -f.scale]}.{digits[-f.scale :]}" if f.scale else digits
    return f"-{text}".encode() if unscaled < 0 else text.encode()


def _integer(number: int, f: AvroField) -> bytes:
    if f.step == avro_schema.INT and not -(1 << 31) <= number < 1 << 31:
        raise DecodeError(f"field {f.name!r} is {number}, an Avro int has 32 bits", code="BAD_VALUE")
    return b"%d" % (number % (1 << 64) if f.step == avro_schema.UNSIGNED else number)


def _fixed(region: Region, f: AvroField) -> bytes:
    if f.step == avro_schema.BOOLEAN:
        byte = region.fixed(1, f"field {f.name!r}")[0]
        if byte > 1:
            raise DecodeError(f"field {f.name!r} is {byte}, expected 0 or 1", code="BAD_VALUE")
        return b"%d" % byte
    if f.step == avro_schema.FLOAT:
        return single(struct.unpack("<f", region.fixed(4, f"field {f.name!r}"))[0])
    number = struct.unpack("<d", region.fixed(8, f"field {f.name!r}"))[0]
    return single(number) if f.step == avro_schema.SINGLE else double(number)


def _watermark(value: bytes) -> Event:
    region = Region(value, 1, len(value), "the watermark")
    ts = int.from_bytes(region.fixed(8, "the resolved ts"), "big")
    region.finish()
    return Event(kind="resolved", commit_ts=ts)


def _ddl(value: bytes) -> Event:
    """Members that are unknown here mean nothing."""
    what = "the DDL message"
    ddl = load(value[1:], what)
    return Event(
        kind="ddl",
        commit_ts=integer(ddl, "commitTs", what, 0, (1 << 64) - 1),
        database=string(ddl, "schema", what),
        table=string(ddl, "table", what),
        ddl=statement(ddl, "query", what),
        ddl_type=str(integer(ddl, "type", what, -(1 << 63), (1 << 63) - 1)),
    )


@dataclass(frozen=True, slots=True)
class _Memory:
    """Schemas by id, and plans by the headers of key and value as the kernels describe them."""

    plans: KnownKeys[_Plan] = field(default_factory=lambda: KnownKeys(avro_scan.STEP_WIDTH))
    records: dict[_SchemaId, AvroRecord] = field(default_factory=dict)

    def record(self, schema: _SchemaId, context: Context) -> AvroRecord:
        """A schema's record. Raises DecodeError."""
        if schema not in self.records:
            if context.avro_schema is None:
                raise DecodeError(f"schema {schema}: no schemas were given", code="UNKNOWN_SCHEMA")
            self.records[schema] = avro_schema.parse(context.avro_schema(schema))
        return self.records[schema]

    def learn(self, key: bytes, context: Context) -> bool:
        """Add the plan that a kernel could not find; False if there is no room. One that cannot be made is for the general reader."""
        size = key[0]
        try:
            records = [
                self.record(_schema_id(Region(header, 0, len(header), "a header")), context) if header else None
                for header in (key[1 : 1 + size], key[1 + size :])
            ]
            plan = _plan(records[0], records[1], context)
            return self.plans.learn(key, plan, plan.steps)
        except DecodeError:
            return self.plans.learn(key, _Plan((None, None), RowSchema(()), [], True), valid=False)


def _memory(context: Context) -> _Memory:
    memory = context.memory.get(_MEMORY)
    if not isinstance(memory, _Memory) or memory.plans.crowded or len(memory.records) > _MAX_RECORDS:
        memory = context.memory[_MEMORY] = _Memory()
    return memory
