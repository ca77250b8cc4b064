"""A table at a TSO between two cuts, beside a plain scan of the snapshot of the cut before it: the same reader, in one process.

The table begins with an export and is changed for an hour; the TSO is in the middle of the changes. `frame_asof` is read by Spark, which
hashes all columns of every row; `table_asof` as a stream of Arrow batches. Both ways are read once before they are measured, in turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.scale_archive import PARTITIONS, Size, hour_at, make
from tests.benchmarks.scale_lines import HEAP, MIB, line_of
from tidelake.tso import from_ms


def measure(console: Console, size: Size, passes: int) -> dict[str, Any]:
    """By reader and way: seconds, rows, peak memory."""
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as folder:
        console.print(f"  {size.rows:,} rows, {size.changes:,} changes", style="dim")
        make(Path(folder), size)
        line_of(Path(folder))
        middle = from_ms(int(hour_at(1).timestamp() * 1000)) + (size.changes // PARTITIONS // 2 << 8)
        console.print(f"  reading at TSO {middle}", style="dim")
        return child.run("asof_read", folder, str(middle), str(passes), environment=HEAP)


def _show(console: Console, found: dict[str, Any]) -> None:
    columns = ("rows", "seconds", "of the scan's", "peak MiB, this process", "of one worker", "JVM")
    grid = Table("", *columns, box=None, pad_edge=False)
    for column in grid.columns[1:]:
        column.justify = "right"
    for reader, ways in found.items():
        for way, used in ways.items():
            ratio = used["seconds"] / ways["scan"]["seconds"]
            sizes = (f"{used[kind] / MIB:,.0f}" for kind in ("driver", "worker", "java"))
            grid.add_row(f"{reader}, {way}", f"{used['rows']:,}", f"{used['seconds']:.2f}", f"{ratio:.2f}", *sizes)
    console.print(grid)


def main() -> int:
    """The figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.asof", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the table (default: %(default)s)")
    parser.add_argument("--changes", type=int, default=1_000_000, help="of the hour, each of another key (default: %(default)s)")
    parser.add_argument("--passes", type=int, default=3, help="of each way; the median is shown (default: %(default)s)")
    flags, console = parser.parse_args(), Console(width=130)
    changes = min(flags.changes, flags.rows)
    _show(console, measure(console, Size(rows=flags.rows, changes=changes, keys=changes, seeded=True), flags.passes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
