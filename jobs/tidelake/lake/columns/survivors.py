"""Which rows of a snapshot and of changes a fold keeps. Only columns that decide it are read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tidelake.lake.columns.pieces import Rows
from tidelake.wire.kernels.arrays import Flags, Longs

PASS_ROWS = 2_500_000  # rows whose keys are in memory at once; a pass takes a share of the keys


class KeyTwice(Exception):
    """Raised if the snapshot has duplicate keys. keys: a few of them, as text."""

    def __init__(self, keys: list[str]) -> None:
        super().__init__(", ".join(keys))
        self.keys = keys


@dataclass(slots=True)
class Stamps:
    """Rows that get another commit ts: the values are theirs, the change that made them came with its key alone."""

    rows: list[Longs] = field(default_factory=list)
    ts: list[Longs] = field(default_factory=list)

    def add(self, rows: Longs, ts: Longs) -> None:
        """Add rows."""
        self.rows.append(rows)
        self.ts.append(ts)

    def put(self, first: int, stamps: Longs) -> Longs:
        """Return the commit ts of consecutive rows. first: number of the first one; stamps: their own."""
        out = stamps
        for rows, ts in zip(self.rows, self.ts, strict=True):
            here = (rows >= first) & (rows < first + len(stamps))
            if here.any():
                out = out.copy() if out is stamps else out
                out[rows[here] - first] = ts[here]
        return out


@dataclass(slots=True)
class Survivors:
    """The result.

    Attributes:
        gone: Rows of the snapshot that are replaced or deleted.
        stays: Changes whose row is part of the result.
        missing: Number of deletes that met no row, in a table without key.
        counted: Number of changes that count.
        base_stamps: Rows of the snapshot with another commit ts.
        change_stamps: Changes with another commit ts.
        bare: Changes of which only the key is known; None if there are none.
    """

    gone: Flags
    stays: Flags
    missing: int = 0
    counted: int = 0
    base_stamps: Stamps = field(default_factory=Stamps)
    change_stamps: Stamps = field(default_factory=Stamps)
    bare: Flags | None = None

    @classmethod
    def of(cls, base: Rows, changes: Rows) -> Survivors:
        """Return a result in which all rows of the snapshot stay, and no change."""
        return cls(np.zeros(base.count, np.bool_), np.zeros(changes.count, np.bool_))


def passes_for(rows: int) -> int:
    """Return the number of passes over so many rows."""
    return max(1, -(-rows // PASS_ROWS))
