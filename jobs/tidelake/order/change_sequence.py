"""The numbers in a changelog's `_change_seq`: sorted by it, the changes of a table are in order (docs/concepts.md, Changelog).

A number is the commit ts times 10^19, plus a place within the commit ts. The place is, from its highest digit on: a class, the offset of
the message, the ordinal of the row in the message, and which of the two changes of an update it is. Offsets of different partitions are not
comparable: no rule of order needs that (docs/architecture.md 8.2).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from tidelake.errors import OrderError
from tidelake.io.texts import plural
from tidelake.wire.kernels.arrays import Flags, Longs, Words

CHANGE_TYPES = ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")
_TS_DIGITS = 19
_OF_TS = 10**_TS_DIGITS  # numbers of one commit ts
_OF_CLASS = 10**18  # numbers of one class
_DELETE, _UPDATE, _INSERT = 1, 2, 3  # classes of changes that come from events
_MOVED_FIRST, _MOVED_LAST = 0, 4  # of rows that a statement moves: before or after all changes of their commit ts
_CLASSES = np.array([_INSERT, _UPDATE, _UPDATE, _DELETE])
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


class ChangeSequence(BaseModel, frozen=True):
    """Numbers the changes of a window.

    Attributes:
        first_offset: The lowest offset of the window's rows.
        rows: More than the greatest ordinal of a row in its message.
        by_arrival: Changes of one commit ts keep the order of their messages. Otherwise deletes come first and inserts last.
    """

    first_offset: int
    rows: int
    by_arrival: bool

    def sql(self, kind: str) -> str:
        """Return SQL of the number of a change, a row with commit_ts, offset and ordinal. kind: SQL of its type."""
        classes = f"CASE {kind} WHEN 'DELETE' THEN {_DELETE}L WHEN 'INSERT' THEN {_INSERT}L ELSE {_UPDATE}L END"
        row = f"((offset - {self.first_offset}L) * {self.rows}L + ordinal) * 2L + IF({kind} IN ('INSERT', 'UPDATE_AFTER'), 1L, 0L)"
        return _number_sql("commit_ts", f"{f'{_UPDATE}L' if self.by_arrival else classes} * {_OF_CLASS}L + {row}")

    def numbers(self, commit_ts: Longs, offset: Longs, ordinal: Longs, kind: Longs) -> pa.Array:
        """Return the numbers of changes. kind: index in CHANGE_TYPES of each."""
        row = ((offset - self.first_offset) * self.rows + ordinal) * 2 + _is_new(kind)
        classes = np.full(len(kind), _UPDATE) if self.by_arrival else _CLASSES[kind]
        return _numbers(commit_ts.astype(np.uint64), (classes * _OF_CLASS + row).astype(np.uint64))


def sequence_of(first_offset: int, last_offset: int, last_ordinal: int, *, by_arrival: bool) -> ChangeSequence:
    """Return the numbering of a window whose rows have these offsets, and ordinals up to last_ordinal.

    Raises:
        OrderError: TOO_MANY_POSITIONS: they span more than 5 * 10^17 positions of rows.
    """
    offsets, rows = last_offset - first_offset + 1, last_ordinal + 1
    if 2 * offsets * rows > _OF_CLASS:
        raise OrderError(
            f"the window's rows span {offsets:,} offsets, with up to {plural(rows, 'row')} in a message: `_change_seq` cannot number them",
            code="TOO_MANY_POSITIONS",
            remedy="check [source] in feed.toml: offsets that far apart are not of one topic",
        )
    return ChangeSequence(first_offset=first_offset, rows=rows, by_arrival=by_arrival)


def moved_sql(commit_ts: int, kind: str, *, last: bool, statement: int) -> str:
    """Return SQL of the number of a row that a statement moves.

    Args:
        commit_ts: The commit ts of the change.
        kind: SQL of its type, DELETE or INSERT.
        last: After all other changes of that commit ts, otherwise before them.
        statement: Number of the statement among those of its commit ts.
    """
    place = (_MOVED_LAST if last else _MOVED_FIRST) * _OF_CLASS + statement * 2
    return _number_sql(f"{commit_ts}L", f"{place}L + IF({kind} = 'INSERT', 1L, 0L)")


def _number_sql(commit_ts: str, place: str) -> str:
    return f"CAST(CAST({commit_ts} AS DECIMAL(19, 0)) * {_OF_TS} + CAST({place} AS DECIMAL(19, 0)) AS DECIMAL(38, 0))"


def _is_new(kind: Longs) -> Flags:
    new: Flags = (kind == CHANGE_TYPES.index("INSERT")) | (kind == CHANGE_TYPES.index("UPDATE_AFTER"))
    return new


def _numbers(commit_ts: Words, place: Words) -> pa.Array:
    """Return commit_ts * 10^19 + place as decimals, whose 128 bits are two words. numpy's products keep the low word alone."""
    scale = np.uint64(_OF_TS)
    low = commit_ts * scale + place
    carry = low < place
    ts, of_ts = (commit_ts >> _HALF, commit_ts & _LOW), (scale >> _HALF, scale & _LOW)
    middle = ts[0] * of_ts[1] + (ts[1] * of_ts[1] >> _HALF)
    high = ts[0] * of_ts[0] + (middle >> _HALF) + ((ts[1] * of_ts[0] + (middle & _LOW)) >> _HALF) + carry
    return pa.Array.from_buffers(pa.decimal128(38, 0), len(low), [None, pa.py_buffer(np.stack([low, high], axis=1))])
