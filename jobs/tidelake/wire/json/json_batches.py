"""Runs a compiled JSON scan over a MESSAGE batch: gives it room, teaches it what it has not met, hands over what it found."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidelake.wire.json.json_images import DONE, NEW_SUBSET, Events, ImageSide, Payload
from tidelake.wire.json.json_known import MAX_LESSONS, Arrays, KnownSchemas, ScanState, state
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.columnar import Cells, Scanned
from tidelake.wire.kernels.json_kernels import OVERSHOOT

Kernel = Callable[[Ints, int, int, Arrays, ScanState, Events, ImageSide, ImageSide], tuple[int, int]]  # json_open.scan_open from `start` on
Learner = Callable[[KnownSchemas, int], KnownSchemas]  # what the message with this index teaches; the same Known if it teaches nothing


def payload(column: pa.Array) -> Payload:
    """A binary column as compiled code sees it."""
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets if len(column) else bytes(4), np.int32)[column.offset :][: len(column) + 1]
    found = Payload(np.frombuffer(data or b"", np.uint8), starts, column.is_valid().to_numpy(zero_copy_only=False))
    for array in found:
        array.flags.writeable = False  # else numba recompiles everything for a mutable buffer
    return found


class BatchRoom(NamedTuple):
    """What one batch can give at most: memory is reserved for it, but only what is used is ever touched."""

    events: int
    cells: int  # of one side
    size: int  # bytes of the cells of one side


def scan(kernel: Kernel, learn: Learner, wanted: Ints, room: BatchRoom, memory: dict[str, object], name: str) -> Scanned:
    """The events of the wanted messages that the kernel takes. name: where the memory keeps what is known from batch to batch."""
    count, cells, size = room
    wanted = np.array(wanted, np.int32)  # contiguous and writable: numba compiles for that
    known = memory.get(name)
    if not isinstance(known, KnownSchemas):
        known = KnownSchemas()
    events, after, before, remembered = _events(count, len(wanted)), _side(count, cells, size), _side(count, cells, size), state()
    start, patience, lessons = 0, 0, 0
    while True:
        start, verdict = kernel(wanted, start, patience, known.arrays, remembered, events, after, before)
        if verdict == DONE:
            break
        lessons += 1
        taught = known
        if lessons <= MAX_LESSONS and not known.full:
            taught = _subset(known, remembered) if verdict == NEW_SUBSET else learn(known, int(wanted[start]))
        patience = start + 1 if taught is known else start
        if lessons > MAX_LESSONS or known.full:
            patience = len(wanted)
        known = taught
    memory[name] = KnownSchemas() if known.full else known
    return _scanned(events, after, before, known)


def _subset(known: KnownSchemas, remembered: ScanState) -> KnownSchemas:
    layout, count = remembered.asked.tolist()
    return known.with_subset(layout, remembered.columns[:count].tolist())


def _events(count: int, messages: int) -> Events:
    def ints() -> Ints:
        return np.empty(count + 1, np.int32)

    return Events(
        message=ints(),
        ordinal=ints(),
        kind=np.empty(count + 1, np.uint8),
        op=np.empty(count + 1, np.int8),
        commit_ts=np.empty(count + 1, np.uint64),
        has_commit_ts=np.empty(count + 1, np.bool_),
        name=ints(),
        physical_table_id=np.empty(count + 1, np.int64),
        has_physical_table_id=np.empty(count + 1, np.bool_),
        row_schema=ints(),
        before_schema=ints(),
        left=np.empty(messages, np.int32),
        used=np.zeros(2, np.int64),
    )


def _side(events: int, cells: int, size: int) -> ImageSide:
    side = ImageSide(
        starts=np.empty(events + 2, np.int32),
        offsets=np.empty(cells + 2, np.int32),
        present=np.empty(cells + 1, np.bool_),
        data=np.empty(size + 2 * OVERSHOOT, np.uint8),
        used=np.zeros(2, np.int64),
    )
    side.starts[0] = side.offsets[0] = 0
    return side


def _cells(side: ImageSide, events: int) -> Cells:
    cells, size = side.used.tolist()
    return Cells(starts=side.starts[: events + 1], offsets=side.offsets[: cells + 1], present=side.present[:cells], data=side.data[:size])


def _scanned(events: Events, after: ImageSide, before: ImageSide, known: KnownSchemas) -> Scanned:
    n, left = events.used.tolist()
    return Scanned(
        message=events.message[:n],
        ordinal=events.ordinal[:n],
        kind=events.kind[:n],
        op=events.op[:n],
        commit_ts=events.commit_ts[:n].view(np.int64),
        has_commit_ts=events.has_commit_ts[:n],
        name=events.name[:n],
        names=known.names,
        physical_table_id=events.physical_table_id[:n],
        has_physical_table_id=events.has_physical_table_id[:n],
        row_schema=events.row_schema[:n],
        before_schema=events.before_schema[:n],
        row_schemas=known.row_schemas,
        after=_cells(after, n),
        before=_cells(before, n),
        left=events.left[:left],
        whole=np.isin(np.arange(len(known.row_schemas)), known.arrays.row_schema),
    )
