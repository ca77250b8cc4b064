"""A real Airflow for scripts: starts it on a checkout, calls its REST API, waits for its runs."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.checkout import CHECKOUT
from tidelake.demo.airflow import Airflow, is_free
from tidelake.tso import format_hour

FEED = "bazaar-open"
DAG = f"tidelake_{FEED}"
DAG_SECONDS, RUN_SECONDS = 120, 900
PORTS = range(18080, 18180)


class Failed(Exception):
    """What is not as it must be."""


@contextmanager
def airflow(folder: Path, settings: Mapping[str, str], checkout: Path = CHECKOUT) -> Iterator[Airflow]:
    """Airflow with its DAG unpaused, where everybody is an administrator.

    Args:
        folder: Where its home and its Spark server are.
        settings: More variables for it and its tasks.
        checkout: Whose DAGs and feeds it has.
    """
    port = next(port for port in PORTS if is_free(port))
    own = {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",  # nobody edits a DAG meanwhile
        "TIDELAKE_SPARK_SERVER": str(folder / "spark"),
    }
    started = time.monotonic()
    with Airflow(folder / "airflow", checkout, port, own | dict(settings)) as running:
        until(running, lambda: DAG in {d["dag_id"] for d in api(running, "GET", "/dags")["dags"]}, DAG_SECONDS, "the DAG")
        api(running, "PATCH", f"/dags/{DAG}", {"is_paused": False})
        say(f"Airflow started: {time.monotonic() - started:.1f} s")
        yield running
        ending = time.monotonic()
    say(f"Airflow stopped: {time.monotonic() - ending:.1f} s")


def trigger(running: Airflow, hour: datetime) -> str:
    """Start a run of the hour. Returns its id."""
    found = api(running, "POST", f"/dags/{DAG}/dagRuns", {"logical_date": None, "conf": {"hour": format_hour(hour)}})
    return str(found["dag_run_id"])


def last_words(home: Path) -> str:
    """The end of the task log that was written last."""
    logs = sorted(home.glob("logs/dag_id=*/**/*.log"), key=lambda path: path.stat().st_mtime)
    return logs[-1].read_text(errors="replace")[-3000:] if logs else "no task wrote a log"


def until(running: Airflow, is_done: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something is done. Raises Failed after so many seconds."""
    deadline = time.monotonic() + seconds
    while not is_done():
        running.check()
        if time.monotonic() > deadline:
            raise Failed(f"no {what} within {seconds:.0f} s; {last_words(running.home)}")
        time.sleep(0.5)


def api(running: Airflow, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Airflow's REST API."""
    with urllib.request.urlopen(f"{running.url}/auth/token", timeout=60) as answer:
        token = json.load(answer)["access_token"]
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"{running.url}/api/v2{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long the block took."""
    started = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - started:.1f} s")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
