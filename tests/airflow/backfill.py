"""A real Airflow over the demo lake: a backfill of three hours, its database deleted, the last hour by hand; every table is compared.

`python -m tests.airflow.backfill [--screenshots FOLDER]`; exit code 0 if every table equals the truth at every hour's cut.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tidelake.demo.airflow import Airflow, is_free
from tidelake.demo.generate import Workload
from tidelake.demo.play import FEEDS, compare, demo_lake, make_archives
from tidelake.feed import load_feed
from tidelake.lake.run import Lake
from tidelake.lake.status import feed_status
from tidelake.tso import format_hour

CHECKOUT = Path(__file__).resolve().parents[2]
FEED = "bazaar-open"
DAG = f"tidelake_{FEED}"
HOURS, ROWS = 3, 300
RUN_SECONDS = 900
PORTS = range(18080, 18180)
ALL_ADMINS = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True"}  # a token for everybody, and a browser needs no form


class Failed(Exception):
    """What is not as it must be."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.airflow.backfill", description=__doc__)
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of the grid and the quality page (needs chromium)")
    flags = parser.parse_args(arguments)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidelake-airflow-") as folder:
        try:
            with timed("everything"):
                everything(Path(folder), flags.screenshots)
        except Failed as e:
            say(f"FAILED after {time.monotonic() - started:.0f} s: {e}")
            return 1
    return 0


def everything(folder: Path, screenshots: Path | None) -> None:
    spark = {"TIDELAKE_SPARK_SERVER": str(folder / "spark")}
    with demo_lake(folder / "demo", fresh=True):
        with timed("archives"):
            workload = make_archives(HOURS, ROWS)
        *hours, tail = workload.hours
        with airflow(folder / "airflow", ALL_ADMINS | spark) as first:
            unpause(first)
            with timed("backfill of three hours"):
                backfill(first, hours[0], hours[-1])
                wait(first, runs=len(hours))
            with timed("comparing"):
                check(workload, hours)
            if screenshots:
                picture(first, screenshots, hours[-1])
        shutil.rmtree(folder / "airflow")
        with airflow(folder / "airflow", ALL_ADMINS | spark) as second:
            unpause(second)
            with timed("the last hour, after the loss of Airflow's database"):
                trigger(second, tail)
                wait(second, runs=1)
            with timed("comparing"):
                check(workload, [*hours, tail])


@contextmanager
def airflow(home: Path, settings: dict[str, str]) -> Iterator[Airflow]:
    port = next(port for port in PORTS if is_free(port))
    started = time.monotonic()
    with Airflow(home, CHECKOUT, port, settings) as running:
        say(f"Airflow started in {time.monotonic() - started:.1f} s")
        yield running
        ending = time.monotonic()
    say(f"Airflow stopped in {time.monotonic() - ending:.1f} s")


def unpause(running: Airflow) -> None:
    """As soon as the DAG was parsed."""
    until(running, lambda: DAG in {d["dag_id"] for d in api(running, "GET", "/api/v2/dags")["dags"]}, seconds=120, what="the DAG")
    api(running, "PATCH", f"/api/v2/dags/{DAG}", {"is_paused": False})


def backfill(running: Airflow, first: datetime, last: datetime) -> None:
    """As the README says."""
    dates = ["--from-date", f"{format_hour(first)}:00", "--to-date", f"{format_hour(last)}:00"]
    running.run("backfill", "create", "--dag-id", DAG, *dates, "--max-active-runs", "1")


def trigger(running: Airflow, hour: datetime) -> None:
    api(running, "POST", f"/api/v2/dags/{DAG}/dagRuns", {"logical_date": None, "conf": {"hour": format_hour(hour)}})


def wait(running: Airflow, runs: int) -> None:
    """Until so many runs have succeeded. Raises Failed at the first that has not, with the end of its log."""

    def done() -> bool:
        found = api(running, "GET", f"/api/v2/dags/{DAG}/dagRuns")["dag_runs"]
        for run in found:
            if run["state"] == "failed":
                raise Failed(f"run {run['dag_run_id']} failed; {last_words(running.home)}")
        return [r["state"] for r in found] == ["success"] * runs

    until(running, done, seconds=RUN_SECONDS, what=f"{runs} runs")
    tasks = api(running, "GET", f"/api/v2/dags/{DAG}/dagRuns/~/taskInstances?order_by=start_date")["task_instances"]
    say("seconds by task: " + ", ".join(f"{t['task_id']} {t['duration']:.1f}" for t in tasks))


def last_words(home: Path) -> str:
    """The end of the task log that was written last."""
    logs = sorted(home.glob("logs/dag_id=*/**/*.log"), key=lambda path: path.stat().st_mtime)
    return logs[-1].read_text(errors="replace")[-3000:] if logs else "no task wrote a log"


def check(workload: Workload, hours: Sequence[datetime]) -> None:
    """Raises Failed unless every table equals the truth at every hour's cut, and no cut is missing."""
    with Lake.of(load_feed(CHECKOUT / "schemas", FEED)) as lake:
        status = feed_status(lake)
        if (status["cut"], status["published_hour"]) != (len(hours), format_hour(hours[-1])):
            raise Failed(f"expected {len(hours)} cuts up to {format_hour(hours[-1])}, found {status}")
        for hour in hours:
            found = compare(lake, workload, FEEDS[FEED], hour)
            wrong = {table: several[:3] for table, several in found.items() if several}
            if wrong or not found:
                raise Failed(f"tables differ from the truth at {format_hour(hour)}: {wrong}")
            say(f"{format_hour(hour)}: {len(found)} of {len(found)} tables equal the truth")


def picture(running: Airflow, folder: Path, hour: datetime) -> None:
    """The grid of the DAG, and the page that the link of the last hour's compact opens."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = api(running, "GET", f"/api/v2/dags/{DAG}/dagRuns")["dag_runs"]
    run = next(r for r in runs if r["partition_key"] == format_hour(hour))
    links = api(running, "GET", f"/api/v2/dags/{DAG}/dagRuns/{run['dag_run_id']}/taskInstances/compact/links")["extra_links"]
    browse(f"{running.url}/dags/{DAG}", running, folder / "grid.png")
    browse(links["Quality report"], running, folder / "quality.png")


def browse(address: str, running: Airflow, file: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise Failed("there is no chromium to take a picture with")
    login = f"{running.url}/auth/token/login?{urlencode({'next': address})}"
    options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1500,1000", "--virtual-time-budget=20000"]
    subprocess.run([chromium, *options, f"--screenshot={file}", login], check=True, capture_output=True, timeout=120)


def until(running: Airflow, is_done: Any, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not is_done():
        running.check()
        if time.monotonic() > deadline:
            raise Failed(f"no {what} within {seconds:.0f} s; {last_words(running.home)}")
        time.sleep(0.5)


def api(running: Airflow, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Airflow's REST API, as an administrator."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token(running)}"}
    data = json.dumps(body).encode() if body is not None else None
    with urllib.request.urlopen(urllib.request.Request(running.url + path, data, headers, method=method), timeout=60) as answer:
        return json.load(answer)


def token(running: Airflow) -> str:
    with urllib.request.urlopen(f"{running.url}/auth/token", timeout=60) as answer:
        return str(json.load(answer)["access_token"])


@contextmanager
def timed(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - started:.1f} s")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
