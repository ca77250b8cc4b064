"""Find a member of JSON objects, one object per line, compiled. Its text can then be copied unchanged."""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Bytes, Longs
from tidelake.wire.kernels.compiled import compiled
from tidelake.wire.kernels.json_kernels import BACKSLASH, BAD, CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE
from tidelake.wire.kernels.spans import NULL, frozen

_BLANK, _LOWER_N = 0x20, 0x6E


def member(data: Bytes, starts: Longs, ends: Longs, name: bytes) -> tuple[Longs, Longs] | int:
    """Return start and size of the named member in every line, NULL if it is null or missing; or the index of the first line that is not an
    object.

    Values are not checked: a JSON reader must do that. The last of several members with one name counts.
    """
    found, sizes = np.zeros(len(starts), np.int64), np.full(len(starts), NULL, np.int64)
    done = int(_members(data, starts, ends, frozen(name), found, sizes))
    return (found, sizes) if done == len(starts) else done


@compiled
def _members(buf: Bytes, starts: Longs, ends: Longs, name: Bytes, found: Longs, sizes: Longs) -> int:
    for i in range(len(starts)):
        p, end = _blanks(buf, starts[i], ends[i]), ends[i]
        if p >= end or buf[p] != OPEN_BRACE:
            return i
        p = _blanks(buf, p + 1, end)
        while p >= 0 and p < end and buf[p] != CLOSE_BRACE:
            p = _member(buf, p, end, name, found, sizes, i)
        if p < 0 or p >= end or _blanks(buf, p + 1, end) != end:
            return i
    return len(starts)


@compiled
def _member(buf: Bytes, p: int, end: int, name: Bytes, found: Longs, sizes: Longs, i: int) -> int:
    """Return the position after one member and its comma; BAD if there is none."""
    begin = p + 1
    p = _string_end(buf, p, end)
    wanted = p >= 0 and _same(buf, begin, p - 1, name)
    p = _blanks(buf, p, end)
    if p < 0 or p >= end or buf[p] != COLON:
        return BAD
    begin = _blanks(buf, p + 1, end)
    p = _value_end(buf, begin, end)
    if wanted and p >= 0:
        found[i] = begin
        sizes[i] = NULL if buf[begin] == _LOWER_N else p - begin
    p = _blanks(buf, p, end)
    if p < 0 or p >= end:
        return BAD
    return _blanks(buf, p + 1, end) if buf[p] == COMMA else p if buf[p] == CLOSE_BRACE else BAD


@compiled
def _blanks(buf: Bytes, p: int, end: int) -> int:
    while p >= 0 and p < end and buf[p] <= _BLANK:
        p += 1
    return p


@compiled
def _same(buf: Bytes, begin: int, end: int, name: Bytes) -> bool:
    if end - begin != len(name):
        return False
    k = 0
    while k < len(name) and buf[begin + k] == name[k]:
        k += 1
    return k == len(name)


@compiled
def _string_end(buf: Bytes, p: int, end: int) -> int:
    """Return the position after the string that begins at p."""
    if p < 0 or p >= end or buf[p] != QUOTE:
        return BAD
    p += 1
    while p < end:
        if buf[p] == QUOTE:
            return p + 1
        p += 2 if buf[p] == BACKSLASH else 1
    return BAD


@compiled
def _value_end(buf: Bytes, p: int, end: int) -> int:
    """Return the position after the value that begins at p."""
    depth = 0
    while p >= 0 and p < end:
        c = buf[p]
        if c == QUOTE:
            p = _string_end(buf, p, end)
        elif c in (OPEN_BRACE, OPEN_BRACKET):
            depth += 1
            p += 1
        elif depth == 0 and c in (COMMA, CLOSE_BRACE):
            return p
        else:
            if c in (CLOSE_BRACE, CLOSE_BRACKET):
                depth -= 1
            p += 1
            if depth == 0 and c in (CLOSE_BRACE, CLOSE_BRACKET):
                return p
    return BAD
