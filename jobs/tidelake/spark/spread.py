"""Work to tasks, evenly, and to threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THREADS = 4  # tables that are worked on side by side
_TASK_BYTES = 64 << 20  # of objects, about
_SPLIT_BYTES = (1 << 20, 128 << 20)  # of files: the least, the most


def by_bucket(rows: DataFrame, buckets: int) -> DataFrame:
    """Rows with `_bucket` (0 … buckets - 1, or NULL) so that one task has all of a bucket, and every task as many buckets.

    `repartition("_bucket")` would go by the hash of the number: both of two buckets fell to one task of four.
    """
    return rows.repartitionById(min(buckets, _tasks(rows.sparkSession)), "_bucket")


def bucket_and(columns: Sequence[str], buckets: int, spread: SparkSession | None) -> list[str]:
    """`_bucket` and these columns, to sort by. What comes first should tell most rows apart, so the bucket does only where a task may have
    several. spread: whose `by_bucket` distributed the rows, None where one task has them all."""
    several = buckets > (1 if spread is None else _tasks(spread))
    return ["_bucket", *columns] if several else [*columns, "_bucket"]


def in_parts(spark: SparkSession, sizes: Mapping[str, int]) -> list[list[str]]:
    """Objects by the task that takes them, from their sizes in bytes: to begin a task costs more than a small object does."""
    many = max(min(_tasks(spark), len(sizes)), -(-sum(sizes.values()) // _TASK_BYTES))
    parts: list[tuple[int, int, list[str]]] = [(0, n, []) for n in range(many)]
    heapify(parts)
    for key in sorted(sizes, key=lambda k: (-sizes[k], k)):
        size, n, keys = parts[0]
        heapreplace(parts, (size + sizes[key], n, [*keys, key]))
    return [sorted(keys) for _, _, keys in sorted(parts, key=lambda p: p[1]) if keys]


def split_bytes(spark: SparkSession, size: int) -> int:
    """Of Iceberg's files, so many for each task that reads them; Iceberg's own way would leave cores idle below 16 MiB a core."""
    least, most = _SPLIT_BYTES
    return max(least, min(most, size // _tasks(spark)))


def _tasks(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
