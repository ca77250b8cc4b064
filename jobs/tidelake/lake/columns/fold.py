"""Folds changes into a snapshot in Arrow: the one implementation of history.ordering.fold and fold_multiset.

First the surviving rows are found, from the columns that decide it (keyed_rows.py, multisets.py). Then all columns are read, a piece at a
time, and only for survivors. Memory follows the number of keys that a pass takes, and the size of a piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidelake.lake.columns.fold_rules import FoldRules
from tidelake.lake.columns.image_findings import ImageFindings, find_images
from tidelake.lake.columns.image_sums import ImageSums
from tidelake.lake.columns.keyed_rows import keyed_survivors
from tidelake.lake.columns.multisets import multiset_survivors
from tidelake.lake.columns.pieces import COMMIT_TS, Piece, Rows
from tidelake.lake.columns.survivors import Stamps
from tidelake.wire.kernels.arrays import Flags, Longs


@dataclass(frozen=True, slots=True)
class ImageResult:
    """Result of comparing old values. compared, suspects: numbers of keys; found: what does not match, for the suspects."""

    compared: int
    suspects: int
    found: ImageFindings


class BucketFold:
    """A fold of some rows: of a bucket or of a table.

    Attributes:
        gone: Rows of the snapshot that are replaced or deleted by changes.
        missing: Number of deletes that met no row, in a table without key.
        counted: Number of changes that count.
    """

    def __init__(self, base: Rows, changes: Rows, rules: FoldRules) -> None:
        """Find the survivors.

        Args:
            base: The snapshot's rows.
            changes: The changelog's rows.
            rules: How to fold.

        Raises:
            KeyTwice: The snapshot has duplicate keys.
        """
        self._base, self._changes, self._rules = base, changes, rules
        self._sums = ImageSums(rules.images, rules.hash_key) if rules.images is not None else None
        if rules.key:
            self._kept = keyed_survivors(base, changes, rules, self._sums)
        else:
            self._kept = multiset_survivors(base, changes, rules)
        self.gone, self.missing, self.counted = self._kept.gone, self._kept.missing, self._kept.counted

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the result in pieces: the columns and `_commit_ts`. With merge-on-read, only the rows of changes.

        Old values are compared on the way, so all pieces must be taken before `images`.
        """
        yield from self._of_base()
        yield from self._of_changes()

    def images(self) -> ImageResult | None:
        """Return the result of comparing old values, None if none are compared."""
        if self._sums is None:
            return None
        compared, suspects = self._sums.verdicts()
        found = find_images(self._base, self._changes, self._rules, self._sums, suspects) if len(suspects) else ImageFindings()
        return ImageResult(compared, len(suspects), found)

    def _of_base(self) -> Iterator[pa.RecordBatch]:
        rules, stays = self._rules, ~self.gone
        if rules.merges:
            stays = np.zeros(0, np.bool_)
            if self._sums is None:
                return
        for piece in self._pieces(self._base, stays if not rules.merges else None, of_base=True):
            if self._sums is not None:
                self._sums.see(piece, of_base=True)
            if rules.merges:
                continue
            here, alive = stays[piece.first : piece.first + piece.count], rules.standing(piece)
            yield from self._chosen(piece, here if alive is None else here & alive, self._kept.base_stamps, None)

    def _of_changes(self) -> Iterator[pa.RecordBatch]:
        for piece in self._pieces(self._changes, self._kept.stays, of_base=False):
            if self._sums is not None:
                self._sums.see(piece, of_base=False)
            here = self._kept.stays[piece.first : piece.first + piece.count]
            yield from self._chosen(piece, here, self._kept.change_stamps, self._kept.bare)

    def _pieces(self, side: Rows, stays: Flags | None, *, of_base: bool) -> Iterator[Piece]:
        """Read what a side gives to the result or to the comparison. stays: rows of the result, None if only the comparison reads."""
        rules, compared = self._rules, self._compared(of_base=of_base)
        if stays is None:
            wanted, columns = np.zeros(side.count, np.bool_), dict.fromkeys(rules.images.columns if rules.images else ())
        else:
            wanted, columns = stays.copy(), dict.fromkeys((*rules.columns, COMMIT_TS))
        wanted[compared] = True
        if wanted.any():
            yield from side.pieces(list(columns), wanted)

    def _compared(self, *, of_base: bool) -> Longs:
        if self._sums is None:
            return np.zeros(0, np.int64)
        return (self._sums.of_base if of_base else self._sums.of_changes).rows

    def _chosen(self, piece: Piece, here: Flags, stamps: Stamps, bare: Flags | None) -> Iterator[pa.RecordBatch]:
        """Yield the chosen rows of a piece, if there are any."""
        chosen = int(np.count_nonzero(here))
        if not chosen:
            return
        rows = piece.rows.select([*self._rules.columns, COMMIT_TS])
        rows = _stamped(piece, rows, stamps)
        if bare is not None:
            rows = _bared(rows, bare[piece.first : piece.first + piece.count], self._rules.key)
        yield rows if chosen == piece.count else rows.take(pa.array(np.flatnonzero(here)))


def _stamped(piece: Piece, rows: pa.RecordBatch, stamps: Stamps) -> pa.RecordBatch:
    if not stamps.rows:
        return rows
    own = np.asarray(piece.cells(COMMIT_TS))
    return rows.set_column(rows.num_columns - 1, COMMIT_TS, pa.array(stamps.put(piece.first, own), pa.int64()))


def _bared(rows: pa.RecordBatch, bare: Flags, key: tuple[str, ...]) -> pa.RecordBatch:
    """The rows, with NULL for what is not known of bare ones."""
    if not bare.any():
        return rows
    places, columns = pa.array(np.arange(len(bare)), mask=bare), []
    for name, cells in zip(rows.schema.names, rows.columns, strict=True):
        columns.append(cells if name in key or name == COMMIT_TS else cells.take(places))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
