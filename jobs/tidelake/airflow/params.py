"""Parameters of a run of a feed DAG, as the trigger form shows them."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

HOUR: dict[str, Any] = {"type": ["null", "string"], "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}$"}
PARAMS = {
    "hour": Param(None, **HOUR, title="Hour", description="UTC, like 2026-01-05T10. Needed, unless the run has a partition key."),
    "until": Param(None, **HOUR, title="Until", description="Last hour of a range, which becomes one cut. Empty: only that hour."),
    "wait": Param(True, type="boolean", title="Wait", description="Wait until the archive has the whole hour. Off: land what it has."),
    "redo": Param(False, type="boolean", title="Redo", description="Decode again, and rebuild what is published from this hour on."),
}
