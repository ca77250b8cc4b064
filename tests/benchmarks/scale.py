"""A window of a large table, all stages after landing in one Spark application, beside MERGE INTO of the same hour in the same run.

Alone, for windows of any size: python -m tests.benchmarks.scale --tables 300 --rows 1000 --changes 1000 --keys 1000 --no-baseline
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.figures import Figure
from tests.benchmarks.scale_archive import MASK_KEY, VALUES, Size, make, names

HEAP = {"TIDELAKE_DRIVER_MEMORY": "2g"}
WINDOW = Size(rows=1_000_000, changes=1_000_000, keys=200_000)
MIB = 1 << 20


def measure(console: Console, size: Size = WINDOW, *, baseline: bool = True) -> tuple[dict[str, Figure], dict[str, Any]]:
    """Run the line, and the baseline. Raises SystemExit if they do not end in the same number of rows."""
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as folder:
        console.print(f"  {size.tables:,} × {size.rows:,} rows, {size.changes:,} changes of {size.keys:,} keys each", style="dim")
        make(Path(folder), size)
        console.print("  both hours, in one Spark application", style="dim")
        line = child.run("scale_hour", folder, environment=HEAP | MASK_KEY)
        plain = None
        if baseline:
            console.print("  the plain pipeline: MERGE INTO, copy-on-write", style="dim")
            plain = child.run("scale_plain", folder, json.dumps(names(size)), environment=HEAP | MASK_KEY)
    total = {kind: sum(used[kind] for used in line["stages"].values()) for kind in ("seconds", "cpu")}
    _show(console, size, line | {"whole": total}, plain)
    if plain and plain["rows"] != line["rows"]:
        raise SystemExit(f"rows differ: {line['rows']} and {plain['rows']}")
    figures = {"rows": Figure(value=size.events / total["seconds"], unit="1/s", must=25_000, more_is_better=True)}
    if plain:
        share = plain["seconds"] / total["seconds"]
        figures["speed"] = Figure(value=share, unit="× MERGE INTO", must=2, more_is_better=True, ratio=True)
    return figures, {"size": str(size), "line": line, "plain": plain}


def _show(console: Console, size: Size, line: dict[str, Any], plain: dict[str, Any] | None) -> None:
    grid = Table("", "seconds", "CPU s", "row events/s", "peak MiB, Python", "of one worker", "JVM", box=None, pad_edge=False)
    for column in grid.columns[1:]:
        column.justify = "right"
    for name, used in [*line["stages"].items(), ("all stages", line["whole"]), *([("MERGE INTO", plain)] if plain else [])]:
        sizes = (used["peak"]["python"], used.get("worker"), used["peak"]["java"]) if "peak" in used else ()
        peak = ["" if size is None else f"{size / MIB:,.0f}" for size in sizes]
        grid.add_row(name, f"{used['seconds']:.1f}", f"{used['cpu']:.1f}", f"{size.events / used['seconds']:,.0f}", *peak)
    console.print(grid)
    share = line["added_bytes"] / max(line["bytes"], 1)
    console.print(f"snapshots: {'; '.join(line['written'])}; {line['added_bytes']:,} bytes written, {share:.1%} of all")
    if plain:
        console.print(f"{plain['seconds'] / line['whole']['seconds']:.2f} times as fast as MERGE INTO")


def main() -> None:
    """One window."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scale", description=__doc__)
    for name in ("tables", "rows", "changes", "keys", "hot"):
        parser.add_argument(f"--{name}", type=int, default=getattr(WINDOW, name), help="default: %(default)s")
    parser.add_argument(
        "--values", choices=VALUES, default="plain", help="masked: one column is hashed; zero-dates: every tenth date is one"
    )
    parser.add_argument("--seeded", action="store_true", help="tables begin with an export, which is quicker for large ones")
    parser.add_argument("--no-baseline", action="store_true", help="leave MERGE INTO out")
    flags = vars(parser.parse_args())
    baseline = not flags.pop("no_baseline")
    measure(Console(width=130), Size(**flags), baseline=baseline)


if __name__ == "__main__":
    main()
