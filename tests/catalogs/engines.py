"""Engines that read Iceberg by themselves, in a venv of their own: their versions fit neither the project's nor one another's everywhere.

The venv is made once, in the user's cache (1.3 GB). TIDELAKE_READERS names another Python that has the packages.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidelake.io.file_lock import locked

PACKAGES = (
    "duckdb==1.5.5",
    "duckdb-extension-avro==1.5.5",
    "duckdb-extension-httpfs==1.5.5",
    "duckdb-extension-iceberg==1.5.5",
    "polars==2.1.0",
    "daft==0.7.26",
    "chdb==4.4.0",
    "pyiceberg[pyarrow]==0.12.0",  # polars and daft ask it for the files
)
_READER = Path(__file__).with_name("foreign_reader.py")


def read(engine: str, table: dict[str, Any], s3: dict[str, str], folder: Path) -> pa.Table:
    """What an engine reads. table: metadata, location, snapshot_id. Raises RuntimeError with what it said."""
    output = folder / "read.arrow"
    asked = json.dumps({"engine": engine, "output": str(output), "s3": s3} | table)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONWARNINGS")}
    command = [str(_python()), "-I", str(_READER), asked]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{engine}: {done.stderr[-3000:]}")
    with pa.OSFile(str(output)) as file:
        return pa.ipc.open_file(file).read_all()


def _python() -> Path:
    if given := os.environ.get("TIDELAKE_READERS"):
        return Path(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidelake"
    folder = cache / f"readers-{hashlib.sha256(' '.join(PACKAGES).encode()).hexdigest()[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_suffix(".lock")):
        if not (folder / "ready").exists():
            uv = Path(sys.executable).with_name("uv")
            subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True, timeout=300)
            subprocess.run([uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python", *PACKAGES], check=True, timeout=1200)
            (folder / "ready").touch()
    return folder / "bin" / "python"
