"""The first hour of an archive of `scale_archive` in this process, step by step."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import psutil

from tests.benchmarks.line import STAGES
from tests.benchmarks.measure import Used, measured
from tests.benchmarks.scale_archive import hour_at
from tidelake.config.feed import load_feed
from tidelake.lake.opened import Lake


def main(folder: Path) -> None:
    """Prints one JSON object: seconds and CPU seconds of every step."""
    began = time.time() - psutil.Process().create_time()
    steps = {"Python's start and imports": Used(seconds=began, cpu_of={"python": time.process_time(), "java": 0.0})}
    with Lake.of(load_feed(folder / "schemas", "scale")) as lake:
        for name, stage in STAGES.items():
            if name == "decode":
                with measured() as steps["Spark session"]:
                    lake.spark  # noqa: B018 - starts it
            with measured() as steps[name]:
                stage(lake, hour_at(0))
    sys.stdout.write("\n" + json.dumps({"steps": {n: {"seconds": u.seconds, "cpu": u.cpu} for n, u in steps.items()}}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
