"""One upkeep DAG per feed of `schemas/`: once a day, small files are rewritten, cuts that are not retained go, orphans are removed.

* **What is kept** stands under `[upkeep]` in feed.toml (docs/maintenance.md); every retained cut reads as before.
* **Beside the hours**: both take the feed's lease in turn. While an hour is staged and not published, files are rewritten another day.
* **Failures** are retried with growing delays; what is cut short, the next run finishes.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, CronTriggerTimetable
from tidelake_stage import dag_id, schemas_folder
from tidelake_upkeep import UpkeepOperator

from tidelake.config.feed import Feed, feed_names, load_feed
from tidelake.errors import ConfigError

SCHEMAS = schemas_folder(__file__)
TASKS = {
    "owner": "tidelake",
    "execution_timeout": timedelta(hours=6),
    "retries": 5,
    "retry_delay": timedelta(minutes=5),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(minutes=60),
}


def upkeep_dag(feed: Feed) -> None:
    """The upkeep DAG of a feed, at a time of day when its hour is usually done. No feed's name has a dot."""
    every_day = CronTriggerTimetable("40 3 * * *", timezone="UTC")
    limits = {"max_active_runs": 1, "dagrun_timeout": timedelta(hours=12)}
    tags = ["tidelake", feed.protocol]
    with DAG(f"{dag_id(feed.name)}.upkeep", schedule=every_day, catchup=False, **limits, default_args=TASKS, tags=tags, doc_md=__doc__):
        UpkeepOperator(feed=feed.name, schemas=str(SCHEMAS))


for name in feed_names(SCHEMAS):
    try:
        upkeep_dag(load_feed(SCHEMAS, name, expand=False))
    except ConfigError:
        continue  # tidelake_broken_feeds.py shows it
