r"""CSV files of Dumpling, scanned by compiled code (docs/seed.md).

row    := field (separator field)* line end         \n or \r\n
field  := quote text quote | number | null word     text is quoted always, so an unquoted null word is NULL and nothing else
text   := with escapes: \0 \r \n \\ \" stand for NUL, CR, LF, backslash and quote; without: quotes are doubled

Binary columns are quoted raw bytes. Both ways of writing a quote are read in both modes: after a closing quote only a separator or a
line end can come. A row that is not whole at the end of a piece is left for the next one.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.columnar import Bytes, Flags, Ints, Longs
from tidelake.wire.compiled import compiled, inlined_step, int64, step
from tidelake.wire.dump_rows import (
    BAD,
    BAD_COUNT,
    BAD_ESCAPE,
    BAD_QUOTE,
    CELLS,
    END,
    NUMBER,
    ROWS,
    SIZE,
    TRUNCATED,
    Numbers,
    Room,
)
from tidelake.wire.spans import frozen

_CR, _LF, _BACKSLASH, _ZERO, _R, _N = b"\r\n\\0rn"


def scan_csv(piece: bytes, columns: int, number: int, final: bool, separator: bytes, quote: bytes, null: bytes, escape: bool) -> Room:
    """The rows of a piece of a file. number: of its first row; final: whether the file ends with it."""
    buf = frozen(piece)
    rows = int(np.count_nonzero(buf == _LF)) + 1
    room = Room.of(len(piece), rows, columns, number, False)
    arrays = (room.offsets, room.present, room.data, room.numbers, room.bad, room.at)
    _scan(buf, final, frozen(separator), quote[0], frozen(null), escape, columns, *arrays)
    return room


@inlined_step
def _is(buf: Bytes, at: int, word: Bytes) -> bool:
    if at + len(word) > len(buf):
        return False
    for i in range(len(word)):  # noqa: SIM110  # numba has no all()
        if buf[at + i] != word[i]:
            return False
    return True


@inlined_step
def _line_end(buf: Bytes, at: int) -> int:
    """Its length, 0 where none stands."""
    if buf[at] == _LF:
        return 1
    return 2 if buf[at] == _CR and at + 1 < len(buf) and buf[at + 1] == _LF else 0


@inlined_step
def _meaning(letter: int, quote: int) -> int:
    """Of a letter behind a backslash, -1 for what is not escaped."""
    if letter == _ZERO:
        return 0
    if letter == _R:
        return _CR
    if letter == _N:
        return _LF
    return letter if letter == _BACKSLASH or letter == quote else -1  # noqa: SIM109  # numba has no `in` for these


@step
def _quoted(buf: Bytes, at: int, final: bool, quote: int, escape: bool, data: Bytes, out: int) -> tuple[int, int, int]:
    """A field from behind its quote; (behind it, end of its bytes, code)."""
    end, code = len(buf), 0
    while at < end:
        c = int64(buf[at])
        if c == quote:
            if at + 1 >= end or buf[at + 1] != quote:
                return at + 1, out, code if at + 1 < end or final else TRUNCATED
            at += 1
        elif escape and c == _BACKSLASH:
            if at + 1 >= end:
                break
            at += 1
            c = _meaning(int64(buf[at]), quote)
            if c < 0:
                code, c = BAD_ESCAPE, 0
        data[out] = c
        out += 1
        at += 1
    return end, out, TRUNCATED


@step
def _bare(buf: Bytes, at: int, separator: Bytes, data: Bytes, out: int) -> tuple[int, int]:
    """A field without quotes."""
    while at < len(buf) and _line_end(buf, at) == 0 and not _is(buf, at, separator):
        data[out] = buf[at]
        out += 1
        at += 1
    return at, out


@step
def _row(
    buf: Bytes,
    at: int,
    final: bool,
    separator: Bytes,
    quote: int,
    null: Bytes,
    escape: bool,
    columns: int,
    offsets: Ints,
    present: Flags,
    data: Bytes,
    out: int,
    cell: int,
) -> tuple[int, int, int, int]:
    """(behind the row's values, end of its bytes, of its cells, code)."""
    count = 0
    while True:
        begin, there, code = out, True, 0
        if at < len(buf) and buf[at] == quote:
            at, out, code = _quoted(buf, at + 1, final, quote, escape, data, out)
        else:
            at, out = _bare(buf, at, separator, data, out)
            if out - begin == len(null) and _is(buf, at - len(null), null):
                out, there = begin, False
        if count < columns:
            present[cell] = there
            cell += 1
            offsets[cell] = out
        count += 1
        if code == TRUNCATED or at >= len(buf) or _line_end(buf, at) > 0:
            return at, out, cell, code if code != 0 or count == columns else BAD_COUNT
        if code != 0 or not _is(buf, at, separator):
            return at, out, cell, code if code != 0 else BAD_QUOTE
        at += len(separator)


@compiled
def _scan(
    buf: Bytes,
    final: bool,
    separator: Bytes,
    quote: int,
    null: Bytes,
    escape: bool,
    columns: int,
    offsets: Ints,
    present: Flags,
    data: Bytes,
    numbers: Longs,
    bad: Numbers,
    state: Longs,
) -> None:
    at, out, cell, rows, refused, number = 0, 0, 0, 0, 0, state[NUMBER]
    while at < len(buf):
        blank = _line_end(buf, at)
        if blank > 0:
            at += blank
            continue
        start, first_out, first_cell = at, out, cell
        at, out, cell, code = _row(buf, at, final, separator, quote, null, escape, columns, offsets, present, data, out, cell)
        while at < len(buf) and _line_end(buf, at) == 0:  # what follows a refused field goes with its line
            at += 1
        if at >= len(buf) and not final:  # not whole: the next piece begins with it
            at, out, cell = start, first_out, first_cell
            break
        at += _line_end(buf, at) if at < len(buf) else 0
        if code != 0:
            bad[refused, 0], bad[refused, 1], bad[refused, 2] = number, start, code
            refused += 1
            out, cell = first_out, first_cell
        else:
            numbers[rows] = number
            rows += 1
        number += 1
    state[ROWS], state[BAD], state[CELLS], state[SIZE], state[END], state[NUMBER] = rows, refused, cell, out, at, number
