"""Craft messages → events, compiled (layout: protocols/craft.py). Rows and resolved events; everything else is left.

A kernel never trusts a number of the message: every position is compared with the end of its region before it is used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelake.wire.kernels.arrays import Bytes, Ints, Longs
from tidelake.wire.kernels.binary_floats import put_double, put_single
from tidelake.wire.kernels.binary_kernels import (
    BAD,
    LIMIT,
    put_bytes,
    put_signed,
    put_unsigned,
    reversed_uvarint,
    same,
    skip_varints,
    uvarint,
    varint,
    word,
)
from tidelake.wire.kernels.binary_known import KeyTable, find
from tidelake.wire.kernels.binary_out import (
    AFTER_CELLS,
    AFTER_SCHEMA,
    BEFORE_CELLS,
    BEFORE_SCHEMA,
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
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import compiled, int64, merged

# how a cell's bytes become text
RAW, UNSIGNED, SIGNED, SINGLE, DOUBLE, ALWAYS_NULL = range(6)

_ROW, _RESOLVED = 1, 3  # event types on the wire
_KIND_ROW, _KIND_RESOLVED = 0, 2  # in event.KINDS
_OP_OF_SIDES = (NONE, 0, 2, 1)  # in event.OPS: after only = insert, before only = delete, both = update

# places in Work.frame: where the parts of the current message lie
_HEADERS, _BODIES, _DICTIONARY, _TABLES, _END, _COUNT, _SIZES, _GROUPS = range(8)
# places in Work.memo: what the last message had, because the next mostly has the same
_DICTIONARY_AT, _DICTIONARY_SIZE, _TERMS, _SCHEMA, _TABLE, _PAIR, _HEADER_AT, _HEADER_SIZE, _ROW_SCHEMA = 0, 1, 2, 3, 4, 5, 6, 8, 10
MEMO = 12
FRAME = 8


class CraftWork(NamedTuple):
    """Scratch of one batch. terms: where the dictionary's terms begin, counted from its first byte."""

    terms: Ints
    frame: Longs
    memo: Longs
    mark: Longs


def new_work(longest: int) -> CraftWork:
    """Scratch for messages of at most `longest` bytes."""
    memo = np.full(MEMO, NONE, np.int64)
    return CraftWork(np.empty(longest + 2, np.int32), np.zeros(FRAME, np.int64), memo, np.zeros(7, np.int64))


@compiled
def count_events(column: Values, wanted: Ints, work: CraftWork) -> int:
    """At most so many events are in the messages: the number in their size tables, if it is possible."""
    count = 0
    for m in wanted:
        if _frame(column.data, int64(column.bounds[m]), int64(column.bounds[m + 1]), work.frame):
            count += work.frame[_COUNT]
    return count


@compiled
def scan_messages(
    column: Values, wanted: Ints, first: int, names: KeyTable, row_schemas: KeyTable, work: CraftWork, out: Out
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
def _message(buf: Bytes, start: int, end: int, m: int, names: KeyTable, row_schemas: KeyTable, work: CraftWork, out: Out) -> int:
    frame = work.frame
    first = out.used[EVENTS]
    if not (_frame(buf, start, end, frame) and _dictionary(buf, work) and _headers(buf, frame, first, out.events)):
        return LEAVE
    body, sizes, groups, size = frame[_BODIES], frame[_SIZES], frame[_GROUPS], 0
    for i in range(first, first + frame[_COUNT]):
        size, sizes = _size(buf, sizes, frame[_END], size)
        out.events[i, MESSAGE], out.events[i, ORDINAL] = m, i - first
        status, groups = _event(buf, body, body + size, groups, i, names, row_schemas, work, out)
        if status != DONE:
            return status
        body += size
    out.used[EVENTS] += frame[_COUNT]
    return DONE if groups == frame[_END] else LEAVE


@merged
def _frame(buf: Bytes, start: int, end: int, frame: Longs) -> bool:
    """Where the parts lie; the sizes add up to the message."""
    version, headers = uvarint(buf, start, end)
    size, tables_end = reversed_uvarint(buf, start, end)
    if headers == BAD or version != 1 or tables_end < headers or size > np.uint64(tables_end - headers):
        return False
    tables = tables_end - int64(size)
    pair, pos = uvarint(buf, tables, tables_end)
    header_size, pos = _size(buf, pos, tables_end, 0)
    dictionary_size, pos = _size(buf, pos, tables_end, header_size)
    count, pos = uvarint(buf, pos, tables_end)
    if pos == BAD or pair != 2 or count < 1 or count > np.uint64(header_size // 5):
        return False
    frame[_HEADERS], frame[_BODIES], frame[_DICTIONARY] = headers, headers + header_size, tables - dictionary_size
    frame[_TABLES], frame[_END], frame[_COUNT], frame[_SIZES] = tables, tables_end, int64(count), pos
    total, body = 0, 0
    for _ in range(frame[_COUNT]):
        body, pos = _size(buf, pos, tables_end, body)
        total += body
    frame[_GROUPS] = pos
    return pos != BAD and headers + header_size + total + dictionary_size == tables


@merged
def _size(buf: Bytes, pos: int, end: int, before: int) -> tuple[int, int]:
    """The next number of a size table, which is stored as a difference; BAD unless it is a possible size."""
    delta, pos = varint(buf, pos, end)
    if pos == BAD or not -LIMIT <= delta <= LIMIT or not 0 <= before + delta <= LIMIT:
        return 0, BAD
    return before + delta, pos


@merged
def _dictionary(buf: Bytes, work: CraftWork) -> bool:
    """Find the terms, unless the dictionary equals the last one: then the memo of it is still valid."""
    memo, at, end = work.memo, work.frame[_DICTIONARY], work.frame[_TABLES]
    size = end - at
    known = memo[_DICTIONARY_SIZE] == size and same(buf, memo[_DICTIONARY_AT], at, size)
    memo[_DICTIONARY_AT] = at
    if known:
        return True
    for i in range(_DICTIONARY_SIZE, MEMO):
        memo[i] = NONE
    terms = _terms(buf, at, end, work.terms)
    if terms == BAD:
        return False
    memo[_DICTIONARY_SIZE], memo[_TERMS] = size, terms
    return True


@compiled
def _terms(buf: Bytes, at: int, end: int, terms: Ints) -> int:
    """The number of terms; BAD unless they fill the dictionary."""
    if at == end:
        return 0
    count, pos = uvarint(buf, at, end)
    if pos == BAD or count > np.uint64(end - pos):
        return BAD
    text = skip_varints(buf, pos, end, int64(count))
    for i in range(int64(count)):
        size, pos = uvarint(buf, pos, end)
        if text == BAD or pos == BAD or size > np.uint64(end - text):
            return BAD
        terms[i] = text - at
        text += int64(size)
    terms[int64(count)] = end - at
    return int64(count) if text == end else BAD


@merged
def _headers(buf: Bytes, frame: Longs, first: int, events: Longs) -> bool:
    """The five columns of all events. Schema and table ids go where name and schema will stand."""
    pos, end, last = frame[_HEADERS], frame[_BODIES], first + frame[_COUNT]
    ts = np.uint64(0)
    for i in range(first, last):
        step, pos = uvarint(buf, pos, end)
        ts += step
        events[i, COMMIT_TS] = int64(ts)
    for i in range(first, last):
        kind, pos = uvarint(buf, pos, end)
        events[i, KIND] = int64(kind)
    for column in (PHYSICAL, NAME, AFTER_SCHEMA):
        total = np.uint64(0)
        for i in range(first, last):
            delta, pos = varint(buf, pos, end)
            total += np.uint64(delta)
            events[i, column] = int64(total)
    return bool(pos == end)


@merged
def _event(
    buf: Bytes, body: int, end: int, groups: int, i: int, names: KeyTable, row_schemas: KeyTable, work: CraftWork, out: Out
) -> tuple[int, int]:
    """One event; also the position of the next event's column-group table."""
    event, memo = out.events[i], work.memo
    if event[PHYSICAL] < NONE:
        return LEAVE, groups
    if memo[_PAIR] == NONE or memo[_SCHEMA] != event[NAME] or memo[_TABLE] != event[AFTER_SCHEMA]:
        status = _pair(buf, event[NAME], event[AFTER_SCHEMA], names, work, out)
        if status != DONE:
            return status, groups
    event[NAME], event[HAS_COMMIT_TS], event[OP] = memo[_PAIR], 1, NONE
    event[AFTER_SCHEMA], event[BEFORE_SCHEMA] = NONE, NONE
    if event[KIND] == _ROW:
        event[KIND] = _KIND_ROW
        status, groups = _row(buf, body, end, groups, event, row_schemas, work, out)
    elif event[KIND] == _RESOLVED and body == end:
        event[KIND] = _KIND_RESOLVED
    else:
        return LEAVE, groups
    event[AFTER_CELLS], event[BEFORE_CELLS] = out.used[CELLS], out.used[CELLS + 1]
    return status, groups


@compiled
def _pair(buf: Bytes, schema: int, table: int, names: KeyTable, work: CraftWork, out: Out) -> int:
    """Put the entry of (schema, table) into memo."""
    at = _put_term(buf, schema, NONE, work, out.key, 0)
    at = _put_term(buf, table, NONE, work, out.key, at)
    if at == BAD:
        return LEAVE
    out.used[KEY] = at
    entry = find(names, out.key, at)
    if entry == NONE:
        return LEARN
    if not names.valid[entry]:
        return LEAVE
    work.memo[_SCHEMA], work.memo[_TABLE], work.memo[_PAIR] = schema, table, entry
    return DONE


@compiled
def _put_term(buf: Bytes, term: int, lowest: int, work: CraftWork, key: Bytes, at: int) -> int:
    """Append a term to a description: its length and its bytes. BAD if there is no such term, or no room for two numbers after it."""
    if at == BAD or not lowest <= term < work.memo[_TERMS]:
        return BAD
    if term == NONE:
        return put_number(key, at, np.uint64(0xFFFFFFFFFFFFFFFF))
    begin, end = work.terms[term], work.terms[term + 1]
    if at + (end - begin) + 24 > len(key):
        return BAD
    at = put_number(key, at, np.uint64(end - begin))
    return put_bytes(key, at, buf, work.memo[_DICTIONARY_AT] + begin, end - begin)


@merged
def _row(buf: Bytes, pos: int, end: int, groups: int, event: Longs, row_schemas: KeyTable, work: CraftWork, out: Out) -> tuple[int, int]:
    count, groups = uvarint(buf, groups, work.frame[_END])
    if count < 1 or count > 2:
        return LEAVE, groups
    size, seen = 0, 0
    for _ in range(int64(count)):
        size, groups = _size(buf, groups, work.frame[_END], size)
        if groups == BAD or not 1 <= size <= end - pos:
            return LEAVE, groups
        side = int64(buf[pos]) - 1
        if not 0 <= side <= 1 or seen & (1 << side):
            return LEAVE, groups
        status = _group(buf, pos + 1, pos + size, side, row_schemas, work, out)
        if status != DONE:
            return status, groups
        event[AFTER_SCHEMA + side] = work.memo[_ROW_SCHEMA + side]
        seen |= 1 << side
        pos += size
    event[OP] = _OP_OF_SIDES[seen]
    return DONE if pos == end else LEAVE, groups


@merged
def _group(buf: Bytes, pos: int, end: int, side: int, row_schemas: KeyTable, work: CraftWork, out: Out) -> int:
    """One side of a row. Mostly its header has the very bytes of the last one, and then its schema."""
    memo = work.memo
    size = memo[_HEADER_SIZE + side]
    if size == NONE or size > end - pos or not same(buf, memo[_HEADER_AT + side], pos, size):
        status = _row_schema(buf, pos, end, side, row_schemas, work, out)
        if status != DONE:
            return status
    pos += memo[_HEADER_SIZE + side]
    entry = memo[_ROW_SCHEMA + side]
    first, last = row_schemas.step_ends[entry], row_schemas.step_ends[entry + 1]
    return DONE if _cells(buf, pos, end, side, row_schemas.steps[first:last], out) else LEAVE


@compiled
def _row_schema(buf: Bytes, pos: int, end: int, side: int, row_schemas: KeyTable, work: CraftWork, out: Out) -> int:
    """Put a group header's size and the entry of its schema into memo."""
    after = _describe(buf, pos, end, work, out)
    if after == BAD:
        return LEAVE
    entry = find(row_schemas, out.key, out.used[KEY])
    if entry == NONE:
        return LEARN_SCHEMA
    if not row_schemas.valid[entry]:
        return LEAVE
    work.memo[_HEADER_AT + side], work.memo[_HEADER_SIZE + side], work.memo[_ROW_SCHEMA + side] = pos, after - pos, entry
    return DONE


@compiled
def _describe(buf: Bytes, pos: int, end: int, work: CraftWork, out: Out) -> int:
    """Write names, types and flags of a group's columns as a description; the position after them."""
    count, ids = uvarint(buf, pos, end)
    if ids == BAD or count > np.uint64((end - ids) // 4):
        return BAD
    types = skip_varints(buf, ids, end, int64(count))
    flags = skip_varints(buf, types, end, int64(count))
    at, term = 0, np.uint64(0)
    for _ in range(int64(count)):
        delta, ids = varint(buf, ids, end)
        code, types = uvarint(buf, types, end)
        flag, flags = uvarint(buf, flags, end)
        term += np.uint64(delta)
        at = _put_term(buf, int64(term), 0, work, out.key, at)
        if at == BAD or ids == BAD or types == BAD:
            return BAD
        at = put_number(out.key, put_number(out.key, at, code), flag)
    out.used[KEY] = at
    return flags


@merged
def _cells(buf: Bytes, pos: int, end: int, side: int, steps: Ints, out: Out) -> bool:
    """The values of a group: their lengths, then their bytes."""
    begin = skip_varints(buf, pos, end, len(steps))
    at, cell, text = begin, out.used[CELLS + side], out.used[BYTES + side]
    data, offsets, present, limit = out.data[side], out.offsets[side], out.present[side], room(out)
    for i in range(len(steps)):
        size, pos = varint(buf, pos, begin)
        if pos == BAD or not NONE <= size <= end - at or text + size > limit:
            return False
        if size >= 0:
            text = _put_cell(buf, at, size, steps[i, 0], data, text)
            at += size
        if text == BAD:
            return False
        present[np.uint64(cell)] = size >= 0
        cell += 1
        offsets[np.uint64(cell)] = text
    out.used[CELLS + side], out.used[BYTES + side] = cell, text
    return at == end


@merged
def _put_cell(buf: Bytes, at: int, size: int, step: int, data: Bytes, text: int) -> int:
    """The canonical text of a value; BAD unless its bytes are exactly one value of its type."""
    if step == RAW:
        return put_bytes(data, text, buf, at, size)
    if step == UNSIGNED:
        number, pos = uvarint(buf, at, at + size)
        return put_unsigned(data, text, number) if pos == at + size else BAD
    if step == SIGNED:
        signed, pos = varint(buf, at, at + size)
        return put_signed(data, text, signed) if pos == at + size else BAD
    if size != 8 or step == ALWAYS_NULL:
        return BAD
    return put_single(data, text, word(buf, at)) if step == SINGLE else put_double(data, text, word(buf, at))
