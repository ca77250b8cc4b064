"""The first hour of a feed in a new process: 2,000 messages, from Python's start to the published tables, by what the time goes to.

python -m tests.benchmarks.cold_start [--passes 5]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks import child
from tests.benchmarks.scale_archive import Size, make_feed, make_hours
from tests.benchmarks.scale_lines import HEAP
from tests.benchmarks.scale_messages import BATCH

MESSAGES = 2_000


def measure(passes: int) -> list[dict[str, Any]]:
    """Steps of each pass, with their seconds and CPU seconds, and `all` with the seconds of the whole process."""
    found = []
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as place:
        folder, made = Path(place) / "now", Path(place) / "made"
        rows = MESSAGES * BATCH
        make_feed(folder, Size(rows=rows, changes=0, keys=rows))
        make_hours(folder, Size(rows=rows, changes=0, keys=rows), [0])
        folder.rename(made)
        for _ in range(passes):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(made, folder)  # where the feed says that its lake is
            started = time.monotonic()
            steps = child.run("cold_hour", str(folder), environment=HEAP)["steps"]
            found.append(steps | {"all": {"seconds": time.monotonic() - started, "cpu": sum(s["cpu"] for s in steps.values())}})
    return found


def main() -> int:
    """The medians of the passes."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cold_start", description=__doc__)
    parser.add_argument("--passes", type=int, default=5, help="new processes (default: %(default)s)")
    console, found = Console(width=100), measure(parser.parse_args().passes)
    grid = Table("step", "seconds", "CPU s", box=None, pad_edge=False)
    for column in grid.columns[1:]:
        column.justify = "right"
    for step in found[0]:
        grid.add_row(step, *(f"{median(f[step][unit] for f in found):.1f}" for unit in ("seconds", "cpu")))
    console.print(grid)
    return 0


if __name__ == "__main__":
    sys.exit(main())
