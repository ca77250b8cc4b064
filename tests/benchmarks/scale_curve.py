"""What an hour costs by how many rows change and how large the table is: a table of figures, and a plot.

python -m tests.benchmarks.scale_curve [--rows 100000 1000000 10000000] [--changes 10000 100000 1000000] [--plot docs/scale.svg]

Every hour runs in a Spark application of its own, whose start is in its seconds, with a 2 GB heap, on a table that an export of so many
rows was made into.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.scale_archive import Size, make_export, make_hours
from tests.benchmarks.scale_lines import HEAP
from tests.benchmarks.scale_plot import Line, plot


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An hour. seconds, cpu: of all stages after landing, compact: of that one; share: of the table's bytes that were written."""

    rows: int
    changes: int
    seconds: float
    cpu: float
    compact: float
    share: float
    written: str


def curve(console: Console, rows: Sequence[int], changes: Sequence[int]) -> list[Point]:
    """One point for each pair."""
    points = []
    for n in rows:
        with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as place:
            folder, kept = Path(place) / "now", Path(place) / "filled"
            make_export(folder, Size(rows=n, changes=0, keys=1, seeded=True))
            child.run("scale_hour", str(folder), environment=HEAP)
            folder.rename(kept)
            for c in changes:
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(kept, folder)  # where the lake's files say that they are
                make_hours(folder, Size(rows=n, changes=c, keys=min(n, c), seeded=True))
                points.append(_point(n, c, child.run("scale_hour", str(folder), environment=HEAP)))
                console.print(f"  {n:,} rows, {c:,} changes: {points[-1].seconds:.1f} s", style="dim")
    return points


def _point(rows: int, changes: int, found: dict[str, Any]) -> Point:
    stages = found["stages"]
    return Point(
        rows=rows,
        changes=changes,
        seconds=sum(used["seconds"] for used in stages.values()),
        cpu=sum(used["cpu"] for used in stages.values()),
        compact=stages["compact"]["seconds"],
        share=found["added_bytes"] / found["bytes"],
        written="; ".join(found["written"]),
    )


def _show(console: Console, points: Sequence[Point]) -> None:
    grid = Table("rows", "changes", "seconds", "CPU s", "compact, s", "bytes written", "what compact did", box=None, pad_edge=False)
    for column in grid.columns[:-1]:
        column.justify = "right"
    for p in points:
        sizes = f"{p.rows:,}", f"{p.changes:,}"
        grid.add_row(*sizes, f"{p.seconds:.1f}", f"{p.cpu:.1f}", f"{p.compact:.1f}", f"{p.share:.1%}", p.written)
    console.print(grid)


def _plot(points: Sequence[Point]) -> str:
    """Seconds of compact by rows, a line for each number of changes; hollow where it wrote buckets anew."""
    lines = [
        Line(
            name=f"{changes:,} changes",
            points=[(p.rows, p.compact) for p in points if p.changes == changes],
            filled=[p.written.startswith("merge-on-read") for p in points if p.changes == changes],
        )
        for changes in sorted({p.changes for p in points})
    ]
    return plot(lines, "rows of the table", "seconds of compact")


def main() -> None:
    """The figures, and the plot if wanted."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scale_curve", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--changes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--plot", type=Path, help="an SVG file")
    flags, console = parser.parse_args(), Console(width=150)
    points = curve(console, flags.rows, flags.changes)
    _show(console, points)
    if flags.plot:
        flags.plot.write_text(_plot(points))


if __name__ == "__main__":
    main()
