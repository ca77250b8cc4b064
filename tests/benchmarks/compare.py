"""Two runs of the benchmarks side by side: `python -m tests.benchmarks.compare [OLD NEW]`, the two newest by default.

Exit code 1 if a ratio got worse by more than the tolerance, 2 if there are not two runs with something in common.
Seconds and rows per second are shown and not judged: they say as much of the machine's day as of the code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.figures import TOLERANCE, Change, Figure, compared
from tests.benchmarks.results import RESULTS, Results, load, newest


def main(arguments: Sequence[str] | None = None, folder: Path = RESULTS, console: Console | None = None) -> int:
    """0 nothing got worse, 1 a ratio did, 2 nothing to compare."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.compare", description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="two files of tests/benchmarks/results, the older one first")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="of the older value (default %(default)s)")
    flags = parser.parse_args(arguments)
    console = console or Console(width=120)
    paths = flags.runs or newest(2, folder)
    if len(paths) != 2:
        console.print(f"two runs are needed, there are {len(paths)}: run `make bench` before and after the change")
        return 2
    old, new = map(load, paths)
    changes = compared(old.figures, new.figures, flags.tolerance)
    if not any(c.old and c.new for c in changes):
        console.print(f"{paths[0].name} and {paths[1].name} have no figure in common")
        return 2
    _show(console, old, new, changes)
    worse = [c.name for c in changes if c.worse]
    if worse:
        console.print(f"worse by more than {flags.tolerance:.0%}: {', '.join(worse)}")
    return 1 if worse else 0


def _show(console: Console, old: Results, new: Results, changes: Sequence[Change]) -> None:
    grid = Table("figure", "unit", f"old\n{old.made_at[:16]}", f"new\n{new.made_at[:16]}", "change", box=None, pad_edge=False)
    for column in grid.columns[2:]:
        column.justify = "right"
    for c in changes:
        share = "" if c.share is None else f"{c.share:+.1%}"
        known = c.new or c.old
        grid.add_row(c.name, known.unit if known else "", _cell(c.old), _cell(c.new), share, style="bold red" if c.worse else None)
    console.print(grid)
    for name in sorted(old.machine.keys() | new.machine.keys()):
        if (was := old.machine.get(name)) != (now := new.machine.get(name)):
            console.print(f"{name}: {was} → {now}")


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return "–"
    return f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
