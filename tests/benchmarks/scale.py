"""A window of a large table, all stages after landing in one Spark application, beside MERGE INTO of the same hour in the same run.

Alone, for windows of any size: python -m tests.benchmarks.scale --tables 300 --rows 1000 --changes 1000 --keys 1000 --no-baseline
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.figures import Figure, missed
from tests.benchmarks.scale_archive import MASK_KEY, VALUES, Size, make, names
from tests.benchmarks.scale_lines import HEAP, MIB, WHOLE, line_of, lines, shares, show
from tests.benchmarks.scale_messages import STATEMENTS

WINDOW = Size(rows=1_000_000, changes=1_000_000, keys=200_000)
MERGED = ("plain", "masked", "zero-dates")  # values that the plain pipeline reads and merges
SHARE = 0.9  # of the row events per second of plain values


def measure(console: Console, size: Size = WINDOW, *, baseline: bool = True) -> tuple[dict[str, Figure], dict[str, Any]]:
    """Run the line, and the baseline. Raises SystemExit if they do not end in the same number of rows."""
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as folder:
        console.print(f"  {size.tables:,} × {size.rows:,} rows, {size.changes:,} changes of {size.keys:,} keys each", style="dim")
        make(Path(folder), size)
        console.print("  both hours, in one Spark application", style="dim")
        line = line_of(Path(folder))
        plain = None
        if baseline:
            console.print("  the plain pipeline: MERGE INTO, copy-on-write", style="dim")
            plain = child.run("scale_plain", folder, json.dumps(names(size)), environment=HEAP | MASK_KEY)
    _show(console, size, line, plain)
    if plain and plain["rows"] != line["rows"]:
        raise SystemExit(f"rows differ: {line['rows']} and {plain['rows']}")
    seconds = line["stages"][WHOLE]["seconds"]
    figures = {"rows": Figure(value=size.events / seconds, unit="1/s", must=25_000, more_is_better=True)}
    if plain:
        figures["speed"] = Figure(value=plain["seconds"] / seconds, unit="× MERGE INTO", must=2, more_is_better=True, ratio=True)
    return figures, {"size": str(size), "line": line, "plain": plain}


def _show(console: Console, size: Size, line: dict[str, Any], plain: dict[str, Any] | None) -> None:
    grid = Table("", "seconds", "CPU s", "row events/s", "peak MiB, Python", "of one worker", "JVM", box=None, pad_edge=False)
    for column in grid.columns[1:]:
        column.justify = "right"
    for name, used in [*line["stages"].items(), *([("MERGE INTO", plain)] if plain else [])]:
        sizes = (used["peak"]["python"], used.get("worker"), used["peak"]["java"]) if "peak" in used else ()
        peak = ["" if size is None else f"{size / MIB:,.0f}" for size in sizes]
        grid.add_row(name, f"{used['seconds']:.1f}", f"{used['cpu']:.1f}", f"{size.events / used['seconds']:,.0f}", *peak)
    console.print(grid)
    share = line["added_bytes"] / max(line["bytes"], 1)
    console.print(f"snapshots: {'; '.join(line['written'])}; {line['added_bytes']:,} bytes written, {share:.1%} of all")
    if plain:
        console.print(f"{plain['seconds'] / line['stages'][WHOLE]['seconds']:.2f} times as fast as MERGE INTO")


def compare(console: Console, size: Size, passes: int) -> int:
    """All kinds of values after one another. 1 if one of them is slower than its share of plain values."""
    sizes = {values: replace(size, values=values) for values in VALUES}
    found = lines(console, sizes, passes)
    show(console, found, sizes)
    slow = missed(shares(found, sizes, SHARE))
    for sentence in slow:
        console.print(sentence, style="bold red")
    return 1 if slow else 0


def statement(console: Console, size: Size, passes: int) -> int:
    """The hour with a statement that rewrites every table, after the same hour without it."""
    sizes = {"rewrite": replace(size, statement=None), "statement": size}
    show(console, lines(console, sizes, passes), sizes)
    return 0


def main() -> int:
    """One window, or several beside one another."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scale", description=__doc__)
    for name in ("tables", "rows", "changes", "keys", "hot"):
        parser.add_argument(f"--{name}", type=int, default=getattr(WINDOW, name), help="default: %(default)s")
    kinds = "; ".join(f"{name}: {said.replace('%', '%%')}" for name, said in VALUES.items())
    parser.add_argument("--values", choices=VALUES, default="plain", help=f"{kinds}. Keyless and Avro tables have no baseline")
    parser.add_argument("--seeded", action="store_true", help="tables begin with an export, which is quicker for large ones")
    parser.add_argument("--no-baseline", action="store_true", help="leave MERGE INTO out")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--compare",
        action="store_true",
        help=f"all kinds of values after one another, without MERGE INTO; exit code 1 if one has less than {SHARE} of plain's rows/s",
    )
    kind.add_argument(
        "--statement",
        choices=STATEMENTS,
        help="an hour that begins with ADD COLUMN … DEFAULT of every table, or with a new primary key of it, so that compact rewrites it, "
        "after the same hour without the statement, which rewrites the tables too if it has many changes",
    )
    parser.add_argument("--passes", type=int, default=1, help="of --compare and --statement: the quickest is shown (default: %(default)s)")
    flags = vars(parser.parse_args())
    baseline, passes = not flags.pop("no_baseline"), flags.pop("passes")
    wanted = {compare: flags.pop("compare"), statement: flags["statement"] is not None}
    size, console = Size(**flags), Console(width=140)
    for several, chosen in wanted.items():
        if chosen:
            return several(console, size, passes)
    measure(console, size, baseline=baseline and size.values in MERGED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
