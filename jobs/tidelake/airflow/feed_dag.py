"""One DAG per feed: hourly, a task for each of the five stages; the partition key is the hour (UTC).

* **Schedule**: at each full hour a run processes the hour that just ended; runs go in order, one at a time.
* **Waiting**: `land` waits, deferred, until the hour is complete (`closed_by` in feed.toml), three hours at most; not for older hours.
* **Manual runs**: trigger with `hour`, for example `2026-01-05T10`, or with a partition key; without both a run fails at once. With
  `until`, the hours up to it become one cut. With `redo`, published hours are published again. With `wait` off the run does not wait.
* **Backfill**, one cut per hour: set `first_hour` in feed.toml and unpause the DAG (while it is paused, the runs stay queued). Then
  `airflow backfill create --dag-id DAG --from-date 2026-01-05T10 --to-date 2026-01-05T12 --max-active-runs 1`, both ends included.
* **Failures**: temporary errors (storage, network, a lease held by another run) are retried with growing delays. A wrong file, a gap or a
  failed critical expectation fails at once, and "Quality report" in the task's details says why. All **state** is in the lake.
* **Decide**: if a stage is blocked, `decide` asks what to do (Required Actions), does it and runs the other stages; else it is skipped.
* **Incomplete cuts**: the last task, `complete`, is skipped if the feed's newest cut is incomplete. Its log has the reasons.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, AssetAlias, CronPartitionTimetable, chain

from tidelake.airflow.decide import DecideOperator
from tidelake.airflow.land import LandOperator
from tidelake.airflow.params import PARAMS
from tidelake.airflow.publish import CompleteOperator, PublishOperator
from tidelake.airflow.stage import STAGES, StageOperator, dag_id
from tidelake.config.feed import Feed

TASKS: dict[str, Any] = {
    "owner": "tidelake",
    "execution_timeout": timedelta(hours=3),
    "retries": 5,
    "retry_delay": timedelta(minutes=1),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(minutes=20),
}


def feed_dag(feed: Feed, schemas: Path) -> DAG:
    """Return the hourly DAG of a feed. schemas: folder of the feeds."""
    every_hour = CronPartitionTimetable("0 * * * *", timezone="UTC", run_offset=-1, key_format="%Y-%m-%dT%H")
    limits: dict[str, Any] = {"max_active_runs": 1, "dagrun_timeout": timedelta(hours=12 + feed.policy.decide_hours)}
    about = f"{__doc__}\nThis feed: `{feed.protocol}` from {', '.join(f'`{t}`' for t in feed.topics)}, times in {feed.time_zone}."
    tags = ["tidelake", feed.protocol]
    dag = DAG(dag_id(feed.name), schedule=every_hour, catchup=False, **limits, params=PARAMS, default_args=TASKS, tags=tags, doc_md=about)
    with dag:
        given: dict[str, Any] = {"feed": feed.name, "schemas": str(schemas)}
        alias = [AssetAlias(dag_id(feed.name))]  # the tables are known only when they are published
        middle = [StageOperator(stage=s, **given) for s in STAGES[1:-1]]
        stages = [LandOperator(**given), *middle, PublishOperator(stage="compact", outlets=alias, **given)]
        chain(*stages, complete := CompleteOperator(**given))
        if hours := feed.policy.decide_hours:
            stages >> DecideOperator(hours=hours, outlets=alias, **given) >> complete
    return dag
