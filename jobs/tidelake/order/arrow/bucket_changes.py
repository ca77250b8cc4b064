"""Typed rows of one bucket to deduplicated, ordered changes in Arrow. Oracle: history.ordering.deduplicated.

Equal events have the same commit ts. So the rows of a large bucket are worked in portions, each a range of commit ts: memory holds one
portion, the rows stay on disk. A transaction that is larger than a portion is divided by hashes of what its equal events share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config.lake_paths import EVENT
from tidelake.history.ordering import CLASS
from tidelake.lake.columns.repeated import as_dictionary, together
from tidelake.order.arrow.keyless_rows import HASH, equal_rows
from tidelake.order.arrow.row_streams import SpilledRows
from tidelake.order.arrow.rows_reading import (
    AT,
    DELETE,
    INSERT,
    MOVE,
    UPDATE,
    UPDATE_WITHOUT_BEFORE,
    UPSERT,
    bucket_numbers,
    losses_of,
    same_values,
)
from tidelake.order.arrow.table_models import ArrowColumn, ArrowTable
from tidelake.order.change_sequence import CHANGE_TYPES
from tidelake.wire.hashes import hex_digits
from tidelake.wire.kernels.arrays import Flags, Longs

PARTIAL = "_partial"
SLICE = 1 << 17  # most events that are converted at once: about a row group
PORTION = 1_000_000  # most rows of a portion
PORTION_BYTES = 64 << 20  # most bytes of a portion
SLICE_BYTES = 64 << 20  # most bytes of the events that are converted at once
_HASHES = (1 << 31) - 1  # number of buckets; with it a value's bucket is its whole hash
_MIX = 1_000_003  # odd
_OPS = {INSERT: "insert", UPSERT: "upsert", DELETE: "delete", UPDATE_WITHOUT_BEFORE: "update", UPDATE: "update", MOVE: "update"}
_ALSO = {MOVE: ("key_changes",), UPDATE_WITHOUT_BEFORE: ("updates_without_before_image",)}  # further counters
_CLASS = np.array([CLASS[_OPS[k]] for k in range(len(_OPS))], np.int8)
_TYPES = pa.array(CHANGE_TYPES)
_OLD = {DELETE: 3, UPDATE: 1, MOVE: 3}  # kind → index in _TYPES of its old image
_NEW = {INSERT: 0, UPSERT: 2, UPDATE_WITHOUT_BEFORE: 2, UPDATE: 2, MOVE: 0}
_TYPE_OF = np.array([[_OLD.get(k, 0), _NEW.get(k, 0)] for k in range(len(_OPS))])
_HAS = np.array([[k in _OLD, k in _NEW] for k in range(len(_OPS))])
_DAY_MS = 86_400_000
_META = dict(zip(("_topic", "_kafka_partition", "_offset", "_ordinal"), AT, strict=True))

BucketPart = tuple[int, int, pa.Table]


@dataclass(slots=True)
class BucketChanges:
    """The changes of one bucket.

    Attributes:
        table: The table.
        bucket: Number of the bucket.
        rows: Rows in the form of rows_reading.Typed, on disk.
        steps: Topic and partition → offsets at which the resolved ts went back.
        counted: Events by outcome; complete after the last part.
    """

    table: ArrowTable
    bucket: int
    rows: SpilledRows
    steps: Sequence[tuple[str, int, list[int]]] = ()
    counted: Counter[str] = field(default_factory=Counter)

    def parts(self) -> Iterator[BucketPart]:
        """Yield (bucket, day since 1970, changes) with changes in commit order within a portion of the rows.

        Deletes of rows that moved to another key can belong to other buckets; they come last in their portion.
        """
        for rows in self._portions():
            yield from self._parts_of(rows)

    def _portions(self) -> Iterator[pa.Table]:
        """Yield the rows in portions: by commit ts, and a large transaction by hashes."""
        ts, most = self.rows.ts, _most(self.rows.count, self.rows.nbytes, PORTION, PORTION_BYTES)
        ends = np.unique(np.sort(ts)[most - 1 :: most]).tolist()  # the last commit ts of each portion
        for low, high in pairwise([-1, *ends, *([int(ts.max())] if ts.size else [])]):
            mine = (ts > low) & (ts <= high)
            if count := int(np.count_nonzero(mine)):
                yield from self._split(mine, -(-count // most)) if count > 2 * most else (self.rows.take(mine),)

    def _split(self, mine: Flags, parts: int) -> Iterator[pa.Table]:
        """Yield the rows of large transactions: equal events stay together."""
        code = np.full(self.rows.count, -1)
        for numbers, rows in self.rows.parts(mine):
            code[numbers] = self._codes(rows) % parts
        for n in range(parts):
            if (chosen := code == n).any():
                yield self.rows.take(chosen)

    def _codes(self, rows: pa.Table) -> Longs:
        """A hash of what equal events share."""
        shared = self._identity(rows, np.asarray(rows.column("kind"))) if self.table.key else {HASH[1]: rows.column(HASH[1])}
        code = np.zeros(rows.num_rows, np.int64)
        for name, column in shared.items():
            if name not in ("ts", "class"):
                code = code * _MIX + _hashes(column)
        return code

    def _parts_of(self, rows: pa.Table) -> Iterator[BucketPart]:
        rows = self._with_digits(rows)
        order, strays = self._distinct(rows), list[tuple[int, pa.Table]]()
        step = _most(rows.num_rows, rows.nbytes, SLICE, SLICE_BYTES)
        for first in range(0, len(order), step):
            yield from _by_day(self.bucket, self._changes(rows, order[first : first + step], strays))
        for bucket in sorted({b for b, _ in strays}):
            yield from _by_day(bucket, pa.concat_tables(t for b, t in strays if b == bucket))

    def _with_digits(self, rows: pa.Table) -> pa.Table:
        """The rows with hashes as hex digits, those of a dictionary once each."""
        for name in (f"{side}{c.id}" for c in self.table.columns if self.table.repeats(c) for side in "ab"):
            hashes = rows.column(name).combine_chunks()
            if pa.types.is_dictionary(hashes.type):
                digits = pa.DictionaryArray.from_arrays(hashes.indices, hex_digits(hashes.dictionary))
            else:
                digits = hex_digits(hashes)
            rows = rows.set_column(rows.schema.get_field_index(name), name, digits)
        return rows

    def _distinct(self, rows: pa.Table) -> Longs:
        """Row numbers in order, one of each change: of equal events a whole one before a partial one, then the lowest coordinates."""
        kind = np.asarray(rows.column("kind"))
        at = {"topic": _ranks(rows.column("topic").combine_chunks())} | {c: rows.column(c) for c in AT[1:]}
        if self.table.every:
            numbers = _sorted({"ts": rows.column("commit_ts")} | at)
        else:
            identity = self._identity(rows, kind) if self.table.key else equal_rows(rows, self.steps)
            numbers = _sorted(identity | {"partial": rows.column("partial").cast(pa.int8())} | at)
            numbers = numbers[~_repeats(pa.table(identity), numbers)]
        self._count(rows, numbers, kind[numbers])
        return numbers

    def _count(self, rows: pa.Table, numbers: Longs, kind: Longs) -> None:
        for k, n in enumerate(np.bincount(kind, minlength=len(_OPS)).tolist()):
            self.counted.update(dict.fromkeys(("distinct", f"{_OPS[k]}s", *_ALSO.get(k, ())), n))
        partial = np.asarray(rows.column("partial"))[numbers]
        self.counted["partial"] += int((partial & (kind != DELETE)).sum() if self.table.key else partial.sum())
        there = set(rows.column_names)
        for c in self.table.columns:
            if (name := f"l{c.id}") in there:
                self.counted.update({f"{loss}_{c.id}": n for loss, n in losses_of(rows.column(name).take(pa.array(numbers))).items()})

    def _identity(self, rows: pa.Table, kind: Longs) -> dict[str, Any]:
        """What equal events of a key share, the commit ts first."""
        deleted = pa.array(kind == DELETE)
        keys = {f"k{k}": pc.if_else(deleted, rows.column(f"b{k}"), rows.column(f"a{k}")) for k in self.table.key}
        return {"ts": rows.column("commit_ts"), **keys, "class": pa.array(_CLASS[kind])}

    def _changes(self, rows: pa.Table, chosen: Longs, strays: list[tuple[int, pa.Table]]) -> pa.Table:
        """The changes of these rows, one or two per row. Changes of other buckets are added to strays as (bucket, changes)."""
        kind = np.asarray(rows.column("kind").take(pa.array(chosen)))
        event, side = np.nonzero(_HAS[kind])
        old, new = chosen[event[side == 0]], chosen[event[side == 1]]
        place = pa.array(np.where(side == 0, np.cumsum(side == 0) - 1, len(old) + np.cumsum(side) - 1))
        columns = {c.name: self._cells(rows, c, old, new).take(place) for c in self.table.columns}
        at = pa.array(chosen[event])
        ts, offset, ordinal = (np.asarray(rows.column(c).take(at)).astype(np.int64) for c in ("commit_ts", "offset", "ordinal"))
        types = _TYPE_OF[kind[event], side]
        columns["_change_type"] = _TYPES.take(pa.array(types))
        columns["_change_seq"] = self.table.sequence.numbers(ts, offset, ordinal, types)
        columns["_commit_ts"] = pa.array(ts)
        columns["_origin"] = pa.repeat(EVENT, len(ts))
        columns["_commit_at"] = pa.array((ts >> 18) * 1000).cast(pa.timestamp("us", "UTC"))
        columns[PARTIAL] = pc.and_(rows.column("partial").take(at), pa.array(types != CHANGE_TYPES.index("DELETE")))
        changes = pa.table(columns | {name: rows.column(c).take(at) for name, c in _META.items()})
        left = (kind[event] == MOVE) & (side == 0) & (self.table.bucket is not None)
        return self._without_strays(changes, left, strays) if left.any() else changes

    def _cells(self, rows: pa.Table, column: ArrowColumn, old: Longs, new: Longs) -> pa.Array:
        """A column's values: first those of the old images, then those of the new ones."""
        sides = (("b", old), ("a", new))
        parts = [pa.table({"": rows.column(f"{side}{column.id}").take(pa.array(wanted))}) for side, wanted in sides]
        cells = together(parts).column(0).combine_chunks()
        return as_dictionary(cells) if self.table.repeats(column) else cells

    def _without_strays(self, changes: pa.Table, left: Flags, strays: list[tuple[int, pa.Table]]) -> pa.Table:
        """Move changes of other buckets to strays. left: rows that moved to another key, so their bucket must be computed."""
        name = next(c.name for c in self.table.columns if c.id == self.table.bucket)
        bucket = np.full(changes.num_rows, self.bucket)
        bucket[left] = bucket_numbers(changes.column(name).filter(pa.array(left)).combine_chunks(), self.table.buckets)
        strays += [(b, changes.filter(pa.array(bucket == b))) for b in np.unique(bucket).tolist() if b != self.bucket]
        return changes.filter(pa.array(bucket == self.bucket))


def _most(rows: int, nbytes: int, count: int, size: int) -> int:
    """The number of so many rows, of so many bytes, that keeps both limits, one at least. size: bytes."""
    fit: int = size * rows // max(nbytes, 1)
    return max(1, min(count, fit))


def _hashes(column: pa.ChunkedArray) -> Longs:
    """A hash of each value, 0 for NULL; equal values have equal hashes."""
    whole = column.combine_chunks()
    known = pa.types.is_floating(whole.type) or pa.types.is_list(whole.type)
    return bucket_numbers(whole.cast(pa.string()) if known else whole, _HASHES) + 1


def _sorted(by: dict[str, Any]) -> Longs:
    table = pa.table(by)
    return np.asarray(pc.sort_indices(table, sort_keys=[(c, "ascending") for c in table.column_names])).astype(np.int64)


def _ranks(topics: pa.DictionaryArray) -> pa.Array:
    """Topics as numbers with the same sort order."""
    words = topics.dictionary.to_pylist()
    rank = {w: n for n, w in enumerate(sorted(words))}
    return pa.array([rank[w] for w in words], pa.int32()).take(topics.indices)


def _repeats(identity: pa.Table, order: Longs) -> Flags:
    """Whether each row, in this order, equals the row before it."""
    ts = np.asarray(identity.column("ts"))[order]
    again = np.zeros(len(order), np.bool_)
    at = np.flatnonzero(ts[1:] == ts[:-1]) + 1
    same = np.ones(len(at), np.bool_)
    for name in identity.column_names[1:]:
        column = identity.column(name)
        same &= same_values(column.take(pa.array(order[at])), column.take(pa.array(order[at - 1])))
    again[at] = same
    return again


def _by_day(bucket: int, changes: pa.Table) -> Iterator[BucketPart]:
    days = (np.asarray(changes.column("_commit_ts")) >> 18) // _DAY_MS
    found, first = np.unique(days, return_index=True)
    for day, low, high in zip(found.tolist(), first.tolist(), [*first[1:].tolist(), len(days)], strict=True):
        yield bucket, day, changes.slice(low, high - low)
