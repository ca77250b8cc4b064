"""The task of the maintenance DAGs: runs `tidelake maintain --feed F` as a child process, like the stages (stage.py)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from tidelake.airflow.stage import StageOperator, child_environment
from tidelake.errors import ConfigError


class MaintenanceOperator(StageOperator):
    """Maintenance of one feed. It belongs to no hour, so it has no link to a report."""

    template_fields = ()
    operator_extra_links = ()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(stage="maintain", **kwargs)

    def execute(self, context: Context) -> None:
        """Run the maintenance. If another run holds the lease for long, the task fails and is retried."""
        try:
            environment = child_environment(Path(self.schemas), self.feed)
        except ConfigError as e:
            raise AirflowFailException(str(e)) from e
        self._run("", [], environment)

    def command_for(self, hour: str, options: Sequence[str]) -> list[str]:
        """Return the command line, without an hour."""
        return [*self.command, self.stage, "--feed", self.feed, "--schemas", self.schemas, *options]
