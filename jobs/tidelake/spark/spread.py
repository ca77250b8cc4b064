"""Distribute work evenly to Spark tasks and threads."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THREADS = 8  # number of tables processed concurrently; HTTP clients keep 10 connections to a host
_TASK_BYTES = 64 << 20  # approximate bytes of objects per task


def by_bucket(rows: DataFrame, buckets: int) -> DataFrame:
    """Repartition rows by `_bucket` (0 … buckets - 1, or NULL): one task has all of a bucket, and buckets are spread evenly over tasks.

    `repartition("_bucket")` would use the hash of the number, which put both of two buckets into one task of four.
    """
    return rows.repartitionById(min(buckets, tasks(rows.sparkSession)), "_bucket")


def in_parts(tasks: int, sizes: Mapping[str, int]) -> list[list[str]]:
    """Distribute objects to tasks by their sizes in bytes. Small objects share a task, because starting one costs more than they do."""
    many = max(min(tasks, len(sizes)), -(-sum(sizes.values()) // _TASK_BYTES))
    parts: list[tuple[int, int, list[str]]] = [(0, n, []) for n in range(many)]
    heapify(parts)
    for key in sorted(sizes, key=lambda k: (-sizes[k], k)):
        size, n, keys = parts[0]
        heapreplace(parts, (size + sizes[key], n, [*keys, key]))
    return [sorted(keys) for _, _, keys in sorted(parts, key=lambda p: p[1]) if keys]


def tasks(spark: SparkSession) -> int:
    """Return the number of tasks that a shuffle is spread over."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
