"""Compares old values by sums of hashes: for each key, rows that came less rows that went must be the row that is left.

Every image of a key counts with its hash: the snapshot's row and new values are added, old values subtracted, modulo 2^64. If the sum is
not the hash of the newest row, the key is a suspect (image_findings.py looks at it). Only a sample of the keys is compared.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidelake.lake.columns.change_kinds import DELETE, INSERT, OLD, UPDATE, Kinds
from tidelake.lake.columns.fold_rules import ComparedImages
from tidelake.lake.columns.pieces import Piece
from tidelake.wire.kernels.arrays import Flags, Ints, Longs, Words
from tidelake.wire.kernels.key_numbers import NONE
from tidelake.wire.row_hashes import row_hashes

_NONE_TOLD = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int8))


class RowsOfKeys:
    """Rows of one side whose old values are compared, ascending, with the number of their key among the compared ones."""

    def __init__(self) -> None:
        self.rows, self.keys, self.kinds = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int8)

    def add(self, rows: Longs, keys: Ints, kinds: Kinds) -> None:
        """Add rows in any order."""
        if len(self.rows):
            rows, keys, kinds = np.concatenate([self.rows, rows]), np.concatenate([self.keys, keys]), np.concatenate([self.kinds, kinds])
        if np.any(rows[1:] < rows[:-1]):
            order = np.argsort(rows, kind="stable")
            rows, keys, kinds = rows[order], keys[order], kinds[order]
        self.rows, self.keys, self.kinds = rows, keys, kinds

    def within(self, piece: Piece) -> slice:
        """Return where the rows of a piece are."""
        low, high = np.searchsorted(self.rows, [piece.first, piece.first + piece.count])
        return slice(int(low), int(high))

    def of_keys(self, keys: Longs) -> RowsOfKeys:
        """Return the rows of some keys, which are numbered anew, from 0."""
        chosen = np.flatnonzero(np.isin(self.keys, keys))
        out = RowsOfKeys()
        out.rows, out.kinds = self.rows[chosen], self.kinds[chosen]
        out.keys = np.searchsorted(keys, self.keys[chosen]).astype(np.int32)
        return out


class ImageSums:
    """Sums of hashes of all compared keys."""

    def __init__(self, images: ComparedImages, hash_key: tuple[int, int]) -> None:
        self.images, self.hash_key = images, hash_key
        self.of_base, self.of_changes = RowsOfKeys(), RowsOfKeys()
        self._newest, self._gone = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        self._sums = self._last = np.zeros(0, np.uint64)
        self._told: list[tuple[Longs, Ints, Kinds]] = []
        self._stood: list[tuple[Longs, Ints]] = []

    def tell(self, hashes: Words, rows: Longs, numbers: Ints, kinds: Kinds) -> None:
        """Note changes. hashes, numbers: of their keys, in this pass."""
        mine = self._picked(hashes)
        self._told.append((rows[mine], numbers[mine], kinds[mine]))

    def stand(self, hashes: Words, rows: Longs, numbers: Ints) -> None:
        """Note rows of the snapshot whose key has changes."""
        mine = self._picked(hashes)
        self._stood.append((rows[mine], numbers[mine]))

    def close_pass(self, many: int, newest: Longs, gone: Flags) -> None:
        """End a pass over `many` key numbers. newest: the newest change of each, NONE without one; gone: it is a delete."""
        told, stood = (_NONE_TOLD, *self._told), (_NONE_TOLD[:2], *self._stood)
        self._told, self._stood = [], []
        rows, numbers, kinds = (np.concatenate(p) for p in zip(*told, strict=True))
        base_rows, base_numbers = (np.concatenate(p) for p in zip(*stood, strict=True))
        del told, stood
        changed = np.zeros(many, np.bool_)
        changed[numbers] = True
        known = np.flatnonzero(changed & (newest[:many] != NONE))
        key_of = np.full(many, NONE, np.int32)
        key_of[known] = len(self._newest) + np.arange(len(known))
        keys = key_of[numbers]
        if (keys == NONE).any():
            mine = keys != NONE
            rows, keys, kinds = rows[mine], keys[mine], kinds[mine]
        self.of_changes.add(rows, keys, kinds)
        self.of_base.add(base_rows, key_of[base_numbers], np.full(len(base_rows), INSERT, np.int8))
        self._newest = np.concatenate([self._newest, newest[known]])
        self._gone = np.concatenate([self._gone, gone[known]])
        self._sums, self._last = np.zeros(len(self._newest), np.uint64), np.zeros(len(self._newest), np.uint64)

    def see(self, piece: Piece, *, of_base: bool) -> None:
        """Add the images of a piece, which has all compared columns."""
        side = self.of_base if of_base else self.of_changes
        here = side.within(piece)
        rows, keys, kinds = side.rows[here], side.keys[here], side.kinds[here]
        if not len(rows):
            return
        hashes = self.hashes(piece, rows - piece.first)
        np.add.at(self._sums, keys, np.where(kinds >= UPDATE, hashes, -hashes))
        if not of_base:
            newest = rows == self._newest[keys]
            self._last[keys[newest]] = hashes[newest]

    def hashes(self, piece: Piece, at: Longs) -> Words:
        """Return the hashes of some images of a piece. at: their places in it."""
        if not self.images.columns:
            return np.ones(len(at), np.uint64)
        chosen = pa.array(at)
        return row_hashes([piece.cells(c).take(chosen) for c in self.images.columns], self.hash_key)[:, 0]

    def verdicts(self) -> tuple[int, Longs]:
        """Return (number of compared keys, the suspects, ascending). All pieces must have been seen."""
        wrong = self._sums != np.where(self._gone, np.uint64(0), self._last)
        if self.images.key_only_deletes:
            deletes = self._count(DELETE)
            rows = np.bincount(self.of_base.keys, minlength=len(wrong)) + self._count(INSERT) - deletes
            wrong = np.where(deletes > 0, rows != ~self._gone, wrong)
        says = self._count(UPDATE) == self._count(OLD)  # all updates came with old values
        return int(np.sum(says)), np.flatnonzero(wrong & says)

    def _count(self, kind: int) -> Longs:
        return np.bincount(self.of_changes.keys[self.of_changes.kinds == kind], minlength=len(self._newest))

    def _picked(self, hashes: Words) -> Flags:
        picked: Flags = hashes[:, 0] % np.uint64(self.images.share) == 0
        return picked
