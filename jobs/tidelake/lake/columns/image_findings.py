"""Which changes do not match the row before them, for keys whose sums do not match (image_sums.py).

Changes of one key at one commit ts count as one, because a split update may come beside its unsplit copy. An old row may therefore be
another image of its commit ts, an insert may come with a delete, and a delete with an insert. Values are compared by their hashes, one
column at a time, so that only hashes of the suspects' rows are in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from tidelake.lake.columns.change_kinds import DELETE, INSERT, OLD, UPDATE, Kinds
from tidelake.lake.columns.fold_rules import FoldRules
from tidelake.lake.columns.image_sums import ImageSums, RowsOfKeys
from tidelake.lake.columns.pieces import CHANGE_SEQ, COMMIT_TS, PLACE, Rows
from tidelake.wire.kernels.arrays import Flags, Longs, Words
from tidelake.wire.row_hashes import decimal_words, row_hashes

EXAMPLES = 5  # examples shown per table
_LENGTH = 80  # characters shown per value
_FINE, _DUPLICATE, _MISSING, _DIFFERS = range(4)
_NAMES = {_DUPLICATE: "duplicate_inserts", _MISSING: "missing", _DIFFERS: "differs"}
_SNAPSHOT = -1  # words of the sequence of the snapshot's rows, which comes before all changes


class ImageFindings(BaseModel):
    """Changes that do not match.

    Attributes:
        counts: Number of changes by code.
        columns: Number of changes by differing column.
        examples: (`_change_seq`, message) of the first ones.
    """

    counts: dict[str, int] = {}
    columns: dict[str, int] = {}
    examples: list[tuple[int, str]] = []


@dataclass(frozen=True, slots=True)
class _Images:
    """The suspects' rows, by key and then in order.

    Attributes:
        side: 0 of the snapshot, 1 of changes.
        row: Number of the row on its side.
        group: Number of key and commit ts.
        kind: Kind of the change; INSERT for a row of the snapshot.
        low: Low word of `_change_seq`.
        high: High word of `_change_seq`; _SNAPSHOT for a row of the snapshot.
        was: Index of the newest row of the key with an earlier commit ts, -1 without one.
    """

    side: Longs
    row: Longs
    group: Longs
    kind: Kinds
    low: Longs
    high: Longs
    was: Longs


def find_images(base: Rows, changes: Rows, rules: FoldRules, sums: ImageSums, suspects: Longs) -> ImageFindings:
    """Return what is found for the suspects.

    Args:
        base: The snapshot.
        changes: The changelog.
        rules: How the table is folded.
        sums: The sums, complete.
        suspects: Numbers of the keys that do not match, ascending.
    """
    sides = (sums.of_base.of_keys(suspects), sums.of_changes.of_keys(suspects))
    read = _Reader((base, changes), sides)
    images = _ordered(sides, read)
    codes = _codes(images, read.hashes(sums, images), sums.images.key_only_deletes)
    found = np.flatnonzero(codes != _FINE)
    first = found[np.lexsort((images.low[found].view(np.uint64), images.high[found]))][:EXAMPLES]
    differing = found[codes[found] == _DIFFERS]
    columns, shown = dict[str, int](), {int(i): list[str]() for i in first}
    for name in sums.images.columns if len(differing) else ():
        of_column = read.column_hashes(name, images)
        apart = differing[of_column[differing] != of_column[images.was[differing]]]
        if len(apart):
            columns[name] = len(apart)
            for i in np.intersect1d(apart, first):
                shown[int(i)].append(name)
    counts = {name: int(np.sum(codes == code)) for code, name in _NAMES.items() if (codes == code).any()}
    examples = [(_sequence(images, int(i)), read.message(rules, images, int(i), int(codes[i]), shown[int(i)])) for i in first]
    return ImageFindings(counts=counts, columns=columns, examples=examples)


class _Reader:
    """Reads cells of the suspects' rows. sides: (snapshot, changes), with the rows of each."""

    def __init__(self, tables: tuple[Rows, Rows], sides: tuple[RowsOfKeys, RowsOfKeys]) -> None:
        self.tables, self.sides = tables, sides

    def words(self, side: int, column: str, width: int) -> Longs:
        """Return a column of numbers of a side's rows, `width` words each."""
        out, wanted, of_side = np.zeros((len(self.sides[side].rows), width), np.int64), self._wanted(side), self.sides[side]
        for piece in self.tables[side].pieces([column], wanted):
            here, cells = of_side.within(piece), piece.cells(column)
            found = decimal_words(cells) if width > 1 else np.asarray(cells.cast(pa.int64()).fill_null(0))[:, None]
            out[here] = found[of_side.rows[here] - piece.first]
        return out

    def hashes(self, sums: ImageSums, images: _Images) -> Words:
        """Return the hash of each image."""
        both = []
        for n, side in enumerate(self.sides):
            out = np.ones(len(side.rows), np.uint64)
            for piece in self.tables[n].pieces(sums.images.columns, self._wanted(n)) if sums.images.columns else ():
                here = side.within(piece)
                out[here] = sums.hashes(piece, side.rows[here] - piece.first)
            both.append(out)
        return self._put(both, images)

    def column_hashes(self, column: str, images: _Images) -> Words:
        """Return the hash of one column of each image."""
        both = []
        for n, side in enumerate(self.sides):
            out = np.zeros(len(side.rows), np.uint64)
            for piece in self.tables[n].pieces([column], self._wanted(n)):
                here = side.within(piece)
                out[here] = row_hashes([piece.cells(column).take(pa.array(side.rows[here] - piece.first))], (0, 0))[:, 0]
            both.append(out)
        return self._put(both, images)

    def _put(self, both: Sequence[Words], images: _Images) -> Words:
        out = np.zeros(len(images.row), np.uint64)
        for n, side in enumerate(self.sides):
            mine = images.side == n
            out[mine] = both[n][np.searchsorted(side.rows, images.row[mine])]
        return out

    def _wanted(self, side: int) -> Flags:
        out = np.zeros(self.tables[side].count, np.bool_)
        out[self.sides[side].rows] = True
        return out

    def _cells(self, side: int, row: int, columns: Sequence[str]) -> dict[str, Any]:
        wanted = np.zeros(self.tables[side].count, np.bool_)
        wanted[row] = True
        for piece in self.tables[side].pieces(columns, wanted):
            if piece.first <= row < piece.first + piece.count:
                return {c: piece.cells(c)[row - piece.first] for c in columns}
        raise LookupError(row)

    def message(self, rules: FoldRules, images: _Images, i: int, code: int, columns: Sequence[str]) -> str:
        """Return a finding's message: `id=3 at t[0]@17: v was a, here b`."""
        of = self._cells(1, int(images.row[i]), list(dict.fromkeys((*rules.key, *columns, *PLACE))))
        key = ", ".join(f"{k}={_text(of[k])}" for k in rules.key)
        topic, partition, offset = (of[c].as_py() for c in PLACE)
        place = "an exchange of partitions" if topic is None else f"{topic}[{partition}]@{offset}"
        if code == _DUPLICATE:
            said = "insert of a row that already exists"
        elif code == _MISSING:
            said = f"{'delete' if images.kind[i] == DELETE else 'update'} of a row that does not exist in the lake"
        else:
            was = int(images.was[i])
            here = self._cells(int(images.side[was]), int(images.row[was]), columns)
            said = "; ".join(f"{c} was {_text(of[c])}, here {_text(here[c])}" for c in columns)
        return f"{key} at {place}: {said}"


def _ordered(sides: tuple[RowsOfKeys, RowsOfKeys], read: _Reader) -> _Images:
    """Sort the rows by key, commit ts and sequence."""
    ts = np.concatenate([read.words(n, COMMIT_TS, 1)[:, 0] for n in (0, 1)])
    places = np.concatenate([np.full((len(sides[0].rows), 2), _SNAPSHOT), read.words(1, CHANGE_SEQ, 2)])
    keys, rows, kinds = (np.concatenate([getattr(s, name) for s in sides]) for name in ("keys", "rows", "kinds"))
    side = np.repeat([0, 1], [len(s.rows) for s in sides])
    low, high = places[:, 0], places[:, 1]
    order = np.lexsort((low.view(np.uint64) if low.flags.c_contiguous else np.ascontiguousarray(low).view(np.uint64), high, ts, keys))
    keys, ts, rows, kinds, side, low, high = (x[order] for x in (keys, ts, rows, kinds, side, low, high))
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = (keys[1:] != keys[:-1]) | (ts[1:] != ts[:-1])
    group = np.cumsum(begins) - 1
    latest = np.maximum.accumulate(np.where(kinds != OLD, np.arange(len(keys)), -1)) if len(keys) else np.zeros(0, np.int64)
    before = np.flatnonzero(begins) - 1  # the last row before each group
    was = np.where(before >= 0, latest[before], -1)[group] if len(keys) else latest
    was = np.where((was >= 0) & (keys[was] == keys), was, -1)
    return _Images(side=side, row=rows, group=group, kind=kinds, low=np.ascontiguousarray(low), high=high, was=was)


def _codes(images: _Images, hashes: Words, key_only_deletes: bool) -> Longs:
    """Return the code of each row."""
    kind, group = images.kind, images.group
    groups = int(group[-1]) + 1 if len(group) else 0
    made = np.bincount(group[(kind == INSERT) & (images.side == 1)], minlength=groups)[group] > 0
    freed = np.bincount(group[kind <= DELETE], minlength=groups)[group] > 0
    stands = (images.was >= 0) & (kind[images.was] != DELETE)
    tagged = hashes ^ (group.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    beside = np.isin(tagged, tagged[(kind >= UPDATE) & (images.side == 1)])
    replaces = kind <= DELETE
    other = replaces & stands & ~beside & (hashes != hashes[images.was])
    if key_only_deletes:
        other &= kind == OLD
    out = np.where(other, _DIFFERS, _FINE)
    out[replaces & ~stands & ~made] = _MISSING
    out[(kind == INSERT) & (images.side == 1) & stands & ~freed] = _DUPLICATE
    return out


def _sequence(images: _Images, i: int) -> int:
    return (int(images.high[i]) << 64) | (int(images.low[i]) & (1 << 64) - 1)


def _text(cell: pa.Scalar) -> str:
    value = cell.as_py()
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return value.hex().upper()[:_LENGTH]
    if isinstance(value, datetime):
        shown = value.replace(tzinfo=None).isoformat(sep=" ")
        return shown.rstrip("0") if "." in shown else shown
    return (f"{value:f}" if isinstance(value, Decimal) else str(value))[:_LENGTH]
