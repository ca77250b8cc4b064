"""Snapshot ⊕ changes → snapshot of one bucket in Arrow: what lake.fold and lake.images say in SQL. Oracle: ordering.fold.

Keys become numbers, so that all that is asked of them is asked of arrays. Which rows stand is worked out from keys and places alone; other
columns are read one by one, and of them what stands. A table whose key has a NULL is refused: SQL's rules for it are not worth their code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.lake.key_sample import are_picked
from tidelake.layout import MOVED_FIRST, MOVED_LAST

CHANGE_TYPE, COMMIT_TS, PARTITION = "_change_type", "_commit_ts", "_kafka_partition"
MARKS = (CHANGE_TYPE, COMMIT_TS, "_topic", PARTITION, "_offset", "_ordinal")  # a changelog's own columns that the fold reads

_OLD, _DELETE, _UPDATE, _INSERT = -1, 0, 1, 2  # by the class of their place
_KINDS = {"UPDATE_BEFORE": _OLD, "DELETE": _DELETE, "UPDATE_AFTER": _UPDATE}
_SHOWN = 3  # keys that stand twice
_SEED = np.uint64(0x9E3779B97F4A7C15)
_LEAST = np.iinfo(np.int64).min

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class Refused(Exception):
    """What the fold in SQL must judge."""


class KeyTwice(Exception):
    """The snapshot holds keys twice. keys: a few, as text."""

    def __init__(self, keys: list[str]) -> None:
        super().__init__(", ".join(keys))
        self.keys = keys


class Compared(BaseModel, frozen=True):
    """How old values are compared (lake.images). columns: those that are; share: of so many keys one; sampled: the key's columns that
    choose it."""

    columns: list[str]
    sampled: list[str]
    share: int
    thin_deletes: bool


class Rules(BaseModel, frozen=True):
    """What is folded: changes after after_ts, up to and including until_ts. images: None where no old values are compared."""

    key: list[str]
    after_ts: int
    until_ts: int
    by_arrival: bool
    images: Compared | None = None


class Rows(Protocol):
    """Rows of a snapshot or a changelog, whose cells are read when they are asked for."""

    count: int

    def cells(self, column: str, rows: Numbers | None = None) -> pa.Array:
        """A column of all rows, or of these, which ascend."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands: rows of the snapshot and of the changes, and the order of both by key. compared, suspects: keys whose old values were
    compared, and those where they do not come out."""

    base: Numbers
    changes: Numbers
    order: pa.Array
    compared: int = 0
    suspects: int = 0

    @property
    def count(self) -> int:
        """Rows."""
        return len(self.base) + len(self.changes)

    def column(self, name: str, base: Rows, changes: Rows) -> pa.Array:
        """A column of what stands, in order."""
        return pa.concat_arrays([base.cells(name, self.base), changes.cells(name, self.changes)]).take(self.order)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The number of each row's key, of `many`. kinds: of the changes."""

    base: Numbers
    changes: Numbers
    kinds: Numbers
    many: int


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest change of every key that has one: its row and its key's number. rows: of the window, those of old values among them."""

    changes: Numbers
    keys: Numbers
    rows: Numbers


def fold(base: Rows, changes: Rows, rules: Rules) -> Standing:
    """Which rows stand. Raises Refused, KeyTwice."""
    keys = _keys(base, changes, rules.key)
    _check(base, keys, rules.key)
    newest = _newest(changes, keys, rules)
    changed = np.zeros(keys.many, np.bool_)
    changed[newest.keys] = True
    kept = np.flatnonzero(~changed[keys.base])
    newer = newest.changes[keys.kinds[newest.changes] != _DELETE]
    by_key = {k: pa.concat_arrays([base.cells(k, kept), changes.cells(k, newer)]) for k in rules.key}
    order = pc.sort_indices(pa.table(by_key), sort_keys=[(k, "ascending") for k in rules.key])
    compared, suspects = (0, 0) if rules.images is None else _verdicts(base, changes, keys, newest, rules, rules.images)
    return Standing(kept, newer, order, compared, suspects)


def _keys(base: Rows, changes: Rows, key: Sequence[str]) -> _Keys:
    kinds = _coded(changes.cells(CHANGE_TYPE))
    of_kind = np.array([_KINDS.get(k, _INSERT) for k in kinds.dictionary.to_pylist()], np.int64)
    both, many = None, 1
    for column in key:
        cells = pa.concat_arrays([base.cells(column), changes.cells(column)])
        if cells.null_count:
            raise Refused(f"{column}, of the key, is NULL somewhere")
        coded = _coded(cells)
        numbers, more = np.asarray(coded.indices, np.int64), len(coded.dictionary)
        if both is not None:
            coded = _coded(pa.array(both * more + numbers))
            numbers, more = np.asarray(coded.indices, np.int64), len(coded.dictionary)
        both, many = numbers, more
    assert both is not None
    return _Keys(both[: base.count], both[base.count :], of_kind[np.asarray(kinds.indices)], many)


def _check(base: Rows, keys: _Keys, key: Sequence[str]) -> None:
    often = np.bincount(keys.base, minlength=keys.many)
    if (again := np.flatnonzero(often > 1)[:_SHOWN]).size:
        rows = np.sort(np.array([np.argmax(keys.base == k) for k in again]))
        raise KeyTwice([str(row) for row in pa.table({k: base.cells(k, rows) for k in key}).to_pylist()])


def _newest(changes: Rows, keys: _Keys, rules: Rules) -> _Newest:
    """The greatest place of each key, column after column; after the first one hardly a key has several changes left."""
    ts = np.asarray(changes.cells(COMMIT_TS).fill_null(_LEAST))
    inside = (ts > rules.after_ts) & (ts <= rules.until_ts)
    rows = np.flatnonzero(inside & (keys.kinds != _OLD))
    many = len(np.unique(keys.changes[rows]))
    for values_of in (lambda r: ts[r], *_places(changes, keys, rules)):
        values, of = values_of(rows), keys.changes[rows]
        best = np.full(keys.many, _LEAST)
        np.maximum.at(best, of, values)
        rows = rows[values == best[of]]
        if len(rows) == many:
            break
    last = np.full(keys.many, -1)
    last[keys.changes[rows]] = rows
    rows = np.sort(last[last >= 0])
    return _Newest(rows, keys.changes[rows], np.flatnonzero(inside))


def _places(changes: Rows, keys: _Keys, rules: Rules) -> Iterator[Callable[[Numbers], Numbers]]:
    """What lake.fold.place compares after the commit ts."""

    def number(column: str) -> Callable[[Numbers], Numbers]:
        return lambda rows: np.asarray(changes.cells(column, rows).cast(pa.int64()).fill_null(_LEAST))

    def order(rows: Numbers) -> Numbers:
        partition = number(PARTITION)(rows)
        kinds = np.zeros(len(rows), np.int64) if rules.by_arrival else keys.kinds[rows]
        return np.where(partition == MOVED_LAST, 3, np.where(partition == MOVED_FIRST, -1, kinds))

    def topic(rows: Numbers) -> Numbers:
        coded = _coded(changes.cells("_topic", rows))
        rank: Numbers = np.argsort(np.asarray(pc.sort_indices(coded.dictionary)))
        ranks: Numbers = rank[np.asarray(coded.indices)]
        return ranks

    yield from (order, topic, number(PARTITION), number("_offset"), number("_ordinal"))


def _verdicts(base: Rows, changes: Rows, keys: _Keys, newest: _Newest, rules: Rules, images: Compared) -> tuple[int, int]:
    """(keys compared, those that do not come out): what lake.images.Images.verdict says."""
    mine = newest
    if images.share > 1:
        chosen = are_picked([changes.cells(k, newest.changes) for k in images.sampled], rules.until_ts, images.share)
        mine = _Newest(newest.changes[chosen], newest.keys[chosen], newest.rows)
    at = np.full(keys.many, -1)
    at[mine.keys] = np.arange(len(mine.keys))
    there, told = np.flatnonzero(at[keys.base] >= 0), newest.rows[at[keys.changes[newest.rows]] >= 0]
    kinds, of_told, of_base = keys.kinds[told], at[keys.changes[told]], at[keys.base[there]]
    silent = _sums(of_told, (kinds == _UPDATE).astype(np.int64) - (kinds == _OLD), len(mine.keys))
    hashes = _hashes((pa.concat_arrays([base.cells(c, there), changes.cells(c, told)]) for c in images.columns), len(there) + len(told))
    weights = np.zeros(len(mine.keys), np.uint64)
    np.add.at(weights, of_base, hashes[: len(there)])
    of_change = hashes[len(there) :]
    np.add.at(weights, of_told, np.where(kinds >= _UPDATE, of_change, -of_change))
    gone = keys.kinds[mine.changes] == _DELETE
    wrong = weights != np.where(gone, np.uint64(0), of_change[np.searchsorted(told, mine.changes)])
    if images.thin_deletes:
        deletes = (kinds == _DELETE).astype(np.int64)
        rows = _sums(of_told, (kinds == _INSERT) - deletes, len(mine.keys)) + np.bincount(of_base, minlength=len(mine.keys))
        wrong = np.where(_sums(of_told, deletes, len(mine.keys)) > 0, rows != ~gone, wrong)
    return int(np.sum(silent == 0)), int(np.sum(wrong & (silent == 0)))


def _sums(of: Numbers, values: Numbers, many: int) -> Numbers:
    out = np.zeros(many, np.int64)
    np.add.at(out, of, values)
    return out


def _hashes(columns: Iterator[pa.Array], count: int) -> Hashes:
    """Of rows; equal rows have equal ones here and nowhere else."""
    out = np.full(count, _SEED)
    for cells in columns:
        plain = pc.add(cells, 0.0) if pa.types.is_floating(cells.type) else cells  # -0.0 is 0.0
        out = _mixed(out ^ np.asarray(_coded(plain).indices.fill_null(-1)).astype(np.uint64))
    return out


def _mixed(x: Hashes) -> Hashes:
    """SplitMix64's finalizer."""
    x = x + _SEED
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _coded(cells: pa.Array) -> pa.DictionaryArray:
    return pc.dictionary_encode(cells)
