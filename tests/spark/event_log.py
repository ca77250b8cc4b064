"""The event log of an application on a cluster of our own: which executor ran how many tasks."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.spark.processes import START_SECONDS


def settings(folder: Path) -> dict[str, str]:
    """Settings of an application that waits for all its executors, gives each of them work, and writes its log into the folder."""
    return {
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{START_SECONDS}s",
        "spark.locality.wait": "0",
        "spark.sql.shuffle.partitions": "4",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": folder.as_uri(),
    }


def event_log(folder: Path) -> Path:
    """The log of the one application."""
    (log,) = (path for path in folder.iterdir() if not path.name.startswith("."))  # Hadoop's local files have checksums beside them
    return log


def tasks(folder: Path) -> dict[str, int]:
    """Tasks that ended well, by executor."""
    events: list[dict[str, Any]] = [json.loads(line) for line in event_log(folder).read_text().splitlines()]
    ends = (e for e in events if e["Event"] == "SparkListenerTaskEnd" and e["Task End Reason"]["Reason"] == "Success")
    return dict(Counter(e["Task Info"]["Executor ID"] for e in ends))
