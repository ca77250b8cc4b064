r"""SQL files of Dumpling, scanned by compiled code (docs/seed.md).

file      := (comment | statement)*                  /*!40101 SET NAMES binary*/;   and lines that begin with --
statement := INSERT INTO `t` [(columns)] VALUES row (, row)* ;
row       := ( value (, value)* )
value     := NULL | number | 'text' | x'hex digits'

Text with escapes: \0 \n \r \\ \' \" \Z; without (`--escape-backslash=false`) quotes are doubled and a backslash is one. Every statement
of a file begins alike, so its beginning is read once, by sqlglot's lexer, and compared here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelake.seed.exports.scan.dump_kernels import meanings, put_cell, put_row, put_text, stands
from tidelake.seed.exports.scan.dump_rows import BAD_COUNT, BAD_TOKEN, CELLS, END, INSIDE, SIZE, TRUNCATED, RowRoom
from tidelake.wire.json.json_cells import hexadecimal
from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.compiled import compiled, inlined_step, int64, step
from tidelake.wire.kernels.spans import frozen

_QUOTE, _OPEN, _CLOSE, _COMMA, _SEMICOLON, _SLASH, _STAR, _DASH, _LF = b"'(),;/*-\n"
_LOWER_X, _UPPER_X, _ZERO, _NINE, _SPACE = b"xX09 "
_PART, _COMMENT, _STATEMENT, _IS_NULL = -1, -2, -3, -4  # internal codes


class _Words(NamedTuple):
    """Words to look for. meant: meanings of the characters after a backslash."""

    null: Bytes
    signs: Bytes
    meant: Bytes


_WORDS = _Words(frozen(b"NULL"), frozen(b"-.+eE"), meanings(b"0nrZ\\'\"", b"\x00\n\r\x1a\\'\""))


def scan_sql(piece: bytes, columns: int, number: int, final: bool, head: bytes, inside: bool, escape: bool) -> RowRoom:
    """Scan a piece of a file. head: start of its statements, including VALUES; inside: the piece begins with a row."""
    buf = frozen(piece)
    rows = int(np.count_nonzero(buf == _OPEN)) + int(np.count_nonzero(buf == _LF)) + 1
    room = RowRoom.of(len(piece), rows, columns, number, inside)
    _scan(buf, final, frozen(head), escape, columns, _WORDS, room)
    return room


@inlined_step
def _behind_blanks(buf: Bytes, at: int) -> int:
    while at < len(buf) and buf[at] <= _SPACE:
        at += 1
    return at


@step
def _behind_comment(buf: Bytes, at: int) -> int:
    """Position after a comment and its semicolon; `at` if no comment begins here, _PART if it does not end."""
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
    if at + 2 >= end:  # the next bytes decide
        return _PART
    return at + 3 if buf[at + 2] == _SEMICOLON else at + 2


@step
def _hex(buf: Bytes, at: int, data: Bytes, out: int) -> tuple[int, int, int]:
    """Read digits after the quote of x'…'. Return (position after them, end of the bytes, code)."""
    while at + 1 < len(buf) and buf[at] != _QUOTE:
        value = hexadecimal(buf, at, 2)
        if value < 0:
            return at, out, BAD_TOKEN
        data[out] = value
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
def _value(buf: Bytes, at: int, escape: bool, words: _Words, data: Bytes, out: int) -> tuple[int, int, int]:
    """Return (position after the value, end of its bytes, code); _IS_NULL is not an error."""
    at = _behind_blanks(buf, at)
    if at >= len(buf):
        return at, out, TRUNCATED
    if buf[at] == _QUOTE:
        return put_text(buf, at + 1, _QUOTE, escape, words.meant, data, out)
    if at + 1 < len(buf) and buf[at + 1] == _QUOTE and (buf[at] == _LOWER_X or buf[at] == _UPPER_X):
        return _hex(buf, at + 2, data, out)
    if stands(buf, at, words.null):
        return at + len(words.null), out, _IS_NULL
    at, out, code = _number(buf, at, words.signs, data, out)
    return at, out, TRUNCATED if code != 0 and len(buf) - at < len(words.null) else code


@step
def _row(buf: Bytes, at: int, escape: bool, columns: int, words: _Words, room: RowRoom) -> tuple[int, int, int, int]:
    """Return (position after the row and the following comma or semicolon, end of its bytes, end of its cells, code)."""
    out, cell = room.at[SIZE], room.at[CELLS]
    if buf[at] != _OPEN:
        return at, out, cell, BAD_TOKEN
    count, mark = 0, _COMMA
    while mark == _COMMA:
        at, out, code = _value(buf, at + 1, escape, words, room.data, out)
        if code > 0:
            return at, out, cell, code
        if count < columns:
            cell = put_cell(room, cell, code != _IS_NULL, out)
        count += 1
        if at + 1 >= len(buf):
            return at, out, cell, TRUNCATED
        mark = int64(buf[at])
    if mark != _CLOSE or (buf[at + 1] != _COMMA and buf[at + 1] != _SEMICOLON):
        return at, out, cell, BAD_TOKEN
    return at + 2, out, cell, 0 if count == columns else BAD_COUNT


@step
def _outside(buf: Bytes, at: int, final: bool, head: Bytes) -> tuple[int, int]:
    """Return (position after a comment or the start of a statement, _COMMENT or _STATEMENT).

    The code is _PART if the piece ends in it, else BAD_TOKEN.
    """
    behind = _behind_comment(buf, at)
    if behind != at:
        if behind != _PART:
            return behind, _COMMENT
        return (len(buf), _COMMENT) if final else (at, _PART)
    if stands(buf, at, head):
        return at + len(head), _STATEMENT
    return at, _PART if len(buf) - at < len(head) and not final else BAD_TOKEN


@step
def _resumed(buf: Bytes, at: int, code: int) -> int:
    """Where to continue after a rejected row: at the next line, because escaped text has no line ends."""
    if code == BAD_COUNT:
        return at
    if code == TRUNCATED:
        return len(buf)
    while at < len(buf) and buf[at] != _LF:
        at += 1
    return at


@compiled
def _scan(buf: Bytes, final: bool, head: Bytes, escape: bool, columns: int, words: _Words, room: RowRoom) -> None:
    inside = room.at[INSIDE] == 1
    at = _behind_blanks(buf, 0)
    while at < len(buf):
        start, out, cell, code = at, 0, 0, 0
        if not inside:
            at, code = _outside(buf, at, final, head)
        if code == _PART:
            break
        if code >= 0 and inside:
            at, out, cell, code = _row(buf, at, escape, columns, words, room)
        if code > 0:
            at = _resumed(buf, at, code)
            if at >= len(buf) and not final:  # incomplete: the next piece begins with it
                at = start
                break
        if inside or code > 0:
            put_row(room, start, out, cell, code)
        inside = code == _STATEMENT or (inside and buf[at - 1] != _SEMICOLON)
        at = _behind_blanks(buf, at)
    room.at[END], room.at[INSIDE] = at, inside
