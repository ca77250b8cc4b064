"""What a DAG run of a small hour costs on a real Airflow, task by task, and what the same run costs when the hour is published already.

python -m tests.benchmarks.airflow_run [--against COMMIT] [--passes 3] [--rows 200]

Each pass has a lake of its own. Its first hour runs before Airflow starts, which compiles what is not compiled yet. Then a DAG run takes
the second hour: it is the first to need Spark. A second run of that hour finds nothing to do. `--against` takes an older commit in a
worktree of its own in turns with this checkout, with the same Python packages.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.airflow.running import DAG, FEED, RUN_SECONDS, Failed, airflow, api, last_words, say, trigger, until
from tests.benchmarks.airflow_tasks import RunCost, medians, run_cost, shown
from tests.checkout import CHECKOUT
from tidelake.demo.airflow import Airflow
from tidelake.demo.play import demo_lake, make_archives
from tidelake.tso import format_hour

RUNS = ("a small hour", "published already")
PROBE = Path(__file__).with_name("airflow_probe")
OLDER_PROVIDER = """def get_provider_info():
    return {"package-name": "tidelake", "name": "Tidelake", "description": "An older version"}
"""
OLDER_PLUGIN = """from airflow.plugins_manager import AirflowPlugin


class TidelakePlugin(AirflowPlugin):
    name = "tidelake_older"
"""


def main(arguments: Sequence[str]) -> int:
    """Print a table for each of RUNS."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.airflow_run", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", help="an older commit to compare with")
    parser.add_argument("--passes", type=int, default=3, help="lakes for each version; medians are shown (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=200, help="changed rows an hour (default: %(default)s)")
    flags = parser.parse_args(arguments)
    with older(flags.against) if flags.against else nullcontext() as tree:
        checkouts = [c for c in (tree, CHECKOUT) if c is not None]
        found: dict[Path, list[list[RunCost]]] = {c: [] for c in checkouts}
        try:
            for n in range(flags.passes):
                for checkout in checkouts:
                    say(f"pass {n + 1}: {'this checkout' if checkout == CHECKOUT else flags.against}")
                    found[checkout].append(one_pass(checkout, flags.rows))
        except Failed as e:
            say(f"FAILED: {e}")
            return 1
    console = Console(width=120)
    for n, what in enumerate(RUNS):
        sides = [medians([runs[n] for runs in found[c]]) for c in checkouts]
        if tree is not None:
            console.print(shown(f"{what}, {flags.against}", sides[0]))
        console.print(shown(f"{what}, now", sides[-1], sides[0] if tree is not None else None))
    return 0


@contextmanager
def older(commit: str) -> Iterator[Path]:
    """Yield a worktree of a commit."""
    with tempfile.TemporaryDirectory(prefix="tidelake-older-") as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(CHECKOUT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(tree), commit], check=True, capture_output=True)
        try:
            _answer_entry_points(tree / "jobs" / "tidelake" / "airflow")
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True, capture_output=True)


def _answer_entry_points(package: Path) -> None:
    """Give an older tree, which has no package for Airflow, the modules that the installed package's entry points name, without content."""
    if package.exists():
        return
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "provider.py").write_text(OLDER_PROVIDER)
    (package / "plugin.py").write_text(OLDER_PLUGIN)


def one_pass(checkout: Path, rows: int) -> list[RunCost]:
    """Return the costs of RUNS, in a new lake and a new Airflow."""
    with tempfile.TemporaryDirectory(prefix="tidelake-airflow-run-") as name, demo_lake(Path(name) / "demo", fresh=True):
        folder = Path(name)
        first, second = make_archives(2, rows).hours[:2]
        paths = os.pathsep.join(map(str, (PROBE, checkout / "jobs", checkout)))
        settings = {"PYTHONPATH": paths, "TIDELAKE_PROBE": str(folder)}
        if (checkout / "plugins").is_dir():  # of older versions; now the package has them
            settings["AIRFLOW__CORE__PLUGINS_FOLDER"] = str(checkout / "plugins")
        run_alone(checkout, first, os.environ | settings)
        with airflow(folder, settings, checkout) as running:
            return [cost_of_run(running, second, folder) for _ in RUNS]


def run_alone(checkout: Path, hour: datetime, environment: dict[str, str]) -> None:
    """Run an hour on the command line. Raises Failed."""
    options = ["--feed", FEED, "--hour", format_hour(hour), "--schemas", str(checkout / "schemas")]
    command = [sys.executable, "-P", "-m", "tidelake", "run", *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"`tidelake run` ended with status {done.returncode}: {done.stderr[-2000:]}")


def cost_of_run(running: Airflow, hour: datetime, folder: Path) -> RunCost:
    """Run an hour and return what its tasks cost. Raises Failed."""
    run = trigger(running, hour)
    path = f"/dags/{DAG}/dagRuns/{run}"

    def ended() -> bool:
        state = api(running, "GET", path)["state"]
        if state == "failed":
            raise Failed(f"run {run} failed; {last_words(running.home)}")
        return bool(state == "success")

    until(running, ended, RUN_SECONDS, "successful run")
    tasks = api(running, "GET", f"{path}/taskInstances")["task_instances"]
    children: list[dict[str, Any]] = [json.loads(f.read_text()) for f in folder.glob("*-*.json")]
    return run_cost(api(running, "GET", path), tasks, children)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
