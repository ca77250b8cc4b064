"""Landing: archives on an S3 server → canonical Parquet on it, beside the loop that one would write first; memory; many tiny objects."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.figures import Figure
from tests.benchmarks.landing_archive import WRITERS
from tests.benchmarks.landing_memory import limit
from tidelake.demo.embedded_s3 import EmbeddedS3

MIB = 1 << 20
MUST = 1.5  # times the plain loop's speed
BUDGETS_MB = (64, 512)
MEMORY_MB = 600
TINY = 10_000
TINY_SECONDS = 60
TURNS = 3


def measure(console: Console, megabytes: int, turns: int = TURNS) -> tuple[dict[str, Figure], dict[str, Any]]:
    """Measure everything and print it; the figures, and all that was measured. megabytes: of keys and values, for each format."""
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as folder, EmbeddedS3(Path(folder)) as s3:
        details: dict[str, Any] = {"formats": {}, "memory": {}}
        for form in WRITERS:
            console.print(f"  {form}: {megabytes:,} MB of messages, {turns} turns with the plain loop", style="dim")
            details["formats"][form] = child.run("land_archive", form, str(megabytes), str(turns), environment=s3.environment)
        console.print(f"  memory: {MEMORY_MB:,} MB of messages, half of them out of order and twice", style="dim")
        for budget in (BUDGETS_MB[0], *BUDGETS_MB):  # the first call makes the archive
            details["memory"][str(budget)] = child.run("landing_memory", str(budget), str(MEMORY_MB), environment=s3.environment)
        console.print(f"  {TINY:,} tiny objects", style="dim")
        details["tiny"] = child.run("landing_tiny", str(TINY), environment=s3.environment)
    _show(console, details)
    return figures(details), details


def figures(details: Mapping[str, Any]) -> dict[str, Figure]:
    """What is judged and compared."""
    out: dict[str, Figure] = {}
    for form, one in details["formats"].items():
        out[f"{form}: land"] = Figure(value=times_plain(one), unit="× the plain loop", must=MUST, more_is_better=True, ratio=True)
        out[f"{form}: messages"] = Figure(value=speed(one, "land"), unit="MB/s", more_is_better=True)
    for budget, one in details["memory"].items():
        must = limit(int(budget) << 20) / MIB
        out[f"{budget} MB in flight: peak memory"] = Figure(value=one["peak"] / MIB, unit="MiB", must=must)
    out[f"{TINY:,} objects"] = Figure(value=details["tiny"]["seconds"], unit="s", must=TINY_SECONDS)
    return out


def times_plain(one: Mapping[str, Any]) -> float:
    """Median of how often land is done while the plain loop right before it is done once."""
    return median(plain["seconds"] / land["seconds"] for plain, land in zip(one["plain"], one["land"], strict=True))


def speed(one: Mapping[str, Any], way: str) -> float:
    """MB/s of keys and values, the median of the turns."""
    return float(one["bytes"]) / 1e6 / median(turn["seconds"] for turn in one[way])


def _show(console: Console, details: Mapping[str, Any]) -> None:
    names = ("", "objects", "MB archived", "MB of messages", "MB/s: land", "plain", "CPU s/GB: land", "plain", "land × plain", "must", "")
    grid = Table(*names, box=None, pad_edge=False)
    for column in grid.columns[1:]:
        column.justify = "right"
    judged = figures(details)
    for form, one in details["formats"].items():
        f = judged[f"{form}: land"]
        cpu = [median(turn["cpu"] for turn in one[way]) / one["bytes"] * 1e9 for way in ("land", "plain")]
        grid.add_row(
            form,
            f"{one['objects']}",
            f"{one['archived'] / 1e6:,.0f}",
            f"{one['bytes'] / 1e6:,.0f}",
            *(f"{speed(one, way):,.0f}" for way in ("land", "plain")),
            *(f"{seconds:.1f}" for seconds in cpu),
            f"{f.value:.2f}",
            f"{MUST:g}",
            f.verdict,
            style="bold red" if f.verdict == "MISSED" else None,
        )
    console.print("\narchives on an S3 server → durable canonical Parquet on it; medians of the turns; CPU time without the server's")
    console.print(grid)
    for name, f in judged.items():
        if f.must is not None and name.partition(": ")[0] not in details["formats"]:
            console.print(f"{name}: {f.value:,.0f} {f.unit} (must: at most {f.must:,.0f}) {f.verdict}")
    console.print(f"landing the {TINY:,} objects again, unchanged: {details['tiny']['again']:.1f} s")
