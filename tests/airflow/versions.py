"""Parse the DAGs and run one hour, with a fake command line, on other versions of Airflow: `python -m tests.airflow.versions 3.2.1 3.3.2`.

Each version gets a virtual environment in a temporary folder, with Airflow, its providers and the package. It needs uv and the package
registry. Exit code 1 if a version fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.checkout import CHECKOUT

PACKAGES = ("apache-airflow-providers-amazon", "apache-airflow-providers-standard", "pydantic", "pytest")
HOUR = "2026-01-05T10"
STATUS = {
    "published_hour": HOUR,
    "cut_hours": [HOUR],
    "published_ts": 463368563725434880,
    "cut": 7,
    "incomplete_because": [],
    "tables": {
        "bazaar.bids": {"rows": 41, "table": "bazaar_open_bazaar.bids", "snapshot_id": 9, "changed": {"inserts": 3}},
        "bazaar.quiet": {"rows": 8, "table": "bazaar_open_bazaar.quiet", "snapshot_id": 11, "changed": None},
    },
}
WANTED = {
    "dags": 8,
    "errors": {},
    "plugins": ["tidelake"],
    "provider": True,
    "state": "success",
    "events": ["iceberg://lake/bazaar_open_bazaar/bids", "tidelake://cuts/bazaar-open"],
}
PROBE = """
import json, sys
from pathlib import Path
from tests.airflow.conftest import Child  # first: it has Airflow's settings
from airflow import plugins_manager
from airflow.dag_processing.dagbag import DagBag
from airflow.providers_manager import ProvidersManager
from airflow.utils.db import initdb
from tests.airflow.records import events
from tidelake.airflow import stage

initdb()
bag = DagBag(sys.argv[2])
plugins_manager.ensure_plugins_loaded()
child = Child(Path(sys.argv[1]))
child.plan(status=json.loads(sys.argv[3]))
stage.StageOperator.command = child.command
conf = {"hour": sys.argv[4], "until": None, "redo": False, "wait": True}
run = bag.dags["tidelake_bazaar-open"].test(logical_date=None, run_conf=conf)
found = {"dags": len(bag.dag_ids), "errors": bag.import_errors, "plugins": [p.name for p in plugins_manager._get_plugins()[0]]}
found |= {"provider": "tidelake" in ProvidersManager().providers, "state": str(run.state)}
print("FOUND" + json.dumps(found | {"events": sorted(str(e["uri"]) for e in events(run.run_id))}))
"""


def main(versions: Sequence[str]) -> int:
    if not versions:
        sys.stdout.write(f"{__doc__}\n")
        return 2
    wrong = 0
    for version in versions:
        with tempfile.TemporaryDirectory(prefix=f"tidelake-airflow-{version}-") as folder:
            found = probed(Path(folder), version)
        differs = {name: found.get(name) for name, value in WANTED.items() if found.get(name) != value}
        wrong += bool(differs)
        sys.stdout.write(f"{version}: {json.dumps(differs) if differs else 'parses and runs'}\n")
    return 1 if wrong else 0


def probed(folder: Path, version: str) -> dict[str, Any]:
    """Return what the probe found, or how it ended."""
    python, limits = folder / "venv" / "bin" / "python", folder / "constraints.txt"
    limits.write_text("\n".join(pins()))
    uv = (sys.executable, "-m", "uv")
    for command in (
        (*uv, "venv", "--quiet", str(folder / "venv"), "--python", sys.executable),
        (*uv, "pip", "install", "--quiet", "--python", str(python), "--constraint", str(limits), f"apache-airflow=={version}", *PACKAGES),
        (*uv, "pip", "install", "--quiet", "--python", str(python), "--no-deps", str(CHECKOUT)),
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"errors": done.stderr[-2000:]}
    (folder / "child").mkdir()
    command = (str(python), "-c", PROBE, str(folder / "child"), str(CHECKOUT / "dags"), json.dumps(STATUS), HOUR)
    done = subprocess.run(command, env=settings(), cwd=CHECKOUT, capture_output=True, text=True, check=False)
    _, mark, said = done.stdout.rpartition("FOUND")
    found: dict[str, Any] = json.loads(said.splitlines()[0]) if mark else {"errors": (done.stdout + done.stderr)[-3000:]}
    return found


def pins() -> list[str]:
    """Return the lock's versions of pydantic, which the package needs, and of fastapi, with whose newer ones Airflow 3.2 does not start."""
    lines = (CHECKOUT / "requirements.lock").read_text().splitlines()
    return [line.rstrip(" \\") for line in lines if line.startswith(("fastapi==", "pydantic=="))]


def settings() -> dict[str, str]:
    """Return this process's environment without Airflow's settings and import paths."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTHON"))}
    return kept | {"PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
