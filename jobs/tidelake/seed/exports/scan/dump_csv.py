r"""CSV files of Dumpling, scanned by compiled code (docs/seed.md).

row    := field (separator field)* line end         \n or \r\n
field  := quote text quote | number | null word     text is quoted always, so an unquoted null word is NULL and nothing else
text   := with escapes: \0 \r \n \\ \" stand for NUL, CR, LF, backslash and quote; without: quotes are doubled

Binary columns are quoted raw bytes. Both ways of writing a quote are read in both modes: after a closing quote only a separator or a
line end can come. A row that is not whole at the end of a piece is left for the next one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelake.seed.exports.scan.dump_kernels import meanings, put_cell, put_row, put_text, stands
from tidelake.seed.exports.scan.dump_rows import BAD_COUNT, BAD_ESCAPE, BAD_QUOTE, CELLS, END, SIZE, TRUNCATED, RowRoom
from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.compiled import compiled, inlined_step, step
from tidelake.wire.kernels.spans import frozen

_CR, _LF = b"\r\n"


class _Manner(NamedTuple):
    """Format of a file. meant: meanings of the characters after a backslash, if `escape` is set."""

    separator: Bytes
    quote: int
    null: Bytes
    escape: bool
    meant: Bytes


def scan_csv(piece: bytes, columns: int, number: int, final: bool, separator: bytes, quote: bytes, null: bytes, escape: bool) -> RowRoom:
    """Scan a piece of a file. number: of its first row; final: the file ends with this piece."""
    buf = frozen(piece)
    rows = int(np.count_nonzero(buf == _LF)) + 1
    room = RowRoom.of(len(piece), rows, columns, number, False)
    meant = meanings(quote + b"\\0rn", quote + b"\\\0\r\n")
    _scan(buf, final, _Manner(frozen(separator), quote[0], frozen(null), escape, meant), columns, room)
    return room


@inlined_step
def _line_end(buf: Bytes, at: int) -> int:
    """Length of the line end, 0 if there is none."""
    if buf[at] == _LF:
        return 1
    return 2 if buf[at] == _CR and at + 1 < len(buf) and buf[at + 1] == _LF else 0


@step
def _quoted(buf: Bytes, at: int, how: _Manner, data: Bytes, out: int) -> tuple[int, int, int]:
    """Read a field after its opening quote. Return (position after it, end of its bytes, code)."""
    code = 0
    while True:
        at, out, found = put_text(buf, at, how.quote, how.escape, how.meant, data, out)
        if found != BAD_ESCAPE:
            return at, out, TRUNCATED if found == TRUNCATED else code
        at, code = at + 1, found  # go on to find the end of the row


@step
def _bare(buf: Bytes, at: int, separator: Bytes, data: Bytes, out: int) -> tuple[int, int]:
    """Read a field without quotes."""
    while at < len(buf) and _line_end(buf, at) == 0 and not stands(buf, at, separator):
        data[out] = buf[at]
        out += 1
        at += 1
    return at, out


@inlined_step
def _row(buf: Bytes, at: int, how: _Manner, columns: int, room: RowRoom) -> tuple[int, int, int, int]:
    """Return (position after the row's values, end of its bytes, end of its cells, code)."""
    out, cell, count = room.at[SIZE], room.at[CELLS], 0
    while True:
        begin, there, code = out, True, 0
        if at < len(buf) and buf[at] == how.quote:
            at, out, code = _quoted(buf, at + 1, how, room.data, out)
        else:
            at, out = _bare(buf, at, how.separator, room.data, out)
            if out - begin == len(how.null) and stands(buf, at - len(how.null), how.null):
                out, there = begin, False
        if count < columns:
            cell = put_cell(room, cell, there, out)
        count += 1
        if code == TRUNCATED or at >= len(buf) or _line_end(buf, at) > 0:
            return at, out, cell, code if code != 0 or count == columns else BAD_COUNT
        if code != 0 or not stands(buf, at, how.separator):
            return at, out, cell, code if code != 0 else BAD_QUOTE
        at += len(how.separator)


@compiled
def _scan(buf: Bytes, final: bool, how: _Manner, columns: int, room: RowRoom) -> None:
    at = 0
    while at < len(buf):
        blank = _line_end(buf, at)
        if blank > 0:
            at += blank
            continue
        start = at
        at, out, cell, code = _row(buf, at, how, columns, room)
        while at < len(buf) and _line_end(buf, at) == 0:  # skip the rest of the line after a rejected field
            at += 1
        if at >= len(buf) and not final:  # incomplete: the next piece begins with it
            at = start
            break
        at += _line_end(buf, at) if at < len(buf) else 0
        put_row(room, start, out, cell, code)
    room.at[END] = at
