"""Fold a snapshot and changes into a snapshot, as Spark frames. compact (up to M) and asof (any TSO) share it; oracle:
history.ordering.fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from tidelake.config.feed import Feed
from tidelake.errors import OrderError
from tidelake.history.incarnations import ALWAYS, Column, Incarnation, Removal
from tidelake.lake.catalog import LakeColumn
from tidelake.lake.tables import PARTIAL, lake_column, mask_of, physical, shown_type, value_rules
from tidelake.spark.spread import bucket_and, by_bucket
from tidelake.spark.sql_casts import CastRules, converted, from_text, literal, quote
from tidelake.wire.masks import mask_key, masked_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BY_NAME = CastRules(time_zone="UTC", names_sent=True)
BEFORE_CHANGES = "CAST(-1 AS DECIMAL(38, 0))"  # a snapshot's row comes before all changes, as if it had this `_change_seq`


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

    def left(self, r: Removal) -> str:
        """Return SQL for the rows of a removed partition, by the fold's columns.

        Raises OrderError (UNSUPPORTED_DDL) if the partition's column is gone or masked.
        """
        column = next((c for c in self.columns if c.id == r.column), None)
        if column is None:
            raise OrderError(f"{self.incarnation.name}: the partitioning column was dropped", code="UNSUPPORTED_DDL")
        if mask_of(self.feed, self.incarnation, column) is not None:
            raise OrderError(f"{self.incarnation.name}: the partitioning column is masked", code="UNSUPPORTED_DDL")
        return _in_partition(quote(column.lake_name), r)


def base_rows(base: DataFrame, columns: Sequence[LakeColumn], fold: Fold) -> DataFrame:
    """Return the rows of an earlier snapshot with the fold's columns. columns: the snapshot's columns at that time."""
    have = {c.source_id: c for c in columns if c.source_id is not None}
    values = [f"{_of_base(c, have.get(c.id), fold)} AS {quote(c.lake_name)}" for c in fold.columns]
    kept = base if fold.emptied_ts == ALWAYS else base.where(f"_commit_ts > {fold.emptied_ts}")
    rows = kept.selectExpr(*values, "_commit_ts")
    return rows.where(" AND ".join(f"NOT {_left_by(fold, r)}" for r in fold.removals)) if fold.removals else rows


def change_rows(changelog: DataFrame, columns: Sequence[LakeColumn], fold: Fold) -> DataFrame:
    """Return the changes in (applied_ts, until_ts] after the last TRUNCATE, with the fold's columns.

    A change whose row was removed with its partition does not count. In a table with a key it becomes a delete, because it hides earlier
    changes of the key.
    """
    after = max(fold.applied_ts, fold.emptied_ts)
    from_hour = f"_commit_at >= timestamp_millis({max(after, 0) >> 18})"
    inside = changelog.where(f"_commit_ts > {after} AND _commit_ts <= {fold.until_ts} AND {from_hour}")
    values = (f"{_of_change(c, physical(columns, c.id), fold)} AS {quote(c.lake_name)}" for c in fold.columns)
    marks = ["_partial"] if any(c.name == PARTIAL.name and c.source_id is None for c in columns) else []
    rows = inside.selectExpr(*values, "_change_type", "_change_seq", "_commit_ts", "_topic", "_kafka_partition", "_offset", *marks)
    if not fold.removals:
        return rows
    left = f"({' OR '.join(_left_by(fold, r) for r in fold.removals)})"
    if not fold.incarnation.key:
        return rows.where(f"NOT {left}")
    gone = f"IF({left} AND _change_type != 'UPDATE_BEFORE', 'DELETE', _change_type)"
    return rows.selectExpr(*(f"{gone} AS _change_type" if c == "_change_type" else quote(c) for c in rows.columns))


def _left_by(fold: Fold, r: Removal) -> str:
    return f"(_commit_ts <= {r.ts} AND coalesce({fold.left(r)}, false))"


def _in_partition(name: str, r: Removal) -> str:
    """Return SQL for the rows of a partition; never NULL for a NULL value."""
    value = f"CAST({name} AS STRING)" if r.text else f"abs({name} % {r.modulus})" if r.modulus else name
    if r.values is not None:
        told = [f"{value} IN ({', '.join(_written(v, r) for v in r.values)})"] if r.values else ["false"]
    else:
        bounds = ((">=", r.low), ("<", r.high))
        told = [f"{value} {sign} {_written(bound, r)}" for sign, bound in bounds if bound is not None] or [f"{name} IS NOT NULL"]
    return f"({' AND '.join(told)}{f' OR {name} IS NULL' if r.null else ''})"


def _written(bound: str, r: Removal) -> str:
    return literal(bound) if r.text else bound


def fold_keyed(base: DataFrame | None, changes: DataFrame | None, fold: Fold, bucket: str | None = None, buckets: int = 1) -> DataFrame:
    """Return one row per key: the newest change of each, without deletes. At least one side must be given.

    bucket: SQL of the bucket of a row, one of `buckets`. Rows are then distributed by it and sorted by bucket and key, once for the fold
    and the write.
    """
    if changes is not None and PARTIAL.name in changes.columns:
        marks = ["coalesce(_partial, false) AS _partial"]
        rows = _united(base, changes, fold, bucket, buckets, marks)
        return _fold_partial(rows, fold, _group(rows, fold, bucket, buckets))
    rows = _united(base, changes, fold, bucket, buckets)
    return standing(_newest(rows, fold, _group(rows, fold, bucket, buckets)), fold)


def standing(newest: DataFrame, fold: Fold) -> DataFrame:
    """Return the existing rows, from the newest change of every key."""
    names, key = [quote(c.lake_name) for c in fold.columns], {quote(k) for k in fold.key}
    there = newest.where("NOT _row._gone")
    return there.selectExpr(*(n if n in key else f"_row.{n} AS {n}" for n in names), "_row._commit_ts AS _commit_ts")


def _united(
    base: DataFrame | None,
    changes: DataFrame | None,
    fold: Fold,
    bucket: str | None,
    buckets: int,
    marks: Sequence[str] = (),
) -> DataFrame:
    """Unite the rows of both sides. `_at`: their order; `_gone`: a delete."""
    from pyspark.sql import functions as F

    names = [quote(c.lake_name) for c in fold.columns]
    parts = []
    if base is not None:
        more = ["false AS _partial"] if marks else []
        parts.append(base.selectExpr(*names, "_commit_ts", f"{BEFORE_CHANGES} AS _at", "false AS _gone", *more))
    if changes is not None:
        old, gone = "_change_type = 'UPDATE_BEFORE'", "_change_type = 'DELETE' AS _gone"
        newer = changes.where(f"NOT {old}").selectExpr(*names, "_commit_ts", "_change_seq AS _at", gone, *marks)
        parts.append(newer)
    rows = reduce(lambda a, b: a.unionByName(b), parts)
    if bucket is None:
        return rows
    rows = rows.withColumn("_bucket", F.expr(bucket))
    return by_bucket(rows, buckets)


def _group(rows: DataFrame, fold: Fold, bucket: str | None, buckets: int) -> list[str]:
    key = [quote(k) for k in fold.key]
    return key if bucket is None else bucket_and(key, buckets, rows.sparkSession)


def _sorted(folded: DataFrame, group: Sequence[str]) -> DataFrame:
    return folded.sortWithinPartitions(*group) if "_bucket" in group else folded


def _newest(rows: DataFrame, fold: Fold, group: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F

    members = [
        *(n for c in fold.columns if (n := quote(c.lake_name)) not in group),
        "_commit_ts",
        "_gone",
    ]
    newest = F.expr(f"max_by(struct({', '.join(members)}), _at)").alias("_row")
    return _sorted(rows.groupBy(*group).agg(newest), group)


def _fold_partial(rows: DataFrame, fold: Fold, group: Sequence[str]) -> DataFrame:
    """Fold rows of which some carry only their key. Their other columns come from the newest whole row, unless a delete follows it at an
    earlier commit ts. A delete at the partial row's own commit ts is the other half of a split update.
    """
    from pyspark.sql import functions as F

    names = [quote(c.lake_name) for c in fold.columns]
    rest = [n for n in names if n not in group]
    halves = f"_gone AND max(_partial) OVER (PARTITION BY {', '.join([*group, '_commit_ts'])})"
    newest = F.expr("max_by(struct(_commit_ts, _gone), _at)").alias("_row")
    whole = F.expr(f"max_by(struct({', '.join([*rest, '_gone'])}), _at) FILTER (WHERE NOT _partial)").alias("_whole")
    folded = rows.withColumn("_half", F.expr(halves)).where("NOT _half").groupBy(*group).agg(newest, whole).where("NOT _row._gone")
    folded = _sorted(folded, group)
    values = (f"IF(_whole._gone, NULL, _whole.{n}) AS {n}" if n in rest else n for n in names)
    return folded.selectExpr(*values, "_row._commit_ts AS _commit_ts")


def fold_multiset(base: DataFrame | None, changes: DataFrame | None, fold: Fold) -> DataFrame:
    """Return equal rows as often as they exist, for tables without key. Rows with `_missing` are not rows: that many deletes had no row."""
    from pyspark.sql import functions as F

    names = [quote(c.lake_name) for c in fold.columns]
    sign = "CASE WHEN _change_type IN ('INSERT', 'UPDATE_AFTER') THEN 1 ELSE -1 END"
    parts = []
    if base is not None:
        parts.append(base.selectExpr(*names, "_commit_ts", "1 AS _n"))
    if changes is not None:
        parts.append(changes.selectExpr(*names, "_commit_ts", f"{sign} AS _n"))
    rows = reduce(lambda a, b: a.unionByName(b), parts)
    grouped = rows.groupBy(*names)
    counted = grouped.agg(F.sum("_n").alias("_n"), F.expr("max(_commit_ts) FILTER (WHERE _n > 0)").alias("_commit_ts"))
    missing = "IF(_n < 0, -_n, NULL) AS _missing"
    return (
        counted.where("_n != 0").selectExpr(*names, "_commit_ts", missing, "explode(sequence(1L, greatest(_n, 1L))) AS _copy").drop("_copy")
    )


def _of_base(c: Column, have: LakeColumn | None, fold: Fold) -> str:
    wanted = lake_column(fold.feed, fold.incarnation, c)
    if have is None:
        return _default(c, fold) if c.since_ts > ALWAYS else f"CAST(NULL AS {wanted.type})"
    return converted(quote(have.name), have.type, wanted.type)


def _of_change(c: Column, have: Sequence[LakeColumn], fold: Fold) -> str:
    wanted = lake_column(fold.feed, fold.incarnation, c)
    values = [converted(quote(h.name), h.type, wanted.type) for h in have]
    value = f"coalesce({', '.join(values)})" if len(values) > 1 else (values or [f"CAST(NULL AS {wanted.type})"])[0]
    if c.since_ts > fold.applied_ts and c.default is not None:
        return f"IF(_commit_ts <= {c.since_ts}, {_default(c, fold)}, {value})"
    return value


def _default(c: Column, fold: Fold) -> str:
    """Return the value of rows from before the column, in the column's lake type."""
    kind = lake_column(fold.feed, fold.incarnation, c).type
    if c.default is None:
        return f"CAST(NULL AS {kind})"
    if (mask := mask_of(fold.feed, fold.incarnation, c)) is not None:
        default = masked_text(c.default, mask, c.type, mask_key(fold.feed))
        shown = shown_type(fold.feed, fold.incarnation, c)
        return f"CAST(NULL AS {kind})" if default is None else f"CAST({from_text(literal(default), shown, _BY_NAME)} AS {kind})"
    rules = CastRules(time_zone=fold.feed.time_zone, values=value_rules(fold.feed, fold.incarnation, c), names_sent=True)
    return f"CAST({from_text(literal(c.default), c.type, rules)} AS {kind})"
