"""Compiled: Simple's JSON messages whose tables are known (docs/reference/protocols.md 9.1). Layout and rules: protocols/simple_json.py.

Takes rows and watermarks as TiCDC writes them, without blanks and with the members in its order; leaves schemas, statements,
large-message marks and everything else.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.checksum.checksum_kernels import CURRENT, MARK, PREVIOUS, SENT
from tidelake.wire.json.json_cells import TEXT, cell, string
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
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import compiled, inlined_step, int64
from tidelake.wire.kernels.json_kernels import (
    BAD,
    CLOSE_BRACE,
    COMMA,
    OPEN_BRACE,
    QUOTE,
    byte,
    integer,
    is_null,
    item,
    raw_end,
    unsigned,
    word,
)
from tidelake.wire.kernels.json_words import Texts, text_at, texts
from tidelake.wire.simple.simple_images import DELETE, INSERT, STAMP, ImagePlaces, begin, finish, guessed, next_layout, noted, zoned

ZONED = 16  # kind of a column beside those of json_cells: text, or an object of a time zone and a text

_ROW = np.frombuffer(b'{"version":1,"database":', "<u8").astype(np.uint64)
_WATERMARK = np.frombuffer(b'{"version":1,"type":"WAT', "<u8").astype(np.uint64)
_VERSION, _DATABASE, _TABLE = texts(b'{"version":1,'), texts(b'"database":"'), texts(b'","table":"')
_TABLE_ID, _TYPE, _COMMIT_TS, _BUILD_TS = texts(b'","tableID":'), texts(b',"type":'), texts(b',"commitTs":'), texts(b',"buildTs":')
_OPS, _RESOLVED = texts(b'"INSERT"', b'"UPDATE"', b'"DELETE"'), (texts(b'"type":'), texts(b'"WATERMARK"'))
_MARK_TYPE, _MARK = _RESOLVED
_SCHEMA_VERSION, _SIDES = texts(b',"schemaVersion"'), texts(b',"data":{', b',"old":{')
_COLON = texts(b":")
_CHECKSUM, _CHECKSUM_VERSION, _CORRUPTED = texts(b',"checksum":'), texts(b'{"version":'), texts(b',"corrupted":')
_BOOLEANS, _CURRENT, _PREVIOUS = texts(b"false", b"true"), texts(b',"current":'), texts(b',"previous":')
_LOCATION, _VALUE = texts(b'{"location":'), texts(b',"value":')
_U32, _I63 = np.uint64((1 << 32) - 1), np.uint64((1 << 63) - 1)


@compiled
def other_messages(values: Payload, wanted: Ints, found: Ints) -> int:
    """Put the messages that begin neither as rows nor as watermarks do into `found`; how many they are."""
    count = 0
    for i in range(len(wanted)):
        message = wanted[i]
        p = values.offsets[message]
        if values.valid[message] and not _begins(values.data, p, _ROW) and not _begins(values.data, p, _WATERMARK):
            found[count] = message
            count += 1
    return count


@inlined_step
def _begins(text: Bytes, p: int, words: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> bool:
    return bool(word(text, p) == words[0] and word(text, p + 8) == words[1] and word(text, p + 16) == words[2])


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
    text, p, end = values.data, values.offsets[message], values.offsets[message + 1]
    p = _past(text, p, _VERSION)
    if p == BAD:
        return LEFT
    if _past(text, p, _MARK_TYPE) != BAD:
        p = _times(text, _past(text, _past(text, p, _MARK_TYPE), _MARK), events)
        if p == BAD or byte(text, p) != CLOSE_BRACE or p + 1 != end:
            return LEFT
        finish(message, NONE, NONE, at, events, after, before)
        return DONE
    begin(at)
    p, op = _head(text, p, end, at, state, events)
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
def _past(text: Bytes, p: int, known: Texts) -> int:
    """The position after the text, BAD if it is not at p."""
    return p + known.lengths[0] if p != BAD and text_at(text, p, known, 0) == 0 else BAD


@inlined_step
def _times(text: Bytes, p: int, events: Events) -> int:
    """The position after commitTs and buildTs."""
    p = _past(text, p, _COMMIT_TS)
    if p == BAD:
        return BAD
    events.commit_ts[events.used[0]], p = unsigned(text, p)
    p = _past(text, p, _BUILD_TS)
    return integer(text, p) if p != BAD else BAD


@inlined_step
def _name(text: Bytes, p: int, end: int, opening: Texts, place: int, state: ScanState) -> int:
    """The position of the quote that ends a name, whose span is noted."""
    start = _past(text, p, opening)
    stop = raw_end(text, start, end) if start != BAD else BAD
    state.spans[place], state.spans[place + 1] = start, stop - start
    return stop


@inlined_step
def _head(text: Bytes, p: int, end: int, at: ImagePlaces, state: ScanState, events: Events) -> tuple[int, int]:
    """From database to the member before the images: the position after it, and the operation."""
    p = _name(text, _name(text, p, end, _DATABASE, 0, state), end, _TABLE, 2, state)
    if p == BAD or state.spans[1] == 0 or state.spans[3] == 0:
        return BAD, NONE
    p = _past(text, p, _TABLE_ID)
    if p == BAD:
        return BAD, NONE
    number, p = unsigned(text, p)
    p = _past(text, p, _TYPE)
    op = text_at(text, p, _OPS, INSERT) if p != BAD else NONE
    if op == NONE or number > _I63:
        return BAD, NONE
    events.physical_table_id[events.used[0]] = np.int64(number)
    p = _past(text, _past(text, _times(text, p + _OPS.lengths[op], events), _SCHEMA_VERSION), _COLON)
    if p == BAD:
        return BAD, NONE
    _, stop = unsigned(text, p)
    state.spans[4], state.spans[5] = p, stop - p
    if stop != BAD and _past(text, stop, _CHECKSUM) != BAD:
        stop = _checksum(text, _past(text, stop, _CHECKSUM), at)
    return stop, op


@inlined_step
def _checksum(text: Bytes, p: int, at: ImagePlaces) -> int:
    _, p = _u32(text, p, _CHECKSUM_VERSION)
    p = _past(text, p, _CORRUPTED)
    which = text_at(text, p, _BOOLEANS, 0) if p != BAD else NONE
    if which == NONE:
        return BAD
    at.row[MARK] = SENT + which
    at.row[CURRENT], p = _u32(text, p + _BOOLEANS.lengths[which], _CURRENT)
    at.row[PREVIOUS], p = _u32(text, p, _PREVIOUS)
    return p + 1 if p != BAD and byte(text, p) == CLOSE_BRACE else BAD


@inlined_step
def _u32(text: Bytes, p: int, opening: Texts) -> tuple[int, int]:
    p = _past(text, p, opening)
    if p == BAD:
        return 0, BAD
    number, p = unsigned(text, p)
    return int64(number & _U32), p if number <= _U32 else BAD


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
    for which in range(op == DELETE, 2 - (op == INSERT)):
        if text_at(text, p, _SIDES, which) != which:
            return LEFT
        p, verdict = _located(text, p + _SIDES.lengths[which], end, layout, at, known, state)
        if p == BAD:
            return verdict
        side = after if which == 0 else before
        count = _written(text, end, layout, at, known, state, side)
        if count == BAD:
            return LEFT
        row_schema = schema_of(layout, count, known, state)
        if row_schema == NONE:
            return NEW_SUBSET
        row_schemas = events.row_schema if which == 0 else events.before_schema
        row_schemas[events.used[0]] = row_schema
    return DONE if byte(text, p) == CLOSE_BRACE and p + 1 == end else LEFT


@inlined_step
def _located(text: Bytes, p: int, end: int, layout: int, at: ImagePlaces, known: Arrays, state: ScanState) -> tuple[int, int]:
    """Notes the values of the object whose brace stands before p: the position after it."""
    first, last = known.column[layout], known.column[layout + 1]
    state.spans[STAMP] += 1
    column = first
    while True:
        previous = column
        column = guessed(text, p, previous, known, first, last, at)
        if column == NONE:
            stop = raw_end(text, p + 1, end) if byte(text, p) == QUOTE else BAD
            if stop == BAD:
                return BAD, LEFT
            column = searched(text, p, stop, known, state, first, last)
            if column == NONE:
                return BAD, NEW_LAYOUT
        p += item(known.name_length, column)
        stop = _value_end(text, p, end)
        if stop == BAD or not noted(column, previous, p, stop, first, state, at):
            return BAD, LEFT
        if byte(text, stop) != COMMA:
            return (stop + 1, DONE) if byte(text, stop) == CLOSE_BRACE else (BAD, LEFT)
        p = stop + 1


@inlined_step
def _value_end(text: Bytes, p: int, end: int) -> int:
    """The position after a string, null, or a time with its zone; its text is judged when it is written."""
    if byte(text, p) == OPEN_BRACE:
        p = _past(text, p, _LOCATION)
        p = raw_end(text, p + 1, end) if p != BAD else BAD
        p = _past(text, p + 1, _VALUE) if p != BAD else BAD
        p = raw_end(text, p + 1, end) if p != BAD else BAD
        return p + 2 if p != BAD else BAD
    if byte(text, p) == QUOTE:
        p = raw_end(text, p + 1, end)
        return p + 1 if p != BAD else BAD
    return p + 4 if is_null(text, p) else BAD


@inlined_step
def _written(text: Bytes, end: int, layout: int, at: ImagePlaces, known: Arrays, state: ScanState, side: ImageSide) -> int:
    """Writes the values just noted in the layout's order: how many they are."""
    first, count = known.column[layout], 0
    for i in range(known.column[layout + 1] - first):
        if item(state.seen, i) != state.spans[STAMP]:
            continue
        start = item(at.starts, i)
        if item(known.kind, first + i) == ZONED and byte(text, start) == OPEN_BRACE and not _zoned(text, start, end, at):
            return BAD
        if _value(item(known.kind, first + i), text, start, end, side) != item(at.stops, i):
            return BAD
        state.columns[np.uint64(count)] = i
        count += 1
    return count


@inlined_step
def _zoned(text: Bytes, p: int, end: int, at: ImagePlaces) -> bool:
    """Note the time zone of the time at p."""
    start = p + _LOCATION.lengths[0] + 1
    stop = raw_end(text, start, end)
    return stop != BAD and zoned(text, start, stop - start, at)


@inlined_step
def _value(kind: int, text: Bytes, p: int, end: int, side: ImageSide) -> int:
    """One value, null or not, into a cell; the position after it."""
    to = side.used[1]
    if is_null(text, p):
        put_cell(side, to, False)
        return p + 4
    wrapped = kind == ZONED and byte(text, p) == OPEN_BRACE
    if wrapped:
        p, _ = string(text, p + _LOCATION.lengths[0], end, side.data, to)
        p = _past(text, p, _VALUE)
        if p == BAD:
            return BAD
    p, stop = cell(TEXT if kind == ZONED else kind, text, p, end, side.data, to)
    if p == BAD or (wrapped and byte(text, p) != CLOSE_BRACE):
        return BAD
    put_cell(side, stop, True)
    return p + wrapped
