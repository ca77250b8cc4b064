"""Tidelake's own line over the next hour of an archive of `scale_archive`, stage by stage, in one Spark application."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from tests.benchmarks.line import STAGES
from tests.benchmarks.measure import Used, measured
from tests.benchmarks.scale_archive import EXPORTED_MS, hour_at
from tidelake.cli import ALLOCATIONS
from tidelake.config.feed import load_feed
from tidelake.lake.cut import TableCut
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.run import kept_session, land, run_hour
from tidelake.seed.stage import seed
from tidelake.tso import from_ms, parse_hour


def main(folder: Path) -> None:
    """The first hour, or an export, unmeasured, where nothing is published; then each stage of the hour after the newest cut, if it is in
    the archive. Prints one JSON object."""
    gc.set_threshold(ALLOCATIONS)  # as the commands do
    stages: dict[str, Used] = {}
    with kept_session("benchmark"), Lake.of(load_feed(folder / "schemas", "scale")) as lake:
        with measured() as filling:
            if newest_cut(lake.catalog, lake.store, lake.feed.name) is not None:
                pass  # an earlier run did
            elif (folder / "export").exists():
                seed(lake, str(folder / "export"), from_ms(EXPORTED_MS))
            else:
                run_hour(lake, hour_at(0))
        hour = _next(lake, folder)
        if hour is None:
            sys.stdout.write("{}")
            return
        tables = [t.identifier for t in _newest(lake)]
        before = {s for _, s in _commits(lake, tables)}
        land(lake, hour)
        for name, stage in STAGES.items():
            if name != "land":
                with measured() as stages[name]:
                    result = stage(lake, hour)
        added = [(t, s) for t, s in _commits(lake, tables) if s not in before]
        found = {
            "rows": sum(t.rows for t in result.cut.snapshots.values()),
            "written": sorted({str(t.get("written", "")) for t in result.certificate["rows"].values()})[:3],
            "added_bytes": sum(_bytes(lake, t, s, "added") for t, s in added),
            "bytes": sum(_bytes(lake, t.identifier, t.snapshot_id, "total") for t in result.cut.snapshots.values()),
        }
    used = {n: {"seconds": u.seconds, "cpu": u.cpu, "peak": u.peak, "worker": u.worker, "driver": u.driver} for n, u in stages.items()}
    sys.stdout.write(json.dumps({"fill": filling.seconds, "stages": used, **found}))


def _next(lake: Lake, folder: Path) -> datetime | None:
    """The archive's first hour that is not published."""
    cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
    hours = sorted(p.name.removeprefix("hour=") for p in (folder / "archive").glob("shop/hour=*"))
    return next((parse_hour(h) for h in hours if cut is None or h > cut.hour), None)


def _newest(lake: Lake) -> Iterable[TableCut]:
    """The snapshot tables of the newest cut."""
    cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
    return cut.snapshots.values() if cut else ()


def _commits(lake: Lake, tables: Iterable[str]) -> list[tuple[str, int]]:
    return [(t, s.snapshot_id) for t in tables for s in lake.catalog.load(t).table.snapshots()]


def _bytes(lake: Lake, table: str, snapshot_id: int, which: str) -> int:
    """Of the files that a commit added, or of all that a snapshot reads."""
    return int(lake.catalog.load(table).summary(snapshot_id).get(f"{which}-files-size", 0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
