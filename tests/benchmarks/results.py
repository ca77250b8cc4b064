"""What was measured when and where, one JSON file a run below results/ (not in git)."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tests.benchmarks.figures import Figure
from tests.checkout import CHECKOUT

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("numba", "numpy", "pyarrow", "pyspark")


class Results(BaseModel):
    """A run. figures: by name; details: all that was measured, by section, for whoever looks closer."""

    made_at: str
    machine: dict[str, str]
    figures: dict[str, Figure]
    details: dict[str, Any] = {}


def save(figures: dict[str, Figure], details: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write a run; the file is named by its time (UTC), so that names sort by age."""
    now = datetime.now(UTC)
    run = Results(made_at=now.isoformat(timespec="seconds"), machine=machine(), figures=figures, details=details)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y-%m-%dT%H%M%S}.json"
    path.write_text(run.model_dump_json(indent=1))
    return path


def load(path: Path) -> Results:
    """A run. Raises ValueError for another file."""
    return Results.model_validate_json(path.read_text())


def newest(count: int, folder: Path = RESULTS) -> list[Path]:
    """The newest runs, the oldest of them first; fewer where there are fewer."""
    return sorted(folder.glob("*T*.json"))[-count:]


def machine() -> dict[str, str]:
    """What the figures depend on besides the code."""
    facts = {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "python": platform.python_version(),
        "commit": _commit(),
    }
    return facts | {name: version(name) for name in _PACKAGES}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
