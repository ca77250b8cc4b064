"""The line over several archives of `scale_archive`, one after another, each in a Spark application of its own, and their table."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.figures import Figure
from tests.benchmarks.scale_archive import MASK_KEY, Size, make

HEAP = {"TIDELAKE_DRIVER_MEMORY": "2g"}
WHOLE = "all stages"
MIB = 1 << 20
Line = dict[str, Any]


def line_of(folder: Path) -> Line:
    """What an archive's next hour used. Where it has one, its stages have their sum as WHOLE."""
    line = child.run("scale_hour", str(folder), environment=HEAP | MASK_KEY)
    if line:
        stages = line["stages"]
        line["stages"] = stages | {WHOLE: {kind: sum(used[kind] for used in stages.values()) for kind in ("seconds", "cpu")}}
    return line


def lines(console: Console, sizes: Mapping[str, Size], passes: int = 1) -> dict[str, Line]:
    """The quickest line of each, of so many passes over all."""
    best = dict[str, Line]()
    for n in range(passes):
        for name, size in sizes.items():
            with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as folder:
                make(Path(folder), size)
                line = line_of(Path(folder))
            console.print(f"  {name}{f', pass {n + 1}' if passes > 1 else ''}: {_seconds(line):.1f} s", style="dim")
            best[name] = min(best.get(name, line), line, key=_seconds)
    return best


def show(console: Console, found: Mapping[str, Line], sizes: Mapping[str, Size]) -> None:
    """A row for each stage. The shares are of the first line's row events per second, and per second of CPU."""
    first = next(iter(found))
    columns = ("seconds", "CPU s", "row events/s", f"of {first}", "by CPU s", "one worker, MiB", "JVM, MiB")
    grid = Table("", "stage", *columns, box=None, pad_edge=False)
    for column in grid.columns[2:]:
        column.justify = "right"
    for name, line in found.items():
        for stage, used in line["stages"].items():
            speeds = [f"{_share(found, sizes, name, stage, kind):.2f}" for kind in ("seconds", "cpu")]
            memory = [f"{used['worker'] / MIB:,.0f}", f"{used['peak']['java'] / MIB:,.0f}"] if "peak" in used else []
            rate = f"{sizes[name].events / used['seconds']:,.0f}"
            grid.add_row(name, stage, f"{used['seconds']:.1f}", f"{used['cpu']:.1f}", rate, *speeds, *memory)
    console.print(grid)
    for name, line in found.items():
        console.print(f"{name}: {'; '.join(line['written'])}")


def shares(found: Mapping[str, Line], sizes: Mapping[str, Size], must: float) -> dict[str, Figure]:
    """Row events per second of all stages, as shares of the first line's."""
    first, *others = found
    values = {name: _share(found, sizes, name, WHOLE, "seconds") for name in others}
    return {f"{n}: rows/s": Figure(value=v, unit=f"of {first}", must=must, more_is_better=True, ratio=True) for n, v in values.items()}


def _share(found: Mapping[str, Line], sizes: Mapping[str, Size], name: str, stage: str, kind: str) -> float:
    first = next(iter(found))
    mine, base = (sizes[n].events / max(found[n]["stages"][stage][kind], 0.01) for n in (name, first))
    return mine / base


def _seconds(line: Line) -> float:
    seconds: float = line["stages"][WHOLE]["seconds"]
    return seconds
