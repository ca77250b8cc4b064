"""decode, whose workers write the events table's files, in the speed at which Iceberg's writer for Spark takes the same finished rows from
Arrow files (through_spark)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.figures import Figure
from tests.benchmarks.workload import FEEDS

MIB = 1 << 20
PASSES = 3
SHARE_MUST = 0.70
WORKER_MUST = 1024  # MiB


def measure(console: Console, rows: int) -> tuple[dict[str, Figure], dict[str, Any]]:
    """Measure every protocol and print the tables; the figures, and all that was measured."""
    details: dict[str, Any] = {}
    for protocol in FEEDS:
        with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as folder:
            console.print(f"  {protocol}: about {rows:,} row events, landed in an S3 server", style="dim")
            details[protocol] = child.run("through_spark", str(Path(folder)), protocol, str(rows), str(PASSES))
        _show(console, protocol, details[protocol])
    return figures(details), details


def figures(details: Mapping[str, Mapping[str, Any]]) -> dict[str, Figure]:
    """What is judged and compared."""
    out: dict[str, Figure] = {}
    for protocol, one in details.items():
        speed = median(one["events"] / turn["seconds"] for turn in one["decode"])
        share = share_of_writer([t["seconds"] for t in one["write"]], [t["seconds"] for t in one["decode"]])
        worker = max(turn["worker"] for turn in one["decode"]) / MIB
        out[f"{protocol}: decode"] = Figure(value=share, unit="of the writer's speed", must=SHARE_MUST, more_is_better=True, ratio=True)
        out[f"{protocol}: rows"] = Figure(value=speed, unit="1/s", more_is_better=True)
        out[f"{protocol}: Python worker"] = Figure(value=worker, unit="MiB", must=WORKER_MUST)
    return out


def share_of_writer(write: Sequence[float], decode: Sequence[float]) -> float:
    """Median of decode's speed in that of the writer, both in seconds for the same rows; the writes are those before and after each."""
    if len(write) != len(decode) + 1:
        raise ValueError(f"{len(write)} writes around {len(decode)} decodes")
    return median(mean((before, after)) / own for before, own, after in zip(write, decode, write[1:], strict=False))


def _show(console: Console, protocol: str, one: Mapping[str, Any]) -> None:
    share, worker = (figures({protocol: one})[f"{protocol}: {name}"] for name in ("decode", "Python worker"))
    console.print(
        f"\n{protocol}: {one['events']:,} row events, {one['bytes'] / MIB:,.0f} MiB of messages in {one['objects']} objects; writer: "
        + ", ".join(f"{name.removeprefix('write.')} {value}" for name, value in one["writer"].items())
    )
    console.print(_steps(one))
    console.print(
        f"decode runs at {share.value:.0%} of the writer's speed (must: {SHARE_MUST:.0%}) {share.verdict}; "
        f"the largest Python worker held {worker.value:,.0f} MiB (must: {WORKER_MUST:,}) {worker.verdict}"
    )


def _steps(one: Mapping[str, Any]) -> Table:
    names = ("", "seconds", "row events/s", "µs/row: Python", "JVM", "S3 server", "MiB: worker", "JVM")
    grid = Table(*names, box=None, pad_edge=False)
    for column in grid.columns[1:]:
        column.justify = "right"
    n = one["events"]
    grid.add_row("read and decode alone, one process", f"{one['alone']:.1f}", f"{n / one['alone']:,.0f}", f"{one['alone'] / n * 1e6:.2f}")
    steps = {
        "landed objects → Spark → nowhere": [one["decode to nowhere"]],
        "Arrow files → Spark → nowhere": [one["files to nowhere"]],
        "Arrow files → events table": one["write"],
        "decode: landed objects → events table": one["decode"],
        "the first decode, JVM and workers cold": [one["first"]],
    }
    for name, turns in steps.items():
        seconds = median(t["seconds"] for t in turns)
        cpu = [median(t["cpu"][kind] for t in turns) / n * 1e6 for kind in ("python", "java", "other")]
        memory = [max(t["worker"] for t in turns), max(t["peak"]["java"] for t in turns)]
        cells = [f"{seconds:.1f}", f"{n / seconds:,.0f}", *(f"{c:.2f}" for c in cpu), *(f"{m / MIB:,.0f}" for m in memory)]
        grid.add_row(name, *cells)
    return grid
