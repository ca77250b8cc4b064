"""The task `land` of the feed DAGs: waits until its hour is complete in the archive, by the rule of its feed (docs/landing.md), then lands
it.

The task runs `tidelake land --dry-run --json`. Between two checks it is deferred and takes no worker slot. It does not wait for an hour
that ended long ago: in a backfill nothing more will arrive, and landing reports what is missing.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException
from tidelake_stage import StageOperator, error_in, failure

from tidelake.config.finding_kinds import LONG_OVER
from tidelake.io.printable import printable
from tidelake.tso import parse_hour

_SHOWN = 5


class LandOperator(StageOperator):
    """Runs the stage land once the hours of the run are complete.

    It does not wait for hours that ended longer than `patience` before the first check.

    Args:
        every: Time between two checks.
        patience: Total time to wait, from the first check.
    """

    def __init__(self, *, every: timedelta = timedelta(minutes=1), patience: timedelta = LONG_OVER, **kwargs: Any) -> None:
        super().__init__(stage="land", **kwargs)
        self.every = every
        self.patience = patience

    def execute(self, context: Context) -> None:
        """Land when the hours are complete. With `wait` = false, land at once what is there."""
        if context["params"].get("wait", True):
            self.land_when_complete(context, datetime.now(UTC).isoformat())
        else:
            super().execute(context)

    def land_when_complete(self, context: Context, since: str, event: Any = None) -> None:
        """Land, or check again later. After `patience` the task fails and reports what is missing. since: time of the first check."""
        hours, environment = self.given(context)
        began = datetime.fromisoformat(since)
        for hour in hours:
            if parse_hour(hour) + timedelta(hours=1) + self.patience > began and (waits := self._waits_for(hour, environment)):
                self._wait(hour, waits, began)
        super().execute(context)

    def _wait(self, hour: str, waits: list[str], began: datetime) -> None:
        """Defer the task; fail it if it has waited for `patience`."""
        what = printable(f"hour {hour} is not complete in the archive; it waits for {_list(waits)}")
        now = datetime.now(UTC)
        if now - began >= self.patience:
            remedy = "check that the archiver runs. Trigger the hour with `wait` off to land what the archive has"
            raise AirflowFailException(f"{what}. Waited since {began.isoformat()}: {remedy}")
        self.log.info("%s", what)
        trigger = DateTimeTrigger(moment=now + self.every)
        self.defer(trigger=trigger, method_name="land_when_complete", kwargs={"since": began.isoformat()})

    def _waits_for(self, hour: str, environment: Mapping[str, str]) -> list[str]:
        """Return what an hour waits for. Raises AirflowFailException or AirflowException by the child's exit code."""
        command = self.command_for(hour, ["--dry-run", "--json"])
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise failure(hour, done.returncode, error_in(done.stderr.splitlines()))
        found: list[str] = json.loads(done.stdout)["waits_for"]
        return found


def _list(waits: list[str]) -> str:
    return "; ".join(waits[:_SHOWN]) + (f" and {len(waits) - _SHOWN} more" if len(waits) > _SHOWN else "")
