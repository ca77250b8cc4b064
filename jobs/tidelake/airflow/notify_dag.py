"""One DAG for all feeds that have [[notify]] in feed.toml (docs/how-to/notifications.md).

* **Every five minutes** it looks at the lake and sends what people should hear: hours that are blocked, cuts that are incomplete, warnings,
  data that is late, and what of it ended. Each cause is told once.
* **Independent**: it needs no run of a feed's DAG, and no run waits for it. It starts no Spark.
* **Try it**: trigger it with `test`.
* **Failures**: a notifier that fails makes this run fail, and no other. The next run sends what was not delivered.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, Param

from tidelake.airflow.notify import NotifyOperator
from tidelake.config.feed import Feed

PARAMS = {"test": Param(False, type="boolean", title="Test", description="Send a test message by every notifier, and nothing else.")}
LIMITS: dict[str, Any] = {"max_active_runs": 1, "dagrun_timeout": timedelta(minutes=30), "is_paused_upon_creation": False}
TASK: dict[str, Any] = {
    "owner": "tidelake",
    "execution_timeout": timedelta(minutes=20),
    "retries": 0,  # the next run tries again
    "priority_weight": 10,  # before any stage
}


def notify_dag(feeds: Iterable[Feed], schemas: Path, dag_id: str) -> DAG | None:
    """Return the DAG, None if no feed has a notifier. schemas: folder of the feeds."""
    names = [feed.name for feed in feeds if feed.notify]
    if not names:
        return None
    every = CronTriggerTimetable("*/5 * * * *", timezone="UTC")
    with DAG(dag_id, schedule=every, catchup=False, **LIMITS, params=PARAMS, tags=["tidelake"], doc_md=__doc__) as dag:
        NotifyOperator(feeds=names, schemas=str(schemas), **TASK)
    return dag
