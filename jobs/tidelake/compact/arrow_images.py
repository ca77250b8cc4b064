"""Compares the row images of a bucket's keys in Arrow. Same result as lake.images.Images.verdict in SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.wire.kernels.arrays import Longs, Words

OLD, DELETE, UPDATE, INSERT = -1, 0, 1, 2  # kinds of changes, by the class of their place; OLD: old values
_SEED = np.uint64(0x9E3779B97F4A7C15)


class ComparedImages(BaseModel, frozen=True):
    """How old values are compared.

    Attributes:
        columns: Columns to compare.
        sampled: Key columns that select the sample.
        share: One of so many keys is compared.
        key_only_deletes: Deletes have only the key's columns.
    """

    columns: list[str]
    sampled: list[str]
    share: int
    key_only_deletes: bool


class Weights:
    """Hashes of the rows of selected keys: `there` of the snapshot, `told` of the changes, both ascending. Columns are added one by one.

    keys: number of each selected key; many: number of all keys; newest: its newest change; base, changes: key number of each row; kinds:
    kinds of the changes; window: changes that count, ascending.
    """

    def __init__(
        self,
        images: ComparedImages,
        keys: Longs,
        many: int,
        newest: Longs,
        base: Longs,
        changes: Longs,
        kinds: Longs,
        window: Longs,
    ) -> None:
        self.images = images
        at = np.full(many, -1)
        at[keys] = np.arange(len(keys))
        self.there, self.told = np.flatnonzero(at[base] >= 0), window[at[changes[window]] >= 0]
        self._of_there, self._of_told, self._many = at[base[self.there]], at[changes[self.told]], len(keys)
        self._kinds, self._gone = kinds[self.told], kinds[newest] == DELETE
        self._newest = np.searchsorted(self.told, newest)
        self._hashes = np.full(len(self.there) + len(self.told), _SEED)

    def add(self, there: pa.Array, told: pa.Array) -> None:
        """Add a column of these rows. Equal rows get equal hashes only within this object."""
        cells = pa.concat_arrays([there, told])
        plain = pc.add(cells, 0.0) if pa.types.is_floating(cells.type) else cells  # -0.0 becomes 0.0
        numbers = pc.dictionary_encode(plain).indices.fill_null(-1)
        self._hashes = _mixed(self._hashes ^ np.asarray(numbers).astype(np.uint64))

    def verdicts(self) -> tuple[int, int]:
        """Return (number of compared keys, number of keys that do not match)."""
        there, told = np.split(self._hashes, [len(self.there)])
        weights = np.zeros(self._many, np.uint64)
        np.add.at(weights, self._of_there, there)
        np.add.at(weights, self._of_told, np.where(self._kinds >= UPDATE, told, -told))
        wrong = weights != np.where(self._gone, np.uint64(0), told[self._newest])
        if self.images.key_only_deletes:
            deletes = self._count(DELETE)
            rows = np.bincount(self._of_there, minlength=self._many) + self._count(INSERT) - deletes
            wrong = np.where(deletes > 0, rows != ~self._gone, wrong)
        says = self._count(UPDATE) == self._count(OLD)  # updates with old values
        return int(np.sum(says)), int(np.sum(wrong & says))

    def _count(self, kind: int) -> Longs:
        """Number of changes of a kind, by key."""
        return np.bincount(self._of_told[self._kinds == kind], minlength=self._many)


def _mixed(x: Words) -> Words:
    """The finalizer of SplitMix64."""
    x = x + _SEED
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
