"""Parameters of a fold of changes into a snapshot (oracle: history.ordering.fold). lake.folding plans it, lake.columns does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelake.config.feed import Feed
from tidelake.errors import OrderError
from tidelake.history.incarnations import Column, Incarnation, Removal
from tidelake.history.partitions import HASHED
from tidelake.lake.tables import mask_of
from tidelake.spark.sql_text import literal, quote

_SIGN = 1 << 63  # the bit of a BIGINT that is its sign


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Parameters of a fold: a table's columns and key at until_ts, from the rows and changes after applied_ts. Times are TSO."""

    feed: Feed
    incarnation: Incarnation
    columns: tuple[Column, ...]
    applied_ts: int
    until_ts: int

    @property
    def key(self) -> list[str]:
        """The names of the key's columns, in key order."""
        names = {c.id: c.lake_name for c in self.columns}
        return [names[k] for k in self.incarnation.key]

    @property
    def emptied_ts(self) -> int:
        """The TSO of the last TRUNCATE; rows up to it are gone. ALWAYS if there was none."""
        return self.incarnation.truncated(self.until_ts)

    @property
    def rewrites_all(self) -> bool:
        """Whether rows change without a change event: a TRUNCATE, a removed partition, or a new column's default. A statement may come with
        the window after the one that ends with it.
        """
        defaults = any(c.since_ts >= max(self.applied_ts, 0) and c.default is not None for c in self.columns)
        return self.emptied_ts >= max(self.applied_ts, 0) or defaults or bool(self.removals)

    @property
    def removals(self) -> list[Removal]:
        """Partitions whose rows were removed, up to until_ts."""
        return [r for r in self.incarnation.removals if r.ts <= self.until_ts]

    def partition_columns(self, r: Removal) -> list[Column]:
        """Return the columns that together say whether a row was removed, mostly one, without those of r.also.

        Raises OrderError (UNSUPPORTED_DDL) if one is gone, masked, or one of KEY that has another type since.
        """
        found = [self._partition_column(n) for n in r.hashed or (r.column,)]
        other = next((c for c in found if r.hashed and c.type.word not in HASHED), None)
        if other is not None:
            raise OrderError(
                f"{self.incarnation.name}: the rows of a partition by KEY are not known once column {other.name!r} is {other.type.sql}",
                code="UNSUPPORTED_DDL",
            )
        return found

    def _partition_column(self, number: int) -> Column:
        column = next((c for c in self.columns if c.id == number), None)
        if column is None:
            raise OrderError(f"{self.incarnation.name}: the partitioning column was dropped", code="UNSUPPORTED_DDL")
        if mask_of(self.feed, self.incarnation, column) is not None:
            raise OrderError(f"{self.incarnation.name}: the partitioning column is masked", code="UNSUPPORTED_DDL")
        return column

    def left(self, r: Removal) -> str:
        """Return SQL for the rows of a removed partition, by the fold's columns. Raises OrderError (UNSUPPORTED_DDL).

        Workers have the same condition in Arrow (lake.columns.fold_rules.Removed).
        """
        return " AND ".join(_in_partition(self.partition_columns(c), c) for c in r.conditions)


def _in_partition(columns: Sequence[Column], r: Removal) -> str:
    """Return SQL for the rows of a partition; never NULL for a NULL value."""
    if r.hashed:
        return f"crc32(concat({', '.join(map(_hashed, columns))})) % {r.modulus} IN ({', '.join(r.values or ())})"
    name = quote(columns[0].lake_name)
    value = f"CAST({name} AS STRING)" if r.text else _remainder(columns[0], r.modulus) if r.modulus else name
    if r.values is not None:
        told = [f"{value} IN ({', '.join(_written(v, r) for v in r.values)})"] if r.values else ["false"]
    else:
        bounds = ((">=", r.low), ("<", r.high))
        told = [f"{value} {sign} {_written(bound, r)}" for sign, bound in bounds if bound is not None] or [f"{name} IS NOT NULL"]
    return f"({' AND '.join(told)}{f' OR {name} IS NULL' if r.null else ''})"


def _remainder(column: Column, modulus: int) -> str:
    """Return SQL for the absolute remainder that HASH takes (history/partitions.py): of 64 bits with a sign, whatever the column has."""
    name = quote(column.lake_name)
    signed = f"if({name} >= {_SIGN}, {name} - {2 * _SIGN}, {name})" if column.type.name == "bigint unsigned" else name
    return f"abs({signed} % {modulus})"


def _hashed(column: Column) -> str:
    """Return SQL for the bytes of a column that TiDB's KEY takes (history/partitions.py)."""
    name = quote(column.lake_name)
    return f"coalesce({name if column.type.is_binary else f'CAST(CAST({name} AS STRING) AS BINARY)'}, X'00')"


def _written(bound: str, r: Removal) -> str:
    return literal(bound) if r.text else bound
