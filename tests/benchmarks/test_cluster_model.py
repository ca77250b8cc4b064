"""The simulated cluster: cases whose seconds can be counted by hand, and what must hold for all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.benchmarks.cluster_model import Cluster, Cost, driver_seconds, makespan, stage_seconds, tables_of
from tests.searches import examples

FREE = Cost(row=0.0, bucket=0.0, driver=0.0, requests=0.0)


def cluster(cores: int = 1, threads: int = 1, wait: float = 0.0) -> Cluster:
    return Cluster(cores=cores, threads=threads, wait=wait)


@pytest.mark.parametrize(
    ("tables", "cpu", "requests", "threads", "wait", "seconds"),
    [
        (10, 2.0, 0, 1, 0.5, 20.0),  # no request
        (10, 2.0, 3, 4, 0.0, 20.0),  # no waiting
        (10, 2.0, 3, 1, 0.5, 35.0),  # one after another
        (12, 0.0, 5, 4, 1.0, 15.0),  # waiting alone, four at a time
        (2, 4.0, 1, 2, 3.0, 9.0),  # 2 of one table, 2 of the other; their answers come at 5 and 7, where 2 more of each begin
        (0, 1.0, 1, 4, 1.0, 0.0),
    ],
)
def test_the_driver_works_on_one_table_at_a_time_and_waits_for_several(
    tables: int, cpu: float, requests: int, threads: int, wait: float, seconds: float
) -> None:
    found = driver_seconds(tables, cpu, requests, cluster(threads=threads, wait=wait))
    assert found == pytest.approx(seconds)


def test_tasks_begin_on_the_core_that_is_free_first() -> None:
    assert makespan([3, 1, 1, 1, 4], 2) == 7
    assert makespan([], 2) == 0


def test_the_largest_table_is_not_one_cores_work() -> None:
    events = tables_of(100, 400_000_000)
    assert max(events) > sum(events) / 6
    found = stage_seconds(Cost(row=1.0, bucket=0.0, driver=0.0, requests=0.0), events, cluster(cores=32))
    assert sum(events) / 32 <= found.workers < 1.1 * sum(events) / 32


@settings(max_examples=examples(100))
@given(
    tables=st.integers(1, 60),
    events=st.integers(1, 50_000_000),
    cores=st.integers(1, 64),
    cost=st.builds(Cost, row=st.floats(0, 1e-5), bucket=st.floats(0, 0.1), driver=st.floats(0, 0.1), requests=st.integers(0, 20)),
    threads=st.integers(1, 8),
    wait=st.floats(0, 0.1),
)
def test_seconds_lie_between_what_is_shared_evenly_and_what_nothing_is_shared_of(
    tables: int, events: int, cores: int, cost: Cost, threads: int, wait: float
) -> None:
    rows = tables_of(tables, events)
    found = stage_seconds(cost, rows, cluster(cores, threads, wait))
    assert found.workers >= (cost.row * sum(rows) + cost.bucket * tables) / cores - 1e-6
    waited = tables * cost.requests * wait
    assert found.driver >= max(tables * cost.driver, waited / threads) - 1e-6
    assert found.driver <= tables * cost.driver + waited + 1e-6
    assert stage_seconds(FREE, rows, cluster(cores)).workers == 0
