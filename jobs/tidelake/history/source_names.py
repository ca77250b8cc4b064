"""The producer's own name of a change, for feeds without commit ts: where the change stands in the source's binlog.

name := server "/" base "." file (10 digits) ":" position (19 digits) ":" row (10 digits)
For example 1/mysql-bin.0000000012:0000000000000004567:0000000003.

Base and file are those of the binlog file (`mysql-bin.000012`). The server and the base are the name's binlog. Within a binlog, texts sort
as the changes do, because all that follows the base has a fixed width.

A producer that numbers only its batches (Canal's flat messages) names no change. Its changes bear the name of their batch: server 0, an
empty base, and the number as position. Such names are a binlog of their own. They tell that the producer was started again, not what it
repeats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]

LAST_ROW = 10**10 - 1  # row of a change that is the last one of its transaction, if the producer does not number it
PLACE_WIDTH = 1 + 10 + 1 + 19 + 1 + 10  # characters that follow the binlog in a name

_BATCHES = "0/."
_MOST = (1 << 63) - 1
_FILE = re.compile("([^/:\ufffd]+)\\.([0-9]{1,10})", re.ASCII)  # U+FFFD: was not UTF-8
_NAME = re.compile(r"([0-9]+)/([^/:]+)\.([0-9]{10}):([0-9]{19}):([0-9]{10})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class SourceName:
    """Where a change stands in the source's binlog.

    Attributes:
        server: The server id; 0 if the producer does not send it.
        base: Name of the binlog files without their number.
        file: Number of the binlog file.
        position: Position of the binlog event in the file, in bytes.
        row: Number of the row in the binlog event or in its transaction; 0 for a statement; LAST_ROW.
    """

    server: int
    base: str
    file: int
    position: int
    row: int


def source_name(server: int, file: str, position: int, row: int) -> str | None:
    """Return the text of a name, None if it does not name one change: without a numbered file, or with a number out of range.

    Give only what names one change. All rows of a snapshot have one position, for example, so they have no name.

    Args:
        server: The server id; 0 if the producer does not send it.
        file: The binlog file, e.g. `mysql-bin.000012`.
        position: Position in the file, in bytes.
        row: Number of the row in its binlog event or in its transaction, LAST_ROW for a last row without number.
    """
    found = _FILE.fullmatch(file)
    if found is None or not 0 <= server <= _MOST or not 0 <= position <= _MOST or not 0 <= row <= LAST_ROW:
        return None
    return f"{server}/{found[1]}.{int(found[2]):010}:{position:019}:{row:010}"


def source_names(files: Sequence[str], file: Ints, server: Longs, position: Longs, row: Longs) -> pa.Array:
    """Return the texts of many names, NULL where `source_name` returns None.

    Args:
        files: Binlog files.
        file: Number of each name's file in `files`; -1 for none.
        server: Server ids.
        position: Positions in the files, in bytes.
        row: Numbers of the rows.
    """
    found = [_FILE.fullmatch(f) for f in files]
    heads = pa.array([None if m is None else f"/{m[1]}.{int(m[2]):010}" for m in found], pa.string())
    known = (file >= 0) & (server >= 0) & (position >= 0) & (row >= 0) & (row <= LAST_ROW)
    head = heads.take(pa.array(file, pa.int32(), mask=~known))
    parts = [pc.utf8_lpad(pa.array(n).cast(pa.string()), width, "0") for n, width in ((position, 19), (row, 10))]
    return pc.binary_join_element_wise(pc.binary_join_element_wise(pa.array(server).cast(pa.string()), head, ""), *parts, ":")


def batch_names(numbers: pa.Array) -> pa.Array:
    """Return the names of batches, NULL for NULL. numbers: int64."""
    digits = pc.utf8_lpad(numbers.cast(pa.string()), 19, "0")
    return pc.binary_join_element_wise(f"{_BATCHES}{0:010}:", digits, f":{0:010}", "")


def is_batch(text: str) -> bool:
    """Return whether a name is that of a batch."""
    return text.startswith(_BATCHES)


def batch_number(text: str) -> int:
    """Return the number in the name of a batch."""
    return int(text[-PLACE_WIDTH:].split(":")[1])


def read_source_name(text: str) -> SourceName:
    """Return the name with this text. Raises ValueError."""
    found = _NAME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not the name of a change in a binlog, expected server/base.file:position:row")
    return SourceName(int(found[1]), found[2], int(found[3]), int(found[4]), int(found[5]))


def binlog_of(text: str) -> str:
    """Return the part of a name that says the binlog: its server and the base of its files."""
    return text[:-PLACE_WIDTH]


def shown(text: str) -> str:
    """Return a name as MySQL's users know it: `mysql-bin.000012:4567, row 3, server 1`."""
    name = read_source_name(text)
    row = "last row" if name.row == LAST_ROW else f"row {name.row}"
    return f"{name.base}.{name.file:06}:{name.position}, {row}, server {name.server}"
