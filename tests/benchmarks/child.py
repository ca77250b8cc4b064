"""One measurement, one process: what an earlier one warmed up, or left in memory, does not count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.checkout import CHECKOUT

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def run(module: str, *arguments: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run `python -m tests.benchmarks.<module>`; the JSON object on the last line that it prints. Raises SystemExit with its errors."""
    command = [sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{module}", *arguments]
    paths = os.pathsep.join(p for p in (str(CHECKOUT), os.environ.get("PYTHONPATH")) if p)  # Spark's workers import from here, too
    settings = os.environ | {"PYTHONPATH": paths} | (environment or {})
    done = subprocess.run(command, cwd=CHECKOUT, env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{module} {' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found
