"""Tidelake's own line over the same hour, stage by stage."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import Used, measured
from tests.benchmarks.workload import FEEDS
from tidelake import run
from tidelake.config.feed import load_feed
from tidelake.lake.opened import Lake
from tidelake.run import kept_session, run_hour
from tidelake.tso import parse_hour

STAGES: dict[str, Callable[[Lake, datetime], Any]] = {stage: getattr(run, stage) for stage in run.STAGES}


def main(folder: Path, variables: dict[str, str], hours: list[str]) -> None:
    """Measure the first hour; the others follow unmeasured. Prints one JSON object."""
    stages: dict[str, Used] = {}
    first, *others = map(parse_hour, hours)
    with measured() as starting:
        context = kept_session("benchmark")
        context.__enter__()
    try:
        with Lake.of(load_feed(folder / "schemas", FEEDS["open"], variables)) as lake:
            for name, stage in STAGES.items():
                with measured() as stages[name]:
                    result = stage(lake, first)
            for hour in others:
                result = run_hour(lake, hour).compacted
            assert result is not None
            rows = {t.identifier.rpartition(".")[2]: t.rows for t in result.cut.snapshots.values()}
    finally:
        context.__exit__(None, None, None)
    used = {name: {"seconds": u.seconds, "cpu": u.cpu, "peak": u.peak} for name, u in stages.items()}
    sys.stdout.write(json.dumps({"start": starting.seconds, "stages": used, "rows": rows}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:])
