"""Compiled: Open Protocol messages whose tables are known (docs/reference/protocols.md 2). Layout and rules: protocols/open.py.

Takes row and resolved events in the encoders' compact form; leaves DDL, large-message marks and everything else.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.json.json_images import (
    DONE,
    LEFT,
    NEW_LAYOUT,
    NEW_SUBSET,
    Events,
    ImageSide,
    Payload,
    candidate,
    image,
    schema_of,
    table_at,
)
from tidelake.wire.json.json_known import MAX_CHAIN, Arrays, ScanState
from tidelake.wire.kernels.arrays import Bytes, Ints
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import compiled, inlined_step, int64, merged
from tidelake.wire.kernels.json_kernels import BAD, CLOSE_BRACE, COMMA, OPEN_BRACE, byte, integer, raw_end, unsigned
from tidelake.wire.kernels.json_words import text_at, texts

MAX_EVENTS = 1 << 16  # of one message
ROW, DDL, RESOLVED = 1, 2, 3  # member t of a key
INSERT, UPDATE, DELETE = 0, 1, 2  # indices into event.OPS
KIND_ROW, KIND_RESOLVED = 0, 2  # indices into event.KINDS

_VERSION = np.uint64(1)

# Members of a key; the order is classic TiCDC's. Spans 0-3 are scm and tbl as starts and lengths, then:
_MEMBERS = texts(b'"ts":', b'"scm":"', b'"tbl":"', b'"rid":', b'"ptn":', b'"t":')
_TS, _SCM, _TBL, _RID, _PTN, _T = range(6)
_SEEN, _KIND, _PHYSICAL = 4, 5, 6
_NEEDED_BY_RESOLVED = 1 << _TS | 1 << _T
_NEEDED_BY_ROWS = _NEEDED_BY_RESOLVED | 1 << _SCM | 1 << _TBL

_SIDES = texts(b'{"u":{', b'{"d":{', b',"p":{')
_NEW, _DELETED, _PREVIOUS = range(3)


@compiled
def scan_open(
    keys: Payload,
    values: Payload,
    bare_op: int,
    wanted: Ints,
    start: int,
    patience: int,
    known: Arrays,
    state: ScanState,
    events: Events,
    after: ImageSide,
    before: ImageSide,
) -> tuple[int, int]:
    """Reads the wanted messages from number `start` on: where it stopped and why (DONE, or what is new to it). Messages with something
    new are left instead while their number is below `patience`. bare_op: the op of a new row without its previous one."""
    for i in range(start, len(wanted)):
        message = wanted[i]
        marks = (events.used[0], after.used[0], after.used[1], before.used[0], before.used[1])
        verdict = LEFT
        if keys.valid[message] and values.valid[message]:
            verdict = _message(keys, values, message, bare_op, known, state, events, after, before)
        if verdict != DONE:
            events.used[0], after.used[0], after.used[1], before.used[0], before.used[1] = marks
            if verdict != LEFT and i >= patience:
                return i, verdict
            events.left[events.used[1]] = message
            events.used[1] += 1
    return len(wanted), DONE


@inlined_step
def _big_endian(text: Bytes, p: int) -> np.uint64:
    value = np.uint64(0)
    for i in range(8):
        value = value << np.uint64(8) | np.uint64(text[np.uint64(p + i)])
    return value


@inlined_step
def _part_end(text: Bytes, p: int, end: int) -> int:
    """The end of the length-prefixed part at p."""
    if end - p < 8:
        return BAD
    size = _big_endian(text, p)
    return p + 8 + int64(size) if size <= np.uint64(end - p - 8) else BAD


@merged
def _message(
    keys: Payload,
    values: Payload,
    message: int,
    bare_op: int,
    known: Arrays,
    state: ScanState,
    events: Events,
    after: ImageSide,
    before: ImageSide,
) -> int:
    k, k_end = keys.offsets[message], keys.offsets[message + 1]
    v, v_end = values.offsets[message], values.offsets[message + 1]
    if k_end - k < 8 or _big_endian(keys.data, k) != _VERSION:
        return LEFT
    k += 8
    for ordinal in range(MAX_EVENTS + 1):
        if k == k_end:
            return DONE if v == v_end else LEFT
        k_next, v_next = _part_end(keys.data, k, k_end), _part_end(values.data, v, v_end)
        if k_next == BAD or v_next == BAD or ordinal == MAX_EVENTS:
            return LEFT
        event = events.used[0]
        events.message[event], events.ordinal[event] = message, ordinal
        verdict = _event(keys.data, k + 8, k_next, values.data, v + 8, v_next, bare_op, known, state, events, after, before)
        if verdict != DONE:
            return verdict
        after.starts[event + 1], before.starts[event + 1] = after.used[0], before.used[0]
        events.used[0] = event + 1
        k, v = k_next, v_next
    return LEFT


@merged
def _event(
    key: Bytes,
    k: int,
    k_end: int,
    text: Bytes,
    v: int,
    v_end: int,
    bare_op: int,
    known: Arrays,
    state: ScanState,
    events: Events,
    after: ImageSide,
    before: ImageSide,
) -> int:
    event = events.used[0]
    if not _key(key, k, k_end, state, events):
        return LEFT
    events.has_commit_ts[event] = True
    events.row_schema[event] = events.before_schema[event] = NONE
    if state.spans[_KIND] == RESOLVED:
        events.kind[event], events.op[event], events.name[event] = KIND_RESOLVED, NONE, NONE
        events.has_physical_table_id[event] = False
        nameless = state.spans[1] == 0 and state.spans[3] == 0  # names that are not looked up might be no text
        return DONE if nameless and v == v_end else LEFT
    events.kind[event] = KIND_ROW
    events.has_physical_table_id[event] = (state.spans[_SEEN] >> _PTN) & 1
    events.physical_table_id[event] = state.spans[_PHYSICAL]
    table = table_at(key, 2, known, state)
    if table == NONE:
        return NEW_LAYOUT
    events.name[event] = table
    return _row(text, v, v_end, table, bare_op, known, state, events, after, before)


@merged
def _key(text: Bytes, p: int, end: int, state: ScanState, events: Events) -> bool:
    """Reads a key's JSON into state.spans and the event's commit ts; whether all of it is of the usual form."""
    seen, guess = 0, 0
    state.spans[1] = state.spans[3] = 0
    if byte(text, p) != OPEN_BRACE:
        return False
    while p < end:
        p += 1
        guess = text_at(text, p, _MEMBERS, guess)
        if guess == NONE or (seen >> guess) & 1:
            return False
        p = _key_member(guess, text, p + _MEMBERS.lengths[guess], end, state, events)
        if p == BAD:
            return False
        seen |= 1 << guess
        guess = _T if guess == _TBL else guess + 1
        if byte(text, p) != COMMA:
            break
    state.spans[_SEEN] = seen
    needed = _NEEDED_BY_RESOLVED if state.spans[_KIND] == RESOLVED else _NEEDED_BY_ROWS
    return byte(text, p) == CLOSE_BRACE and p + 1 == end and seen & needed == needed


@merged
def _key_member(member: int, text: Bytes, p: int, end: int, state: ScanState, events: Events) -> int:
    """The position after the value of a key's member."""
    if member == _TS:
        events.commit_ts[events.used[0]], p = unsigned(text, p)
        return p
    if member in (_SCM, _TBL):
        stop = raw_end(text, p, end)
        span = 2 * (member - _SCM)
        state.spans[span], state.spans[span + 1] = p, stop - p
        return BAD if stop == BAD else stop + 1
    if member == _RID:
        return integer(text, p)
    number, stop = unsigned(text, p)
    state.spans[_KIND if member == _T else _PHYSICAL] = int64(number)
    if member == _T:
        return stop if number in (ROW, RESOLVED) else BAD
    return stop if number < np.uint64(1 << 63) else BAD


@merged
def _row(
    text: Bytes,
    p: int,
    end: int,
    table: int,
    bare_op: int,
    known: Arrays,
    state: ScanState,
    events: Events,
    after: ImageSide,
    before: ImageSide,
) -> int:
    event = events.used[0]
    form = text_at(text, p, _SIDES, _NEW)
    if form in (NONE, _PREVIOUS) or byte(text, p + 6) == CLOSE_BRACE:
        return LEFT
    events.op[event] = DELETE
    if form == _NEW:
        p, verdict = _image(text, p + 6, end, table, known, state, after, events.row_schema, event)
        if verdict != DONE:
            return verdict
        events.op[event] = UPDATE
        if text_at(text, p, _SIDES, _PREVIOUS) != _PREVIOUS:
            events.op[event] = bare_op
            return _closed(text, p, end)
    p, verdict = _image(text, p + 6, end, table, known, state, before, events.before_schema, event)
    return _closed(text, p, end) if verdict == DONE else verdict


@inlined_step
def _closed(text: Bytes, p: int, end: int) -> int:
    return DONE if byte(text, p) == CLOSE_BRACE and p + 1 == end else LEFT


@inlined_step
def _image(
    text: Bytes, p: int, end: int, table: int, known: Arrays, state: ScanState, side: ImageSide, row_schemas: Ints, event: int
) -> tuple[int, int]:
    """A row image by whichever layout of the table fits: the position after it, and what became of it."""
    cells, used, layout = side.used[0], side.used[1], NONE
    for attempt in range(MAX_CHAIN + 1):
        layout = candidate(attempt, table, layout, known, state)
        if layout != NONE:
            stop, count = image(text, p, end, True, layout, known, state, side)
            if stop != BAD:
                state.hints[table] = layout
                row_schemas[event] = schema_of(layout, count, known, state)
                return stop, DONE if row_schemas[event] != NONE else NEW_SUBSET
            side.used[0], side.used[1] = cells, used
        elif attempt > 0:
            break
    return p, NEW_LAYOUT
