"""Output of the scanners of text exports: complete rows of one piece of a file, and rejected ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidelake.history.event import EVENT
from tidelake.wire.kernels.arrays import Bytes, Flags, Ints, Longs
from tidelake.wire.kernels.columnar import Cells

TRUNCATED, BAD_ESCAPE, BAD_QUOTE, BAD_COUNT, BAD_TOKEN = 1, 2, 3, 4, 5
WHY = {
    TRUNCATED: ("TRUNCATED", "the file ends inside the row"),
    BAD_ESCAPE: ("BAD_VALUE", "a backslash is followed by what Dumpling does not escape; was it written without --escape-backslash?"),
    BAD_QUOTE: ("BAD_STRUCTURE", "something other than a separator or a line end follows a closing quote"),
    BAD_COUNT: ("BAD_STRUCTURE", "another number of values than the file has columns"),
    BAD_TOKEN: ("BAD_STRUCTURE", "not a value, row or statement that Dumpling writes"),
}
ROWS, BAD, CELLS, SIZE, END, NUMBER, INSIDE = range(7)  # indexes of `RowRoom.at`
LIST = EVENT.field("after").type


class RowRoom(NamedTuple):
    """Arrays that a scan fills. bad: row number, byte and code of each rejected row; at: counts, position, and state for the next piece."""

    offsets: Ints
    present: Flags
    data: Bytes
    numbers: Longs
    bad: Longs
    at: Longs

    @classmethod
    def of(cls, size: int, rows: int, columns: int, number: int, inside: bool) -> RowRoom:
        """Return arrays for this many bytes and rows. number: of the first row; inside: a statement continues."""
        cells = min(rows * columns, size + 1)
        at = np.zeros(7, np.int64)
        at[NUMBER], at[INSIDE] = number, inside
        return cls(
            np.zeros(cells + 1, np.int32),
            np.zeros(cells, np.bool_),
            np.empty(size, np.uint8),
            np.empty(rows, np.int64),
            np.empty((rows, 3), np.int64),
            at,
        )

    def rows(self, columns: int) -> pa.ListArray:
        """Return the complete rows, one list of cells each."""
        n, cells = int(self.at[ROWS]), int(self.at[CELLS])
        data = self.data[: int(self.at[SIZE])].copy()
        starts = (np.arange(n + 1) * columns).astype(np.int32)
        found = Cells(starts=starts, offsets=self.offsets[: cells + 1].copy(), present=self.present[:cells].copy(), data=data)
        return found.array(np.ones(n, np.bool_))
