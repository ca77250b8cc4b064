"""Typed rows of one bucket to deduplicated, ordered changes in Arrow. Same result as order.sql.rows.

Oracle: history.ordering.deduplicated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config.lake_paths import EVENT
from tidelake.history.ordering import CLASS
from tidelake.order.arrow.arrow_rows import AT, DELETE, INSERT, MOVE, UPDATE, UPDATE_WITHOUT_BEFORE, UPSERT, losses_of
from tidelake.order.arrow.arrow_tables import ArrowTable
from tidelake.order.arrow.keyless_rows import equal_rows
from tidelake.order.change_sequence import CHANGE_TYPES
from tidelake.spark.buckets import buckets_of
from tidelake.wire.kernels.arrays import Flags, Longs

SLICE = 1 << 17  # events that are converted at once: about a row group
_OPS = {INSERT: "insert", UPSERT: "upsert", DELETE: "delete", UPDATE_WITHOUT_BEFORE: "update", UPDATE: "update", MOVE: "update"}
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
        rows: Rows in the form of arrow_rows.Typed.
        steps: Topic and partition → offsets at which the resolved ts went back.
        counted: Events by outcome; complete after the last part.
    """

    table: ArrowTable
    bucket: int
    rows: pa.Table
    steps: Sequence[tuple[str, int, list[int]]] = ()
    counted: Counter[str] = field(default_factory=Counter)

    def parts(self) -> Iterator[BucketPart]:
        """Yield (bucket, day since 1970, changes in commit order).

        Deletes of rows that moved to another key can belong to other buckets; they come last.
        """
        order, strays = self._distinct(), list[tuple[int, pa.Table]]()
        for first in range(0, len(order), SLICE):
            yield from _by_day(self.bucket, self._changes(order[first : first + SLICE], strays))
        for bucket in sorted({b for b, _ in strays}):
            yield from _by_day(bucket, pa.concat_tables(t for b, t in strays if b == bucket))

    def _distinct(self) -> Longs:
        """Row numbers in order, one of each change: of equal events the one with the lowest coordinates."""
        kind = np.asarray(self.rows.column("kind"))
        at = {"topic": _ranks(self.rows.column("topic").combine_chunks())} | {c: self.rows.column(c) for c in AT[1:]}
        if self.table.every:
            numbers = _sorted({"ts": self.rows.column("commit_ts")} | at)
        else:
            identity = self._identity(kind) if self.table.key else equal_rows(self.rows, kind, self.steps)
            numbers = _sorted(identity | at)
            numbers = numbers[~_repeats(pa.table(identity), numbers)]
        for k, n in enumerate(np.bincount(kind[numbers], minlength=len(_OPS)).tolist()):
            self.counted.update({"distinct": n, f"{_OPS[k]}s": n})
            self.counted.update(
                {"key_changes": n} if k == MOVE else {"updates_without_before_image": n} if k == UPDATE_WITHOUT_BEFORE else {}
            )
        for c in self.table.columns:
            if (name := f"l{c.id}") in self.rows.column_names:
                found = losses_of(self.rows.column(name).take(pa.array(numbers)))
                self.counted.update({f"{loss}_{c.id}": n for loss, n in found.items()})
        return numbers

    def _identity(self, kind: Longs) -> dict[str, Any]:
        """What equal events of a key share, the commit ts first."""
        deleted = pa.array(kind == DELETE)
        keys = {f"k{k}": pc.if_else(deleted, self.rows.column(f"b{k}"), self.rows.column(f"a{k}")) for k in self.table.key}
        return {"ts": self.rows.column("commit_ts"), **keys, "class": pa.array(_CLASS[kind])}

    def _changes(self, rows: Longs, strays: list[tuple[int, pa.Table]]) -> pa.Table:
        """The changes of these rows, one or two per row. Changes of other buckets are added to strays as (bucket, changes)."""
        kind = np.asarray(self.rows.column("kind").take(pa.array(rows)))
        event, side = np.nonzero(_HAS[kind])
        old, new = rows[event[side == 0]], rows[event[side == 1]]
        place = pa.array(np.where(side == 0, np.cumsum(side == 0) - 1, len(old) + np.cumsum(side) - 1))
        columns = {c.name: _two(self.rows, c.id, old, new).take(place) for c in self.table.columns}
        at = pa.array(rows[event])
        ts, offset, ordinal = (np.asarray(self.rows.column(c).take(at)).astype(np.int64) for c in ("commit_ts", "offset", "ordinal"))
        types = _TYPE_OF[kind[event], side]
        columns["_change_type"] = _TYPES.take(pa.array(types))
        columns["_change_seq"] = self.table.sequence.numbers(ts, offset, ordinal, types)
        columns["_commit_ts"] = pa.array(ts)
        columns["_origin"] = pa.repeat(EVENT, len(ts))
        columns["_commit_at"] = pa.array((ts >> 18) * 1000).cast(pa.timestamp("us", "UTC"))
        changes = pa.table(columns | {name: self.rows.column(c).take(at) for name, c in _META.items()})
        left = (kind[event] == MOVE) & (side == 0) & (self.table.bucket is not None)
        return self._without_strays(changes, left, strays) if left.any() else changes

    def _without_strays(self, changes: pa.Table, left: Flags, strays: list[tuple[int, pa.Table]]) -> pa.Table:
        """Move changes of other buckets to strays. left: rows that moved to another key, so their bucket must be computed."""
        name = next(c.name for c in self.table.columns if c.id == self.table.bucket)
        bucket = np.full(changes.num_rows, self.bucket)
        keys = changes.column(name).filter(pa.array(left)).combine_chunks()
        bucket[left] = buckets_of(keys, self.table.buckets)
        strays += [(b, changes.filter(pa.array(bucket == b))) for b in np.unique(bucket).tolist() if b != self.bucket]
        return changes.filter(pa.array(bucket == self.bucket))


def _two(rows: pa.Table, number: int, old: Longs, new: Longs) -> pa.Array:
    """A column's values: first those of the old images, then those of the new ones."""
    parts = rows.column(f"b{number}").take(pa.array(old)), rows.column(f"a{number}").take(pa.array(new))
    return pa.chunked_array([x for part in parts for x in part.chunks], parts[0].type).combine_chunks()


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
        same &= np.asarray(pc.equal(column.take(pa.array(order[at])), column.take(pa.array(order[at - 1]))))
    again[at] = same
    return again


def _by_day(bucket: int, changes: pa.Table) -> Iterator[BucketPart]:
    days = (np.asarray(changes.column("_commit_ts")) >> 18) // _DAY_MS
    found, first = np.unique(days, return_index=True)
    for day, low, high in zip(found.tolist(), first.tolist(), [*first[1:].tolist(), len(days)], strict=True):
        yield bucket, day, changes.slice(low, high - low)
