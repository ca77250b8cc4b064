"""What the columns of a table hold, gathered from streams of record batches. Memory is bounded by a batch and a few values a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.tso import LOGICAL_BITS
from tidelake.validate.written import KINDS

MOST_VALUES = 20  # distinct values that are kept of a column
MOST_KEYS = 5_000_000  # inserts whose keys are kept
_CHARACTERS = 64  # longest text that is kept
_HOUR_MS = 3_600_000
_NEW = pa.array(["INSERT", "UPDATE_AFTER"])


@dataclass(slots=True, kw_only=True)
class ColumnProfile:
    """What a column held.

    Attributes:
        rows: Number of rows.
        nulls: Number of NULLs.
        least: The least value of a number or time; None if there is none.
        most: The greatest one.
        finite: Whether no value is NaN or infinite.
        values: The distinct values; None if there are more than MOST_VALUES, or long ones.
    """

    rows: int = 0
    nulls: int = 0
    least: Any = None
    most: Any = None
    finite: bool = True
    values: set[Any] | None = field(default_factory=set)

    def add(self, column: pa.Array) -> None:
        """Take in the values of a batch."""
        self.rows += len(column)
        self.nulls += column.null_count
        kind = column.type
        if pa.types.is_floating(kind):
            self.finite = self.finite and bool(pc.all(pc.is_finite(column)).as_py() in (True, None))
        if self.finite and (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_temporal(kind)
        ):
            self._range(column)
        if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
            self._distinct(column)
        else:
            self.values = None

    def _range(self, column: pa.Array) -> None:
        found = pc.min_max(column).as_py()
        if found["min"] is not None:
            self.least = found["min"] if self.least is None else min(self.least, found["min"])
            self.most = found["max"] if self.most is None else max(self.most, found["max"])

    def _distinct(self, column: pa.Array) -> None:
        if self.values is None:
            return
        found = pc.unique(column)
        if len(found) > MOST_VALUES + 1:  # one may be NULL
            self.values = None
            return
        self.values |= {v for v in found.to_pylist() if v is not None}
        if len(self.values) > MOST_VALUES or any(isinstance(v, str) and len(v) > _CHARACTERS for v in self.values):
            self.values = None


@dataclass(slots=True)
class InsertedKeys:
    """Keys of inserts, as hashes of 64 bits; they are forgotten if there are more than MOST_KEYS."""

    hashes: list[Any] = field(default_factory=list)
    number: int = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Take in the key columns of inserts."""
        from pandas.util import hash_pandas_object

        self.number += rows.num_rows
        self.hashes = [*self.hashes, hash_pandas_object(rows.to_pandas(), index=False).to_numpy()] if self.number <= MOST_KEYS else []

    @property
    def are_unique(self) -> bool:
        """Whether there are inserts, all were kept, and no key occurs twice."""
        return bool(self.hashes) and len(np.unique(np.concatenate(self.hashes))) == self.number > 0


@dataclass(slots=True, kw_only=True)
class TableProfile:
    """What a table and the changes of its last hours held.

    Attributes:
        columns: By column id of the source.
        key: Ids of the key's columns; () where it is not looked at.
        keys: The keys of inserts.
        published: Number of rows in the published snapshot.
        changed: Number of new rows in the changelog.
        by_hour: Hour of the commit (hours since 1970) → change type → number of changes; `NEW` counts whole new rows.
    """

    columns: dict[int, ColumnProfile]
    key: tuple[int, ...] = ()
    keys: InsertedKeys = field(default_factory=InsertedKeys)
    published: int = 0
    changed: int = 0
    by_hour: dict[int, Counter[str]] = field(default_factory=dict)

    def add_published(self, batch: pa.RecordBatch, names: Mapping[int, str]) -> None:
        """Take in rows of the snapshot. names: the batch's columns by column id."""
        self.published += batch.num_rows
        self._add(batch, names)

    def add_changes(self, batch: pa.RecordBatch, names: Mapping[int, str]) -> None:
        """Take in rows of the changelog: all are counted, whole new rows are profiled."""
        kinds = batch["_change_type"]
        hours = np.right_shift(batch["_commit_ts"].to_numpy(zero_copy_only=False), LOGICAL_BITS) // _HOUR_MS
        whole = pc.is_in(kinds, value_set=_NEW)
        if "_partial" in batch.schema.names:
            whole = pc.and_(whole, pc.invert(pc.fill_null(batch["_partial"], False)))
        for kind in KINDS:
            self._count(hours[pc.equal(kinds, kind).to_numpy(zero_copy_only=False)], kind)
        self._count(hours[whole.to_numpy(zero_copy_only=False)], "NEW")
        self.changed += pc.sum(whole).as_py() or 0
        self._add(batch.filter(whole), names)
        if self.key:
            self.keys.add(batch.filter(pc.equal(kinds, "INSERT")).select([names[n] for n in self.key]))

    def counts(self, kind: str) -> list[int]:
        """Return how many changes of a type, or `NEW`, each hour with changes had, sorted."""
        return sorted(counted[kind] for counted in self.by_hour.values())

    def _count(self, hours: Any, kind: str) -> None:
        for hour, n in zip(*(found.tolist() for found in np.unique(hours, return_counts=True)), strict=True):
            self.by_hour.setdefault(hour, Counter())[kind] += n

    def _add(self, batch: pa.RecordBatch, names: Mapping[int, str]) -> None:
        for i, name in names.items():
            if i in self.columns:
                self.columns[i].add(batch[name])
