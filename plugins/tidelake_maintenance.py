"""The task of the maintenance DAGs: `tidelake maintain --feed F` as a child process, by the rules of the stages (tidelake_stage)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException
from tidelake_stage import StageOperator, child_environment

from tidelake.errors import ConfigError


class MaintenanceOperator(StageOperator):
    """Maintenance of one feed: of no hour, so it links to no report."""

    operator_extra_links = ()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(stage="maintain", **kwargs)

    def execute(self, context: Context) -> None:
        """Run it. A lease that an hour holds for long is a failure that passes: it is retried."""
        try:
            environment = child_environment(Path(self.schemas), self.feed)
        except ConfigError as e:
            raise AirflowFailException(str(e)) from e
        self._run("", [], environment)

    def command_for(self, hour: str, options: Sequence[str]) -> list[str]:
        """The command line; maintenance has no hour."""
        return [*self.command, self.stage, "--feed", self.feed, "--schemas", self.schemas, *options]
