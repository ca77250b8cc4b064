"""Where the scans of the binary protocols write: one array row per event, text cells side by side.

The arrays are as large as the messages could need at most; memory that is not written is never committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelake.history.event import RowSchema
from tidelake.wire.kernels.arrays import Bytes, Flags, Ints, Longs
from tidelake.wire.kernels.binary_floats import TEXT_BYTES
from tidelake.wire.kernels.binary_kernels import LIMIT
from tidelake.wire.kernels.columnar import Cells, Scanned
from tidelake.wire.kernels.compiled import compiled, inlined, int64

# columns of Out.events
MESSAGE, ORDINAL, KIND, OP, COMMIT_TS, HAS_COMMIT_TS, NAME, PHYSICAL, AFTER_SCHEMA, BEFORE_SCHEMA, AFTER_CELLS, BEFORE_CELLS = range(12)
# sides, and places in Out.used: how much of each array is filled
AFTER, BEFORE = 0, 1
CELLS, BYTES, EVENTS, LEFT, KEY = 0, 2, 4, 5, 6
# how a message ended; LEARN: the name, plan or schema that Out.key describes is not known yet
DONE, LEAVE, LEARN, LEARN_SCHEMA = range(4)

_KEY_BYTES = 1 << 18  # of a description in Out.key
_LARGEST_NUMBER = TEXT_BYTES + 80  # text bytes of a number: a decimal has at most 65 digits, zeros before them, sign and point


class Out(NamedTuple):
    """What a kernel fills, up to `used`. offsets, present and data have a row per side."""

    events: Longs
    offsets: Ints
    present: Flags
    data: Bytes
    used: Longs
    left: Ints
    key: Bytes


class Values(NamedTuple):
    """A binary column as kernels see it: value i is data[bounds[i]:bounds[i+1]] where valid[i]."""

    data: Bytes
    bounds: Ints
    valid: Flags


def values(column: pa.Array) -> Values:
    """A column of a MESSAGE batch, not copied."""
    _, bounds, data = column.buffers()
    n = len(column)
    if bounds is None or n == 0:
        return Values(_array(b"", np.uint8), _array(bytes(4), np.int32), _array(b"", np.bool_))
    every = _array(bounds, np.int32)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return Values(_array(data or b"", np.uint8), every[column.offset : column.offset + n + 1], _array(valid, np.bool_))


def _array(data: pa.Buffer | bytes | Flags, kind: type[np.generic]) -> npt.NDArray[Any]:
    """Always read-only: a writable array is another type for numba, which would recompile everything."""
    array = np.frombuffer(data, kind) if len(data) else np.zeros(0, kind)
    array.flags.writeable = False
    return array


def new_out(messages: int, events: int, cells: int, text_bytes: int) -> Out:
    """Arrays for at most so many events and cells a side. A message whose text finds no room is left to the general reader."""
    out = Out(
        events=np.empty((events + 1, 12), np.int64),
        offsets=np.empty((2, cells + 1), np.int32),
        present=np.empty((2, cells + 1), np.bool_),
        data=np.empty((2, min(text_bytes, LIMIT) + 2 * _LARGEST_NUMBER), np.uint8),
        used=np.zeros(7, np.int64),
        left=np.empty(messages, np.int32),
        key=np.empty(_KEY_BYTES, np.uint8),
    )
    out.offsets[:, 0] = 0
    return out


@inlined
def room(out: Out) -> int:
    """A text may end here in a side's data, and a number begin."""
    return min(int64(out.data.shape[1]), LIMIT) - _LARGEST_NUMBER


@compiled
def put_number(key: Bytes, at: int, value: np.uint64) -> int:
    """Append eight bytes, little-endian, to a description; the caller knows that there is room."""
    for i in range(8):
        key[at + i] = np.uint8(value >> np.uint64(8 * i) & np.uint64(0xFF))
    return at + 8


@inlined
def remember(out: Out, mark: Longs) -> None:
    """Note how far the arrays are filled before a message."""
    for i in range(LEFT):
        mark[i] = out.used[i]


@inlined
def restore(out: Out, mark: Longs) -> None:
    """Forget what a message wrote."""
    for i in range(LEFT):
        out.used[i] = mark[i]


@inlined
def leave(out: Out, message: int) -> None:
    """Hand the message to the general reader."""
    out.left[out.used[LEFT]] = message
    out.used[LEFT] += 1


def scanned(out: Out, names: Sequence[tuple[str | None, str | None]], row_schemas: Sequence[RowSchema], left: Ints) -> Scanned:
    """The filled part as columns. left: messages that the kernel was not even asked about."""
    events = out.events[: out.used[EVENTS]]

    def ints(column: int) -> Ints:
        return events[:, column].astype(np.int32)

    return Scanned(
        message=ints(MESSAGE),
        ordinal=ints(ORDINAL),
        kind=events[:, KIND].astype(np.uint8),
        op=events[:, OP].astype(np.int8),
        commit_ts=events[:, COMMIT_TS].copy(),
        has_commit_ts=events[:, HAS_COMMIT_TS] != 0,
        name=ints(NAME),
        names=names,
        physical_table_id=events[:, PHYSICAL].copy(),
        has_physical_table_id=events[:, PHYSICAL] >= 0,
        row_schema=ints(AFTER_SCHEMA),
        before_schema=ints(BEFORE_SCHEMA),
        row_schemas=row_schemas,
        after=_cells(out, AFTER, ints(AFTER_CELLS)),
        before=_cells(out, BEFORE, ints(BEFORE_CELLS)),
        left=np.union1d(out.left[: out.used[LEFT]], left).astype(np.int32),
    )


def _cells(out: Out, side: int, ends: Ints) -> Cells:
    n = out.used[CELLS + side]
    return Cells(
        starts=np.concatenate([np.zeros(1, np.int32), ends]),
        offsets=out.offsets[side, : n + 1],
        present=out.present[side, :n],
        data=out.data[side, : out.used[BYTES + side]],
    )
