"""The pool of tasks that start Spark, on a real scheduler: one hour of each of the demo's four feeds, triggered at the same time.

`python -m tests.airflow.pools --slots 1`: exit code 0 if all four hours are published and never more tasks of the pool ran at once than it
has slots. It prints when each hour was published, and in which order the pool's tasks ran.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.airflow.running import DAG_SECONDS, RUN_SECONDS, Failed, airflow, api, say, timed, until
from tests.quick_spark import QUICK_SPARK
from tidelake.demo.airflow import POOL, Airflow
from tidelake.demo.play import FEEDS, demo_lake, make_archives
from tidelake.errors import TidelakeError
from tidelake.tso import format_hour

DAGS = [f"tidelake_{feed}" for feed in FEEDS]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.airflow.pools", description=__doc__)
    parser.add_argument("--slots", type=int, default=1, help="slots of the pool")
    parser.add_argument("--rows", type=int, default=200, help="changed rows an hour")
    flags = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # an exception, so that what was started is ended
    with tempfile.TemporaryDirectory(prefix="tidelake-pools-") as folder, demo_lake(Path(folder) / "demo", fresh=True):
        try:
            with timed("everything"):
                everything(Path(folder), flags.slots, flags.rows)
        except (Failed, TidelakeError) as e:
            say(f"FAILED: {e}")
            return 1
    return 0


def everything(folder: Path, slots: int, rows: int) -> None:
    hour = format_hour(make_archives(1, rows).hours[0])
    with airflow(folder, QUICK_SPARK) as running:
        until(running, lambda: set(DAGS) <= {d["dag_id"] for d in api(running, "GET", "/dags")["dags"]}, DAG_SECONDS, "DAGs")
        running.run("pools", "set", POOL, str(slots), "of the test")
        for dag in DAGS:
            api(running, "PATCH", f"/dags/{dag}", {"is_paused": False})
            api(running, "POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": {"hour": hour, "wait": False}})
        until(running, lambda: published(running), RUN_SECONDS, "four hours")
        tell(running, slots)


def published(running: Airflow) -> bool:
    """Whether all runs have succeeded. Raises Failed for one that has not."""
    states = {run["dag_id"]: run["state"] for run in api(running, "GET", "/dags/~/dagRuns")["dag_runs"]}
    if failed := [dag for dag, state in states.items() if state == "failed"]:
        raise Failed(f"failed: {failed}")
    return [states.get(dag) for dag in DAGS] == ["success"] * len(DAGS)


def tell(running: Airflow, slots: int) -> None:
    """Say when what ran. Raises Failed if more tasks ran at once than the pool has slots."""
    tasks = api(running, "GET", "/dags/~/dagRuns/~/taskInstances?limit=200")["task_instances"]
    pooled = sorted((t for t in tasks if t["pool"] == POOL and t["state"] == "success"), key=lambda t: str(t["start_date"]))
    began = min(moment(t["start_date"]) for t in tasks if t["start_date"])
    for t in pooled:
        seconds = [(moment(t[name]) - began).total_seconds() for name in ("start_date", "end_date")]
        say(f"  {t['dag_id']:24} {t['task_id']:10} weight {t['priority_weight']}  {seconds[0]:6.1f} to {seconds[1]:6.1f} s")
    ends = sorted((moment(t["end_date"]) - began).total_seconds() for t in pooled if t["task_id"] == "compact")
    say(f"published after {', '.join(f'{end:.0f}' for end in ends)} s; mean {sum(ends) / len(ends):.0f} s")
    if len(pooled) != 4 * len(DAGS):
        raise Failed(f"expected {4 * len(DAGS)} tasks in the pool, found {len(pooled)}")
    if (most := most_at_once(pooled)) > slots:
        raise Failed(f"{most} tasks ran at once in a pool of {slots}")
    say(f"at most {most} at once in a pool of {slots}")


def most_at_once(tasks: Sequence[dict[str, Any]]) -> int:
    """The largest number of tasks that ran at the same time."""
    steps = [(moment(t["start_date"]), 1) for t in tasks] + [(moment(t["end_date"]), -1) for t in tasks]
    running = most = 0
    for _, step in sorted(steps):
        running += step
        most = max(most, running)
    return most


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
