"""Compiled: the columns of a row image into cells, by what is known of its table; the arrays that a JSON scan fills."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidelake.wire.json.json_cells import cell
from tidelake.wire.json.json_known import GUESSES, TEXTS, Arrays, ScanState
from tidelake.wire.kernels.arrays import Bytes, Flags, Ints, Longs
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import inlined_step, int64, step
from tidelake.wire.kernels.json_kernels import BAD, CLOSE_BRACE, COMMA, NOTHING, ONE, byte, is_null, item, word

# What became of a message
DONE, LEFT, NEW_LAYOUT, NEW_SUBSET = range(4)

MIX = np.uint64(0x9E3779B97F4A7C15)
_SLOT_SHIFT = np.uint64(64 - GUESSES.bit_length() + 1)


class Payload(NamedTuple):
    """One binary column of a MESSAGE batch."""

    data: Bytes
    offsets: Ints
    valid: Flags


class ImageSide(NamedTuple):
    """Cells of all events so far, after or before (columnar.Cells)."""

    starts: Ints
    offsets: Ints
    present: Flags
    data: Bytes
    used: Longs  # cells, bytes


class Events(NamedTuple):
    """Events so far, one entry each, as columnar.Scanned has them; `left` is by message."""

    message: Ints
    ordinal: Ints
    kind: Bytes
    op: npt.NDArray[np.int8]
    commit_ts: npt.NDArray[np.uint64]
    has_commit_ts: Flags
    name: Ints
    physical_table_id: Longs
    has_physical_table_id: Flags
    row_schema: Ints
    before_schema: Ints
    left: Ints
    used: Longs  # events, left


@inlined_step
def slot_of(mixed: np.uint64) -> int:
    """Where the guess for a hash is kept: by the top bits, to which all others have carried."""
    return int64(mixed * MIX >> _SLOT_SHIFT)


@inlined_step
def stands(text: Bytes, p: int, known: Arrays, first: int, length: int) -> bool:
    """Whether the piece of this first word and length is at p."""
    for k in range(length + 7 >> 3):  # noqa: SIM110  numba has no all()
        if word(text, p + 8 * k) & item(known.masks, first + k) != item(known.words, first + k):
            return False
    return True


@inlined_step
def named(text: Bytes, p: int, known: Arrays, column: int) -> bool:
    """Whether the column's piece is at p."""
    return stands(text, p, known, item(known.name_word, column), item(known.name_length, column))


@inlined_step
def searched(text: Bytes, p: int, stop: int, known: Arrays, state: ScanState, first: int, last: int) -> int:
    """The column whose name is at p and ends before stop, NONE if there is none: found by its hash, else by trying all."""
    short = np.uint64(8 * max(8 - (stop - p), 0))
    slot = slot_of((word(text, p) << short) * MIX ^ word(text, max(stop - 8, p)) << short)
    hint = first + item(state.name_guess, slot)
    if hint < last and named(text, p, known, hint):
        return int64(hint)
    for column in range(first, last):
        if named(text, p, known, column):
            state.name_guess[np.uint64(slot)] = column - first
            return column
    return NONE


@inlined_step
def put_cell(side: ImageSide, stop: int, present: bool) -> None:
    """Ends a cell at this position of the side's data."""
    cells = np.uint64(side.used[0])
    side.present[cells] = present
    side.offsets[cells + ONE] = stop
    side.used[0] += 1
    side.used[1] = stop


@inlined_step
def value(kind: int, text: Bytes, p: int, end: int, side: ImageSide) -> int:
    """One value, null or not, into a cell; the position after it."""
    at = side.used[1]
    if is_null(text, p):
        put_cell(side, at, False)
        return p + 4
    p, stop = cell(kind, text, p, end, side.data, at)
    if p != BAD:
        put_cell(side, stop, True)
    return p


@inlined_step
def column_at(text: Bytes, p: int, known: Arrays, column: int, last: int) -> int:
    """The first column from `column` on whose piece is at p; `last` if there is none."""
    while column < last and not named(text, p, known, column):
        column += 1
    return column


@inlined_step
def image(text: Bytes, p: int, end: int, wrapped: bool, layout: int, known: Arrays, state: ScanState, side: ImageSide) -> tuple[int, int]:
    """The members of the object whose brace stands before p, all of them columns of the layout and in its order: the position after
    the object, and how many there are. wrapped: a second brace closes each value (Open Protocol)."""
    first, last = known.column[layout], known.column[layout + 1]
    column, count = first, 0
    if byte(text, p) == CLOSE_BRACE:
        return p + 1, 0
    while True:
        column = column_at(text, p, known, column, last)
        if column >= last:
            return BAD, count
        p = value(item(known.kind, column), text, p + item(known.name_length, column), end, side)
        if p == BAD or (wrapped and byte(text, p) != CLOSE_BRACE):
            return BAD, count
        p += wrapped
        state.columns[np.uint64(count)] = column - first
        count += 1
        column += 1
        if byte(text, p) != COMMA:
            return (p + 1 if byte(text, p) == CLOSE_BRACE else BAD), count
        p += 1


@inlined_step
def schema_of(layout: int, count: int, known: Arrays, state: ScanState) -> int:
    """The schema of the image just read, NONE if it is not known yet."""
    if count == known.column[layout + 1] - known.column[layout]:
        return int64(known.row_schema[layout])
    return _subset_schema(layout, count, known, state)


@step
def _subset_schema(layout: int, count: int, known: Arrays, state: ScanState) -> int:
    mixed = np.uint64(layout + 1)
    for i in range(count):
        mixed = (mixed ^ np.uint64(state.columns[i] + 1)) * MIX
    slot = slot_of(mixed)
    guess = state.subset_guess[slot]
    if guess != NONE and _is_subset(guess, layout, count, known, state):
        return int64(known.subset_schema[guess])
    for subset in range(len(known.subset_layout)):
        if _is_subset(subset, layout, count, known, state):
            state.subset_guess[slot] = subset
            return int64(known.subset_schema[subset])
    state.asked[0], state.asked[1] = layout, count
    return NONE


@inlined_step
def _is_subset(subset: int, layout: int, count: int, known: Arrays, state: ScanState) -> bool:
    first = known.subset_column[subset]
    if known.subset_layout[subset] != layout or known.subset_column[subset + 1] - first != count:
        return False
    for i in range(count):  # noqa: SIM110  numba has no all()
        if known.subset_columns[first + i] != state.columns[i]:
            return False
    return True


@inlined_step
def _is_table(text: Bytes, spans: Longs, parts: int, table: int, known: Arrays) -> bool:
    """Whether the parts, starts and lengths in spans, are the table's raw texts."""
    for i in range(parts):
        length = item(known.raw_length, TEXTS * table + i)
        if length != spans[2 * i + 1] or not stands(text, spans[2 * i], known, item(known.raw_word, TEXTS * table + i), length):
            return False
    return True


@inlined_step
def table_at(text: Bytes, parts: int, known: Arrays, state: ScanState) -> int:
    """The table whose raw texts state.spans point at, NONE if it is not known yet."""
    mixed = NOTHING
    for i in range(parts):
        start, size = state.spans[2 * i], state.spans[2 * i + 1]
        mixed = (mixed ^ word(text, start) ^ np.uint64(size)) * MIX ^ word(text, start + max(size - 8, 0))
    slot = slot_of(mixed)
    guess = state.table_guess[slot]
    if guess != NONE and _is_table(text, state.spans, parts, guess, known):
        return int64(guess)
    return _searched_table(text, parts, slot, known, state)


@step
def _searched_table(text: Bytes, parts: int, slot: int, known: Arrays, state: ScanState) -> int:
    for table in range(len(known.newest)):
        if _is_table(text, state.spans, parts, table, known):
            state.table_guess[slot] = table
            return table
    return NONE


@inlined_step
def candidate(attempt: int, table: int, last: int, known: Arrays, state: ScanState) -> int:
    """The layouts to try for a table: the one that fitted last (attempt 0), then all from the newest on. NONE after them."""
    if attempt == 0:
        return int64(state.hints[table])
    return int64(known.newest[table] if attempt == 1 else known.older[last])
