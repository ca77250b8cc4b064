"""Compiled: Canal-JSON messages whose tables are known (docs/reference/protocols.md 5). Layout and rules: protocols/canal_json.py.

Takes rows and watermarks in the compact form of TiCDC and of Alibaba Canal, members in any order, and steps over the statements that
Alibaba's sends in front of their rows (protocols/canal_statements.py); leaves DDL, large-message marks and
everything else. TiCDC prints the members of mysqlType in random order, and sqlType's codes follow the values (5.3): both are
compared column by column, of the codes whether they are a BLOB's where the column is text.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.json.json_canal_head import (
    CODED,
    DATA,
    DELETE,
    EXTENSION,
    FOUND,
    INSERT,
    LAYOUT,
    MEMBERS,
    MYSQL_TYPE,
    NAMED,
    NAMES_SEEN,
    OLD,
    OLD_ROWS,
    OP,
    PLACED,
    QUERY,
    ROWS,
    SQL_TYPE,
    STAMP,
    STATEMENT,
    TYPED,
    UPDATE,
    WATERMARK,
    head,
    look_ahead,
)
from tidelake.wire.json.json_cells import LATIN1_TEXT, TEXT
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
    named,
    schema_of,
    searched,
    stands,
    table_at,
)
from tidelake.wire.json.json_known import MAX_CHAIN, Arrays, ScanState
from tidelake.wire.kernels.arrays import Bytes, Ints, Longs
from tidelake.wire.kernels.canal_marks import BLOB, makes_rows
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import compiled, inlined_step, merged
from tidelake.wire.kernels.json_kernels import (
    BAD,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COMMA,
    OPEN_BRACE,
    OPEN_BRACKET,
    byte,
    integer,
    is_null,
    item,
    raw_end,
    word,
)
from tidelake.wire.kernels.json_words import text_at

MAX_ROWS = 1 << 16  # of one message
KIND_ROW, KIND_RESOLVED = 0, 2  # indices into event.KINDS
_BLOB = np.uint64(int.from_bytes(str(BLOB).encode(), "little"))
_FOUR_BYTES = np.uint64((1 << 32) - 1)


@compiled
def scan_canal(
    values: Payload,
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
    new are left instead while their number is below `patience`."""
    for i in range(start, len(wanted)):
        message = wanted[i]
        verdict = LEFT
        if values.valid[message]:
            verdict = _message(values, message, known, state, events, after, before)
        if verdict != DONE:
            if verdict != LEFT and i >= patience:
                return i, verdict
            events.left[events.used[1]] = message
            events.used[1] += 1
    return len(wanted), DONE


@merged
def _message(values: Payload, message: int, known: Arrays, state: ScanState, events: Events, after: ImageSide, before: ImageSide) -> int:
    """One message, by whichever layout of its table fits."""
    marks = (after.used[0], after.used[1], before.used[0], before.used[1])
    p, end = values.offsets[message], values.offsets[message + 1]
    verdict, state.spans[LAYOUT] = LEFT, NONE
    for attempt in range(MAX_CHAIN + 1):
        verdict = _members(values.data, p, end, attempt, known, state, events, after, before)
        if verdict == DONE:
            if state.spans[OP] != QUERY:
                _finish(message, state, events, after, before)
            return DONE
        after.used[0], after.used[1], before.used[0], before.used[1] = marks
        if verdict != NEW_LAYOUT or (attempt > 0 and state.spans[LAYOUT] == NONE):
            break
    return verdict


@merged
def _members(
    text: Bytes, start: int, end: int, attempt: int, known: Arrays, state: ScanState, events: Events, after: ImageSide, before: ImageSide
) -> int:
    spans, p, seen, guess = state.spans, start, 0, 0
    spans[OP] = spans[FOUND] = spans[EXTENSION] = NONE
    spans[NAMES_SEEN] = spans[ROWS] = spans[OLD_ROWS] = spans[TYPED] = spans[CODED] = 0
    spans[1] = spans[3] = spans[5] = spans[STATEMENT] = 0
    if byte(text, p) != OPEN_BRACE:
        return LEFT
    while p < end:
        p += 1
        guess = text_at(text, p, MEMBERS, guess)
        if guess == NONE or (seen >> guess) & 1:
            return LEFT
        seen |= 1 << guess
        p, verdict = _member(guess, text, p + MEMBERS.lengths[guess], start, end, attempt, known, state, events, after, before)
        if verdict != DONE:
            return verdict
        guess += 1
        if byte(text, p) != COMMA:
            break
    complete = byte(text, p) == CLOSE_BRACE and p + 1 == end
    if spans[OP] == QUERY:
        return DONE if complete and _stands_beside_rows(text, end, spans) else LEFT
    return DONE if complete and _consistent(seen, spans) else LEFT


@merged
def _stands_beside_rows(text: Bytes, end: int, spans: Longs) -> bool:
    """Whether a QUERY without the mark of DDL only says which statement made the rows behind it."""
    placed = spans[NAMES_SEEN] & PLACED == PLACED and spans[1] == 0 and spans[EXTENSION] == NONE
    return bool(placed and spans[STATEMENT] > 0 and makes_rows(text, spans[STATEMENT], end))


@merged
def _consistent(seen: int, spans: Longs) -> bool:
    """Whether the members make a row message, or a watermark without names: those of a known table are known to be text, others not."""
    if spans[OP] == WATERMARK:
        nameless = spans[1] == 0 and spans[3] == 0 and spans[5] in (0, len("null"))
        return bool(nameless and spans[EXTENSION] == 1 and spans[ROWS] == 0 and spans[OLD_ROWS] == 0)
    rows = spans[ROWS] if spans[OP] == UPDATE else 0
    complete = seen & NAMED == NAMED and spans[TYPED] > 0 and spans[CODED] > 0 and spans[ROWS] > 0
    return bool(complete and spans[OLD_ROWS] == rows and spans[EXTENSION] != 1)


@merged
def _member(
    member: int,
    text: Bytes,
    p: int,
    start: int,
    end: int,
    attempt: int,
    known: Arrays,
    state: ScanState,
    events: Events,
    after: ImageSide,
    before: ImageSide,
) -> tuple[int, int]:
    """The position after the value of a member, and DONE if it was understood."""
    if member < SQL_TYPE or member > DATA:
        p = head(member, text, p, end, state, events, after)
        return p, DONE if p != BAD else LEFT
    if is_null(text, p):
        return p + 4, DONE
    if state.spans[FOUND] == NONE:
        verdict = _find_layout(text, start, end, attempt, known, state)
        if verdict != DONE:
            return BAD, verdict
    if member in (SQL_TYPE, MYSQL_TYPE):
        p = _types(text, p, end, member == MYSQL_TYPE, known, state)
        return p, DONE if p != BAD else NEW_LAYOUT
    return _rows(member, text, p, end, known, state, events, after, before)


@merged
def _find_layout(text: Bytes, start: int, end: int, attempt: int, known: Arrays, state: ScanState) -> int:
    """The next layout to try for the message's table, into state.spans."""
    spans = state.spans
    if spans[NAMES_SEEN] & NAMED != NAMED:
        look_ahead(text, start, end, state)
    if spans[NAMES_SEEN] & NAMED != NAMED or spans[OP] in (WATERMARK, QUERY, NONE):
        return LEFT
    table = table_at(text, 3, known, state)
    if table == NONE:
        return NEW_LAYOUT
    spans[LAYOUT] = candidate(attempt, table, spans[LAYOUT], known, state)
    if spans[LAYOUT] == NONE:
        return NEW_LAYOUT
    spans[FOUND] = table
    return DONE


@merged
def _types(text: Bytes, p: int, end: int, typed: bool, known: Arrays, state: ScanState) -> int:
    """mysqlType (typed) or sqlType: every member a column of the layout, none twice, in any order. The position after it."""
    first, last = known.column[state.spans[LAYOUT]], known.column[state.spans[LAYOUT] + 1]
    column, count, stamp = first, 0, state.spans[STAMP] + 1
    state.spans[STAMP] = stamp
    early = typed and state.spans[ROWS] + state.spans[OLD_ROWS] > 0
    if byte(text, p) != OPEN_BRACE:
        return BAD
    while True:
        column = _column_of(text, p + 1, end, known, state, column, first, last)
        if column == NONE or item(state.seen, column - first) == stamp:
            return BAD
        state.seen[np.uint64(column - first)] = stamp
        count += 1
        p += 1 + item(known.name_length, column)
        p = _type_end(text, p, column, known) if typed else _code_end(text, p, column, known)
        if p == BAD or byte(text, p) != COMMA:
            break
        column = column + 1 if column + 1 < last else first
    state.spans[TYPED if typed else CODED] = count
    whole = count == last - first or not early  # images that came first have not been compared with fewer types
    return p + 1 if p != BAD and whole and byte(text, p) == CLOSE_BRACE else BAD


@merged
def _type_end(text: Bytes, p: int, column: int, known: Arrays) -> int:
    length = item(known.type_length, column)
    return p + length if stands(text, p, known, item(known.type_word, column), length) else BAD


@merged
def _code_end(text: Bytes, p: int, column: int, known: Arrays) -> int:
    """The position after a code; BAD if the column's values are written in another way than the code says."""
    stop, kind = integer(text, p), item(known.kind, column)
    blob = stop - p == 4 and word(text, p) & _FOUR_BYTES == _BLOB
    return BAD if (blob and kind == TEXT) or (not blob and kind == LATIN1_TEXT) else stop


@merged
def _column_of(text: Bytes, p: int, end: int, known: Arrays, state: ScanState, guess: int, first: int, last: int) -> int:
    """The column whose name is at p, NONE if there is none. Go's maps come in random order: after the guess the name's hash gives where
    to look, so that wide tables do not cost the square of their width."""
    if named(text, p, known, guess):
        return guess
    stop = raw_end(text, p + 1, end)
    return searched(text, p, stop, known, state, first, last) if stop != BAD else NONE


@merged
def _rows(
    member: int, text: Bytes, p: int, end: int, known: Arrays, state: ScanState, events: Events, after: ImageSide, before: ImageSide
) -> tuple[int, int]:
    """`data` or `old`: an array of row images, one for each event of the message."""
    op = state.spans[OP]
    if byte(text, p) != OPEN_BRACKET or (member == OLD and op != UPDATE):
        return BAD, LEFT
    if member == DATA and op != DELETE:
        p, count, verdict = _images(text, p, end, member, known, state, after, events.row_schema, events.used[0])
    else:
        p, count, verdict = _images(text, p, end, member, known, state, before, events.before_schema, events.used[0])
    state.spans[ROWS if member == DATA else OLD_ROWS] = count
    return p, verdict


@inlined_step
def _images(
    text: Bytes, p: int, end: int, member: int, known: Arrays, state: ScanState, side: ImageSide, row_schemas: Ints, event: int
) -> tuple[int, int, int]:
    layout, rows = state.spans[LAYOUT], 0
    while rows < MAX_ROWS and event + rows + 2 < len(side.starts):
        if byte(text, p + 1) != OPEN_BRACE:
            return BAD, rows, LEFT
        p, count = image(text, p + 2, end, False, layout, known, state, side)
        if p == BAD or not _typed(count, layout, known, state):
            return BAD, rows, NEW_LAYOUT
        row_schemas[event + rows] = schema_of(layout, count, known, state)
        if row_schemas[event + rows] == NONE or (count == 0 and member == DATA):
            return BAD, rows, NEW_SUBSET if count > 0 or member == OLD else LEFT
        rows += 1
        side.starts[event + rows] = side.used[0]
        if byte(text, p) != COMMA:
            return (p + 1, rows, DONE) if byte(text, p) == CLOSE_BRACKET else (BAD, rows, LEFT)
    return BAD, rows, LEFT


@merged
def _typed(count: int, layout: int, known: Arrays, state: ScanState) -> bool:
    """Whether mysqlType, if it came before and has not all columns, has those of the image just read."""
    if state.spans[TYPED] == 0 or state.spans[TYPED] == known.column[layout + 1] - known.column[layout]:
        return True
    for i in range(count):  # noqa: SIM110  numba has no all()
        if state.seen[state.columns[i]] != state.spans[STAMP]:
            return False
    return True


@merged
def _finish(message: int, state: ScanState, events: Events, after: ImageSide, before: ImageSide) -> None:
    """What the message's events share, and the side that they do not have."""
    op, first, table = state.spans[OP], events.used[0], state.spans[FOUND]
    rows = max(state.spans[ROWS], 1)
    for event in range(first, first + rows):
        events.message[event], events.ordinal[event] = message, event - first
        events.kind[event] = KIND_ROW if table != NONE else KIND_RESOLVED
        events.op[event] = op if table != NONE else NONE
        events.commit_ts[event] = events.commit_ts[first]
        events.has_commit_ts[event] = state.spans[EXTENSION] != NONE
        events.name[event] = table
        events.has_physical_table_id[event] = False
        if op in (WATERMARK, DELETE):
            events.row_schema[event], after.starts[event + 1] = NONE, after.used[0]
        if op in (WATERMARK, INSERT):
            events.before_schema[event], before.starts[event + 1] = NONE, before.used[0]
    events.used[0] = first + rows
    if table != NONE:
        state.hints[table] = state.spans[LAYOUT]
