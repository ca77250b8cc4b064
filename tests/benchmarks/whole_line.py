"""Rows per second and peak memory of every stage and of the whole hour, beside the plain pipeline in the same run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.figures import Figure
from tests.benchmarks.workload import Hour, make
from tidelake.tso import format_hour

MIB = 1 << 20


def measure(console: Console, rows: int, *, baseline: bool) -> tuple[dict[str, Figure], dict[str, Any]]:
    """Run both pipelines over about so many row events. Raises SystemExit if they do not end in the same numbers of rows."""
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as folder:
        console.print(f"  an archive with about {rows:,} row events", style="dim")
        hour = make(Path(folder), rows)
        hours = [format_hour(h) for h in hour.workload.hours]
        console.print("  five stages in one Spark application", style="dim")
        line = child.run("line", folder, json.dumps(hour.variables("lake")), *hours)
        plain = None
        if baseline:
            console.print("  the plain pipeline", style="dim")
            plain = child.run("plain", folder)
    _show(console, hour, line, plain)
    if plain and {t: line["rows"][t] for t in plain["rows"]} != plain["rows"]:
        raise SystemExit(f"rows differ: {line['rows']} and {plain['rows']}")
    return _figures(hour.events, line, plain), {"events": hour.events, "line": line, "plain": plain}


def _figures(events: int, line: dict[str, Any], plain: dict[str, Any] | None) -> dict[str, Figure]:
    stages = line["stages"] | {"whole hour": _whole(line["stages"].values())} | ({"plain pipeline": plain} if plain else {})
    out = {f"{name}: rows": Figure(value=events / used["seconds"], unit="1/s", more_is_better=True) for name, used in stages.items()}
    if plain:
        share = stages["whole hour"]["seconds"] / plain["seconds"]
        out["whole hour: time"] = Figure(value=share, unit="× plain pipeline", ratio=True)
    return out


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


def _whole(stages: Iterable[dict[str, Any]]) -> dict[str, Any]:
    several = list(stages)
    peak = {kind: max(s["peak"][kind] for s in several) for kind in ("python", "java")}
    return {"seconds": sum(s["seconds"] for s in several), "cpu": sum(s["cpu"] for s in several), "peak": peak}


def _cells(events: int, used: dict[str, Any]) -> list[str]:
    memory = (f"{used['peak'][kind] / MIB:,.0f}" for kind in ("python", "java"))
    return [f"{used['seconds']:.1f}", f"{used['cpu']:.1f}", f"{events / used['seconds']:,.0f}", *memory]
