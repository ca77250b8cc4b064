"""Memory of one Python worker by how much it gets: a bucket of many rows, many changes of one key, and rows of megabytes.

Each case runs at several sizes, each double the one before, in an application of its own with a heap of 2 GB. The figures are the largest
resident memory that one worker ever held in `order` and in `compact`: a line without a step has no cliff.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.scale_archive import Size
from tests.benchmarks.scale_lines import MIB, Line, lines
from tests.benchmarks.scale_plot import Line as Curve
from tests.benchmarks.scale_plot import plot

STAGES = ("order", "compact")


@dataclass(frozen=True, slots=True)
class Point:
    """A case at a share of its size."""

    case: str
    size: int
    share: float
    line: Line


def cases(wide_bytes: int) -> dict[str, Callable[[int], Size]]:
    """What an hour is like: of so many rows in a bucket, changes of one key, wide rows."""
    return {
        "bucket": lambda n: Size(rows=n, changes=n // 10, keys=n // 10, seeded=True, buckets=1),  # too many keys for merge-on-read
        "one-key": lambda n: Size(rows=1000, changes=n, keys=1, hot=n, buckets=1),
        "wide": lambda n: Size(rows=n, changes=n, keys=n, wide=wide_bytes, buckets=1),
    }


def curve(console: Console, case: str, made: Callable[[int], Size], size: int, points: int) -> list[Point]:
    """Points of ascending size."""
    counts = {2.0**-n: int(size * 2.0**-n) for n in reversed(range(points))}
    found = lines(console, {f"{case}, {count:,}": made(count) for count in counts.values()})
    return [Point(case, count, share, line) for (share, count), line in zip(counts.items(), found.values(), strict=True)]


def _show(console: Console, points: list[Point]) -> None:
    names = [f"{stage}: {what}" for stage in STAGES for what in ("worker, MiB", "JVM, MiB", "seconds")]
    grid = Table("", "size", *names, "what compact did", box=None, pad_edge=False)
    for column in grid.columns[1:-1]:
        column.justify = "right"
    for p in points:
        used = [p.line["stages"][stage] for stage in STAGES]
        cells = [c for u in used for c in (f"{u['worker'] / MIB:,.0f}", f"{u['peak']['java'] / MIB:,.0f}", f"{u['seconds']:.1f}")]
        grid.add_row(p.case, f"{p.size:,}", *cells, "; ".join(p.line["written"]))
    console.print(grid)


def _plot(points: list[Point]) -> str:
    """MiB of a worker by the share of a case's size."""
    curves = []
    for case in dict.fromkeys(p.case for p in points):
        for stage in STAGES:
            mine = [(100 * p.share, p.line["stages"][stage]["worker"] / MIB) for p in points if p.case == case]
            curves.append(Curve(name=f"{case}: {stage}", points=mine, filled=[True] * len(mine)))
    return plot(curves, "% of the largest size", "MiB of one worker", keys=())


def main() -> int:
    """The figures, and the plot if wanted."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.no_cliff", description=__doc__)
    parser.add_argument("--only", choices=cases(0), help="one case; all by default")
    parser.add_argument("--bucket", type=int, default=20_000_000, help="rows of a bucket, a tenth of which change (default: %(default)s)")
    parser.add_argument("--one-key", type=int, default=5_000_000, help="changes of one key (default: %(default)s)")
    parser.add_argument("--wide", type=int, default=200, help="rows, all of which change (default: %(default)s)")
    parser.add_argument("--wide-bytes", type=int, default=4 << 20, help="of each of them (default: %(default)s)")
    parser.add_argument("--points", type=int, default=4, help="sizes of each case (default: %(default)s)")
    parser.add_argument("--plot", type=Path, help="an SVG file")
    flags, console = parser.parse_args(), Console(width=150)
    sizes = {"bucket": flags.bucket, "one-key": flags.one_key, "wide": flags.wide}
    points = list[Point]()
    for case, made in cases(flags.wide_bytes).items():
        if flags.only in (None, case):
            points += curve(console, case, made, sizes[case], flags.points)
    _show(console, points)
    if flags.plot:
        flags.plot.write_text(_plot(points))
    return 0


if __name__ == "__main__":
    sys.exit(main())
