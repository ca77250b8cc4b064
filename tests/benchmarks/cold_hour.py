"""The first hour of an archive of `scale_archive` in this process, step by step."""

from __future__ import annotations

import time

_STARTED = time.monotonic()  # before any import of Tidelake

import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from tests.benchmarks.line import STAGES  # noqa: E402
from tests.benchmarks.measure import Used, measured  # noqa: E402
from tests.benchmarks.scale_archive import hour_at  # noqa: E402
from tidelake.config.feed import load_feed  # noqa: E402
from tidelake.lake.opened import Lake  # noqa: E402


def main(folder: Path) -> None:
    """Prints one JSON object: seconds and CPU seconds of every step."""
    steps = {"imports": Used(seconds=time.monotonic() - _STARTED, cpu_of={"python": time.process_time(), "java": 0.0})}
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
