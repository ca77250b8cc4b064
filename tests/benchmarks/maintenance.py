"""200 hourly cuts of a small table, with a daily maintenance and without: files, snapshots, metadata and planning time.

`python -m tests.benchmarks.maintenance [CUTS]` prints three curves: without, with, and with changes that go after three days. Cuts
are made without Spark and without stages (tests/lake/cheap.py).
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import timedelta
from pathlib import Path

from tests.lake import cheap, lakes
from tidelake.config.lake_paths import published_table
from tidelake.config.retention import Maintenance
from tidelake.lake.opened import Lake
from tidelake.maintenance.maintain import maintain
from tidelake.run import kept_session

SETTINGS = Maintenance.model_validate({"keep_cuts": "2d", "keep_daily": "30d"})
CHANGES = SETTINGS.model_copy(update={"keep_changelog": timedelta(days=3)})
ALL = timedelta(days=-1)  # no snapshot is too young: all days pass within minutes here


@dataclass(frozen=True, slots=True)
class Point:
    """The lake after so many cuts. files, snapshots, metadata: of the table d.k; published_files: of the table of published cuts;
    planning: the quickest of three, seconds; rows: of the newest cut; changelog_: of d_changelog.k,
    stored: files that its snapshots name."""

    cuts: int
    files: int
    snapshots: int
    metadata_bytes: int
    planning_seconds: float
    published_files: int
    rows: int
    changelog_files: int
    changelog_rows: int
    changelog_stored: int


def curve(folder: Path, cuts: int, *, every: int | None, settings: Maintenance = SETTINGS) -> Iterator[Point]:
    """A point each 24 cuts, an hour apart; every: maintenance runs after so many, before the point is taken."""
    (folder / "lake").mkdir(parents=True)
    with Lake.of(lakes.feed(folder, maintenance=settings)) as lake:
        cut = None
        for n in range(1, cuts + 1):
            cut = cheap.publish(lake, cut, n)
            if every and n % every == 0:
                maintain(lake, young=ALL)
                cut = cheap.newest(lake)
            if n % 24 == 0 or n == cuts:
                yield _point(lake, n)


def _point(lake: Lake, cuts: int) -> Point:
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        files = len(list(lake.catalog.load("d.k").table.scan().plan_files()))
        seconds.append(time.perf_counter() - started)
    k, log = lake.catalog.load("d.k"), lake.catalog.load("d_changelog.k")
    changes = [task.file for task in log.table.scan().plan_files()]
    stored = {task.file.file_path for s in log.table.snapshots() for task in log.table.scan(snapshot_id=s.snapshot_id).plan_files()}
    return Point(
        cuts=cuts,
        files=files,
        snapshots=len(k.table.snapshots()),
        metadata_bytes=Path(k.table.metadata_location.removeprefix("file://")).stat().st_size,
        planning_seconds=round(min(seconds), 3),
        published_files=len(list(lake.catalog.load(published_table()).table.scan().plan_files())),
        rows=cheap.newest(lake).snapshots["d.k@-1"].rows,
        changelog_files=len(changes),
        changelog_rows=sum(f.record_count for f in changes),
        changelog_stored=len(stored),
    )


def main(arguments: Sequence[str]) -> int:
    """All curves, one line a point."""
    cuts = int(arguments[0]) if arguments else 200
    with tempfile.TemporaryDirectory() as folder, kept_session("maintenance", brief=True):
        for name, every, settings in (("without", None, SETTINGS), ("daily", 24, SETTINGS), ("daily, changes 3d", 24, CHANGES)):
            sys.stdout.write(f"maintenance: {name}\n{' '.join(f'{f.name:>17}' for f in fields(Point))}\n")
            for point in curve(Path(folder) / name.replace(", ", "-"), cuts, every=every, settings=settings):
                sys.stdout.write(" ".join(f"{value:>17}" for value in astuple(point)) + "\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
