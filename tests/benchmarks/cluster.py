"""An hour on a cluster, simulated (cluster_model.py) from costs measured here, and the simulation beside hours whose requests wait.

python -m tests.benchmarks.cluster [--tables 10000] [--events 1650000000] [--cores 8 32 128 512] [--wait-ms 30] [--plot docs/cluster.svg]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.cluster_model import Cluster, Cost, driver_seconds, stage_seconds, tables_of
from tests.benchmarks.scale import WINDOW
from tests.benchmarks.scale_archive import Size, make
from tests.benchmarks.scale_lines import HEAP
from tests.benchmarks.scale_plot import Line, plot
from tidelake.spark.spread import THREADS

STAGES = ("decode", "order", "validate", "compact")
SMALL = Size(tables=100, rows=10, changes=10, keys=10)
MANY = 16  # threads
FEEDS = 8


@dataclass(frozen=True, slots=True)
class Hour:
    """Seconds of the whole hour, and those in which the driver works alone."""

    cluster: Cluster
    feeds: int
    stages: Mapping[str, float]
    driver: float

    @property
    def seconds(self) -> float:
        """Of all stages."""
        return sum(self.stages.values())


def costs(large: Mapping[str, Any], small: Mapping[str, Any]) -> dict[str, Cost]:
    """Return what each stage costs. large, small: hours of WINDOW and of SMALL, without waiting."""
    found = {}
    for stage in STAGES:
        rows = WINDOW.events + (WINDOW.rows if stage == "compact" else 0)
        of_row = max(0.0, _workers(large, stage)) / rows
        of_table = max(0.0, _workers(small, stage)) / SMALL.tables
        driver = small["driver"][stage]
        found[stage] = Cost(row=of_row, bucket=of_table, driver=driver["cpu"] / SMALL.tables, requests=driver["requests"] / SMALL.tables)
    return found


def _workers(hour: Mapping[str, Any], stage: str) -> float:
    cpu: float = hour["stages"][stage]["cpu"] - hour["driver"][stage]["cpu"]
    return cpu


def simulated(of: Mapping[str, Cost], events: Sequence[int], cluster: Cluster, feeds: int = 1) -> Hour:
    """Return an hour. events: of each table, whose snapshot has as many rows; feeds: share the tables, each with a driver of its own."""
    stages, driver = {}, 0.0
    for stage, cost in of.items():
        found = stage_seconds(cost, [n * (2 if stage == "compact" else 1) for n in events], cluster)
        alone = driver_seconds(-(-len(events) // feeds), cost.driver, round(cost.requests), cluster)
        stages[stage], driver = found.workers + alone, driver + alone
    return Hour(cluster, feeds, stages, driver)


def _measured(console: Console, size: Size, wait: float, threads: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as folder:
        make(Path(folder), size)
        found = child.run("slow_hour", folder, str(wait), str(threads), environment=HEAP)
    said = f"{size.tables:,} × {size.changes:,} changes, {1000 * wait:.0f} ms a request, {threads} threads"
    console.print(f"  {said}: {sum(found['stages'][s]['seconds'] for s in STAGES):.1f} s", style="dim")
    return found


def _show_costs(console: Console, of: Mapping[str, Cost]) -> None:
    grid = Table(
        "", "CPU s of 1,000,000 rows", "CPU ms of a bucket", "driver's CPU ms of a table", "requests of a table", box=None, pad_edge=False
    )
    for stage, c in of.items():
        grid.add_row(stage, f"{1e6 * c.row:.2f}", f"{1e3 * c.bucket:.1f}", f"{1e3 * c.driver:.1f}", f"{c.requests:.1f}")
    console.print(grid)


def _show_check(console: Console, of: Mapping[str, Cost], small: Mapping[str, Any], slow: Mapping[Cluster, Mapping[str, Any]]) -> None:
    """Hours with waiting: found, and the hour without it plus what the simulation adds."""
    grid = Table("ms a request", "threads", *(f"{s}, s: found, simulated" for s in STAGES[1:]), box=None, pad_edge=False)
    for cluster, hour in slow.items():
        cells = []
        for stage in STAGES[1:]:
            cost, at_once = of[stage], Cluster(cores=cluster.cores, threads=THREADS, wait=0.0)
            more, less = (driver_seconds(SMALL.tables, cost.driver, round(cost.requests), c) for c in (cluster, at_once))
            cells.append(f"{hour['stages'][stage]['seconds']:.1f}, {small['stages'][stage]['seconds'] + more - less:.1f}")
        grid.add_row(f"{1000 * cluster.wait:.0f}", str(cluster.threads), *cells)
    console.print(grid)


def _show_hours(console: Console, hours: Sequence[Hour]) -> None:
    grid = Table("cores", "threads", "feeds", *(f"{s}, min" for s in STAGES), "all, min", "driver alone, min", box=None, pad_edge=False)
    for h in hours:
        minutes = [f"{s / 60:.1f}" for s in (*h.stages.values(), h.seconds, h.driver)]
        grid.add_row(f"{h.cluster.cores:,}", str(h.cluster.threads), str(h.feeds), *minutes)
    console.print(grid)


def _hours(of: Mapping[str, Cost], events: Sequence[int], cores: Sequence[int], wait: float) -> Iterator[Hour]:
    for threads, feeds in ((THREADS, 1), (MANY, 1), (MANY, FEEDS)):
        for n in cores:
            yield simulated(of, events, Cluster(cores=n, threads=threads, wait=wait), feeds)


def _lines(hours: Sequence[Hour]) -> list[Line]:
    of: dict[tuple[int, int], list[Hour]] = {}
    for h in hours:
        of.setdefault((h.cluster.threads, h.feeds), []).append(h)
    named = {(t, f): f"{t} threads" + (f", {f} feeds" if f > 1 else "") for t, f in of}
    points = {k: [(float(h.cluster.cores), h.seconds / 60) for h in found] for k, found in of.items()}
    return [Line(name=named[k], points=points[k], filled=[True] * len(points[k])) for k in of]


def main() -> None:
    """Measure, simulate and show."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cluster", description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000, help="default: %(default)s")
    parser.add_argument("--events", type=int, default=1_650_000_000, help="row events of the hour (default: %(default)s)")
    parser.add_argument("--cores", type=int, nargs="+", default=[8, 32, 128, 512], help="of all workers (default: %(default)s)")
    parser.add_argument("--wait-ms", type=float, default=30.0, help="of a request (default: %(default)s)")
    parser.add_argument("--plot", type=Path, help="the SVG file to write")
    flags, console = parser.parse_args(), Console(width=150)
    wait = flags.wait_ms / 1000
    large, small = (_measured(console, size, 0.0, THREADS) for size in (WINDOW, SMALL))
    slow = {Cluster(cores=2, threads=t, wait=wait): _measured(console, SMALL, wait, t) for t in (THREADS, MANY)}
    of = costs(large, small)
    hours = list(_hours(of, tables_of(flags.tables, flags.events), flags.cores, wait))
    _show_costs(console, of)
    _show_check(console, of, small, slow)
    _show_hours(console, hours)
    if flags.plot:
        flags.plot.write_text(plot(_lines(hours), "cores of all workers", "minutes", keys=()))


if __name__ == "__main__":
    main()
