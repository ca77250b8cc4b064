"""Rows per second and peak memory of every stage and of the whole hour, beside the plain pipeline in the same run.

The machine may be busy: trust ratios within one run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks.workload import REPOSITORY, Hour, make
from tidelake.tso import format_hour

RESULTS = Path(__file__).parent / "results"
MIB = 1 << 20


def main() -> int:
    """0 if both pipelines end in the same numbers of rows."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="row events of the hour, about (default 200,000)")
    parser.add_argument("--no-baseline", action="store_true", help="leave the plain pipeline out")
    flags = parser.parse_args()
    console = Console(width=110)
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as folder:
        console.print(f"making an archive with about {flags.rows:,} row events")
        hour = make(Path(folder), flags.rows)
        hours = [format_hour(h) for h in hour.workload.hours]
        console.print("tidelake, five stages in one Spark application")
        line = _child("line", folder, json.dumps(hour.variables("lake")), *hours)
        plain = None
        if not flags.no_baseline:
            console.print("the plain pipeline")
            plain = _child("plain", folder)
        _show(console, hour, line, plain)
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "newest.json").write_text(json.dumps({"events": hour.events, "line": line, "plain": plain}, indent=1))
    if plain and {t: line["rows"][t] for t in plain["rows"]} != plain["rows"]:
        console.print(f"rows differ: {line['rows']} and {plain['rows']}")
        return 1
    return 0


def _child(module: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{module}", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{module} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found


def _show(console: Console, hour: Hour, line: dict[str, Any], plain: dict[str, Any] | None) -> None:
    grid = Table("", "seconds", "CPU s", "row events/s", "peak MiB, Python", "peak MiB, JVM", box=None, pad_edge=False)
    for column in grid.columns[1:]:
        column.justify = "right"
    for name, used in line["stages"].items():
        grid.add_row(name, *_cells(hour.events, used))
    grid.add_row("whole hour", *_cells(hour.events, whole := _whole(line["stages"].values())), style="bold")
    if plain:
        grid.add_row("plain pipeline", *_cells(hour.events, plain))
    console.print(f"\n{hour.events:,} row events; Spark's start apart: {line['start']:.1f} s")
    console.print(grid)
    if plain:
        console.print(f"the whole hour takes {whole['seconds'] / plain['seconds']:.2f} times as long as the plain pipeline")


def _whole(stages: Any) -> dict[str, Any]:
    several = list(stages)
    peak = {kind: max(s["peak"][kind] for s in several) for kind in ("python", "java")}
    return {"seconds": sum(s["seconds"] for s in several), "cpu": sum(s["cpu"] for s in several), "peak": peak}


def _cells(events: int, used: dict[str, Any]) -> list[str]:
    memory = (f"{used['peak'][kind] / MIB:,.0f}" for kind in ("python", "java"))
    return [f"{used['seconds']:.1f}", f"{used['cpu']:.1f}", f"{events / used['seconds']:,.0f}", *memory]


if __name__ == "__main__":
    sys.exit(main())
