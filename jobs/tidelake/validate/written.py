"""Counts again what a run wrote to changelogs: rows by change type, null keys, first and last commit ts.

Small changelogs are read without Spark, which would take longer to plan than to count; the others in one Spark job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.lake.branches import sql_name
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Advance, Staged
from tidelake.lake.tables import holders
from tidelake.spark.run_parts import SMALL_BYTES
from tidelake.spark.spread import THREADS
from tidelake.spark.sql_text import literal, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WrittenCounts = Mapping[str, int]
KINDS = ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")
AT_HAND = 100_000  # maximum changes of a small changelog


def rows_at_hand(table: LakeTable, a: Advance, changes: int) -> pa.Table | None:
    """Return the rows that a run staged, read without Spark; None if they are too many for that.

    Args:
        table: The changelog.
        a: What the run staged.
        changes: Number of the rows.
    """
    size = table.summary(a.to).get("added-files-size")
    few = changes <= AT_HAND and size is not None and int(size) <= SMALL_BYTES
    return table.added(a.base, a.to, [c.name for c in table.columns()]) if few else None


def as_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows in memory as Spark's, with the types of Iceberg's reader. The JVM then loads neither Iceberg nor S3's client."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(rows, from_arrow_schema(rows.schema, prefer_timestamp_ntz=True))


def appended(spark: SparkSession, a: Advance) -> DataFrame:
    """Return the rows that a run staged, read by Spark."""
    reader = spark.read.option("start-snapshot-id", a.base).option("end-snapshot-id", a.to)
    return reader.table(sql_name(a.identifier))


def written(spark: Callable[[], SparkSession], catalog: LakeCatalog, staged: Staged) -> dict[str, WrittenCounts]:
    """Return by incarnation a number for each of KINDS, `null_keys`, `first_ts` and `last_ts`. Changelogs without new rows are left out.

    spark: returns the session, and may start it.
    """
    changelogs, tables = staged.changelogs, staged.cut.catalog.incarnations

    def counted(i: str) -> WrittenCounts | list[str]:
        """The numbers of a small changelog, the key's columns of another."""
        table = catalog.load(changelogs[i].identifier)
        have = holders(table.columns())
        keys = [have[k][0].name for k in tables[i].key]
        return _here(table, keys, changelogs[i]) if staged.counts[i].changes <= AT_HAND else keys

    with ThreadPoolExecutor(THREADS) as pool:
        found = dict(zip(changelogs, pool.map(counted, changelogs), strict=True))
    here = {i: f for i, f in found.items() if not isinstance(f, list)}
    return here | _by_spark(spark, {i: (changelogs[i], keys) for i, keys in found.items() if isinstance(keys, list)})


def _here(table: LakeTable, keys: Sequence[str], a: Advance) -> WrittenCounts:
    rows = table.added(a.base, a.to, ["_change_type", "_commit_ts", *keys])
    kinds = {c["values"]: c["counts"] for c in pc.value_counts(rows["_change_type"]).to_pylist()}
    nulls = reduce(pc.or_, (pc.is_null(rows[k]) for k in keys), pa.scalar(False))
    bounds = pc.min_max(rows["_commit_ts"]).as_py()
    null_keys = (pc.sum(nulls).as_py() or 0) if keys else 0
    return {**{k: kinds.get(k, 0) for k in KINDS}, "null_keys": null_keys, "first_ts": bounds["min"], "last_ts": bounds["max"]}


def _by_spark(spark: Callable[[], SparkSession], todo: Mapping[str, tuple[Advance, Sequence[str]]]) -> dict[str, WrittenCounts]:
    if not todo:
        return {}
    narrow = []
    for i, (a, keys) in todo.items():
        null_key = " OR ".join(f"{quote(k)} IS NULL" for k in keys) or "false"
        rows = appended(spark(), a)
        narrow.append(rows.selectExpr(f"{literal(i)} AS incarnation", "_change_type", "_commit_ts", f"({null_key}) AS null_key"))
    grouped = reduce(lambda a, b: a.unionByName(b), narrow).groupBy("incarnation")
    found = grouped.agg(*_aggregates()).collect()
    return {r["incarnation"]: {k: v for k, v in r.asDict().items() if k != "incarnation"} for r in found}


def _aggregates() -> list[Any]:
    from pyspark.sql import functions as F

    return [
        *(F.count(F.when(F.col("_change_type") == kind, 1)).alias(kind) for kind in KINDS),
        F.count(F.when(F.col("null_key"), 1)).alias("null_keys"),
        F.min("_commit_ts").alias("first_ts"),
        F.max("_commit_ts").alias("last_ts"),
    ]
