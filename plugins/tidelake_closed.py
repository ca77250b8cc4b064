"""The sensor of the feed DAGs: an hour is complete in the archive, by the rule of its feed (docs/landing.md).

It asks the command line, `tidelake land --dry-run --json`, and between two questions it is deferred and takes no worker's place. An hour
that is long over is not waited for: in a backfill nothing more will come, and landing says what is missing.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from tidelake_stage import StageOperator, child_environment, error_in, hours_of

from tidelake.errors import ConfigError
from tidelake.findings import LONG_OVER
from tidelake.tso import parse_hour

_SHOWN = 5


class HourSensor(BaseOperator):
    """Waits until the hours of a run are complete. every: between two questions; patience: from the first question on, in all.

    Hours that had ended so long before the first question are not waited for.
    """

    def __init__(
        self, *, feed: str, schemas: str, every: timedelta = timedelta(minutes=1), patience: timedelta = LONG_OVER, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.feed = feed
        self.schemas = schemas
        self.every = every
        self.patience = patience

    def execute(self, context: Context) -> None:
        """Ask for the first time. `wait` = false asks nothing: what is there is landed."""
        if context["params"].get("wait", True):
            self.ask(context, datetime.now(UTC).isoformat())

    def ask(self, context: Context, since: str, event: Any = None) -> None:
        """Done if the hours are complete, else deferred; after `patience` it fails and says what is missing. since: the first question."""
        try:
            hours = hours_of(context["params"], context.get("partition_key"))
            environment = child_environment(Path(self.schemas), self.feed)
        except ConfigError as e:
            raise AirflowFailException(str(e)) from e
        for hour in hours:
            if waits := self._waits_for(hour, environment):
                if parse_hour(hour) + timedelta(hours=1) + self.patience <= datetime.fromisoformat(since):
                    self.log.warning("hour %s is long over and not waited for, although it lacks: %s", hour, _list(waits))
                else:
                    self._wait(hour, waits, since)

    def _wait(self, hour: str, waits: list[str], since: str) -> None:
        """Defer the task, or fail it where it waited long enough."""
        what = f"hour {hour} is not complete in the archive; it waits for {_list(waits)}"
        now = datetime.now(UTC)
        if now - datetime.fromisoformat(since) >= self.patience:
            remedy = "does the archiver run? Trigger the hour with `wait` off to land what is there"
            raise AirflowFailException(f"{what}. Waited since {since}: {remedy}")
        self.log.info("%s", what)
        self.defer(trigger=DateTimeTrigger(moment=now + self.every), method_name="ask", kwargs={"since": since})

    def _waits_for(self, hour: str, environment: Mapping[str, str]) -> list[str]:
        """What an hour waits for. Raises AirflowFailException or AirflowException by the child's exit code, as the stages do."""
        command = [*StageOperator.command, "land", "--dry-run", "--json", "--feed", self.feed, "--hour", hour, "--schemas", self.schemas]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            said = error_in(done.stderr.splitlines()) or f"the child ended with status {done.returncode}"
            raise (AirflowFailException if done.returncode in (2, 3) else AirflowException)(f"{hour}: {said}")
        found: list[str] = json.loads(done.stdout)["waits_for"]
        return found


def _list(waits: list[str]) -> str:
    return "; ".join(waits[:_SHOWN]) + (f" and {len(waits) - _SHOWN} more" if len(waits) > _SHOWN else "")
