"""Compiled steps that the scanners of text exports share: reading quoted text, writing cells and rows."""

from __future__ import annotations

import numpy as np

from tidelake.seed.exports.scan.dump_rows import BAD, BAD_ESCAPE, CELLS, NUMBER, ROWS, SIZE, TRUNCATED, RowRoom
from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.compiled import inlined_step, int64, step
from tidelake.wire.kernels.spans import frozen

_BACKSLASH = ord("\\")
_NONE = 255  # no meaning


def meanings(letters: bytes, meant: bytes) -> Bytes:
    """Return what each byte after a backslash means. If a letter occurs twice, the last one counts. All must be ASCII."""
    table = np.full(256, _NONE, np.uint8)
    table[frozen(letters)] = frozen(meant)
    table.flags.writeable = False
    return table


@inlined_step
def stands(buf: Bytes, at: int, word: Bytes) -> bool:
    """Whether the complete word begins at this position."""
    if at + len(word) > len(buf):
        return False
    for i in range(len(word)):  # noqa: SIM110  # numba has no all()
        if buf[at + i] != word[i]:
            return False
    return True


@step
def put_text(buf: Bytes, at: int, quote: int, escape: bool, meant: Bytes, data: Bytes, out: int) -> tuple[int, int, int]:
    """Read text after its opening quote. Return (position after it, end of its bytes, code).

    With BAD_ESCAPE the position is the bad letter's.
    """
    end = len(buf)
    while at < end:
        c = int64(buf[at])
        if c == quote:
            if at + 1 >= end or buf[at + 1] != quote:
                return at + 1, out, 0
            at += 1
        elif escape and c == _BACKSLASH:
            if at + 1 >= end:
                break
            at += 1
            c = int64(meant[buf[at]])
            if c == _NONE:
                return at, out, BAD_ESCAPE
        data[out] = c
        out += 1
        at += 1
    return end, out, TRUNCATED


@inlined_step
def put_cell(room: RowRoom, cell: int, there: bool, out: int) -> int:
    """Add a value that ends at `out` in the bytes. Return the number of cells."""
    room.present[cell] = there
    room.offsets[cell + 1] = out
    return cell + 1


@inlined_step
def put_row(room: RowRoom, start: int, out: int, cell: int, code: int) -> None:
    """Finish the row that began at `start` and ends at `out` and `cell`. With a code it is rejected and leaves no bytes or cells."""
    number = room.at[NUMBER]
    if code != 0:
        refused = room.at[BAD]
        room.bad[refused, 0], room.bad[refused, 1], room.bad[refused, 2] = number, start, code
        room.at[BAD] = refused + 1
    else:
        room.numbers[room.at[ROWS]] = number
        room.at[ROWS] += 1
        room.at[SIZE], room.at[CELLS] = out, cell
    room.at[NUMBER] = number + 1
