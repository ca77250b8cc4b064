r"""SQL files of Dumpling, scanned by compiled code (docs/seed.md).

file      := (comment | statement)*                  /*!40101 SET NAMES binary*/;   and lines that begin with --
statement := INSERT INTO `t` [(columns)] VALUES row (, row)* ;
row       := ( value (, value)* )
value     := NULL | number | 'text' | x'hex digits'

Text with escapes: \0 \n \r \\ \' \" \Z; without (`--escape-backslash=false`) quotes are doubled and a backslash is one. Every statement
of a file begins alike, so its beginning is read once, by sqlglot's lexer, and compared here.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.columnar import Bytes, Flags, Ints, Longs
from tidelake.wire.compiled import compiled, inlined_step, int64, step
from tidelake.wire.dump_rows import (
    BAD,
    BAD_COUNT,
    BAD_ESCAPE,
    BAD_TOKEN,
    CELLS,
    END,
    INSIDE,
    NUMBER,
    ROWS,
    SIZE,
    TRUNCATED,
    Numbers,
    Room,
)
from tidelake.wire.spans import frozen

_QUOTE, _BACKSLASH, _OPEN, _CLOSE, _COMMA, _SEMICOLON, _SLASH, _STAR, _DASH, _LF = b"'\\(),;/*-\n"
_LOWER_X, _UPPER_X, _ZERO, _NINE, _SPACE, _A, _F, _UPPER_A, _UPPER_F = b"xX09 afAF"
_NULL = frozen(b"NULL")
_LETTERS, _MEANT = frozen(b"0nrZ\\'\""), frozen(b"\x00\n\r\x1a\\'\"")
_SIGNS = frozen(b"-.+eE")
_PART, _COMMENT, _STATEMENT, _IS_NULL = -1, -2, -3, -4  # in place of a code


def scan_sql(piece: bytes, columns: int, number: int, final: bool, head: bytes, inside: bool, escape: bool) -> Room:
    """The rows of a piece of a file. head: how its statements begin, VALUES included; inside: whether the piece begins with a row."""
    buf = frozen(piece)
    rows = int(np.count_nonzero(buf == _OPEN)) + int(np.count_nonzero(buf == _LF)) + 1
    room = Room.of(len(piece), rows, columns, number, inside)
    arrays = (room.offsets, room.present, room.data, room.numbers, room.bad, room.at)
    _scan(buf, final, frozen(head), escape, columns, _NULL, _LETTERS, _MEANT, _SIGNS, *arrays)
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
def _digit(c: int) -> int:
    """Of a hex number; -1 for anything else."""
    if _ZERO <= c <= _NINE:
        return c - _ZERO
    if _A <= c <= _F:
        return c - _A + 10
    return c - _UPPER_A + 10 if _UPPER_A <= c <= _UPPER_F else -1


@inlined_step
def _behind_blanks(buf: Bytes, at: int) -> int:
    while at < len(buf) and buf[at] <= _SPACE:
        at += 1
    return at


@step
def _behind_comment(buf: Bytes, at: int) -> int:
    """Behind a comment, its semicolon too; `at` where none begins, _PART where it does not end."""
    end = len(buf)
    if at + 1 < end and buf[at] == _DASH and buf[at + 1] == _DASH:
        while at < end and buf[at] != _LF:
            at += 1
        return at if at < end else _PART
    if not (at + 1 < end and buf[at] == _SLASH and buf[at + 1] == _STAR):
        return at
    at += 2
    while at + 1 < end and not (buf[at] == _STAR and buf[at + 1] == _SLASH):
        at += 1
    if at + 2 >= end:  # what follows decides
        return _PART
    return at + 3 if buf[at + 2] == _SEMICOLON else at + 2


@step
def _text(buf: Bytes, at: int, escape: bool, letters: Bytes, meanings: Bytes, data: Bytes, out: int) -> tuple[int, int, int]:
    """A text from behind its quote; (behind it, end of its bytes, code)."""
    end = len(buf)
    while at < end:
        c = int64(buf[at])
        if c == _QUOTE:
            if at + 1 >= end or buf[at + 1] != _QUOTE:
                return at + 1, out, 0
            at += 1
        elif escape and c == _BACKSLASH:
            if at + 1 >= end:
                break
            at += 1
            c = -1
            for i in range(len(letters)):
                if buf[at] == letters[i]:
                    c = int64(meanings[i])
            if c < 0:
                return at, out, BAD_ESCAPE
        data[out] = c
        out += 1
        at += 1
    return end, out, TRUNCATED


@step
def _hex(buf: Bytes, at: int, data: Bytes, out: int) -> tuple[int, int, int]:
    """Digits from behind the quote of x'…'; (behind them, end of the bytes, code)."""
    while at + 1 < len(buf) and buf[at] != _QUOTE:
        high, low = _digit(int64(buf[at])), _digit(int64(buf[at + 1]))
        if high < 0 or low < 0:
            return at, out, BAD_TOKEN
        data[out] = high * 16 + low
        out += 1
        at += 2
    return at + 1, out, 0 if at < len(buf) and buf[at] == _QUOTE else TRUNCATED


@step
def _number(buf: Bytes, at: int, signs: Bytes, data: Bytes, out: int) -> tuple[int, int, int]:
    begin = at
    while at < len(buf):
        c = int64(buf[at])
        known = _ZERO <= c <= _NINE
        for i in range(len(signs)):
            known = known or c == signs[i]
        if not known:
            break
        data[out] = c
        out += 1
        at += 1
    return at, out, 0 if at > begin else BAD_TOKEN


@step
def _value(
    buf: Bytes, at: int, escape: bool, null: Bytes, letters: Bytes, meanings: Bytes, signs: Bytes, data: Bytes, out: int
) -> tuple[int, int, int]:
    """(behind the value, end of its bytes, code); _IS_NULL is no refusal."""
    at = _behind_blanks(buf, at)
    if at >= len(buf):
        return at, out, TRUNCATED
    if buf[at] == _QUOTE:
        return _text(buf, at + 1, escape, letters, meanings, data, out)
    if at + 1 < len(buf) and buf[at + 1] == _QUOTE and (buf[at] == _LOWER_X or buf[at] == _UPPER_X):
        return _hex(buf, at + 2, data, out)
    if _is(buf, at, null):
        return at + len(null), out, _IS_NULL
    at, out, code = _number(buf, at, signs, data, out)
    return at, out, TRUNCATED if code != 0 and len(buf) - at < len(null) else code


@step
def _row(
    buf: Bytes,
    at: int,
    escape: bool,
    columns: int,
    null: Bytes,
    letters: Bytes,
    meanings: Bytes,
    signs: Bytes,
    offsets: Ints,
    present: Flags,
    data: Bytes,
    out: int,
    cell: int,
) -> tuple[int, int, int, int]:
    """(behind the row and the comma or semicolon that follows, end of its bytes, of its cells, code)."""
    if buf[at] != _OPEN:
        return at, out, cell, BAD_TOKEN
    count, mark = 0, _COMMA
    while mark == _COMMA:
        at, out, code = _value(buf, at + 1, escape, null, letters, meanings, signs, data, out)
        if code > 0:
            return at, out, cell, code
        if count < columns:
            present[cell] = code != _IS_NULL
            cell += 1
            offsets[cell] = out
        count += 1
        if at + 1 >= len(buf):
            return at, out, cell, TRUNCATED
        mark = int64(buf[at])
    if mark != _CLOSE or (buf[at + 1] != _COMMA and buf[at + 1] != _SEMICOLON):
        return at, out, cell, BAD_TOKEN
    return at + 2, out, cell, 0 if count == columns else BAD_COUNT


@step
def _outside(buf: Bytes, at: int, final: bool, head: Bytes) -> tuple[int, int]:
    """(behind a comment or the beginning of a statement, _COMMENT or _STATEMENT); _PART where the piece ends in it, else BAD_TOKEN."""
    behind = _behind_comment(buf, at)
    if behind != at:
        if behind != _PART:
            return behind, _COMMENT
        return (len(buf), _COMMENT) if final else (at, _PART)
    if _is(buf, at, head):
        return at + len(head), _STATEMENT
    return at, _PART if len(buf) - at < len(head) and not final else BAD_TOKEN


@step
def _resumed(buf: Bytes, at: int, code: int) -> int:
    """Where it goes on behind a refused row: at the next line, as text has no line end where it is escaped."""
    if code == BAD_COUNT:
        return at
    if code == TRUNCATED:
        return len(buf)
    while at < len(buf) and buf[at] != _LF:
        at += 1
    return at


@compiled
def _scan(
    buf: Bytes,
    final: bool,
    head: Bytes,
    escape: bool,
    columns: int,
    null: Bytes,
    letters: Bytes,
    meanings: Bytes,
    signs: Bytes,
    offsets: Ints,
    present: Flags,
    data: Bytes,
    numbers: Longs,
    bad: Numbers,
    state: Longs,
) -> None:
    out, cell, rows, refused, number, inside = 0, 0, 0, 0, state[NUMBER], state[INSIDE] == 1
    at = _behind_blanks(buf, 0)
    while at < len(buf):
        start, first_out, first_cell, code = at, out, cell, 0
        if not inside:
            at, code = _outside(buf, at, final, head)
        if code == _PART:
            break
        if code >= 0 and inside:
            at, out, cell, code = _row(buf, at, escape, columns, null, letters, meanings, signs, offsets, present, data, out, cell)
        if code > 0:
            at = _resumed(buf, at, code)
            if at >= len(buf) and not final:  # not whole: the next piece begins with it
                at, out, cell = start, first_out, first_cell
                break
            bad[refused, 0], bad[refused, 1], bad[refused, 2] = number, start, code
            refused += 1
            out, cell = first_out, first_cell
        elif inside:
            numbers[rows] = number
            rows += 1
        number += 1 if inside or code > 0 else 0
        inside = code == _STATEMENT or (inside and buf[at - 1] != _SEMICOLON)
        at = _behind_blanks(buf, at)
    state[ROWS], state[BAD], state[CELLS], state[SIZE], state[END], state[NUMBER] = rows, refused, cell, out, at, number
    state[INSIDE] = inside
