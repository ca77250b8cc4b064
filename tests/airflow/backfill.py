"""A real Airflow over a lake of its own: a backfill of three hours, its database deleted, the last hour again; every table is compared.

`python -m tests.airflow.backfill`: exit code 0 if every table equals the truth at every hour's cut, and running the last hour again
on an Airflow that remembers nothing changed nothing. It leaves nothing behind, whether it ends well, badly or by a signal.
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

from tests.airflow.running import DAG, FEED, RUN_SECONDS, Failed, airflow, api, last_words, say, timed, trigger, until
from tests.checkout import CHECKOUT
from tests.quick_spark import QUICK_SPARK
from tidelake.config.feed import load_feed
from tidelake.demo.airflow import Airflow
from tidelake.demo.generate import Workload
from tidelake.demo.play import FEEDS, compare, demo_lake, make_archives
from tidelake.errors import TidelakeError
from tidelake.lake.opened import Lake
from tidelake.query.status import Status, feed_status
from tidelake.tso import format_hour

TASKS = ("land", "decode", "order", "validate", "compact", "complete")
HOURS = 3


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.airflow.backfill", description=__doc__)
    parser.add_argument("--rows", type=int, default=200, help="changed rows an hour")
    flags = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # an exception, so that what was started is ended
    with tempfile.TemporaryDirectory(prefix="tidelake-backfill-") as folder:
        try:
            with timed("everything"):
                everything(Path(folder), flags.rows)
        except (Failed, TidelakeError) as e:
            say(f"FAILED: {e}")
            return 1
    return 0


def everything(folder: Path, rows: int) -> None:
    with demo_lake(folder / "demo", fresh=True):
        with timed("archives"):
            workload = make_archives(HOURS, rows)
        hours = workload.hours[:HOURS]
        with airflow(folder, QUICK_SPARK) as running:
            with timed("backfill of three hours"):
                backfill(running, hours[0], hours[-1])
                wait(running, runs=HOURS)
            with timed("comparing with the truth"):
                before = check(workload, hours)
        (folder / "airflow" / "airflow.db").unlink()
        with airflow(folder, QUICK_SPARK) as running:
            with timed("the last hour again, without Airflow's memory"):
                trigger(running, hours[-1])
                wait(running, runs=1)
            with timed("comparing with what was there"):
                after = check(workload, hours[-1:])
        if after != before:
            raise Failed(f"the second run of {format_hour(hours[-1])} changed something: {before} became {after}")
        say("nothing changed")


def backfill(running: Airflow, first: datetime, last: datetime) -> None:
    """As the README says."""
    dates = ["--from-date", format_hour(first), "--to-date", format_hour(last)]
    running.run("backfill", "create", "--dag-id", DAG, *dates, "--max-active-runs", "1")


def wait(running: Airflow, runs: int) -> None:
    """Until so many runs have succeeded. Raises Failed at the first that has not, with the end of its log."""
    told = set[str]()

    def done() -> bool:
        found = api(running, "GET", f"/dags/{DAG}/dagRuns?order_by=id")["dag_runs"]
        for run in found:
            if run["state"] == "failed":
                raise Failed(f"run {run['dag_run_id']} failed; {last_words(running.home)}")
            if run["state"] == "success" and run["dag_run_id"] not in told:
                told.add(run["dag_run_id"])
                tell_tasks(running, run)
        return [r["state"] for r in found] == ["success"] * runs

    until(running, done, RUN_SECONDS, f"{runs} successful runs")


def tell_tasks(running: Airflow, run: dict[str, Any]) -> None:
    tasks = api(running, "GET", f"/dags/{DAG}/dagRuns/{run['dag_run_id']}/taskInstances")["task_instances"]
    ran = {t["task_id"]: t for t in tasks if t["task_id"] != "decide" or t["state"] != "skipped"}
    if set(ran) != set(TASKS) or any(t["try_number"] != 1 for t in ran.values()):
        raise Failed(f"expected each of {TASKS} to run once, found {[(t['task_id'], t['state'], t['try_number']) for t in tasks]}")
    seconds = {name: t["duration"] for name, t in ran.items()}
    hour = run["partition_key"] or run["conf"]["hour"]
    say(f"  {hour} {run['run_type']}: " + ", ".join(f"{stage} {seconds[stage]:.1f} s" for stage in TASKS))


def check(workload: Workload, hours: Sequence[datetime]) -> Status:
    """The feed's status. Raises Failed unless there is a cut for each hour and every table equals the truth at those of these hours."""
    with Lake.of(load_feed(CHECKOUT / "schemas", FEED)) as lake:
        status = feed_status(lake)
        if (status["cut"], status["published_hour"]) != (HOURS, format_hour(hours[-1])):
            raise Failed(f"expected {HOURS} cuts up to {format_hour(hours[-1])}, found {status}")
        for hour in hours:
            found = compare(lake, workload, FEEDS[FEED], hour)
            wrong = {table: several[:3] for table, several in found.items() if several}
            if wrong or not found:
                raise Failed(f"tables differ from the truth at {format_hour(hour)}: {wrong}")
            say(f"  {format_hour(hour)}: all {len(found)} tables equal the truth")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
