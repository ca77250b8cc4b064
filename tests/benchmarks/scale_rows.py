"""Rows of the tables of `scale_archive`, as columns: what a key holds in a version."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

INSERT, UPDATE, DELETE = range(3)


@dataclass(frozen=True, slots=True)
class Rows:
    """keys, versions and ops of row changes; rows of version 0 are inserts."""

    keys: np.ndarray
    versions: np.ndarray
    ops: np.ndarray

    @classmethod
    def of(cls, keys: np.ndarray, versions: np.ndarray) -> Rows:
        """Inserts and updates."""
        return cls(keys, versions, np.where(versions == 0, INSERT, UPDATE))

    def __len__(self) -> int:
        return len(self.keys)

    def parts(self, rows: int) -> Iterator[Rows]:
        """Parts of so many rows."""
        for first in range(0, len(self), rows):
            part = slice(first, first + rows)
            yield Rows(self.keys[part], self.versions[part], self.ops[part])

    def before(self) -> Rows:
        """What updates change: the versions before."""
        return Rows(self.keys, self.versions - 1, self.ops)

    def replaced(self) -> Rows:
        """The same, but 5 % of the rows are deletes and inserts: one row in 40 deletes what the next one inserts again."""
        at = np.flatnonzero((np.arange(len(self)) % 40 == 20)[:-1])
        keys, ops = self.keys.copy(), self.ops.copy()
        keys[at], ops[at], ops[at + 1] = keys[at + 1], DELETE, INSERT
        return Rows(keys, self.versions, ops)


def join(*parts: pa.Array | str) -> pa.Array:
    """Cells after one another."""
    return pc.binary_join_element_wise(*parts, "")


def text(numbers: np.ndarray) -> pa.Array:
    """Numbers as digits."""
    return pa.array(numbers).cast(pa.string())


def cells(rows: Rows, *, zero_dates: bool = False, extra: bool = False, wide: int = 0) -> dict[str, pa.Array]:
    """Numbers and texts by column. extra: with the column that a statement adds; wide: bytes of each note, which is in base64 then."""
    keys, versions = rows.keys, rows.versions
    key, version = text(keys), text(versions)
    minute, second = (pc.utf8_lpad(text(side % 60), 2, "0") for side in (keys, versions))
    placed = join("2026-01-05 10:", minute, ":", second)
    if zero_dates:
        placed = pc.if_else(pa.array(keys % 10 == 0), "0000-00-00 00:00:00", placed)
    note = join("note of row ", key, " in its version ", version)
    found = {
        "id": pa.array(keys),
        "buyer": join("buyer", text(keys % 9973)),
        "amount": join(text(keys % 100_000), ".", pc.utf8_lpad(text(versions % 100), 2, "0")),
        "qty": pa.array(versions % 7),
        "note": _wide(note, wide) if wide else note,
        "placed": placed,
        "state": pa.array(versions % 5),
    }
    return found | ({"extra": pa.array(np.full(len(rows), 7))} if extra else {})


def _wide(notes: pa.Array, size: int) -> pa.Array:
    return pa.array([base64.b64encode((n * (size // len(n) + 1))[:size].encode()).decode() for n in notes.to_pylist()])
