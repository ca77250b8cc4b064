"""Compiled: what the scans of Simple's encodings share (docs/reference/protocols.md 9.1): columns in any order, written in the schema's.

An image is read twice: first where the value of each column begins and ends, then the values in the order of the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidelake.errors import DecodeError
from tidelake.history.event import RowSchema
from tidelake.wire.checksum import checksums
from tidelake.wire.checksum.checksum_kernels import MARK, NOT_SENT, ZONE
from tidelake.wire.json import json_batches
from tidelake.wire.json.json_images import Events, ImageSide, candidate, named
from tidelake.wire.json.json_known import MAX_COLUMNS, Arrays, ScanState
from tidelake.wire.kernels.arrays import Bytes, Ints, Longs
from tidelake.wire.kernels.binary_kernels import same
from tidelake.wire.kernels.columnar import NONE, Scanned
from tidelake.wire.kernels.compiled import inlined_step, int64, step
from tidelake.wire.kernels.json_kernels import item
from tidelake.wire.simple.simple_schema import SimpleTableSchema, schemas

INSERT, UPDATE, DELETE = range(3)  # indices into event.OPS
KIND_ROW, KIND_RESOLVED = 0, 2  # indices into event.KINDS

# Places in state.spans: 0-5 are database, table and schema version as starts and lengths
STAMP = 6  # of the image being read

_FOLLOWERS = 1 << 14
_MAX_ZONES = 8  # of one scan
_BACKSLASH = 0x5C


class ImagePlaces(NamedTuple):
    """The image being read: where each column's value begins and ends, by column of the layout; and by any column which one came next
    the last time. Checksums as checksum_kernels has them: of the row being read, of all events; zones: starts and lengths of the names of
    time zones met, how many they are last."""

    starts: Longs
    stops: Longs
    follower: Ints
    row: Longs
    sent: Longs
    zones: Longs


def places(events: int) -> ImagePlaces:
    """For one scan of at most so many events."""
    starts, stops, follower = np.zeros(MAX_COLUMNS, np.int64), np.zeros(MAX_COLUMNS, np.int64), np.full(_FOLLOWERS, NONE, np.int32)
    return ImagePlaces(
        starts, stops, follower, np.zeros(4, np.int64), np.zeros((events + 1, 4), np.int64), np.zeros(2 * _MAX_ZONES + 1, np.int64)
    )


def zone_names(text: Bytes, at: ImagePlaces) -> list[str]:
    """The time zones that were met."""
    spans = at.zones[: 2 * at.zones[-1]].reshape(-1, 2).tolist()
    return [text[start : start + size].tobytes().decode(errors="replace") for start, size in spans]


@inlined_step
def begin(at: ImagePlaces) -> None:
    """Forget the row before."""
    at.row[MARK], at.row[ZONE] = NOT_SENT, NONE


@inlined_step
def zoned(text: Bytes, start: int, size: int, at: ImagePlaces) -> bool:
    """Note the time zone of a value, if that matters; False if it is another one than the row's others have, or one too many."""
    if at.row[MARK] == NOT_SENT:
        return True
    zone = at.row[ZONE] if at.row[ZONE] != NONE else 0
    if zone < at.zones[2 * _MAX_ZONES] and at.zones[2 * zone + 1] == size and same(text, at.zones[2 * zone], start, size):
        at.row[ZONE] = zone
        return True
    return at.row[ZONE] == NONE and _another_zone(text, start, size, at)


@step
def _another_zone(text: Bytes, start: int, size: int, at: ImagePlaces) -> bool:
    count = at.zones[2 * _MAX_ZONES]
    for zone in range(count):
        if at.zones[2 * zone + 1] == size and same(text, at.zones[2 * zone], start, size):
            at.row[ZONE] = zone
            return True
    if count == _MAX_ZONES or start + size > len(text):
        return False
    for i in range(start, start + size):
        if text[i] == _BACKSLASH:
            return False
    at.zones[2 * count], at.zones[2 * count + 1], at.zones[2 * _MAX_ZONES] = start, size, count + 1
    at.row[ZONE] = count
    return True


@inlined_step
def guessed(text: Bytes, p: int, before: int, known: Arrays, first: int, last: int, at: ImagePlaces) -> int:
    """The column after `before` if it is the same as the last time, else NONE."""
    guess = item(at.follower, before & (_FOLLOWERS - 1))
    return int64(guess) if first <= guess < last and named(text, p, known, guess) else NONE


@inlined_step
def noted(column: int, before: int, start: int, stop: int, first: int, state: ScanState, at: ImagePlaces) -> bool:
    """Keep where a column's value stands; False if it has one already."""
    place = np.uint64(column - first)
    if state.seen[place] == state.spans[STAMP]:
        return False
    state.seen[place] = state.spans[STAMP]
    at.starts[place], at.stops[place] = start, stop
    at.follower[np.uint64(before & (_FOLLOWERS - 1))] = column
    return True


@inlined_step
def next_layout(attempt: int, table: int, layout: int, known: Arrays, state: ScanState) -> int:
    """The layout to try; without one that fitted last time, the newest is the first."""
    if attempt == 0 and state.hints[table] == NONE:
        return int64(known.newest[table])
    return candidate(attempt, table, layout, known, state)


@inlined_step
def finish(message: int, op: int, table: int, at: ImagePlaces, events: Events, after: ImageSide, before: ImageSide) -> None:
    """Complete the event whose times and schemas are there; table: NONE for a watermark."""
    event = events.used[0]
    events.message[event], events.ordinal[event] = message, 0
    events.kind[event] = KIND_ROW if table != NONE else KIND_RESOLVED
    events.op[event] = op if table != NONE else NONE
    events.has_commit_ts[event] = True
    events.name[event] = table
    events.has_physical_table_id[event] = table != NONE
    if op == DELETE or table == NONE:
        events.row_schema[event] = NONE
    if op == INSERT or table == NONE:
        events.before_schema[event] = NONE
    if table != NONE and at.row[MARK] != NOT_SENT:
        for i in range(4):
            at.sent[event, i] = at.row[i]
    after.starts[event + 1], before.starts[event + 1] = after.used[0], before.used[0]
    events.used[0] = event + 1


def scan(
    kernel: json_batches.Kernel,
    learn: json_batches.Learner,
    wanted: Ints,
    room: json_batches.BatchRoom,
    memory: dict[str, object],
    name: str,
) -> Scanned:
    """Scan with json_batches.scan, and forget what was learned without the schemas that are known now."""
    current, last = f"{name} {schemas(memory).generation}", f"{name} last"
    if memory.get(last) != current:
        memory.pop(str(memory.get(last)), None)
        memory[last] = current
    return json_batches.scan(kernel, learn, wanted, room, memory, current)


def verdict(
    images: Iterable[tuple[RowSchema | None, Sequence[bytes | None] | None, int]],
    schema: SimpleTableSchema | None,
    zones: Iterable[str],
    *,
    corrupted: bool,
    rules: checksums.ChecksumRules,
    refuse: bool,
) -> str:
    """checksums.verdict of a row by its images, each with its checksum. zones: of its times."""
    columns, several = len(schema.columns) if schema else 0, set(zones)
    found = [
        checksums.Image(row_schema=row_schema, cells=cells, number=number, whole=len(cells) == columns)
        for row_schema, cells, number in images
        if row_schema is not None and cells is not None
    ]
    return checksums.verdict(found, corrupted=corrupted, zone=several.pop() if len(several) == 1 else None, rules=rules, refuse=refuse)


def learn_schemas(messages: pa.RecordBatch, which: Ints, read: Callable[[bytes | None, bytes | None], object]) -> None:
    """Read these messages for the schemas that they bring; their events and errors come when it is their turn."""
    for message in messages.select(["key", "value"]).take(pa.array(which)).to_pylist():
        try:
            read(message["key"], message["value"])
        except DecodeError:
            continue
