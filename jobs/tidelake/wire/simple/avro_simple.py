"""Compiled: Simple's Avro messages whose tables are known (docs/reference/protocols.md 9.1). Layout and rules: protocols/simple_avro.py.

Takes rows and watermarks; leaves schemas, statements, large-message marks and everything else. What JSON calls text is bytes here: the
constant pieces that name tables and columns are Avro strings with their lengths.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.checksum.checksum_kernels import CURRENT, MARK, NOT_A_SUM, PREVIOUS, SENT
from tidelake.wire.json.json_images import (
    DONE,
    LEFT,
    NEW_LAYOUT,
    NEW_SUBSET,
    Events,
    ImageSide,
    Payload,
    put_cell,
    schema_of,
    searched,
    table_at,
)
from tidelake.wire.json.json_known import MAX_CHAIN, Arrays, ScanState
from tidelake.wire.kernels.arrays import Bytes, Ints
from tidelake.wire.kernels.binary_floats import TEXT_BYTES, put_double, put_float
from tidelake.wire.kernels.binary_kernels import LIMIT, put_bytes, put_signed, put_unsigned, varint
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import compiled, inlined_step, int64
from tidelake.wire.kernels.json_kernels import BAD, OVERSHOOT, byte, item, put, word
from tidelake.wire.simple.simple_images import DELETE, INSERT, STAMP, ImagePlaces, begin, finish, guessed, next_layout, noted, zoned

PLAIN, WRAPPING = range(2)  # kinds of columns: a long is signed, a long is unsigned

# First bytes: union branch 11, the kind as enum and as branch, version 1
_DML, _WATERMARK = 0x02060616, 0x02000016
_ABSENT, _PRESENT = 0, 2  # branches of an optional member
_NULL, _LONG, _FLOAT, _DOUBLE, _STRING, _BYTES, _TIME, _UNSIGNED = range(0, 16, 2)  # branches of a value
_SHORT = 64  # bytes that are copied by words
_U32 = (1 << 32) - 1


@compiled
def scan_simple(
    values: Payload,
    at: ImagePlaces,
    wanted: Ints,
    start: int,
    patience: int,
    known: Arrays,
    state: ScanState,
    events: Events,
    after: ImageSide,
    before: ImageSide,
) -> tuple[int, int]:
    """Scan a batch of messages; arguments and result are those of json_canal.scan_canal."""
    for i in range(start, len(wanted)):
        message = wanted[i]
        verdict = LEFT
        if values.valid[message]:
            verdict = _message(values, message, at, known, state, events, after, before)
        if verdict != DONE:
            if verdict != LEFT and i >= patience:
                return i, verdict
            events.left[events.used[1]] = message
            events.used[1] += 1
    return len(wanted), DONE


@inlined_step
def _message(
    values: Payload, message: int, at: ImagePlaces, known: Arrays, state: ScanState, events: Events, after: ImageSide, before: ImageSide
) -> int:
    text, p, end = values.data, int64(values.offsets[message]), int64(values.offsets[message + 1])
    opening = word(text, p) & np.uint64(0xFFFFFFFF)
    if end - p < 4 or (opening != np.uint64(_DML) and opening != np.uint64(_WATERMARK)):
        return LEFT
    if opening == np.uint64(_WATERMARK):
        if _times(text, p + 4, end, events) != end:
            return LEFT
        finish(message, NONE, NONE, at, events, after, before)
        return DONE
    begin(at)
    p, op = _head(text, p + 4, end, at, state, events)
    if p == BAD:
        return LEFT
    table = table_at(text, 3, known, state)
    if table == NONE:
        return NEW_LAYOUT
    marks, layout, verdict = (after.used[0], after.used[1], before.used[0], before.used[1]), NONE, NEW_LAYOUT
    for attempt in range(MAX_CHAIN + 1):
        layout = next_layout(attempt, table, layout, known, state)
        verdict = _sides(text, p, end, op, layout, at, known, state, events, after, before) if layout != NONE else NEW_LAYOUT
        if verdict == DONE:
            state.hints[table] = layout
            finish(message, op, table, at, events, after, before)
            return DONE
        after.used[0], after.used[1], before.used[0], before.used[1] = marks
        if verdict != NEW_LAYOUT or layout == NONE:
            break
    return verdict


@inlined_step
def _times(text: Bytes, p: int, end: int, events: Events) -> int:
    """The position after commitTs and buildTs."""
    ts, p = varint(text, p, end)
    events.commit_ts[events.used[0]] = np.uint64(ts)
    _, p = varint(text, p, end)
    return p


@inlined_step
def _string_end(text: Bytes, p: int, end: int) -> int:
    """The position after a string or bytes."""
    size, p = varint(text, p, end)
    return p + size if p != BAD and 0 <= size <= end - p else BAD


@inlined_step
def _head(text: Bytes, p: int, end: int, at: ImagePlaces, state: ScanState, events: Events) -> tuple[int, int]:
    """From database to checksum: the position after it, and the operation."""
    for place in range(0, 4, 2):
        stop = _string_end(text, p, end)
        if stop == BAD or byte(text, p) == 0:
            return BAD, NONE
        state.spans[place], state.spans[place + 1] = p, stop - p
        p = stop
    number, p = varint(text, p, end)
    op, p = varint(text, p, end)
    if number < 0 or op < INSERT or op > DELETE:
        return BAD, NONE
    events.physical_table_id[events.used[0]] = number
    p = _times(text, p, end, events)
    _, stop = varint(text, p, end)
    if stop == BAD or end - stop < 3 or byte(text, stop) != _ABSENT or byte(text, stop + 1) != _ABSENT:
        return BAD, NONE
    state.spans[4], state.spans[5] = p, stop - p
    p = stop + 2
    return (p + 1 if byte(text, p) == _ABSENT else _checksum(text, p, end, at)), op


@inlined_step
def _checksum(text: Bytes, p: int, end: int, at: ImagePlaces) -> int:
    if byte(text, p) != _PRESENT:
        return BAD
    _, p = varint(text, p + 1, end)
    if p == BAD or p >= end or byte(text, p) > 1:
        return BAD
    at.row[MARK] = SENT + int64(byte(text, p))
    current, p = varint(text, p + 1, end)
    previous, p = varint(text, p, end)
    at.row[CURRENT], at.row[PREVIOUS] = sum_of(current), sum_of(previous)
    return p


@inlined_step
def sum_of(number: int) -> int:
    """A checksum as Avro's long."""
    return number if 0 <= number <= _U32 else NOT_A_SUM


@inlined_step
def _sides(
    text: Bytes,
    p: int,
    end: int,
    op: int,
    layout: int,
    at: ImagePlaces,
    known: Arrays,
    state: ScanState,
    events: Events,
    after: ImageSide,
    before: ImageSide,
) -> int:
    """data and old, as far as the operation has them, by one layout."""
    for which in range(2):
        there = op != DELETE if which == 0 else op != INSERT
        if p >= end or byte(text, p) != (_PRESENT if there else _ABSENT):
            return LEFT
        p += 1
        if not there:
            continue
        p, verdict = _located(text, p, end, layout, at, known, state)
        if p == BAD:
            return verdict
        side = after if which == 0 else before
        count = _written(text, layout, at, known, state, side)
        if count == BAD:
            return LEFT
        row_schema = schema_of(layout, count, known, state)
        if row_schema == NONE:
            return NEW_SUBSET if count > 0 else LEFT
        row_schemas = events.row_schema if which == 0 else events.before_schema
        row_schemas[events.used[0]] = row_schema
    return DONE if p == end else LEFT


@inlined_step
def _located(text: Bytes, p: int, end: int, layout: int, at: ImagePlaces, known: Arrays, state: ScanState) -> tuple[int, int]:
    """Notes the values of a map: the position after it. Blocks with their sizes, which TiCDC does not write, are left."""
    first, last = known.column[layout], known.column[layout + 1]
    state.spans[STAMP] += 1
    column = first
    while True:
        count, p = varint(text, p, end)
        if p == BAD or count <= 0:
            return (p, DONE) if p != BAD and count == 0 else (BAD, LEFT)
        for _ in range(count):
            previous = column
            column = guessed(text, p, previous, known, first, last, at)
            if column == NONE:
                stop = _string_end(text, p, end)
                if stop == BAD:
                    return BAD, LEFT
                column = searched(text, p, stop, known, state, first, last)
                if column == NONE:
                    return BAD, NEW_LAYOUT
            p += item(known.name_length, column)
            stop = _value_end(text, p, end)
            if stop == BAD or not noted(column, previous, p, stop, first, state, at):
                return BAD, LEFT
            p = stop


@inlined_step
def _value_end(text: Bytes, p: int, end: int) -> int:
    """The position after a value of the union, BAD if it does not end before `end`."""
    if p >= end:
        return BAD
    branch = byte(text, p)
    p += 1
    if branch in (_STRING, _BYTES):
        return _string_end(text, p, end)
    if branch in (_LONG, _UNSIGNED):
        return varint(text, p, end)[1]
    if branch == _TIME:
        return _string_end(text, _string_end(text, p, end), end)
    p += 4 if branch == _FLOAT else 8 if branch == _DOUBLE else 0
    return p if p <= end and branch <= _DOUBLE and branch & 1 == 0 else BAD


@inlined_step
def _written(text: Bytes, layout: int, at: ImagePlaces, known: Arrays, state: ScanState, side: ImageSide) -> int:
    """Writes the values just noted in the layout's order: how many they are, BAD if they find no room."""
    first, count = known.column[layout], 0
    for i in range(known.column[layout + 1] - first):
        if item(state.seen, i) != state.spans[STAMP]:
            continue
        start, stop, to = item(at.starts, i), item(at.stops, i), side.used[1]
        if to + max(stop - start, TEXT_BYTES) + OVERSHOOT > min(int64(len(side.data)), LIMIT):
            return BAD
        branch = byte(text, start)
        if branch == _TIME and not _zoned(text, start + 1, stop, at):
            return BAD
        to = _value(text, start + 1, stop, branch, item(known.kind, first + i), side.data, to)
        put_cell(side, to, branch != _NULL)
        state.columns[np.uint64(count)] = i
        count += 1
    return count


@inlined_step
def _zoned(text: Bytes, p: int, stop: int, at: ImagePlaces) -> bool:
    """Note the time zone at p."""
    size, p = varint(text, p, stop)
    return zoned(text, p, size, at)


@inlined_step
def _value(text: Bytes, p: int, stop: int, branch: int, kind: int, out: Bytes, to: int) -> int:
    """The canonical text of a value that ends at stop: where it ends in `out`, which has room."""
    if branch == _NULL:
        return to
    if branch in (_LONG, _UNSIGNED):
        number, _ = varint(text, p, stop)
        if branch == _UNSIGNED or kind == WRAPPING:
            return put_unsigned(out, to, np.uint64(number))
        return put_signed(out, to, number)
    if branch in (_FLOAT, _DOUBLE):
        bits = word(text, p)
        return put_float(out, to, bits & np.uint64(0xFFFFFFFF)) if branch == _FLOAT else put_double(out, to, bits)
    if branch == _TIME:
        p = _string_end(text, p, stop)
    size, p = varint(text, p, stop)
    return put(text, p, size, out, to) if size <= _SHORT else put_bytes(out, to, text, p, size)
