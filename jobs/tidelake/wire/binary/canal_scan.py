"""Canal protobuf messages → events, compiled (layout: protocols/canal.py). Rows in any order of fields; DDL and the unusual are left.

A row is read in two steps: where name, type and value of every column lie, then, when these give the schema, the values. Mostly the
columns have the very names and types of the last row of that side, and then its schema.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidelake.wire.binary.canal_cells import RAW, is_text, put_latin1
from tidelake.wire.binary.canal_places import BinlogPlaces, begin_message, new_places, place_row, take_header
from tidelake.wire.kernels.arrays import Bytes, Ints, Longs
from tidelake.wire.kernels.binary_kernels import BAD, put_bytes, same, uvarint
from tidelake.wire.kernels.binary_known import KeyTable, find
from tidelake.wire.kernels.binary_out import (
    AFTER,
    AFTER_CELLS,
    AFTER_SCHEMA,
    BEFORE,
    BEFORE_CELLS,
    BYTES,
    CELLS,
    COMMIT_TS,
    DONE,
    EVENTS,
    HAS_COMMIT_TS,
    KEY,
    KIND,
    LEARN,
    LEARN_SCHEMA,
    LEAVE,
    MESSAGE,
    NAME,
    OP,
    ORDINAL,
    PHYSICAL,
    Out,
    Values,
    leave,
    put_number,
    remember,
    restore,
    room,
)
from tidelake.wire.kernels.canal_marks import BLOB, makes_rows
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import compiled, inlined, int64, merged
from tidelake.wire.kernels.protobuf_kernels import MOST, field, fields

VERSION, MESSAGES, UNCOMPRESSED, ROWDATA = 1, 7, 1, 2
HEARTBEAT_LIKE = (1, 3, 4, 5)  # entries: begin and end of a transaction, heartbeat, GTID
QUERY, XA_COMMIT = 7, 13
MAX_ENTRIES = MAX_ROWS = 1 << 16  # of one message
MAX_COLUMNS = 1 << 12  # MySQL's own limit
LEAST_COLUMN, LEAST_ROW = 8, 10  # bytes: a column has a name and a type, a row a column
KEY_MARK, BLOB_MARK = 1, 2  # marks of a column in the description of a schema

_INSERT, _UPDATE, _DELETE = 1, 2, 3  # event types; event.OPS has the same order from 0
# field numbers, and masks of them: which are numbers, which are bytes, which may come more than once
_VERSION, _PACKET_TYPE, _COMPRESSION, _BODY = 2, 3, 4, 5
_PACKET_NUMBERS, _PACKET_TEXTS = 1 << _VERSION | 1 << _PACKET_TYPE | 1 << _COMPRESSION, 1 << _BODY
_ENTRIES = 2
_HEADER, _ENTRY_TYPE, _STORE_VALUE = 1, 2, 3
_ENTRY_NUMBERS, _ENTRY_TEXTS = 1 << _ENTRY_TYPE, 1 << _HEADER | 1 << _STORE_VALUE
_FILE, _POSITION, _SERVER, _SCHEMA, _TABLE = 2, 3, 4, 8, 9
_HEADER_NUMBERS, _HEADER_TEXTS = 1 << _POSITION | 1 << _SERVER, 1 << _FILE | 1 << _SCHEMA | 1 << _TABLE
_EVENT_TYPE, _IS_DDL, _SQL, _ROWS, _DDL_SCHEMA = 2, 10, 11, 12, 14
_CHANGE_NUMBERS, _CHANGE_TEXTS = 1 << _EVENT_TYPE | 1 << _IS_DDL, 1 << _SQL | 1 << _ROWS | 1 << _DDL_SCHEMA
_BEFORE_COLUMNS, _AFTER_COLUMNS = 1, 2
_JDBC_TYPE, _COLUMN_NAME, _IS_KEY, _IS_NULL, _VALUE, _MYSQL_TYPE = 2, 3, 4, 6, 8, 10
_COLUMN_NUMBERS, _COLUMN_TEXTS = 1 << _JDBC_TYPE | 1 << _IS_KEY | 1 << _IS_NULL, 1 << _COLUMN_NAME | 1 << _VALUE | 1 << _MYSQL_TYPE
_TEXT = 2  # wire type
_UPDATED_TAG, _IS_NULL_TAG, _VALUE_TAG = 0x28, 0x30, 0x42

# places in Work.columns: where the parts of a column are, and their content; head: its bytes up to the name and key mark, tail: its type
_NAME_AT, _NAME_SIZE, _TYPE_AT, _TYPE_SIZE, _MARKS, _VALUE_AT, _VALUE_SIZE, _HEAD_AT, _HEAD_SIZE, _TAIL_AT, _TAIL_SIZE = range(11)
# places in Work.memo: the last names and their entry, and of each side how many columns it has now and had last, and its schema
_SCHEMA_AT, _SCHEMA_SIZE, _TABLE_AT, _TABLE_SIZE, _PAIR, _COUNT, _WIDTH, _ROW_SCHEMA = 0, 1, 2, 3, 4, 5, 7, 9


class CanalWork(NamedTuple):
    """Scratch of one batch. columns has a row per side and column, parts one per field number."""

    columns: npt.NDArray[np.int64]
    parts: Longs
    memo: Longs
    mark: Longs
    places: BinlogPlaces


def new_work(events: int) -> CanalWork:
    """Scratch that knows no last row. events: the most events of the batch."""
    columns = np.zeros((2, MAX_COLUMNS, 11), np.int64)
    return CanalWork(columns, np.zeros((MOST, 2), np.int64), np.full(11, NONE, np.int64), np.zeros(7, np.int64), new_places(events))


@compiled
def scan_messages(
    column: Values, wanted: Ints, first: int, names: KeyTable, row_schemas: KeyTable, work: CanalWork, out: Out
) -> tuple[int, int]:
    """Take messages wanted[first:] until one needs a name or schema to be learned: its place in `wanted`, and LEARN….

    (len(wanted), DONE) at the end.
    """
    for i in range(first, len(wanted)):
        m = wanted[i]
        remember(out, work.mark)
        status = _message(column.data, int64(column.bounds[m]), int64(column.bounds[m + 1]), m, names, row_schemas, work, out)
        if status != DONE:
            restore(out, work.mark)
        if status > LEAVE:
            return i, status
        if status == LEAVE:
            leave(out, m)
    return len(wanted), DONE


@merged
def _message(buf: Bytes, pos: int, end: int, m: int, names: KeyTable, row_schemas: KeyTable, work: CanalWork, out: Out) -> int:
    parts = work.parts
    parts[_VERSION, 1], parts[_COMPRESSION, 1], parts[_PACKET_TYPE, 1], parts[_BODY, 1] = VERSION, 0, 0, 0
    if fields(buf, pos, end, _PACKET_NUMBERS, _PACKET_TEXTS, 0, parts) == BAD:
        return LEAVE
    if parts[_VERSION, 1] != VERSION or parts[_PACKET_TYPE, 1] != MESSAGES or not 0 <= parts[_COMPRESSION, 1] <= UNCOMPRESSED:
        return LEAVE
    pos, first, status = parts[_BODY, 0], out.used[EVENTS], LEAVE
    begin_message(work.places)
    end, entries = pos + parts[_BODY, 1], 0
    while pos < end:
        tag, at, _, pos = field(buf, pos, end)
        if pos == BAD:
            return LEAVE
        if tag >> 3 == _ENTRIES:
            entries += 1
            usual = tag & 7 == _TEXT and entries <= MAX_ENTRIES
            status = _entry(buf, at, pos, m, first, names, row_schemas, work, out) if usual else LEAVE
            if status != DONE:
                return status
    return status


@merged
def _entry(buf: Bytes, pos: int, end: int, m: int, first: int, names: KeyTable, row_schemas: KeyTable, work: CanalWork, out: Out) -> int:
    parts = work.parts
    parts[_ENTRY_TYPE, 1] = 0
    seen = fields(buf, pos, end, _ENTRY_NUMBERS, _ENTRY_TEXTS, 0, parts)
    if seen == BAD:
        return LEAVE
    if parts[_ENTRY_TYPE, 1] in HEARTBEAT_LIKE:
        return DONE
    if parts[_ENTRY_TYPE, 1] != ROWDATA or seen & _ENTRY_TEXTS != _ENTRY_TEXTS:
        return LEAVE
    header, change = parts[_HEADER, 0], parts[_STORE_VALUE, 0]
    header_end, change_end = header + parts[_HEADER, 1], change + parts[_STORE_VALUE, 1]
    parts[_EVENT_TYPE, 1], parts[_IS_DDL, 1] = 0, 0
    seen = fields(buf, change, change_end, _CHANGE_NUMBERS, _CHANGE_TEXTS, 1 << _ROWS, parts)
    kind = parts[_EVENT_TYPE, 1]
    if kind == QUERY and seen != BAD and parts[_IS_DDL, 1] == 0 and not seen & (1 << _ROWS | 1 << _DDL_SCHEMA):
        return DONE if _stands_beside_rows(buf, header, header_end, seen, parts) else LEAVE
    if seen == BAD or not seen & 1 << _ROWS or parts[_IS_DDL, 1] != 0 or not _INSERT <= kind <= _DELETE:
        return LEAVE
    status = _names(buf, header, header_end, names, work, out)
    return _rows(buf, change, change_end, kind, m, first, row_schemas, work, out) if status == DONE else status


@inlined
def _same(buf: Bytes, at: int, size: int, other: int, other_size: int) -> bool:
    return size == other_size and same(buf, at, other, size)


@merged
def _stands_beside_rows(buf: Bytes, pos: int, end: int, seen: int, parts: Longs) -> bool:
    """Whether a statement without rows and mark is an INSERT, UPDATE, DELETE or REPLACE of no database (protocols/canal_statements.py)."""
    parts[_SCHEMA, 1], parts[_TABLE, 1] = 0, 0
    if (
        not seen & 1 << _SQL
        or fields(buf, pos, end, _HEADER_NUMBERS, _HEADER_TEXTS, 0, parts) == BAD
        or parts[_SCHEMA, 1] > 0
        or parts[_TABLE, 1] > 0
    ):
        return False
    at, end = parts[_SQL, 0], parts[_SQL, 0] + parts[_SQL, 1]
    return bool(makes_rows(buf, at, end) and is_text(buf, at, end))


@merged
def _names(buf: Bytes, pos: int, end: int, names: KeyTable, work: CanalWork, out: Out) -> int:
    """Put the entry of a header's schema and table into memo."""
    parts, memo = work.parts, work.memo
    parts[_SCHEMA, 1], parts[_TABLE, 1], parts[_FILE, 1], parts[_POSITION, 1], parts[_SERVER, 1] = 0, 0, 0, 0, 0
    if fields(buf, pos, end, _HEADER_NUMBERS, _HEADER_TEXTS, 0, parts) == BAD:
        return LEAVE
    if not take_header(buf, parts[_FILE, 0], parts[_FILE, 1], parts[_SERVER, 1], parts[_POSITION, 1], work.places):
        return LEAVE
    schema, schema_size, table, table_size = parts[_SCHEMA, 0], parts[_SCHEMA, 1], parts[_TABLE, 0], parts[_TABLE, 1]
    if schema_size == 0 or table_size == 0:
        return LEAVE
    known = _same(buf, memo[_SCHEMA_AT], memo[_SCHEMA_SIZE], schema, schema_size)
    if known and _same(buf, memo[_TABLE_AT], memo[_TABLE_SIZE], table, table_size):
        return DONE
    return _pair(buf, schema, schema_size, table, table_size, names, work, out)


@compiled
def _pair(buf: Bytes, schema: int, schema_size: int, table: int, table_size: int, names: KeyTable, work: CanalWork, out: Out) -> int:
    if schema_size + table_size + 16 > len(out.key):
        return LEAVE
    at = put_bytes(out.key, put_number(out.key, 0, np.uint64(schema_size)), buf, schema, schema_size)
    at = put_bytes(out.key, put_number(out.key, at, np.uint64(table_size)), buf, table, table_size)
    out.used[KEY] = at
    entry = find(names, out.key, at)
    if entry == NONE:
        return LEARN
    if not names.valid[entry]:
        return LEAVE
    memo = work.memo
    memo[_SCHEMA_AT], memo[_SCHEMA_SIZE], memo[_TABLE_AT], memo[_TABLE_SIZE] = schema, schema_size, table, table_size
    memo[_PAIR] = entry
    return DONE


@merged
def _rows(buf: Bytes, pos: int, end: int, kind: int, m: int, first: int, row_schemas: KeyTable, work: CanalWork, out: Out) -> int:
    """The rows of a change, whose fields are known to be right."""
    while pos < end:
        tag, at, _, pos = field(buf, pos, end)
        if tag >> 3 == _ROWS:
            if out.used[EVENTS] - first == MAX_ROWS:
                return LEAVE
            status = _row(buf, at, pos, kind, m, first, row_schemas, work, out)
            if status != DONE:
                return status
    return DONE


@merged
def _row(buf: Bytes, pos: int, end: int, kind: int, m: int, first: int, row_schemas: KeyTable, work: CanalWork, out: Out) -> int:
    memo, after, before = work.memo, kind != _DELETE, kind != _INSERT
    if not _columns(buf, pos, end, work) or (memo[_COUNT + AFTER] > 0) != after or (memo[_COUNT + BEFORE] > 0 and not before):
        return LEAVE
    if memo[_COUNT + BEFORE] == 0 and not after:
        return LEAVE
    event, status = out.events[out.used[EVENTS]], DONE
    place_row(work.places, out.used[EVENTS])
    event[MESSAGE], event[ORDINAL], event[KIND], event[OP] = m, out.used[EVENTS] - first, 0, kind - 1
    event[COMMIT_TS], event[HAS_COMMIT_TS], event[PHYSICAL], event[NAME] = 0, 0, NONE, memo[_PAIR]
    for side in range(2):
        there = before if side == BEFORE else after
        if there and status == DONE:
            status = _side(buf, side, row_schemas, work, out)
        event[AFTER_SCHEMA + side] = memo[_ROW_SCHEMA + side] if there else NONE
    event[AFTER_CELLS], event[BEFORE_CELLS] = out.used[CELLS + AFTER], out.used[CELLS + BEFORE]
    out.used[EVENTS] += 1
    return status


@merged
def _columns(buf: Bytes, pos: int, end: int, work: CanalWork) -> bool:
    """Where the columns of a row lie."""
    memo = work.memo
    memo[_COUNT + AFTER], memo[_COUNT + BEFORE] = 0, 0
    while pos < end:
        tag, at, _, pos = field(buf, pos, end)
        if pos == BAD:
            return False
        if not _BEFORE_COLUMNS <= tag >> 3 <= _AFTER_COLUMNS:
            continue
        side = BEFORE if tag >> 3 == _BEFORE_COLUMNS else AFTER
        count = memo[_COUNT + side]
        if tag & 7 != _TEXT or count == MAX_COLUMNS:
            return False
        if not _usual(buf, at, pos, work.columns[side, count]) and not _column(buf, at, pos, side, count, work):
            return False
        memo[_COUNT + side] = count + 1
    return True


@merged
def _usual(buf: Bytes, pos: int, end: int, last: Longs) -> bool:
    """Whether a column has the bytes of the one at this place in the last row before and behind its marks and its value."""
    head, tail = last[_HEAD_SIZE], last[_TAIL_SIZE]
    stop = end - tail
    pos += head
    if head == 0 or pos > stop or not same(buf, last[_HEAD_AT], pos - head, head) or not same(buf, last[_TAIL_AT], stop, tail):
        return False
    is_null, size = False, 0
    if pos + 2 <= stop and buf[np.uint64(pos)] == _UPDATED_TAG and buf[np.uint64(pos + 1)] < 128:
        pos += 2
    if pos + 2 <= stop and buf[np.uint64(pos)] == _IS_NULL_TAG and buf[np.uint64(pos + 1)] < 128:
        is_null = buf[np.uint64(pos + 1)] != 0
        pos += 2
    if pos < stop and buf[np.uint64(pos)] == _VALUE_TAG:
        number, pos = uvarint(buf, pos + 1, stop)
        if pos == BAD or number != np.uint64(stop - pos):
            return False
        size, pos = stop - pos, stop
    if pos != stop or (is_null and size > 0):
        return False
    last[_VALUE_AT], last[_VALUE_SIZE] = stop - size, NONE if is_null else size
    return True


@compiled
def _column(buf: Bytes, pos: int, end: int, side: int, count: int, work: CanalWork) -> bool:
    """Where the parts of any column lie. If the last row has another name or type at this place, its schema is forgotten."""
    parts, last = work.parts, work.columns[side, count]
    parts[_JDBC_TYPE, 1] = parts[_COLUMN_NAME, 1] = parts[_IS_KEY, 1] = parts[_IS_NULL, 1] = parts[_VALUE, 1] = parts[_MYSQL_TYPE, 1] = 0
    if fields(buf, pos, end, _COLUMN_NUMBERS, _COLUMN_TEXTS, 0, parts) == BAD:
        return False
    name, name_size, kind, kind_size = parts[_COLUMN_NAME, 0], parts[_COLUMN_NAME, 1], parts[_MYSQL_TYPE, 0], parts[_MYSQL_TYPE, 1]
    marks = int64(parts[_IS_KEY, 1] != 0) * KEY_MARK | int64(parts[_JDBC_TYPE, 1] == BLOB) * BLOB_MARK
    is_null = parts[_IS_NULL, 1] != 0
    if name_size == 0 or kind_size == 0 or (is_null and parts[_VALUE, 1] > 0):
        return False
    if last[_MARKS] != marks or not _same(buf, last[_NAME_AT], last[_NAME_SIZE], name, name_size):
        work.memo[_ROW_SCHEMA + side] = NONE
    if not _same(buf, last[_TYPE_AT], last[_TYPE_SIZE], kind, kind_size):
        work.memo[_ROW_SCHEMA + side] = NONE
    last[_NAME_AT], last[_NAME_SIZE], last[_TYPE_AT], last[_TYPE_SIZE], last[_MARKS] = name, name_size, kind, kind_size, marks
    last[_VALUE_AT], last[_VALUE_SIZE] = parts[_VALUE, 0], NONE if is_null else parts[_VALUE, 1]
    _edges(buf, pos, end, last)
    return True


@compiled
def _edges(buf: Bytes, pos: int, end: int, last: Longs) -> None:
    """Note head and tail of a column for `_usual`, if its fields are in order and describe the column completely."""
    last[_HEAD_AT], last[_HEAD_SIZE] = pos, 0
    number, head = 0, 0
    while pos < end:
        start, before = pos, number
        tag, _, _, pos = field(buf, pos, end)
        number = tag >> 3
        if number <= before:
            return
        if number <= _IS_KEY:
            head = pos - last[_HEAD_AT]
        elif number == _MYSQL_TYPE and pos == end:
            last[_HEAD_SIZE], last[_TAIL_AT], last[_TAIL_SIZE] = head, start, end - start


@merged
def _side(buf: Bytes, side: int, row_schemas: KeyTable, work: CanalWork, out: Out) -> int:
    """The cells of one side, whose columns are known."""
    memo = work.memo
    if memo[_ROW_SCHEMA + side] == NONE or memo[_WIDTH + side] != memo[_COUNT + side]:
        status = _row_schema(buf, side, row_schemas, work, out)
        if status != DONE:
            return status
    first = row_schemas.step_ends[memo[_ROW_SCHEMA + side]]
    return DONE if _cells(buf, side, memo[_COUNT + side], first, row_schemas.steps, work.columns[side], out) else LEAVE


@compiled
def _row_schema(buf: Bytes, side: int, row_schemas: KeyTable, work: CanalWork, out: Out) -> int:
    """Put the entry of the schema into memo. Its description: name, type and marks of every column, each with its size before it."""
    key, memo, at = out.key, work.memo, 0
    for i in range(memo[_COUNT + side]):
        column = work.columns[side, i]
        if at + column[_NAME_SIZE] + column[_TYPE_SIZE] + 32 > len(key):
            return LEAVE
        at = put_bytes(key, put_number(key, at, np.uint64(column[_NAME_SIZE])), buf, column[_NAME_AT], column[_NAME_SIZE])
        at = put_bytes(key, put_number(key, at, np.uint64(column[_TYPE_SIZE])), buf, column[_TYPE_AT], column[_TYPE_SIZE])
        at = put_number(key, at, np.uint64(1))
        key[at] = column[_MARKS]
        at += 1
    out.used[KEY] = at
    entry = find(row_schemas, key, at)
    memo[_ROW_SCHEMA + side], memo[_WIDTH + side] = NONE, memo[_COUNT + side]
    if entry == NONE:
        return LEARN_SCHEMA
    if not row_schemas.valid[entry]:
        return LEAVE
    memo[_ROW_SCHEMA + side] = entry
    return DONE


@merged
def _cells(buf: Bytes, side: int, count: int, first: int, steps: Ints, columns: npt.NDArray[np.int64], out: Out) -> bool:
    cell, text = out.used[CELLS + side], out.used[BYTES + side]
    data, offsets, present, limit = out.data[side], out.offsets[side], out.present[side], room(out)
    for i in range(count):
        at, size = columns[i, _VALUE_AT], columns[i, _VALUE_SIZE]
        if text + size > limit:
            return False
        if size > 0:
            how = steps[first + i, 0]
            text = put_bytes(data, text, buf, at, size) if how == RAW else put_latin1(data, text, buf, at, at + size, how)
            if text == BAD:
                return False
        present[np.uint64(cell)] = size >= 0
        cell += 1
        offsets[np.uint64(cell)] = text
    out.used[CELLS + side], out.used[BYTES + side] = cell, text
    return True
