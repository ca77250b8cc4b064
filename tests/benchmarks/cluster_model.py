"""Seconds of an hour on a cluster, simulated from what a row, a table and a request cost on one machine.

Tasks get the buckets that the stages would give them (`in_parts`), and run one after another on so many cores. The driver works on several
tables in threads: their CPU time is one core's, because Python runs one thread at a time; their requests wait beside one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace

from tidelake.order.planning import buckets_for
from tidelake.spark.spread import in_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a stage costs, in CPU seconds.

    row: of workers for each row event, and in compact for each row of the snapshot; bucket: of workers for each bucket of a table; driver:
    of the driver for each table; requests: to store and catalog, for each table.
    """

    row: float
    bucket: float
    driver: float
    requests: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """cores: of workers; threads: of the driver; wait: seconds of a request."""

    cores: int
    threads: int
    wait: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Of a stage: those of the workers' job, and those of the driver before and after it."""

    workers: float
    driver: float


def tables_of(number: int, events: int) -> list[int]:
    """Return row events by table: the table in place n has a share of 1/n."""
    shares = [1 / n for n in range(1, number + 1)]
    whole = sum(shares)
    return [max(1, round(events * share / whole)) for share in shares]


def stage_seconds(cost: Cost, rows: Sequence[int], cluster: Cluster) -> Seconds:
    """Return the seconds of a stage. rows: that workers read, by table."""
    pieces = {f"{n} {b}": -(-of_table // many) for n, of_table in enumerate(rows) for many in [buckets_for(of_table)] for b in range(many)}
    tasks = in_parts(2 * cluster.cores, pieces)
    return Seconds(
        workers=makespan((sum(cost.bucket + cost.row * pieces[key] for key in task) for task in tasks), cluster.cores),
        driver=driver_seconds(len(rows), cost.driver, round(cost.requests), cluster),
    )


def makespan(tasks: Iterable[float], cores: int) -> float:
    """Return when the last task ends, if each begins on the core that is free first."""
    free = [0.0] * cores
    for seconds in tasks:
        heapreplace(free, free[0] + seconds)
    return max(free)


def driver_seconds(tables: int, cpu: float, requests: int, cluster: Cluster) -> float:
    """Return the driver's seconds for so many tables. A table's CPU time is divided evenly before, between and after its requests.

    cpu: seconds for each table; requests: number for each table.
    """
    left, interpreter, last = tables, 0.0, 0.0
    threads = [(0.0, n, 0) for n in range(min(cluster.threads, tables))]  # (since when it is ready, thread, requests that it still makes)
    heapify(threads)
    while threads:
        ready, n, still = heappop(threads)
        if still == 0:
            if left == 0:
                continue
            left, still = left - 1, requests + 1
        interpreter = max(interpreter, ready) + cpu / (requests + 1)
        last = max(last, interpreter)
        heappush(threads, (interpreter + (cluster.wait if still > 1 else 0.0), n, still - 1))
    return last
