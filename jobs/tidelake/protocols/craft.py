"""Craft: columnar binary batches of TiCDC (docs/reference/protocols.md 3, 7). Everything is in the Kafka value.

message     := version(=1) headers body_1 … body_n dictionary size-tables tail
tail        := byte size of the size tables, a uvarint written back to front
size-tables := table(headers, dictionary) table(body_1 … body_n) table(groups of a row)*      one of the last kind per row event
table       := count delta-varint*
headers     := delta-uvarint commit-ts* · uvarint type* · delta-varint partition* · delta-varint schema-term* · delta-varint table-term*
row body    := group{1,2}, a group is new (1) or old (2) values: kind count name-term* type* flag* length* value-bytes
DDL body    := type length query
dictionary  := count length* text                                                             absent if no term is used
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.protocols import Context
from tidelake.wire.binary import craft_scan as steps
from tidelake.wire.cells import mysql_codes
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.binary_floats import double, single
from tidelake.wire.kernels.binary_known import KnownKeys
from tidelake.wire.kernels.binary_out import KEY, LEARN_SCHEMA, Out, leave, new_out, scanned, values
from tidelake.wire.kernels.columnar import Scanned
from tidelake.wire.kernels.varint import Region, reversed_uvarint

VERSION = 1
ROW, DDL, RESOLVED = 1, 2, 3
NEW, OLD = 1, 2
NO_TERM = -1
MAX_NAME_BYTES = 1024  # MySQL's identifiers have at most 64 characters
MAX_EVENTS, MAX_TERMS, MAX_COLUMNS = 1 << 16, 1 << 18, 4096  # of a message, of its dictionary, of a row

_TEXT = (7, 10, 11, 12, 14, 15, 225, 245, 246, *range(249, 255))
_STEPS = dict.fromkeys(_TEXT, steps.RAW) | dict.fromkeys((16, 247, 248), steps.UNSIGNED) | dict.fromkeys((0, 6, 255), steps.ALWAYS_NULL)
_STEPS |= {4: steps.SINGLE, 5: steps.DOUBLE, 13: steps.SIGNED}  # YEAR is signed although its flag is unsigned (3.6)
_INTEGERS = (1, 2, 3, 8, 9)
_OPS = {(True, False): "insert", (True, True): "update", (False, True): "delete"}
_MEMORY = "craft"
_LARGE = 1 << 18
_MAX_LESSONS = 16  # of one message: each one costs another look at it

_Name = tuple[str | None, str | None]
_Column = tuple[bytes, int, int]  # name, type code, flag
_Cells = list[bytes | None]


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The events of one message. Raises DecodeError. The key means nothing."""
    if value is None:
        raise DecodeError("a Craft message is never null", code="NULL_VALUE")
    parts = _parts(value)
    n, headers, row_schemas = len(parts.bodies), parts.headers, dict[tuple[_Column, ...], RowSchema]()
    stamps, kinds = headers.deltas(n, "a commit ts", signed=False), _kinds(headers, n)
    partitions, schemas, tables = (headers.deltas(n, what) for what in ("a partition", "a schema id", "a table id"))
    headers.finish()
    events = list[Event]()
    for ts, kind, partition, schema, table, body, groups in zip(
        stamps, kinds, partitions, schemas, tables, parts.bodies, _groups_of_events(parts.groups, kinds), strict=True
    ):
        if partition < NO_TERM:
            raise DecodeError(f"event {len(events)} has partition {partition}, expected a table id or {NO_TERM}", code="BAD_VALUE")
        name = _name(parts.terms, schema, "schema"), _name(parts.terms, table, "table")
        physical = None if partition == NO_TERM else partition
        members = _body(kind, body, groups, parts.terms, row_schemas)
        events.append(Event(commit_ts=ts, database=name[0], table=name[1], physical_table_id=physical, **members))
    return events


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """Rows and resolved events of a batch, compiled; messages with DDL or anything unusual are left."""
    column = values(messages.column("value"))
    sizes = np.diff(column.bounds)[wanted]
    usual = sizes <= _LARGE  # no smaller message can hold more events or terms than the general reader takes
    present = wanted[column.valid[wanted] & usual]
    total = int(sizes.sum(dtype=np.int64))
    work, memory = steps.new_work(int(sizes.max(initial=0))), _memory(context)
    out = new_out(len(messages), steps.count_events(column, present, work), total // 4, 2 * total)  # a cell costs 4 bytes
    first = lessons = 0
    while first < len(present):
        at, status = steps.scan_messages(column, present, first, memory.names.table, memory.row_schemas.table, work, out)
        first, lessons = at, lessons + 1 if at == first else 1
        if first < len(present) and (lessons > _MAX_LESSONS or not memory.learn(status, out)):
            leave(out, present[first])
            first, lessons = first + 1, 0
    return scanned(out, memory.names.values, memory.row_schemas.values, np.setdiff1d(wanted, present))


@dataclass(frozen=True, slots=True)
class _Parts:
    headers: Region
    bodies: list[Region]
    terms: list[bytes]
    groups: list[list[int]]


def _parts(data: bytes) -> _Parts:
    """Cut a message into its parts; they fill it exactly."""
    message = Region(data, 0, len(data), "the message")
    version = message.uvarint("the version")
    if version != VERSION:
        raise DecodeError(f"Craft version {version}, expected {VERSION}", code="UNKNOWN_VERSION")
    size, end = reversed_uvarint(data)
    if size > end - message.at:
        raise DecodeError(f"size tables of {size} bytes end at byte {end}, the content starts at byte {message.at}", code="TRUNCATED")
    tables = _tables(Region(data, end - size, end, "the size tables"))
    if len(tables) < 2 or len(tables[0]) != 2 or not tables[1]:
        counts = [len(t) for t in tables[:2]]
        raise DecodeError(f"the first size tables have {counts} numbers, expected 2 and one per event", code="BAD_STRUCTURE")
    sizes = [tables[0][0], *tables[1], tables[0][1]]
    content = Region(data, message.at, end - size, "the content")
    if min(sizes) < 0 or sum(sizes) != content.left:
        raise DecodeError(
            f"headers, bodies and dictionary have {sum(sizes)} bytes by the size tables, the message has {content.left}"
            if min(sizes) >= 0
            else f"a size table has size {min(sizes)}",
            code="BAD_STRUCTURE",
        )
    headers = content.region(tables[0][0], "the headers")
    bodies = [content.region(size, f"the body of event {i}") for i, size in enumerate(tables[1])]
    return _Parts(headers, bodies, _terms(content.region(tables[0][1], "the dictionary")), tables[2:])


def _tables(region: Region) -> list[list[int]]:
    tables: list[list[int]] = []
    while region.left:
        count = region.count("the count of a size table")
        if len(tables) == 1 and count > MAX_EVENTS:
            raise DecodeError(f"{count} events, the cap is {MAX_EVENTS}", code="TOO_LARGE")
        if len(tables) > 2 + MAX_EVENTS:
            raise DecodeError(f"more than {len(tables)} size tables", code="BAD_STRUCTURE")
        tables.append(region.deltas(count, "a size"))
    return tables


def _terms(region: Region) -> list[bytes]:
    if not region.left:
        return []
    count = region.count("the count of terms")
    if count > MAX_TERMS:
        raise DecodeError(f"{count} terms, the cap is {MAX_TERMS}", code="TOO_LARGE")
    lengths = region.uvarints(count, "the length of a term")
    terms = [region.take(length, "a term") for length in lengths]
    region.finish()
    return terms


def _kinds(headers: Region, n: int) -> list[int]:
    kinds = headers.uvarints(n, "an event type")
    for i, kind in enumerate(kinds):
        if kind not in (ROW, DDL, RESOLVED):
            raise DecodeError(f"event {i} has type {kind}, expected {ROW}, {DDL} or {RESOLVED}", code="UNKNOWN_TYPE")
    return kinds


def _groups_of_events(tables: list[list[int]], kinds: list[int]) -> list[list[int]]:
    """The sizes of each event's column groups: a table per row event; one per event is read too, if those of others are empty."""
    rows = kinds.count(ROW)
    if len(tables) == len(kinds) and not any(table for table, kind in zip(tables, kinds, strict=True) if kind != ROW):
        return tables
    if len(tables) != rows:
        raise DecodeError(f"{len(tables)} tables of column groups for {rows} row events of {len(kinds)}", code="BAD_STRUCTURE")
    rest = iter(tables)
    return [next(rest) if kind == ROW else [] for kind in kinds]


def _body(
    kind: int, body: Region, groups: list[int], terms: list[bytes], row_schemas: dict[tuple[_Column, ...], RowSchema]
) -> dict[str, Any]:
    """An event's members, except those in the headers."""
    members: dict[str, Any]
    if kind == ROW:
        members = _row(body, groups, terms, row_schemas)
    elif kind == DDL:
        code, query = body.uvarint("the DDL type"), body.take(body.count("the length of the query"), "the query")
        members = {"kind": "ddl", "ddl_type": str(code), "ddl": _text(query, "the query")}
    else:
        members = {"kind": "resolved"}
    body.finish()
    return members


def _row(body: Region, groups: list[int], terms: list[bytes], row_schemas: dict[tuple[_Column, ...], RowSchema]) -> dict[str, Any]:
    sides: dict[int, tuple[RowSchema, _Cells]] = {}
    for size in groups:
        group = body.region(size, f"a column group of {body.what}")
        kind = group.fixed(1, "the kind")[0]
        if kind not in (NEW, OLD):
            raise DecodeError(f"column group kind {kind} at byte {group.at - 1}, expected {NEW} or {OLD}", code="UNKNOWN_TYPE")
        if kind in sides:
            raise DecodeError(f"a second column group of kind {kind} at byte {group.at - 1}", code="BAD_STRUCTURE")
        sides[kind] = _group(group, terms, row_schemas)
    if not sides:
        raise DecodeError(f"{body.what} is a row without column groups", code="BAD_STRUCTURE")
    (row_schema, after), (before_schema, before) = sides.get(NEW, (None, None)), sides.get(OLD, (None, None))
    op = _OPS[NEW in sides, OLD in sides]
    return {"kind": "row", "op": op, "row_schema": row_schema, "after": after, "before_schema": before_schema, "before": before}


def _group(group: Region, terms: list[bytes], row_schemas: dict[tuple[_Column, ...], RowSchema]) -> tuple[RowSchema, _Cells]:
    n = group.count("the count of columns", least=4)
    if n > MAX_COLUMNS:
        raise DecodeError(f"{group.what} has {n} columns, the cap is {MAX_COLUMNS}", code="TOO_LARGE")
    names = [_term(terms, i, "column name") for i in group.deltas(n, "a name id")]
    columns = tuple(zip(names, group.uvarints(n, "a type code"), group.uvarints(n, "a flag"), strict=True))
    row_schema = row_schemas.get(columns) or row_schemas.setdefault(columns, _row_schema(columns))
    lengths = [group.varint("the length of a value") for _ in range(n)]
    cells = [
        None if length == -1 else _cell(code, flag, group.take(length, f"the value of {name!r}"))
        for (name, code, flag), length in zip(columns, lengths, strict=True)
    ]
    group.finish()
    return row_schema, cells


def _row_schema(columns: Sequence[_Column]) -> RowSchema:
    """Raises DecodeError for types, names, doublings and counts that no table has."""
    if len(columns) > MAX_COLUMNS:
        raise DecodeError(f"a row of {len(columns)} columns, the cap is {MAX_COLUMNS}", code="TOO_LARGE")
    names = [_identifier(name, "column") for name, _, _ in columns]
    for name, (_, code, _) in zip(names, columns, strict=True):
        if code not in _STEPS and code not in _INTEGERS:
            raise DecodeError(f"column {name!r} has type code {code}, which is none of MySQL's", code="UNKNOWN_TYPE")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DecodeError(f"two columns of the name {name!r}", code="BAD_STRUCTURE")
        seen.add(name)
    return RowSchema(
        tuple(
            SchemaColumn(name, mysql_codes.word(code, flag), bool(flag & mysql_codes.HANDLE_KEY), flag)
            for name, (_, code, flag) in zip(names, columns, strict=True)
        )
    )


def _step(code: int, flag: int) -> int:
    if code in _INTEGERS:
        return steps.UNSIGNED if flag & mysql_codes.UNSIGNED else steps.SIGNED
    return _STEPS[code]


def _cell(code: int, flag: int, data: bytes) -> bytes:
    """A value's canonical text (3.6)."""
    step = _step(code, flag)
    if step == steps.RAW:
        return data
    if step in (steps.UNSIGNED, steps.SIGNED):
        return _integer(data, signed=step == steps.SIGNED)
    if step == steps.ALWAYS_NULL or len(data) != 8:
        expected = "NULL" if step == steps.ALWAYS_NULL else "8 bytes"
        raise DecodeError(f"a value of type code {code} has {len(data)} bytes, expected {expected}", code="BAD_VALUE")
    number = struct.unpack("<d", data)[0]
    return single(number) if step == steps.SINGLE else double(number)


def _integer(data: bytes, *, signed: bool) -> bytes:
    region = Region(data, 0, len(data), "an integer's bytes")
    try:
        number = region.varint("an integer") if signed else region.uvarint("an integer")
        region.finish()
    except DecodeError as e:
        raise DecodeError(e.message, code="BAD_VALUE") from e
    return b"%d" % number


def _term(terms: list[bytes], i: int, what: str) -> bytes:
    if not 0 <= i < len(terms):
        raise DecodeError(f"{what}: term {i}, the dictionary has {len(terms)}", code="BAD_STRUCTURE")
    return terms[i]


def _name(terms: list[bytes], i: int, what: str) -> str | None:
    return _optional(None if i == NO_TERM else _term(terms, i, what), what)


def _optional(name: bytes | None, what: str) -> str | None:
    return None if name is None else _identifier(name, what)


def _identifier(name: bytes, what: str) -> str:
    if len(name) > MAX_NAME_BYTES:
        raise DecodeError(f"a {what} name of {len(name)} bytes, at most {MAX_NAME_BYTES} are expected", code="BAD_LENGTH")
    return _text(name, f"a {what} name")


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise DecodeError(f"{what} is not UTF-8 at its byte {e.start}", code="BAD_UTF8") from e


@dataclass(frozen=True, slots=True)
class _Memory:
    """Schemas and names met so far, by the descriptions that the kernels write."""

    row_schemas: KnownKeys[RowSchema]
    names: KnownKeys[_Name]

    def learn(self, status: int, out: Out) -> bool:
        """Add what a kernel could not find; False if there is no room."""
        key = out.key[: out.used[KEY]].tobytes()
        return self._learn_schema(key) if status == LEARN_SCHEMA else self._learn_name(key)

    def _learn_name(self, key: bytes) -> bool:
        schema, at = _described(key, 0)
        table, _ = _described(key, at)
        try:
            return self.names.learn(key, (_optional(schema, "schema"), _optional(table, "table")))
        except DecodeError:
            return self.names.learn(key, (None, None), valid=False)

    def _learn_schema(self, key: bytes) -> bool:
        columns, at = [], 0
        while at < len(key):
            name, at = _described(key, at)
            code, flag = struct.unpack_from("<QQ", key, at)
            columns.append((name or b"", code, flag))
            at += 16
        try:
            return self.row_schemas.learn(key, _row_schema(columns), [[_step(code, flag)] for _, code, flag in columns])
        except DecodeError:
            return self.row_schemas.learn(key, RowSchema(()), valid=False)


def _described(key: bytes, at: int) -> tuple[bytes | None, int]:
    """A term in a kernel's description, None for no term, and the place after it."""
    (size,) = struct.unpack_from("<q", key, at)
    at += 8
    return (None, at) if size == NO_TERM else (key[at : at + size], at + size)


def _memory(context: Context) -> _Memory:
    memory = context.memory.get(_MEMORY)
    if not isinstance(memory, _Memory) or memory.row_schemas.crowded or memory.names.crowded:
        memory = context.memory[_MEMORY] = _Memory(KnownKeys(), KnownKeys())
    return memory
