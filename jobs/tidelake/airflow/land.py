"""The task `land` of the feed DAGs: waits until its hour is complete in the archive, by the rule of its feed (docs/landing.md), then lands
it.

The task runs `tidelake land --dry-run --json`, first when the hour has ended. Until then and between two checks it is deferred and takes no
worker slot. It does not wait for an hour that ended long ago: in a backfill nothing more will arrive, and landing reports what is missing.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from tidelake.airflow.stage import StageOperator, error_in, failure
from tidelake.airflow.wait import MomentTrigger
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
        """Land, or check again later. After `patience` the task fails and says what is missing; at once if the last hour ends after it.

        Args:
            context: The run's context.
            since: Time of the first check.
            event: The trigger's event.
        """
        hours, environment = self.given(context)
        began = datetime.fromisoformat(since)
        if _end(hours[-1]) > began + self.patience:
            raise AirflowFailException(f"{_ends(hours[-1])}. `land` waits {self.patience} at most: trigger the hour when it has ended")
        for hour in hours:
            if _end(hour) > datetime.now(UTC):
                self._wait(_ends(hour), began, _end(hour))
            elif _end(hour) + self.patience > began and (waits := self._waits_for(hour, environment)):
                self._wait_for(hour, waits, began)
        super().execute(context)

    def _wait_for(self, hour: str, waits: list[str], began: datetime) -> None:
        """Defer the task to the next check; fail it if it has waited for `patience`."""
        what = printable(f"hour {hour} is not complete in the archive: {_list(waits)}")
        now = datetime.now(UTC)
        if now - began >= self.patience:
            remedy = "check that the archiver runs. Trigger the hour with `wait` off to land what the archive has"
            raise AirflowFailException(f"{what}. Waited since {began.isoformat()}: {remedy}")
        self._wait(what, began, now + self.every)

    def _wait(self, what: str, began: datetime, until: datetime) -> None:
        """Defer the task until a moment."""
        self.log.info("%s", what)
        self.defer(trigger=MomentTrigger(until), method_name="land_when_complete", kwargs={"since": began.isoformat()})

    def _waits_for(self, hour: str, environment: Mapping[str, str]) -> list[str]:
        """Return what an hour waits for. Raises AirflowFailException or AirflowException by the child's exit code."""
        command = self.command_for(hour, ["--dry-run", "--json"])
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise failure(hour, done.returncode, error_in(done.stderr.splitlines()))
        found: list[str] = json.loads(done.stdout)["waits_for"]
        return found


def _end(hour: str) -> datetime:
    return parse_hour(hour) + timedelta(hours=1)


def _ends(hour: str) -> str:
    return f"hour {hour} ends at {_end(hour):%Y-%m-%dT%H:%M:%SZ}"


def _list(waits: list[str]) -> str:
    return "; ".join(waits[:_SHOWN]) + (f" and {len(waits) - _SHOWN} more" if len(waits) > _SHOWN else "")
