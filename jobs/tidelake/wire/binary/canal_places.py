"""Where the rows of Canal protobuf messages stand in the binlog, compiled, beside the events that `canal_scan` writes to Out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelake.history.source_names import source_names
from tidelake.wire.kernels.arrays import Bytes, Longs
from tidelake.wire.kernels.binary_kernels import same
from tidelake.wire.kernels.columnar import NONE
from tidelake.wire.kernels.compiled import inlined, int64, merged

_MOST_FILES = 1 << 12  # of a batch
_NO_ROW = -2  # in place of a file's number: no row of this message yet
_FILE, _SERVER, _POSITION, _NEXT = range(4)  # places in BinlogPlaces.last


class BinlogPlaces(NamedTuple):
    """The places of a batch.

    files: where the names of binlog files are, `known` of them; last: of the last row its file's number (NONE without one), server and
    position, and the number of the next row there; rows: per event its file's number, server, position and row.
    """

    files: npt.NDArray[np.int64]
    known: Longs
    last: Longs
    rows: npt.NDArray[np.int64]


def new_places(events: int) -> BinlogPlaces:
    """Room for at most so many events."""
    return BinlogPlaces(
        np.empty((_MOST_FILES, 2), np.int64), np.zeros(1, np.int64), np.zeros(4, np.int64), np.empty((events + 1, 4), np.int64)
    )


@inlined
def begin_message(places: BinlogPlaces) -> None:
    """Forget the last row: rows are numbered anew in every message."""
    places.last[_FILE] = _NO_ROW


@merged
def take_header(buf: Bytes, file: int, size: int, server: int, position: int, places: BinlogPlaces) -> bool:
    """Note where the next rows stand. file, size: where the file's name is. False if the batch has too many files."""
    files, known, last, number = places.files, places.known[0], places.last, int64(NONE)
    if size > 0:
        number = known - 1
        if known == 0 or files[number, 1] != size or not same(buf, files[number, 0], file, size):
            if known == _MOST_FILES:
                return False
            number = known
            files[number, 0], files[number, 1] = file, size
            places.known[0] = known + 1
    if last[_FILE] != number or last[_SERVER] != server or last[_POSITION] != position:
        last[_FILE], last[_SERVER], last[_POSITION], last[_NEXT] = number, server, position, 0
    return True


@inlined
def place_row(places: BinlogPlaces, event: int) -> None:
    """Write the place of an event."""
    for i in range(4):
        places.rows[event, i] = places.last[i]
    places.last[_NEXT] += 1


def names_of(places: BinlogPlaces, data: Bytes, events: int) -> pa.Array:
    """The names of a batch's events. data: of the messages."""
    files = [data[at : at + size].tobytes().decode(errors="replace") for at, size in places.files[: places.known[0]].tolist()]
    file, server, position, row = np.ascontiguousarray(places.rows[:events].T)
    return source_names(files, file.astype(np.int32), server, position, row)
