"""What the benchmark of a DAG run makes of Airflow's answers and of what children wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.benchmarks.airflow_run import PROBE
from tests.benchmarks.airflow_tasks import CHILD, TaskCost, medians, run_cost, shown, total
from tests.checkout import CHECKOUT

RUN = {"start_date": "2026-01-05T10:00:00Z"}


def task(name: str, start: float, end: float, state: str = "success") -> dict[str, Any]:
    def moment(at: float) -> str:
        return f"2026-01-05T10:00:{at:06.3f}Z"

    return {"task_id": name, "state": state, "start_date": moment(start), "end_date": moment(end)}


def child(name: str, second: float, **seconds: float) -> dict[str, Any]:
    return {"stage": name, "started": 1_767_607_200 + second, "seconds": seconds}


TASKS = [task("decode", 9.5, 14), task("land", 1, 8), {"task_id": "decide", "state": "skipped", "start_date": None, "end_date": None}]
CHILDREN = [
    child("land", 2, start=0.5, imports=2.0, work=1.0),
    child("land", 6, start=0.25, work=0.75),  # a second child of the same task
    child("decode", 10, start=0.5, imports=1.0, open=0.25, spark=1.0, work=0.5),
    child("decode", 40, start=9.0),  # of another run
]


def test_a_task_costs_what_it_waited_what_airflow_took_and_what_its_children_took() -> None:
    found = run_cost(RUN, TASKS, CHILDREN)
    assert list(found) == ["land", "decode"]
    assert (found["land"].waits, found["land"].task, found["decode"].waits, found["decode"].task) == (1, 7, 1.5, 4.5)
    assert [found["land"].seconds(k) for k in ("airflow", *CHILD)] == [2.5, 0.75, 2, 0, 0, 1.75]
    assert [found["decode"].seconds(k) for k in ("airflow", *CHILD)] == [1.25, 0.5, 1, 0.25, 1, 0.5]
    assert [total(found).seconds(k) for k in ("waits", "task", "airflow", *CHILD)] == [2.5, 11.5, 3.75, 1.25, 3, 0.25, 1, 2.25]


def test_several_runs_are_shown_by_medians_beside_those_of_an_older_version() -> None:
    runs = [{"land": TaskCost(waits=w, task=t, child={"work": 1.0})} for w, t in ((1.0, 4.0), (9.0, 2.0), (2.0, 3.0))]
    old = {"land": TaskCost(waits=3, task=6)}
    assert medians(runs) == {"land": TaskCost(waits=2, task=3, child=dict.fromkeys(CHILD, 0.0) | {"work": 1.0})}
    out = StringIO()
    Console(file=out, width=120).print(shown("a small hour", medians(runs), old))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert lines[0][-3:] == ["task", "before", "share"]
    assert lines[1] == ["land", "2.0", "3.0", "2.0", "0.0", "0.0", "0.0", "0.0", "1.0", "6.0", "0.50"]
    assert lines[2] == ["all", "tasks", "2.0", "3.0", "2.0", "0.0", "0.0", "0.0", "0.0", "1.0", "6.0", "0.50"]


def test_children_of_tasks_write_where_their_time_went(tmp_path: Path) -> None:
    paths = os.pathsep.join(map(str, (PROBE, CHECKOUT / "jobs")))
    environment = os.environ | {"PYTHONPATH": paths, "TIDELAKE_PROBE": str(tmp_path)}
    command = [sys.executable, "-P", "-m", "tidelake", "decode", "--feed", "nobody", "--hour", "2026-01-05T10"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "no feed 'nobody'" in done.stderr) == (2, True)
    (file,) = tmp_path.glob("decode-*.json")
    found = json.loads(file.read_text())
    assert {"start", "imports", "work"} <= found["seconds"].keys() <= set(CHILD)
    assert min(found["seconds"].values()) > 0
    assert subprocess.run([sys.executable, "-c", ""], env=environment, check=True).returncode == 0
    assert len(list(tmp_path.iterdir())) == 1, "other processes write nothing"
