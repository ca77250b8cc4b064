"""Survivors of a table without key: equal rows count as often as they were inserted, less deletes (history.ordering.fold_multiset).

Rows are equal if the hashes of all their cells are (wire.kernels.row_hashes says why that is safe). Each different row that changes has a
balance: inserts less deletes. If it is negative, so many rows of the snapshot go; if it is positive, so many inserts stay. Snapshot rows
that do not change need no memory, so passes follow the number of changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice

import numpy as np

from tidelake.lake.columns.change_kinds import INSERT, UPDATE, kinds_of
from tidelake.lake.columns.fold_rules import FoldRules
from tidelake.lake.columns.pieces import CHANGE_TYPE, Piece, Rows
from tidelake.lake.columns.survivors import Survivors, passes_for
from tidelake.wire.kernels.arrays import Ints, Longs, Words
from tidelake.wire.kernels.key_numbers import meet
from tidelake.wire.key_numbers import KeyNumbers, grown
from tidelake.wire.row_hashes import row_hashes

AHEAD = 12  # pieces of the snapshot that are hashed while the changes are counted: at most 75 MiB of hashes


def multiset_survivors(base: Rows, changes: Rows, rules: FoldRules) -> Survivors:
    """Return what a fold of a table without key keeps.

    Of equal rows, those of the snapshot stay first.

    Args:
        base: The snapshot.
        changes: The changelog.
        rules: How to fold.
    """
    out = Survivors.of(base, changes)
    passes = passes_for(changes.reached)
    for number in range(passes):
        _pass(base, changes, rules, out, (number, passes))
    return out


def _pass(base: Rows, changes: Rows, rules: FoldRules, out: Survivors, share: tuple[int, int]) -> None:
    keys, balance = KeyNumbers(), np.zeros(0, np.int64)
    inserts: list[tuple[Ints, Longs]] = []
    standing = ((at + piece.first, hashes) for piece, at, hashes in _parts(base, rules, rules.decisive, share, of_changes=False))
    with ThreadPoolExecutor(1) as pool:
        ahead = None
        for piece, at, hashes in _parts(changes, rules, (CHANGE_TYPE, *rules.counting), share, of_changes=True):
            kinds, numbers = kinds_of(piece.cells(CHANGE_TYPE))[at], keys.added(hashes)
            new = (kinds == INSERT) | (kinds == UPDATE)
            if ahead is None and not new.all():  # inserts alone remove nothing
                ahead = pool.submit(lambda: list(islice(standing, AHEAD)))
            out.counted += len(at)
            balance = grown(balance, keys.count, 0)
            np.add.at(balance, numbers, np.where(new, 1, -1))
            inserts.append((numbers[new], at[new] + piece.first))
    if (balance < 0).any() and base.count:
        to_go = np.maximum(-balance, 0)
        for rows, hashes in chain(ahead.result() if ahead else (), standing):
            numbers, met = keys.found(hashes), np.empty(len(rows), np.bool_)
            meet(numbers, to_go, met)
            out.gone[rows[met]] = True
        out.missing += int(to_go.sum())
    else:
        out.missing += int(np.maximum(-balance, 0).sum())
    to_stay = np.maximum(balance, 0)
    for numbers, rows in inserts:
        met = np.empty(len(rows), np.bool_)
        meet(numbers, to_stay, met)
        out.stays[rows[met]] = True


def _parts(
    side: Rows, rules: FoldRules, more: tuple[str, ...], share: tuple[int, int], *, of_changes: bool
) -> Iterator[tuple[Piece, Longs, Words]]:
    """Yield (a piece, places of the rows in it that this pass takes, their hashes)."""
    number, passes = share
    for piece in side.pieces(tuple(dict.fromkeys((*rules.columns, *more)))):
        alive = rules.inside(piece) if of_changes else rules.standing(piece)
        hashes = row_hashes([piece.cells(c) for c in rules.columns], rules.hash_key)
        mine = hashes[:, 1] % np.uint64(passes) == number
        at = np.flatnonzero(mine if alive is None else mine & alive)
        yield piece, at, hashes[at]
