"""Survivors of a table with a key: the newest change of each key, and the snapshot's rows whose key has none (history.ordering.fold).

Each key gets a number. Changes are read piece by piece, and the newest one of each number is kept, so one key may have any number of
changes. The keys of a pass are in memory, not their rows; with many rows, each pass takes those keys whose hash falls to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.lake.columns.change_kinds import DELETE, OLD, Kinds, kinds_of
from tidelake.lake.columns.fold_rules import FoldRules
from tidelake.lake.columns.image_sums import ImageSums
from tidelake.lake.columns.pieces import CHANGE_SEQ, CHANGE_TYPE, COMMIT_TS, PARTIAL, Piece, Rows
from tidelake.lake.columns.survivors import KeyTwice, Survivors, passes_for
from tidelake.wire.kernels.arrays import Flags, Ints, Longs, Words
from tidelake.wire.kernels.key_numbers import NONE, newest
from tidelake.wire.key_numbers import KeyNumbers, grown
from tidelake.wire.row_hashes import decimal_words, row_hashes

_SHOWN = 3  # number of duplicate keys that are shown


def keyed_survivors(base: Rows, changes: Rows, rules: FoldRules, sums: ImageSums | None = None) -> Survivors:
    """Return what a fold of a table with a key keeps.

    Args:
        base: The snapshot.
        changes: The changelog.
        rules: How to fold.
        sums: Receives the rows whose old values are compared.

    Raises:
        KeyTwice: The snapshot has duplicate keys.
    """
    out = Survivors.of(base, changes)
    passes = passes_for(changes.reached + (0 if rules.merges else base.reached))
    for number in range(passes):
        _Pass(base, changes, rules, sums, out, (number, passes)).run()
    return out


@dataclass(frozen=True, slots=True)
class _Part:
    """Those rows of a piece that a pass takes: their numbers on their side, their hashes, and where they are in the piece."""

    piece: Piece
    at: Longs
    hashes: Words

    @property
    def rows(self) -> Longs:
        return self.at + self.piece.first


@dataclass(frozen=True, slots=True)
class _Changed:
    """Changes of a part that count. at: where they are in it; halves: hashes of key and commit ts, if rows may be partial."""

    part: _Part
    kinds: Kinds
    partial: Flags | None
    halves: Words | None


class _Newest:
    """The newest row of each key number, with its commit ts and whether it is a delete."""

    def __init__(self) -> None:
        self.row = np.full(0, NONE, np.int64)
        self.ts, self.gone = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        self._best = np.zeros((0, 2), np.int64)

    def add(self, keys: int, numbers: Ints, rows: Longs, places: Longs, ts: Longs, gone: Flags) -> None:
        """Add changes. keys: number of all keys so far."""
        self.row, self.ts, self.gone = grown(self.row, keys, NONE), grown(self.ts, keys, 0), grown(self.gone, keys, 0)
        self._best = grown(self._best, keys, 0)
        newest(numbers, places, rows, self._best, self.row)
        won = self.row[numbers] == rows
        self.ts[numbers[won]], self.gone[numbers[won]] = ts[won], gone[won]


class _Pass:
    """One pass over both sides. share: (its number, number of passes)."""

    def __init__(self, base: Rows, changes: Rows, rules: FoldRules, sums: ImageSums | None, out: Survivors, share: tuple[int, int]) -> None:
        self.base, self.changes, self.rules, self.sums, self.out, self.share = base, changes, rules, sums, out, share
        self.keys, self.halves = KeyNumbers(), KeyNumbers()
        self.newest, self.whole = _Newest(), _Newest()

    def run(self) -> None:
        """Add the survivors among this pass's keys."""
        if self.rules.partial:
            for c in self._changed():
                assert c.partial is not None
                assert c.halves is not None
                self.halves.added(c.halves[c.partial])
        for c in self._changed():
            self._take(c)
        self.many = self.keys.count
        self.newest.add(self.many, *_nothing())
        self.whole.add(self.many, *_nothing())
        held = self._base() if self.base.count else np.full(self.many, NONE, np.int64)
        if self.rules.partial:
            self._known(held)
        else:
            rows = self.newest.row[: self.many]
            self.out.stays[rows[(rows != NONE) & ~self.newest.gone[: self.many]]] = True
        if self.sums is not None:
            self.sums.close_pass(self.many, self.newest.row, self.newest.gone)

    def _parts(self, side: Rows, columns: tuple[str, ...], wanted: Flags | None, of_changes: bool) -> Iterator[_Part]:
        rules, (number, passes) = self.rules, self.share
        for piece in side.pieces(tuple(dict.fromkeys((*rules.key, *columns))), wanted):
            alive = rules.inside(piece) if of_changes else rules.standing(piece)
            hashes = row_hashes([piece.cells(k) for k in rules.key], rules.hash_key)
            if passes > 1:
                mine = hashes[:, 1] % np.uint64(passes) == number
                alive = mine if alive is None else mine & alive
            if alive is None:
                yield _Part(piece, np.arange(piece.count), hashes)
            else:
                at = np.flatnonzero(alive)
                yield _Part(piece, at, hashes[at])

    def _changed(self) -> Iterator[_Changed]:
        rules = self.rules
        marks = (CHANGE_TYPE, CHANGE_SEQ, *((PARTIAL,) if rules.partial else ()), *rules.counting)
        for part in self._parts(self.changes, marks, None, True):
            kinds = kinds_of(part.piece.cells(CHANGE_TYPE))
            if rules.removed:
                kinds = np.where(rules.left(part.piece) & (kinds != OLD), np.int8(DELETE), kinds)
            kinds = kinds[part.at]
            if self.sums is None:
                now = kinds != OLD
                part, kinds = _Part(part.piece, part.at[now], part.hashes[now]), kinds[now]
            partial = halves = None
            if rules.partial:
                partial = np.asarray(pc.fill_null(part.piece.cells(PARTIAL), False))[part.at] & (kinds != OLD)
                cells = [part.piece.cells(k) for k in (*rules.key, COMMIT_TS)]
                halves = row_hashes(cells, rules.hash_key)[part.at]
            yield _Changed(part, kinds, partial, halves)

    def _take(self, c: _Changed) -> None:
        now = c.kinds != OLD
        if c.partial is not None and c.halves is not None:
            now &= ~((c.kinds == DELETE) & (self.halves.found(c.halves) != NONE))
        numbers = self.keys.added(c.part.hashes)
        self.out.counted += len(numbers)
        if self.sums is not None:
            self.sums.tell(c.part.hashes, c.part.rows, numbers, c.kinds)
        places = decimal_words(c.part.piece.cells(CHANGE_SEQ))[c.part.at]
        ts = np.asarray(c.part.piece.cells(COMMIT_TS).fill_null(0))[c.part.at]
        told = (numbers, c.part.rows, places, ts, c.kinds == DELETE)
        self.newest.add(self.keys.count, *(t[now] for t in told))
        if c.partial is not None:
            self.whole.add(self.keys.count, *(t[now & ~c.partial] for t in told))

    def _base(self) -> Longs:
        """Mark the snapshot's rows whose key has a change as gone. Return for each key with changes its row, or NONE."""
        rules, held, seen, total = self.rules, np.full(self.many, NONE, np.int64), np.zeros(0, np.bool_), 0
        wanted = self._near() if rules.merges else None
        for part in self._parts(self.base, rules.decisive, wanted, False):
            numbers = self.keys.found(part.hashes) if rules.merges else self.keys.added(part.hashes)
            known, rows = numbers != NONE, part.rows
            seen, total = grown(seen, self.keys.count + 1, 0), total + int(np.count_nonzero(known))
            before = seen[numbers] & known
            seen[numbers[known]] = True
            if np.count_nonzero(seen) != total:
                raise KeyTwice(_shown(part, numbers, before, rules.key))
            changed = known & (numbers < self.many)
            of_key = numbers[changed]
            changed[changed] = self.newest.row[of_key] != NONE
            of_key = numbers[changed]
            held[of_key] = rows[changed]
            self.out.gone[rows[changed]] = True
            if self.sums is not None:
                self.sums.stand(part.hashes[changed], rows[changed], of_key)
        return held

    def _near(self) -> Flags:
        """The snapshot's rows that may have a changed key, as far as statistics tell."""
        near = np.ones(self.base.count, np.bool_)
        for k in self.rules.key:
            found = [p.cells(k).unique() for p in self.changes.pieces([k])]
            values = pa.concat_arrays(found).unique() if found else pa.nulls(0)
            if len(values) and not values.null_count:
                near &= self.base.may_hold(k, values.take(pc.sort_indices(values)))
        return near

    def _known(self, held: Longs) -> None:
        """Rows of which the newest change has only the key keep the values of the newest whole row, unless that is a delete."""
        newest, whole, out = self.newest.row[: self.many], self.whole.row[: self.many], self.out
        stands = (newest != NONE) & ~self.newest.gone[: self.many]
        own = stands & (newest == whole)
        out.stays[newest[own]] = True
        lent = stands & ~own
        of_change = lent & (whole != NONE) & ~self.whole.gone[: self.many]
        of_base = lent & (whole == NONE) & (held != NONE)
        neither = lent & ~of_change & ~of_base
        ts = self.newest.ts[: self.many]
        out.stays[whole[of_change]] = True
        out.change_stamps.add(whole[of_change], ts[of_change])
        out.gone[held[of_base]] = False
        out.base_stamps.add(held[of_base], ts[of_base])
        out.stays[newest[neither]] = True
        out.bare = np.zeros(len(out.stays), np.bool_) if out.bare is None else out.bare
        out.bare[newest[neither]] = True


def _nothing() -> tuple[Ints, Longs, Longs, Longs, Flags]:
    none = np.zeros(0, np.int64)
    return np.zeros(0, np.int32), none, np.zeros((0, 2), np.int64), none, np.zeros(0, np.bool_)


def _shown(part: _Part, numbers: Ints, before: Flags, key: tuple[str, ...]) -> list[str]:
    """A few keys that a part has twice, or that were there before it."""
    often = np.bincount(numbers[numbers != NONE]) > 1
    again = before | ((numbers != NONE) & often[numbers])
    _, first = np.unique(numbers[again], return_index=True)
    rows = part.at[again][np.sort(first)[:_SHOWN]]
    return [str(row) for row in part.piece.rows.select(list(key)).take(pa.array(rows)).to_pylist()]
