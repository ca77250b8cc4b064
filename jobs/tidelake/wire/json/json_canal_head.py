"""Compiled: a Canal-JSON message's members beside its rows and types (docs/reference/protocols.md 5.1), the numbers of all members.

The message's own members are written to the places of state.spans defined here.
"""

from __future__ import annotations

import numpy as np

from tidelake.wire.json.json_cells import string
from tidelake.wire.json.json_images import Events, ImageSide
from tidelake.wire.json.json_known import ScanState
from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import inlined_step, step
from tidelake.wire.kernels.json_kernels import (
    BAD,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COMMA,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
    byte,
    integer,
    is_null,
    raw_end,
    unsigned,
    word,
)
from tidelake.wire.kernels.json_words import text_at, texts

INSERT, UPDATE, DELETE, WATERMARK, QUERY = range(5)  # the first three are indices into event.OPS

# Members in TiCDC's order; gtid is Alibaba Canal's
MEMBERS = texts(
    b'"id":',
    b'"database":',
    b'"table":',
    b'"pkNames":',
    b'"isDdl":',
    b'"type":',
    b'"es":',
    b'"ts":',
    b'"sql":',
    b'"sqlType":',
    b'"mysqlType":',
    b'"old":',
    b'"data":',
    b'"_tidb":',
    b'"gtid":',
)
_ID, _DATABASE, _TABLE, _PK_NAMES, _IS_DDL, _TYPE, _ES, _TS, _SQL, SQL_TYPE, MYSQL_TYPE, OLD, DATA, _TIDB, _GTID = range(15)
PLACED = 1 << _DATABASE | 1 << _TABLE | 1 << _TYPE  # what a statement in front of its rows has, the database empty
NAMED = 1 << _DATABASE | 1 << _TABLE | 1 << _PK_NAMES | 1 << _TYPE  # what the reading of rows needs first
_OPS = texts(b'"INSERT"', b'"UPDATE"', b'"DELETE"', b'"TIDB_WATERMARK"', b'"QUERY"')
_EXTENSIONS = texts(b'{"commitTs":', b'{"watermarkTs":')
_FALSE = np.uint64(int.from_bytes(b"false", "little"))
_FIVE_BYTES = np.uint64((1 << 40) - 1)

# Places in state.spans: 0-5 are database, table and pkNames as starts and lengths
OP, NAMES_SEEN, FOUND, LAYOUT, ROWS, OLD_ROWS, TYPED, STAMP, EXTENSION, CODED, STATEMENT = range(6, 17)


@inlined_step
def head(member: int, text: Bytes, p: int, end: int, state: ScanState, events: Events, after: ImageSide) -> int:
    """The position after the value of a member that needs no layout."""
    if member in (_ID, _ES, _TS):
        return integer(text, p)
    if member == _SQL:
        state.spans[STATEMENT] = p + 1
    if member in (_SQL, _GTID):
        return _ignored(text, p, end, after)
    if member == _IS_DDL:
        return p + 5 if word(text, p) & _FIVE_BYTES == _FALSE else BAD
    if member == _TIDB:
        return _extension(text, p, state, events)
    return _name(member, text, p, end, state)


@inlined_step
def _name(member: int, text: Bytes, p: int, end: int, state: ScanState) -> int:
    """A member that names the table or the operation, into state.spans."""
    spans = state.spans
    spans[NAMES_SEEN] |= 1 << member
    if member == _TYPE:
        spans[OP] = text_at(text, p, _OPS, INSERT)
        return p + _OPS.lengths[spans[OP]] if spans[OP] != NONE else BAD
    if member == _PK_NAMES:
        stop = _list_end(text, p, end)
        spans[4], spans[5] = p, stop - p
        return stop
    stop = raw_end(text, p + 1, end) if byte(text, p) == QUOTE else BAD
    place = 2 * (member - _DATABASE)
    spans[place], spans[place + 1] = p + 1, stop - p - 1
    return stop + 1 if stop != BAD else BAD


@inlined_step
def _ignored(text: Bytes, p: int, end: int, side: ImageSide) -> int:
    """A string or null that means nothing here; the string is judged by writing it where the next cell will be."""
    if is_null(text, p):
        return p + 4
    return string(text, p, end, side.data, side.used[1])[0]


@inlined_step
def _extension(text: Bytes, p: int, state: ScanState, events: Events) -> int:
    """`_tidb` with nothing but a time in it."""
    which = text_at(text, p, _EXTENSIONS, 0)
    if which == NONE:
        return BAD
    state.spans[EXTENSION] = which
    events.commit_ts[events.used[0]], p = unsigned(text, p + _EXTENSIONS.lengths[which])
    return p + 1 if p != BAD and byte(text, p) == CLOSE_BRACE else BAD


@inlined_step
def _list_end(text: Bytes, p: int, end: int) -> int:
    """The position after null or an array of strings."""
    if is_null(text, p):
        return p + 4
    if byte(text, p) != OPEN_BRACKET:
        return BAD
    p += 1
    while byte(text, p) == QUOTE:
        p = raw_end(text, p + 1, end) + 1
        if byte(text, p) != COMMA or p == 0:
            break
        p += 1
    return p + 1 if p > 0 and byte(text, p) == CLOSE_BRACKET else BAD


@step
def look_ahead(text: Bytes, p: int, end: int, state: ScanState) -> None:
    """Alibaba Canal names the table after the data: finds the names by stepping over everything else."""
    guess = 0
    while p != BAD and p < end and (byte(text, p) == OPEN_BRACE or byte(text, p) == COMMA):
        guess = text_at(text, p + 1, MEMBERS, guess)
        if guess == NONE:
            return
        p += 1 + MEMBERS.lengths[guess]
        p = _name(guess, text, p, end, state) if (NAMED >> guess) & 1 else _skipped(text, p, end)


@inlined_step
def _skipped(text: Bytes, p: int, end: int) -> int:
    """Where the value at p ends, by its brackets and quotes alone."""
    depth = 0
    while p < end:
        c = byte(text, p)
        if depth == 0 and (c in (COMMA, CLOSE_BRACE)):
            return p
        if c == QUOTE:
            p = raw_end(text, p + 1, end)
            if p == BAD:
                return BAD
        depth += (c in (OPEN_BRACE, OPEN_BRACKET)) - (c in (CLOSE_BRACE, CLOSE_BRACKET))
        p += 1
    return BAD
