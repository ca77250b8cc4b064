"""What the tasks of a DAG run cost: read from Airflow's answers and from what their children wrote, and shown side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any

from rich.table import Table

CHILD = ("start", "imports", "open", "spark", "work")  # kinds of time of a child: tests/benchmarks/airflow_probe
COLUMNS = ("waits", "task", "airflow", *CHILD)
ALL = "all tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCost:
    """Seconds of a task.

    Attributes:
        waits: From the end of the task before it, or from the start of the run, until it starts.
        task: From its start to its end, as Airflow says.
        child: Of its child process by kind. The task's other seconds are Airflow's.
    """

    waits: float
    task: float
    child: Mapping[str, float] = field(default_factory=dict)

    def seconds(self, column: str) -> float:
        """Return the seconds of one of COLUMNS."""
        if column in CHILD:
            return self.child.get(column, 0.0)
        return {"waits": self.waits, "task": self.task, "airflow": self.task - sum(self.child.values())}[column]


RunCost = Mapping[str, TaskCost]


def run_cost(run: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]], children: Sequence[Mapping[str, Any]]) -> RunCost:
    """Return the cost of each task that ran, in the order of their starts.

    Args:
        run: The DAG run, as Airflow's REST API describes it.
        tasks: Its task instances, as the API describes them.
        children: What the children wrote.
    """
    found, before = dict[str, TaskCost](), _moment(run["start_date"])
    ran = [t for t in tasks if t["state"] == "success" and t["start_date"]]
    for t in sorted(ran, key=lambda t: _moment(t["start_date"])):
        start, end = _moment(t["start_date"]), _moment(t["end_date"])
        mine = [c["seconds"] for c in children if c["stage"] == t["task_id"] and start <= c["started"] <= end]
        child = {kind: sum(c.get(kind, 0.0) for c in mine) for kind in CHILD} if mine else {}
        found[t["task_id"]] = TaskCost(waits=start - before, task=end - start, child=child)
        before = end
    return found


def medians(runs: Sequence[RunCost]) -> RunCost:
    """Return for each task the medians of several runs."""
    return {
        name: TaskCost(
            waits=median(r[name].waits for r in runs),
            task=median(r[name].task for r in runs),
            child={kind: median(r[name].seconds(kind) for r in runs) for kind in CHILD},
        )
        for name in runs[0]
    }


def total(run: RunCost) -> TaskCost:
    """Return the sum of all tasks: from the start of the run to the end of its last task."""
    return TaskCost(
        waits=sum(t.waits for t in run.values()),
        task=sum(t.task for t in run.values()),
        child={kind: sum(t.seconds(kind) for t in run.values()) for kind in CHILD},
    )


def shown(what: str, run: RunCost, before: RunCost | None = None) -> Table:
    """Return a table with a row for each task and their sum. before: the same run of an older version, for the last two columns."""
    grid = Table(what, *COLUMNS, *(("task before", "share") if before else ()), box=None, pad_edge=False)
    for column in grid.columns[1:]:
        column.justify = "right"
    for name, cost in [*run.items(), (ALL, total(run))]:
        cells = [f"{cost.seconds(c):.1f}" for c in COLUMNS]
        if before:
            old = total(before) if name == ALL else before.get(name)
            cells += ["", ""] if old is None else [f"{old.task:.1f}", f"{cost.task / old.task:.2f}"]
        grid.add_row(name, *cells)
    return grid


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
