"""Tidelake's own line over the second hour of an archive of `scale_archive`, stage by stage, in one Spark application."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.benchmarks.line import STAGES
from tests.benchmarks.measure import Used, measured
from tests.benchmarks.scale_archive import HOURS
from tidelake.feed import load_feed
from tidelake.lake.opened import Lake
from tidelake.lake.run import kept_session, land, run_hour


def main(folder: Path) -> None:
    """The first hour unmeasured, then each stage of the second. Prints one JSON object."""
    first, second = HOURS
    stages: dict[str, Used] = {}
    with kept_session("benchmark"), Lake.of(load_feed(folder / "schemas", "scale", {})) as lake:
        with measured() as filling:
            run_hour(lake, first)
        land(lake, second)
        for name, stage in STAGES.items():
            if name != "land":
                with measured() as stages[name]:
                    result = stage(lake, second)
        rows = sum(t.rows for t in result.cut.snapshots.values())
        used = {name: {"seconds": u.seconds, "cpu": u.cpu, "peak": u.peak, "worker": u.worker} for name, u in stages.items()}
        strategies = sorted({str(t.model_dump()) for t in result.cut.snapshots.values()})[:3]
    sys.stdout.write(json.dumps({"fill": filling.seconds, "stages": used, "rows": rows, "snapshots": strategies}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
