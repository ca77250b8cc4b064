"""Where Airflow schedules the tasks of a feed: the pool of those that start Spark, and which go first (docs/how-to/pools.md)."""

from __future__ import annotations

import os
from typing import Any

SPARK = frozenset({"decode", "order", "validate", "compact", "decide", "maintain"})  # `decide` runs stages after its answer


def scheduling(stage: str) -> dict[str, Any]:
    """Return the arguments of a task that say when Airflow starts it.

    An hour that began goes before one that did not. Tasks that start Spark are in the pool that TIDELAKE_POOL names. Without the variable
    they are in Airflow's default pool, which always exists. Airflow never starts the tasks of a pool that does not.
    """
    pool = os.environ.get("TIDELAKE_POOL")
    return {"weight_rule": "upstream"} | ({"pool": pool} if pool and stage in SPARK else {})
