"""Avro messages → events, compiled (layout: protocols/avro.py). Rows; everything else is left.

What a message holds follows from the schema ids in its key and value. Each pair met is a plan: the fields of the key record, then
those of the value record, a step each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelake.wire.binary.avro_schema import (
    BIT,
    BOOLEAN,
    CHECKSUM,
    COLUMN,
    COMMIT,
    CORRUPTED,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INT,
    MAX_DECIMAL_BYTES,
    OPERATION,
    RAW,
    UNSIGNED,
)
from tidelake.wire.checksum.checksum_kernels import CORRUPTED as MARKED_CORRUPTED
from tidelake.wire.checksum.checksum_kernels import CURRENT, MARK, NOT_SENT, SENT, sum_of_text
from tidelake.wire.kernels.arrays import Bytes, Ints, Longs
from tidelake.wire.kernels.binary_floats import put_double, put_float, put_single
from tidelake.wire.kernels.binary_kernels import BAD, put_bytes, put_padded, put_signed, put_unsigned, same, varint, word
from tidelake.wire.kernels.binary_known import KeyTable, find
from tidelake.wire.kernels.binary_out import (
    AFTER,
    AFTER_CELLS,
    AFTER_SCHEMA,
    BEFORE,
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
    LEAVE,
    MESSAGE,
    NAME,
    OP,
    ORDINAL,
    PHYSICAL,
    Out,
    Values,
    leave,
    remember,
    restore,
    room,
)
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import compiled, inlined, int64, merged

# the numbers of a step; the first step of a plan only holds how many fields the key has
CODE, NULL_BRANCH, TARGET, PRECISION, SCALE = range(5)
STEP_WIDTH = 5

CONFLUENT, GLUE, UNCOMPRESSED = 0, 3, 0  # first byte, first byte, second byte
CONFLUENT_BYTES, GLUE_BYTES = 5, 18  # of a header

_INSERT, _UPDATE, _DELETE, _UPSERT = 0, 1, 2, 3  # in event.OPS
_C, _U, _TRUE = ord("c"), ord("u"), ord("1")
_GROUP = 10**9  # decimals are divided into groups of nine digits
_GROUPS = 9  # of the largest number
_LIMBS = MAX_DECIMAL_BYTES // 4
# places in Work.memo: the last message's headers and plan
_KEY_AT, _KEY_SIZE, _VALUE_AT, _VALUE_SIZE, _PLAN = range(5)


class AvroWork(NamedTuple):
    """Scratch of one batch. limbs: a large decimal, by 32 bits and by groups of nine digits; sent: checksums by event."""

    memo: Longs
    mark: Longs
    limbs: Longs
    sent: Longs


def new_work(events: int) -> AvroWork:
    """Scratch that knows no last message."""
    sent = np.zeros((events + 1, 4), np.int64)
    return AvroWork(np.full(5, NONE, np.int64), np.zeros(7, np.int64), np.zeros(_LIMBS + _GROUPS, np.int64), sent)


@compiled
def scan_messages(keys: Values, values: Values, wanted: Ints, first: int, plans: KeyTable, work: AvroWork, out: Out) -> tuple[int, int]:
    """Take messages wanted[first:] until one needs a plan to be learned: its place in `wanted`; len(wanted) and DONE at the end."""
    for i in range(first, len(wanted)):
        m = wanted[i]
        remember(out, work.mark)
        status = _message(keys, values, m, plans, work, out)
        if status != DONE:
            restore(out, work.mark)
        if status > LEAVE:
            return i, status
        if status == LEAVE:
            leave(out, m)
    return len(wanted), DONE


@merged
def _message(keys: Values, values: Values, m: int, plans: KeyTable, work: AvroWork, out: Out) -> int:
    key, value, value_end = int64(keys.bounds[m]), int64(values.bounds[m]), int64(values.bounds[m + 1])
    key_end = int64(keys.bounds[m + 1]) if keys.valid[m] else key
    key_header = _header(keys.data, key, key_end) if key_end > key else 0
    value_header = _header(values.data, value, value_end) if values.valid[m] else 0
    if key_header == BAD or value_header == BAD or key_header + value_header == 0:
        return LEAVE
    if not _is_last(keys.data, key, key_header, values.data, value, value_header, work.memo):
        status = _plan(keys.data, key, key_header, values.data, value, value_header, plans, work, out)
        if status != DONE:
            return status
    return _row(keys.data, key + key_header, key_end, values.data, value + value_header, value_end, value_header > 0, m, plans, work, out)


@inlined
def _header(buf: Bytes, at: int, end: int) -> int:
    """The size of a header, BAD if it is none."""
    if end - at >= CONFLUENT_BYTES and buf[at] == CONFLUENT:
        return CONFLUENT_BYTES
    if end - at >= GLUE_BYTES and buf[at] == GLUE and buf[at + 1] == UNCOMPRESSED:
        return GLUE_BYTES
    return BAD


@merged
def _is_last(keys: Bytes, key: int, key_size: int, values: Bytes, value: int, value_size: int, memo: Longs) -> bool:
    """Whether the headers are those of the last message."""
    if memo[_KEY_SIZE] != key_size or memo[_VALUE_SIZE] != value_size:
        return False
    return same(keys, memo[_KEY_AT], key, key_size) and same(values, memo[_VALUE_AT], value, value_size)


@compiled
def _plan(
    keys: Bytes, key: int, key_size: int, values: Bytes, value: int, value_size: int, plans: KeyTable, work: AvroWork, out: Out
) -> int:
    """Put the plan for these headers into memo. Its description: the size of the key's header, then both headers."""
    out.key[0] = key_size
    put_bytes(out.key, 1, keys, key, key_size)
    out.used[KEY] = put_bytes(out.key, 1 + key_size, values, value, value_size)
    entry = find(plans, out.key, out.used[KEY])
    if entry == NONE:
        return LEARN
    if not plans.valid[entry]:
        return LEAVE
    memo = work.memo
    memo[_KEY_AT], memo[_KEY_SIZE], memo[_VALUE_AT], memo[_VALUE_SIZE], memo[_PLAN] = key, key_size, value, value_size, entry
    return DONE


@merged
def _row(
    keys: Bytes,
    key: int,
    key_end: int,
    values: Bytes,
    value: int,
    value_end: int,
    there: bool,
    m: int,
    plans: KeyTable,
    work: AvroWork,
    out: Out,
) -> int:
    """The event of a message whose plan is in memo. The key's cells are kept for a delete only; otherwise the value repeats them."""
    entry = work.memo[_PLAN]
    first, last = plans.step_ends[entry] + 1, plans.step_ends[entry + 1]
    middle = first + plans.steps[first - 1, 0]
    event = out.events[out.used[EVENTS]]
    event[MESSAGE], event[ORDINAL], event[KIND], event[NAME], event[PHYSICAL] = m, 0, 0, entry, NONE
    event[OP], event[COMMIT_TS], event[HAS_COMMIT_TS] = _UPSERT if there else _DELETE, 0, 0
    event[AFTER_SCHEMA], event[BEFORE_SCHEMA] = entry if there else NONE, NONE if there else entry
    sent = work.sent[out.used[EVENTS]]
    if not _record(keys, key, key_end, plans.steps, first, middle, BEFORE, event, sent, work.limbs, out):
        return LEAVE
    sent[MARK] = NOT_SENT
    if there:
        restore(out, work.mark)
        if not _record(values, value, value_end, plans.steps, middle, last, AFTER, event, sent, work.limbs, out):
            return LEAVE
    event[AFTER_CELLS], event[BEFORE_CELLS] = out.used[CELLS + AFTER], out.used[CELLS + BEFORE]
    out.used[EVENTS] += 1
    return DONE


@compiled
def _record(
    buf: Bytes, pos: int, end: int, steps: Ints, first: int, last: int, side: int, event: Longs, sent: Longs, limbs: Longs, out: Out
) -> bool:
    """A record's fields, which fill pos to end."""
    cell, text = out.used[CELLS + side], out.used[BYTES + side]
    data, offsets, present, limit = out.data[side], out.offsets[side], out.present[side], room(out)
    for i in range(first, last):
        step, before = steps[i], text
        null, pos = _is_null(buf, pos, end, step[NULL_BRANCH])
        if pos == BAD or text > limit:
            return False
        start = pos
        if not null:
            text, pos = _put_value(buf, pos, end, step, data, text, limit, limbs)
        if text == BAD or pos == BAD:
            return False
        if step[TARGET] == COLUMN:
            present[np.uint64(cell)] = not null
            cell += 1
            offsets[np.uint64(cell)] = text
        elif _extension(buf, start, end, step[TARGET], data, before, text, event, sent):
            text = before
        else:
            return False
    out.used[CELLS + side], out.used[BYTES + side] = cell, text
    return pos == end


@merged
def _is_null(buf: Bytes, pos: int, end: int, null_branch: int) -> tuple[bool, int]:
    """Read the branch of a union of two, if the field is one."""
    if null_branch == NONE:
        return False, pos
    branch, pos = varint(buf, pos, end)
    return branch == null_branch, pos if 0 <= branch <= 1 else BAD


@compiled
def _extension(buf: Bytes, pos: int, end: int, target: int, data: Bytes, before: int, text: int, event: Longs, sent: Longs) -> bool:
    """A field that is not a column; its text is data[before:text]."""
    if target == COMMIT:
        ts, _ = varint(buf, pos, end)
        event[COMMIT_TS], event[HAS_COMMIT_TS] = ts, 1
    elif target == OPERATION:
        if text - before != 1 or (data[before] != _C and data[before] != _U):
            return False
        event[OP] = _INSERT if data[before] == _C else _UPDATE
    elif target == CHECKSUM and text > before:  # empty where the row has none
        sent[MARK], sent[CURRENT] = max(sent[MARK], SENT), sum_of_text(data, before, text)
    elif target == CORRUPTED and data[before] == _TRUE:
        sent[MARK] = MARKED_CORRUPTED
    return True


@merged
def _put_value(buf: Bytes, pos: int, end: int, step: Ints, data: Bytes, text: int, limit: int, limbs: Longs) -> tuple[int, int]:
    """A value's canonical text: where it ends, and the position after the value; one of them BAD if it is none."""
    code = step[CODE]
    if code == RAW:
        size, pos = varint(buf, pos, end)
        if pos == BAD or not 0 <= size <= end - pos or text + size > limit:
            return BAD, BAD
        return put_bytes(data, text, buf, pos, size), pos + size
    if code <= DECIMAL:
        size, pos = varint(buf, pos, end)
        if pos == BAD or not 1 <= size <= min(end - pos, MAX_DECIMAL_BYTES):
            return BAD, BAD
        return _put_big(buf, pos, size, step, data, text, limbs), pos + size
    if code <= UNSIGNED:
        number, pos = varint(buf, pos, end)
        return _put_integer(data, text, number, code), pos
    return _put_fixed(buf, pos, end, code, data, text)


@merged
def _put_integer(data: Bytes, text: int, number: int, code: int) -> int:
    if code == UNSIGNED:
        return put_unsigned(data, text, np.uint64(number))
    if code == INT and not -(1 << 31) <= number < 1 << 31:
        return BAD
    return put_signed(data, text, number)


@compiled
def _put_fixed(buf: Bytes, pos: int, end: int, code: int, data: Bytes, text: int) -> tuple[int, int]:
    size = 1 if code == BOOLEAN else 4 if code == FLOAT else 8
    if pos == BAD or size > end - pos:
        return BAD, BAD
    if code == BOOLEAN:
        return put_unsigned(data, text, np.uint64(buf[pos])) if buf[pos] <= 1 else BAD, pos + size
    if code == FLOAT:
        return put_float(data, text, _number(buf, pos + 3, -1, 4)), pos + size
    bits = word(buf, pos)
    return put_double(data, text, bits) if code == DOUBLE else put_single(data, text, bits), pos + size


@compiled
def _number(buf: Bytes, pos: int, step: int, size: int) -> np.uint64:
    """At most eight bytes as an unsigned number, the most significant at pos."""
    value = np.uint64(0)
    for i in range(size):
        value = value << np.uint64(8) | np.uint64(buf[pos + step * i])
    return value


@compiled
def _put_big(buf: Bytes, pos: int, size: int, step: Ints, data: Bytes, text: int, limbs: Longs) -> int:
    """BIT and DECIMAL: big-endian."""
    if step[CODE] == BIT:
        return put_unsigned(data, text, _number(buf, pos, 1, size)) if size <= 8 else BAD
    negative = buf[pos] >= 128
    if negative:
        data[text] = 45
        text += 1
    if size <= 8:
        value = _number(buf, pos, 1, size)
        if negative:
            value = (np.uint64(0) - value) & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * size))
        end = put_unsigned(data, text + 1, value)
    else:
        end = _put_groups(data, text + 1, limbs, _divide(buf, pos, size, negative, limbs))
    return _put_point(data, text, end, step[PRECISION], step[SCALE])


@compiled
def _divide(buf: Bytes, pos: int, size: int, negative: bool, limbs: Longs) -> int:
    """Put the magnitude's groups of nine digits behind the limbs, lowest first; how many there are."""
    carry = 1
    for i in range(_LIMBS - 1, -1, -1):
        limb = 0
        for j in range(4 * i, 4 * i + 4):
            at = j - (MAX_DECIMAL_BYTES - size)
            limb = limb << 8 | (int64(buf[pos + at]) if at >= 0 else 255 if negative else 0)
        if negative:
            limb = (limb ^ 0xFFFFFFFF) + carry
            carry = limb >> 32
        limbs[i] = limb & 0xFFFFFFFF
    first, groups = 0, 0
    while first < _LIMBS:
        rest = 0
        for i in range(first, _LIMBS):
            dividend = rest << 32 | limbs[i]
            limbs[i], rest = dividend // _GROUP, dividend % _GROUP
        limbs[_LIMBS + groups] = rest
        groups += 1
        while first < _LIMBS and limbs[first] == 0:
            first += 1
    return groups


@compiled
def _put_groups(data: Bytes, text: int, limbs: Longs, groups: int) -> int:
    text = put_unsigned(data, text, np.uint64(limbs[_LIMBS + groups - 1]))
    for i in range(_LIMBS + groups - 2, _LIMBS - 1, -1):
        text = put_padded(data, text, np.uint64(limbs[i]), 9)
    return text


@compiled
def _put_point(data: Bytes, text: int, end: int, precision: int, scale: int) -> int:
    """Make data[text+1:end], digits, a decimal that begins at `text`; BAD if they are more than the column has."""
    digits = end - text - 1
    whole = digits - scale
    if digits > precision:
        return BAD
    if whole > 0:
        for i in range(text, text + whole):
            data[i] = data[i + 1]
        data[text + whole] = 46
        return end if scale > 0 else end - 1
    for i in range(digits):
        data[end - whole - i] = data[end - 1 - i]
    put_padded(data, text, np.uint64(0), 2 - whole)
    data[text + 1] = 46
    return end - whole + 1
