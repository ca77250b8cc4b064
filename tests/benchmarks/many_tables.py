"""Hours over many small tables: seconds of each stage, the driver's memory, and the documents that an hour writes beside the tables.

Every hour runs in a Spark application of its own, whose start is in the seconds of decode. Documents are the objects below the lake outside
of tables; an hour wrote those that are new or changed after it, landed messages apart. What grows with the number of hours before is seen
from line to line.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.scale_archive import Size, make_feed, make_hours
from tests.benchmarks.scale_lines import MIB, WHOLE, Line, line_of

Documents = dict[Path, tuple[int, int]]  # file → when it was written, bytes


@dataclass(frozen=True, slots=True)
class Written:
    """Documents that an hour wrote, by folder of the lake."""

    objects: Counter[str]
    nbytes: Counter[str]

    @classmethod
    def between(cls, before: Documents, after: Documents, lake: Path) -> Written:
        """New and changed ones."""
        objects, nbytes = Counter[str](), Counter[str]()
        for path, (at, size) in after.items():
            if before.get(path) != (at, size):
                folder = path.relative_to(lake).parts[0]
                objects[folder] += 1
                nbytes[folder] += size
        return cls(objects, nbytes)


def documents(lake: Path) -> Documents:
    """All objects outside of tables and of landed messages."""
    kept = (top for top in lake.iterdir() if top.name not in ("landed", "warehouse"))
    files = (p for top in kept for p in ([top] if top.is_file() else top.rglob("*")) if p.is_file())
    return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in files}


def measure(console: Console, size: Size) -> list[tuple[Line, Written]]:
    """Every hour after the first, which fills the tables."""
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as place:
        folder, found = Path(place), list[tuple[Line, Written]]()
        make_feed(folder, size)
        make_hours(folder, size, [0])
        line_of(folder)
        console.print(f"  {size.tables:,} tables are filled", style="dim")
        for number in range(1, size.hours + 1):
            make_hours(folder, size, [number])
            before = documents(folder / "lake")
            line = line_of(folder)
            found.append((line, Written.between(before, documents(folder / "lake"), folder / "lake")))
            console.print(f"  hour {number}: {line['stages'][WHOLE]['seconds']:.1f} s, driver {_driver(line):,.0f} MiB", style="dim")
        return found


def _driver(line: Line) -> float:
    used: list[float] = [stage["driver"] for name, stage in line["stages"].items() if name != WHOLE]
    return max(used) / MIB


def _show(console: Console, found: list[tuple[Line, Written]]) -> None:
    stages = list(found[0][0]["stages"])
    grid = Table("hour", *(f"{s}, s" for s in stages), "driver, MiB", "JVM, MiB", "documents", "bytes", box=None, pad_edge=False)
    folders = sorted({name for _, written in found for name in written.nbytes})
    kinds = Table("hour", *folders, box=None, pad_edge=False)
    for number, (line, written) in enumerate(found, 1):
        java = max(used["peak"]["java"] for name, used in line["stages"].items() if name != WHOLE) / MIB
        cells = [f"{line['stages'][s]['seconds']:.1f}" for s in stages] + [f"{m:,.0f}" for m in (_driver(line), java)]
        grid.add_row(str(number), *cells, f"{written.objects.total():,}", f"{written.nbytes.total():,}")
        kinds.add_row(str(number), *(f"{written.nbytes[name]:,}" for name in folders))
    for table in (grid, kinds):
        for column in table.columns[1:]:
            column.justify = "right"
    console.print(grid, "\nbytes of documents, by folder of the lake:", kinds)


def main() -> int:
    """The figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.many_tables", description=__doc__)
    parser.add_argument("--tables", type=int, default=3000, help="default: %(default)s")
    parser.add_argument("--rows", type=int, default=10, help="of each table (default: %(default)s)")
    parser.add_argument("--changes", type=int, default=10, help="of each table in every hour (default: %(default)s)")
    parser.add_argument("--hours", type=int, default=3, help="that change the tables (default: %(default)s)")
    flags, console = parser.parse_args(), Console(width=150)
    size = Size(tables=flags.tables, rows=flags.rows, changes=flags.changes, keys=min(flags.rows, flags.changes), hours=flags.hours)
    _show(console, measure(console, size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
