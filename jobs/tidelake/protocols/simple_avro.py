"""Simple in Avro (docs/reference/protocols.md 9.1): one message of TiCDC's one fixed schema, without magic byte and schema id.

message   := 16 kind kind payload         union branch 11; WATERMARK 0, BOOTSTRAP 1, DDL 2, DML 3 as enum and as branch
watermark := version commitTs buildTs
bootstrap := version buildTs schema
ddl       := version sql-type sql commitTs buildTs schema? schema?                 after the statement, and before
dml       := version database table tableID op commitTs buildTs schemaVersion claimCheckLocation? handleKeyOnly? checksum? row? row?
op        := INSERT 0 | UPDATE 1 | DELETE 2
checksum  := version corrupted current previous
row       := map of name → 0 | 1 long | 2 float | 3 double | 4 string | 5 bytes | 6 zone text | 7 unsigned long
schema    := database table tableID version [column] [index]
column    := name mysqlType charset collate length decimal? [element]? unsigned? zerofill? nullable default?
index     := name unique primary nullable [column name]

Integers are zigzag varints, x? is a union of null and x, arrays and maps come in blocks. `data` comes before `old`. Maps have no order: a
row's columns are in the order of the schema that it names, without it by name and without types.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from tidelake.errors import DecodeError
from tidelake.history.event import Event, SchemaColumn
from tidelake.wire.checksum.checksum_kernels import NOT_A_SUM
from tidelake.wire.checksum.checksums import ChecksumRules, with_verdicts
from tidelake.wire.claim_check import opened
from tidelake.wire.compression import decompress
from tidelake.wire.json import json_batches
from tidelake.wire.json.json_known import KnownColumn, KnownSchemas, KnownTable
from tidelake.wire.json.json_text import MAX_COLUMNS
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.binary_floats import double, single
from tidelake.wire.kernels.columnar import Scanned
from tidelake.wire.kernels.utf8_text import text_of
from tidelake.wire.kernels.varint import Region
from tidelake.wire.simple import simple_images
from tidelake.wire.simple.avro_simple import PLAIN, WRAPPING, scan_simple
from tidelake.wire.simple.simple_images import places, zone_names
from tidelake.wire.simple.simple_schema import (
    DDL_TYPES,
    MAX_ID,
    VERSION,
    SimpleTableSchema,
    TableIndex,
    column,
    database_of,
    image,
    schema_of_row,
    schemas,
)

if TYPE_CHECKING:
    from tidelake.protocols import Context

T = TypeVar("T")

WATERMARK, BOOTSTRAP, DDL, DML = range(4)
OPS = ("insert", "update", "delete")
MAX_ITEMS = 1 << 16  # of an array: MySQL's ENUM has no more members
_MESSAGE = 11  # branch of the outermost union
_OPENING, _WITH_SCHEMAS = 2 * _MESSAGE, (2 * BOOTSTRAP, 2 * DDL)  # first and second byte
_LARGEST_NUMBER = 64  # bytes of its text, and what a copy may write after it
_NULL, _LONG, _FLOAT, _DOUBLE, _STRING, _BYTES, _TIME, _UNSIGNED = range(8)
_U32 = (1 << 32) - 1
_RULES = ChecksumRules(names_sent=False, mended=False)
_WRAPPING = frozenset({"bit", "set", "bigint unsigned"})  # a long of these is unsigned (docs/reference/protocols.md 11.3)

AvroValue = tuple[int, int | bytes, bytes]  # branch, the number or the bytes of a float or text, and the zone of a time


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The event of one message; schemas that it brings are remembered. Raises DecodeError."""
    data = _payload(key, value, context)
    region = Region(data, 0, len(data), "the message")
    if region.varint("the outermost branch") != _MESSAGE:
        raise DecodeError(f"the message begins with {data[:4].hex()}, expected Simple's branch {_MESSAGE}", code="UNKNOWN_VERSION")
    kind, branch = region.varint("the kind of message"), region.varint("the branch of the payload")
    if kind not in _READERS or kind != branch:
        raise DecodeError(f"a message of kind {kind} with payload {branch}", code="BAD_STRUCTURE" if kind in _READERS else "UNKNOWN_TYPE")
    version = region.varint("the version")
    if version != VERSION:
        raise DecodeError(f"version {version}, expected {VERSION}", code="UNKNOWN_VERSION")
    event = _READERS[kind](region, context)
    region.finish()
    return [event]


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """The rows and watermarks in the usual form, compiled; the rest is left to `read`. Schemas of the whole batch are learned first."""
    _learn_schemas(messages, wanted, context)
    if context.options.large_message_handle_compression != "none":
        return Scanned.nothing(wanted)
    values, at = json_batches.payload(messages.column("value")), places(len(wanted))

    def kernel(*arrays: Any) -> tuple[int, int]:
        return scan_simple(values, at, *arrays)

    def learn(known: KnownSchemas, message: int) -> KnownSchemas:
        return _learned(known, messages.column("value")[message].as_py(), context)

    size = len(values.data)  # a column takes two bytes; a number's text may be longer than its bytes
    room = json_batches.BatchRoom(events=len(wanted), cells=size // 2, size=4 * size + _LARGEST_NUMBER)
    found = simple_images.scan(kernel, learn, wanted, room, context.memory, "simple-avro tables")
    return with_verdicts(found, at.sent, zone_names(values.data, at), _RULES, context.memory)


def _learn_schemas(messages: pa.RecordBatch, wanted: Ints, context: Context) -> None:
    values = json_batches.payload(messages.column("value"))
    if context.options.large_message_handle_option == "none" == context.options.large_message_handle_compression:
        starts = values.offsets[:-1][wanted]
        long = values.valid[wanted] & (values.offsets[1:][wanted] - starts > 1)
        wanted, starts = wanted[long], starts[long]
        wanted = wanted[(values.data[starts] == _OPENING) & np.isin(values.data[starts + 1], _WITH_SCHEMAS)]

    def look(key: bytes | None, value: bytes | None) -> None:
        if _payload(key, value, context)[1:2] in (b"\2", b"\4"):
            read(key, value, context)

    simple_images.learn_schemas(messages, wanted, look)


def _learned(known: KnownSchemas, value: bytes, context: Context) -> KnownSchemas:
    """What the compiled scan can recognise after it has seen this message: its table, and the columns that it has not met."""
    try:
        row = _read_row(Region(value, 4, len(value), "the message"), context)
    except DecodeError:
        return known  # the general reader says what is wrong
    columns = row.schema.columns if row.schema else [SchemaColumn(name) for name in sorted(row.names)]
    named = KnownTable(row.raw, (row.event.database, row.event.table))
    return known.with_layout(named, [KnownColumn(_piece(c.name), b"", WRAPPING if c.type in _WRAPPING else PLAIN, c) for c in columns])


def _piece(name: str) -> bytes:
    """A column's name as Avro writes it."""
    data, size = name.encode(), b""
    rest = 2 * len(data)
    while rest > 0x7F:
        size += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return size + bytes([rest]) + data


def _payload(key: bytes | None, value: bytes | None, context: Context) -> bytes:
    """The message itself, taken out of claim-check file and compression."""
    if value is not None and len(value) > context.max_bytes:
        raise DecodeError(f"the value has {len(value)} bytes, the cap is {context.max_bytes}", code="TOO_LARGE")
    _, value = opened(key, value, context.options)
    if value is None:
        raise DecodeError("the Kafka value is null, expected a Simple message", code="NULL_VALUE")
    return decompress(value, context.options.large_message_handle_compression, context.max_bytes, "the value")


def _watermark(region: Region, context: Context) -> Event:
    ts = _ts(region, "commitTs")
    region.varint("buildTs")
    return Event(kind="resolved", commit_ts=ts)


def _bootstrap(region: Region, context: Context) -> Event:
    region.varint("buildTs")
    schema = _schema(region)
    region.finish()
    schemas(context.memory).add(schema, context.shelf)
    return Event(kind="bootstrap", database=schema.database, table=schema.table)


def _ddl(region: Region, context: Context) -> Event:
    number = region.varint("the type of DDL")
    if not 0 <= number < len(DDL_TYPES):
        raise DecodeError(f"DDL of type {number}, expected 0 to {len(DDL_TYPES) - 1}", code="UNKNOWN_TYPE")
    sql, ts = _statement(region), _ts(region, "commitTs")
    region.varint("buildTs")
    schema, former = _maybe(region, _schema, "tableSchema"), _maybe(region, _schema, "preTableSchema")
    region.finish()
    for known in filter(None, (former, schema)):
        schemas(context.memory).add(known, context.shelf)
    named = schema or former
    database, table = (named.database, named.table) if named else (database_of(sql), None)
    return Event(kind="ddl", commit_ts=ts, database=database, table=table, ddl=sql, ddl_type=DDL_TYPES[number])


@dataclass(frozen=True, slots=True)
class _Row:
    """A DML payload; what names the table also as it was sent."""

    event: Event
    raw: tuple[bytes, bytes, bytes]
    schema: SimpleTableSchema | None
    names: frozenset[str]


def _dml(region: Region, context: Context) -> Event:
    return _read_row(region, context).event


def _read_row(region: Region, context: Context) -> _Row:
    """A DML payload from after its version. Raises DecodeError."""
    database, raw_database = _raw(region, "the database", _text)
    table, raw_table = _raw(region, "the table", _text)
    if not database or not table:
        raise DecodeError(f"a row of database {database!r} and table {table!r}, expected both names", code="BAD_STRUCTURE")
    table_id, op = region.varint("tableID"), region.varint("the operation")
    if not 0 <= op < len(OPS) or table_id < 0:
        raise DecodeError(f"operation {op} on table {table_id}", code="UNKNOWN_TYPE" if table_id >= 0 else "BAD_VALUE")
    ts, _ = _ts(region, "commitTs"), region.varint("buildTs")
    version, raw_version = _raw(region, "schemaVersion", _ts)
    claim, handle_only = _maybe(region, _text, "claimCheckLocation"), _maybe(region, _flag, "handleKeyOnly")
    checksum = _maybe(region, _checksum, "checksum")
    data, old = _maybe(region, _map, "data"), _maybe(region, _map, "old")
    if (data is None) != (OPS[op] == "delete") or (old is None) != (OPS[op] == "insert"):
        sides = [name for name, side in (("data", data), ("old", old)) if side is not None]
        raise DecodeError(f"{OPS[op]} with {' and '.join(sides) or 'no row'}", code="BAD_STRUCTURE")
    schema = schema_of_row(context.memory, context.shelf, database, table, version, ts)
    row_schema, after = (None, None) if data is None else image(data, schema, _cell, "data")
    before_schema, before = (None, None) if old is None else image(old, schema, _cell, "old")
    verdict = None
    if checksum is not None:
        corrupted, current, previous = checksum
        images = [(row_schema, after, current), (before_schema, before, previous)]
        zones = {zone.decode(errors="replace") for side in (data, old) for branch, _, zone in (side or {}).values() if branch == _TIME}
        verdict = simple_images.verdict(images, schema, zones, corrupted=corrupted, rules=_RULES, refuse=context.refuse_mismatches)
    event = Event(
        kind="row",
        op=OPS[op],
        commit_ts=ts,
        database=database,
        table=table,
        physical_table_id=table_id,
        row_schema=row_schema,
        after=after,
        before_schema=before_schema,
        before=before,
        handle_only=bool(handle_only),
        claim_check=claim or None,
        checksum=verdict,
    )
    return _Row(event, (raw_database, raw_table, raw_version), schema, frozenset((data or {}) | (old or {})))


def _cell(value: AvroValue, word: str | None, what: str) -> bytes | None:
    branch, found, _ = value
    if isinstance(found, int):
        return None if branch == _NULL else b"%d" % (found % (1 << 64) if branch == _UNSIGNED or word in _WRAPPING else found)
    if branch == _FLOAT:
        return single(struct.unpack("<f", found)[0])
    return double(struct.unpack("<d", found)[0]) if branch == _DOUBLE else found


def _map(region: Region, what: str) -> dict[str, AvroValue]:
    values: dict[str, AvroValue] = {}
    for _ in _items(region, what, MAX_COLUMNS):
        name = _text(region, "a column's name")
        if name in values:
            raise DecodeError(f"{what} has column {name[:80]!r} twice", code="BAD_STRUCTURE")
        values[name] = _value(region, name)
    return values


def _value(region: Region, name: str) -> AvroValue:
    branch = region.varint(f"the branch of {name[:80]!r}")
    match branch:
        case 0:
            return branch, 0, b""
        case 1 | 7:
            return branch, region.varint("a number"), b""
        case 2 | 3:
            return branch, region.fixed(4 * (branch - 1), "a number"), b""
        case 4 | 5:
            return branch, _bytes(region, "a value"), b""
        case 6:
            zone = _bytes(region, "a time zone")
            return branch, _bytes(region, "a value"), zone
    raise DecodeError(f"column {name[:80]!r} has branch {branch} of a union of 8", code="UNKNOWN_TYPE")


def _schema(region: Region, what: str = "tableSchema") -> SimpleTableSchema:
    database, table = _text(region, f"{what}: database"), _text(region, f"{what}: table")
    region.varint("tableID")
    version = _ts(region, "version")
    columns = [_column(region) for _ in _items(region, "the columns", MAX_COLUMNS)]
    return SimpleTableSchema.of(database, table, version, columns, [_index(region) for _ in _items(region, "the indexes")])


def _column(region: Region) -> SchemaColumn:
    name, mysql_type = _text(region, "a column's name"), _text(region, "mysqlType")
    for what in ("charset", "collate"):
        _bytes(region, what)
    length, decimal = region.varint("length"), _maybe(region, Region.varint, "decimal")
    elements = _maybe(region, _texts, "elements")
    unsigned, zerofill = _maybe(region, _flag, "unsigned"), _maybe(region, _flag, "zerofill")
    _flag(region, "nullable")
    _maybe(region, _bytes, "default")
    unsigned = bool(unsigned or zerofill)
    return column(name, mysql_type, unsigned=unsigned, length=min(length, MAX_ID), decimal=decimal, elements=elements or ())


def _index(region: Region) -> TableIndex:
    _bytes(region, "an index's name")
    unique, primary, nullable = (_flag(region, what) for what in ("unique", "primary", "nullable"))
    return TableIndex(unique=unique, primary=primary, nullable=nullable, columns=tuple(_texts(region, "an index's columns")))


def _checksum(region: Region, what: str) -> tuple[bool, int, int]:
    """Whether TiCDC found the row corrupted, and the sums of `data` and `old`."""
    region.varint(f"{what}: version")
    corrupted = _flag(region, f"{what}: corrupted")
    sums = [region.varint(f"{what}: {name}") for name in ("current", "previous")]
    current, previous = (n if 0 <= n <= _U32 else NOT_A_SUM for n in sums)
    return corrupted, current, previous


def _items(region: Region, what: str, most: int = MAX_ITEMS) -> Iterator[None]:
    """Once for each element of an array or map, whose blocks end with an empty one; a negative count is followed by a size."""
    seen = 0
    while count := region.varint(f"the number of {what}"):
        if count < 0:
            region.varint(f"the size of {what}")
        if abs(count) > region.left:
            raise DecodeError(f"{abs(count)} elements of {what} in {region.left} bytes", code="BAD_LENGTH")
        seen += abs(count)
        if seen > most:
            raise DecodeError(f"{seen} elements of {what}, the cap is {most}", code="TOO_LARGE")
        for _ in range(abs(count)):
            yield None


def _maybe(region: Region, reader: Callable[[Region, str], T], what: str) -> T | None:
    branch = region.varint(f"the branch of {what}")
    if branch not in (0, 1):
        raise DecodeError(f"{what} has branch {branch} of a union of 2", code="BAD_VALUE")
    return reader(region, what) if branch else None


def _raw(region: Region, what: str, reader: Callable[[Region, str], T]) -> tuple[T, bytes]:
    """What is read, and its bytes."""
    start = region.at
    return reader(region, what), region.data[start : region.at]


def _ts(region: Region, what: str) -> int:
    return region.varint(what) % (1 << 64)


def _flag(region: Region, what: str) -> bool:
    byte = region.fixed(1, what)[0]
    if byte > 1:
        raise DecodeError(f"{what} is {byte}, expected 0 or 1", code="BAD_VALUE")
    return bool(byte)


def _bytes(region: Region, what: str) -> bytes:
    return region.take(region.varint(f"the length of {what}"), what)


def _statement(region: Region) -> str:
    return _decoded(_bytes(region, "the statement"), "the statement", text_of)


def _text(region: Region, what: str) -> str:
    return _decoded(_bytes(region, what), what, bytes.decode)


def _decoded(data: bytes, what: str, decode: Callable[[bytes], str]) -> str:
    try:
        return decode(data)
    except UnicodeDecodeError as e:
        raise DecodeError(f"{what} is not UTF-8 at byte {e.start} of {len(data)}", code="BAD_UTF8") from e


def _texts(region: Region, what: str) -> list[str]:
    return [_text(region, what) for _ in _items(region, what)]


_READERS: dict[int, Callable[[Region, Context], Event]] = {WATERMARK: _watermark, BOOTSTRAP: _bootstrap, DDL: _ddl, DML: _dml}
