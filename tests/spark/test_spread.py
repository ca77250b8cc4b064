"""Objects, files and buckets to tasks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lake import lakes
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session
from tidelake.spark.spread import by_bucket, in_parts

MIB = 1 << 20


@given(st.dictionaries(st.text("abcdef", min_size=1), st.integers(0, 80 * MIB), max_size=40), st.integers(1, 9))
def test_every_object_has_one_task_and_tasks_are_even(sizes: dict[str, int], tasks: int) -> None:
    parts = in_parts(tasks, sizes)
    assert sorted(k for p in parts for k in p) == sorted(sizes)
    assert all(parts)
    held, largest = [sum(sizes[k] for k in p) for p in parts], max(sizes.values(), default=0)
    assert max(held, default=0) - min(held, default=0) <= largest or len(parts) < min(tasks, len(sizes))
    assert max(held, default=0) <= max(64 * MIB + largest, largest)


def test_as_many_tasks_as_run_at_once_or_as_keep_each_small() -> None:
    small = {f"{n:03}": MIB for n in range(100)}
    assert [len(in_parts(n, small)) for n in (1, 4, 200)] == [2, 4, 100]
    assert in_parts(4, {"a": 1}) == [["a"]]
    assert in_parts(4, {}) == []


@pytest.mark.usefixtures("spark_app")
@pytest.mark.parametrize("buckets", [1, 2, 3, 16])
def test_no_task_has_more_buckets_than_another_by_two(buckets: int, tmp_path: Any) -> None:
    (tmp_path / "lake").mkdir()
    with spark_session(lake_settings(lakes.feed(tmp_path)), "spread") as session:
        rows = session.range(0, 600, 1, 3).selectExpr("id", f"IF(id = 7, NULL, CAST(id % {buckets} AS INT)) AS _bucket")
        spread = by_bucket(rows, buckets).selectExpr("_bucket", "spark_partition_id() AS task").distinct().collect()
        tasks = min(buckets, int(session.conf.get("spark.sql.shuffle.partitions") or 0))
    of = Counter(r["task"] for r in spread if r["_bucket"] is not None)
    assert sorted(r["_bucket"] for r in spread if r["_bucket"] is not None) == list(range(buckets))
    assert (len(of), max(of.values()) - min(of.values()) <= 1) == (tasks, True)
