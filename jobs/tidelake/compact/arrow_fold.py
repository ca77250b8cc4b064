"""Folds changes into the snapshot of one bucket in Arrow, with the result of lake.fold and lake.images in SQL.

Oracle: history.ordering.fold. Keys are mapped to numbers, so key operations work on arrays. The surviving rows are computed from keys and
places alone; other columns are read one by one, and only for surviving rows. A table whose key has a NULL is refused: SQL's rules for NULL
keys are not implemented here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.compact.arrow_images import DELETE, INSERT, OLD, UPDATE, ComparedImages, Weights
from tidelake.lake.key_sample import are_picked
from tidelake.wire.kernels.arrays import Longs

TOO_LARGE = "the bucket is too large for a worker"
CHANGE_TYPE, CHANGE_SEQ, COMMIT_TS = MARKS = "_change_type", "_change_seq", "_commit_ts"  # the changelog's own columns that the fold reads

_KINDS = {"UPDATE_BEFORE": OLD, "DELETE": DELETE, "UPDATE_AFTER": UPDATE}
_SHOWN = 3  # number of duplicate keys that are shown
_LEAST = np.iinfo(np.int64).min


class LeftToSpark(Exception):
    """Raised for what the fold in SQL must do."""


class KeyTwice(Exception):
    """Raised if the snapshot has duplicate keys. keys: a few of them, as text."""

    def __init__(self, keys: list[str]) -> None:
        super().__init__(", ".join(keys))
        self.keys = keys


class FoldRules(BaseModel, frozen=True):
    """How to fold: changes after after_ts, up to and including until_ts (TSO). images: None if no old values are compared."""

    key: list[str]
    after_ts: int
    until_ts: int
    images: ComparedImages | None = None


class BucketRows(Protocol):
    """Rows of a snapshot or a changelog. Cells are read when they are requested."""

    count: int

    def whole(self, column: str) -> pa.Array:
        """Return a column of all rows."""

    def cells(self, column: str, *rows: Longs) -> list[pa.Array]:
        """Return a column for each of several sets of ascending row numbers."""


@dataclass(frozen=True, slots=True)
class FoldedBucket:
    """The folded rows. compared: number of keys whose old values were compared; suspects: those that do not match."""

    rows: pa.Table
    compared: int
    suspects: int


@dataclass(frozen=True, slots=True)
class _Keys:
    """The key number of each row, below `many`. kinds: kinds of the changes."""

    base: Longs
    changes: Longs
    kinds: Longs
    many: int


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest change of every key that has one: its row and its key's number. window: all changes of the window, old values included."""

    changes: Longs
    keys: Longs
    window: Longs


def fold(base: BucketRows, changes: BucketRows, rules: FoldRules, columns: Sequence[str], most_bytes: int) -> FoldedBucket:
    """Fold a bucket and return these columns of the result.

    Args:
        base: The snapshot's rows.
        changes: The changelog's rows.
        rules: How to fold.
        columns: All columns of the snapshot.
        most_bytes: Maximum size of the result.

    Raises:
        KeyTwice: The snapshot has duplicate keys.
        LeftToSpark: The result is larger than most_bytes, or only SQL can fold the bucket.
    """
    keys = _keys(base, changes, rules.key)
    _check(base, keys, rules.key)
    newest = _newest(changes, keys, rules)
    changed = np.zeros(keys.many, np.bool_)
    changed[newest.keys] = True
    kept = np.flatnonzero(~changed[keys.base])
    newer = newest.changes[keys.kinds[newest.changes] != DELETE]
    by_key = {k: pa.concat_arrays([*base.cells(k, kept), *changes.cells(k, newer)]) for k in rules.key}
    order = pc.sort_indices(pa.table(by_key), sort_keys=[(k, "ascending") for k in rules.key])
    weights = _weights(changes, keys, newest, rules)
    out, held = dict[str, pa.Array](), 0
    for name in columns:
        out[name] = _column(name, base, changes, kept, newer, weights).take(order)
        held += out[name].nbytes
        if held > most_bytes:
            raise LeftToSpark(TOO_LARGE)
    return FoldedBucket(pa.table(out), *((0, 0) if weights is None else weights.verdicts()))


def _column(name: str, base: BucketRows, changes: BucketRows, kept: Longs, newer: Longs, weights: Weights | None) -> pa.Array:
    """A column of the snapshot rows that stay and of the surviving changes; columns to compare are hashed on the way."""
    if weights is None or name not in weights.images.columns:
        return pa.concat_arrays([*base.cells(name, kept), *changes.cells(name, newer)])
    of_base, there = base.cells(name, kept, weights.there)
    of_changes, told = changes.cells(name, newer, weights.told)
    weights.add(there, told)
    return pa.concat_arrays([of_base, of_changes])


def _weights(changes: BucketRows, keys: _Keys, newest: _Newest, rules: FoldRules) -> Weights | None:
    if rules.images is None:
        return None
    rows, numbers, share = newest.changes, newest.keys, rules.images.share
    if share > 1:
        chosen = are_picked([cells for k in rules.images.sampled for cells in changes.cells(k, rows)], rules.until_ts, share)
        rows, numbers = rows[chosen], numbers[chosen]
    return Weights(rules.images, numbers, keys.many, rows, keys.base, keys.changes, keys.kinds, newest.window)


def _keys(base: BucketRows, changes: BucketRows, key: Sequence[str]) -> _Keys:
    kinds = _coded(changes.whole(CHANGE_TYPE))
    of_kind = np.array([_KINDS.get(k, INSERT) for k in kinds.dictionary.to_pylist()], np.int64)
    both, many = None, 1
    for column in key:
        cells = pa.concat_arrays([base.whole(column), changes.whole(column)])
        if cells.null_count:
            raise LeftToSpark(f"{column}, of the key, is NULL somewhere")
        coded = _coded(cells)
        numbers, more = np.asarray(coded.indices, np.int64), len(coded.dictionary)
        if both is not None:
            coded = _coded(pa.array(both * more + numbers))
            numbers, more = np.asarray(coded.indices, np.int64), len(coded.dictionary)
        both, many = numbers, more
    assert both is not None
    return _Keys(both[: base.count], both[base.count :], of_kind[np.asarray(kinds.indices)], many)


def _check(base: BucketRows, keys: _Keys, key: Sequence[str]) -> None:
    often = np.bincount(keys.base, minlength=keys.many)
    if (again := np.flatnonzero(often > 1)[:_SHOWN]).size:
        rows = np.sort(np.array([np.argmax(keys.base == k) for k in again]))
        raise KeyTwice([str(row) for row in pa.table({k: base.cells(k, rows)[0] for k in key}).to_pylist()])


def _newest(changes: BucketRows, keys: _Keys, rules: FoldRules) -> _Newest:
    """The change of each key with the greatest number. The commit ts is compared first: few keys then have several changes left."""
    ts = np.asarray(changes.whole(COMMIT_TS).fill_null(_LEAST))
    inside = (ts > rules.after_ts) & (ts <= rules.until_ts)
    rows = np.flatnonzero(inside & (keys.kinds != OLD))
    many = np.count_nonzero(np.bincount(keys.changes[rows], minlength=keys.many))
    rows = _greatest(rows, ts[rows], keys)
    if len(rows) > many:
        rows = _greatest(rows, _place(changes.cells(CHANGE_SEQ, rows)[0]), keys)
    last = np.full(keys.many, -1)
    last[keys.changes[rows]] = rows
    rows = np.sort(last[last >= 0])
    return _Newest(rows, keys.changes[rows], np.flatnonzero(inside))


def _greatest(rows: Longs, values: Longs, keys: _Keys) -> Longs:
    """Those of the rows with the greatest value of their key."""
    best = np.full(keys.many, _LEAST)
    np.maximum.at(best, keys.changes[rows], values)
    kept: Longs = rows[values == best[keys.changes[rows]]]
    return kept


def _place(sequence: pa.Array) -> Longs:
    """The rank of numbers among these numbers."""
    coded = _coded(sequence)
    rank = np.argsort(np.asarray(pc.sort_indices(coded.dictionary)))
    ranks: Longs = rank[np.asarray(coded.indices)]
    return ranks


def _coded(cells: pa.Array) -> pa.DictionaryArray:
    return pc.dictionary_encode(cells)
