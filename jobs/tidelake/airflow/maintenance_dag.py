"""One maintenance DAG per feed: once a day it rewrites small files, expires cuts that are not retained, and removes orphans.

* **Retention** is set under `[maintenance]` in feed.toml (docs/maintenance.md); every retained cut reads as before.
* **With hours**: maintenance and hours take the feed's lease in turn. If an hour is staged and not published, files are rewritten another
  day.
* **Failures** are retried with growing delays; the next run finishes what was interrupted.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable

from tidelake.airflow.maintenance import MaintenanceOperator
from tidelake.airflow.stage import dag_id
from tidelake.config.feed import Feed

TASKS: dict[str, Any] = {
    "owner": "tidelake",
    "execution_timeout": timedelta(hours=6),
    "retries": 5,
    "retry_delay": timedelta(minutes=5),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(minutes=60),
}


def maintenance_dag(feed: Feed, schemas: Path) -> DAG:
    """Return the maintenance DAG of a feed, at a time of day when its hour is usually done. Feed names have no dot, so the id is unique.

    schemas: folder of the feeds.
    """
    every_day = CronTriggerTimetable("40 3 * * *", timezone="UTC")
    limits: dict[str, Any] = {"max_active_runs": 1, "dagrun_timeout": timedelta(hours=12)}
    tags = ["tidelake", feed.protocol]
    name = f"{dag_id(feed.name)}.maintenance"
    with DAG(name, schedule=every_day, catchup=False, **limits, default_args=TASKS, tags=tags, doc_md=__doc__) as dag:
        MaintenanceOperator(feed=feed.name, schemas=str(schemas))
    return dag
