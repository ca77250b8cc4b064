"""Operator of the feed DAGs: runs one stage of one feed, for the hours of its run, as a child process of the task.

The child is the command line, so a task does the same as `tidelake STAGE --feed F --hour H`, and this module imports nothing of Spark,
Arrow or S3. Its exit code decides: 0 is success; 2 and 3 fail at once (wrong use; blocked: a person must decide); others are retried.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from airflow.sdk import BaseOperator, BaseOperatorLink, Context, conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.sdk.log import mask_secret

from tidelake.airflow.connections import given, stage_environment
from tidelake.airflow.lineage import Facts, facts_of, is_wanted, operator_lineage
from tidelake.airflow.pool import scheduling
from tidelake.config.feed import load_feed
from tidelake.errors import ConfigError
from tidelake.io.printable import printable
from tidelake.tso import format_hour, parse_hour

STAGES = ("land", "decode", "order", "validate", "compact")
HOURS = "{{ params.hour or partition_key or '' }}{{ ' to ' ~ params.until if params.until else '' }}"
BY_HOUR = ("land", "decode")  # stages that run per hour; the others process everything up to an hour
WEB_PREFIX = "/tidelake"  # of what the plugin adds to the web server
QUALITY_PREFIX = f"{WEB_PREFIX}/quality"
BLOCKED = "blocked"  # XCom of a blocked stage: its name, the hour, the error
KILL_SECONDS = 3.0  # less than Airflow's time between SIGTERM and SIGKILL
_TAIL = 40  # lines; an error can have several
_ERROR = "error: "  # how the command line's last words begin
_LEVELS = {"critical": logging.ERROR, "warning": logging.WARNING}  # of findings, by the word that their line begins with


def dag_id(feed: str) -> str:
    """Return the id of a feed's DAG; the alias of its tables' assets has the same name."""
    return f"tidelake_{feed}"


def schemas_folder() -> Path:
    """Return the folder of the feeds: TIDELAKE_SCHEMAS, else `schemas/` beside Airflow's folder of DAGs."""
    return Path(os.environ.get("TIDELAKE_SCHEMAS") or Path(conf.get("core", "dags_folder")).resolve().parent / "schemas")


def quality_url(path: str) -> str:
    """Return the URL of a quality page (pages/addresses.py)."""
    return f"{conf.get('api', 'base_url', fallback='').rstrip('/')}{QUALITY_PREFIX}/{path}"


def hours_of(params: Mapping[str, Any], partition_key: str | None) -> list[str]:
    """Return the hours of a run: `hour`, else the partition key, up to `until` if given. Raises ConfigError."""
    first = params.get("hour") or partition_key
    if not first:
        raise ConfigError("this run has no hour", remedy="trigger it with the parameter `hour`, like 2026-01-05T10, or as a backfill")
    start, end = parse_hour(first), parse_hour(params.get("until") or first)
    if end < start:
        raise ConfigError(f"until {format_hour(end)} is before hour {format_hour(start)}", remedy="`until` is the last hour of the range")
    return [format_hour(start + timedelta(hours=n)) for n in range((end - start) // timedelta(hours=1) + 1)]


def stage_options(hours: Sequence[str], *, redo: bool) -> dict[str, list[str]]:
    """Return each stage's options besides feed and hour. redo: publish the hours again, from the first up to the newest cut."""
    again = ["--redo-from", hours[0]] if redo else []
    return {"decode": ["--redo"] if redo else [], "order": again, "validate": again, "compact": again}


def child_environment(schemas: Path, feed: str) -> dict[str, str]:
    """Return the environment of a child for a feed; values from connections are masked in logs. Raises ConfigError."""
    connected = given(load_feed(schemas, feed, expand=False))
    for value in connected.values():
        mask_secret(value)
    return stage_environment(connected)


class BlockedError(AirflowFailException):
    """Raised for exit code 3: nothing is published until someone decides. said: the command's error."""

    def __init__(self, message: str, *, said: str) -> None:
        super().__init__(message)
        self.said = said


class QualityReportLink(BaseOperatorLink):
    """Link from a task to the quality report of its hour."""

    name = "Quality report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the page's URL; empty if the hour is not known yet."""
        hour = getattr(operator, "hour", None)
        return quality_url(f"{operator.feed}/{hour}") if hour else ""


class StageOperator(BaseOperator):
    """Runs one stage of one feed. The task has the stage's name. schemas: folder of the feeds.

    The rendered field `hours` shows the hours of the run, which has no partition key if it was triggered with `hour`.
    """

    template_fields: Collection[str] = ("hours",)
    operator_extra_links: Collection[BaseOperatorLink] = (QualityReportLink(),)
    command: ClassVar[Sequence[str]] = (sys.executable, "-P", "-m", "tidelake")

    def __init__(self, *, stage: str, feed: str, schemas: str, **kwargs: Any) -> None:
        super().__init__(task_id=stage, **(scheduling(stage) | kwargs))
        self.stage = stage
        self.feed = feed
        self.schemas = schemas
        self.hours = HOURS
        self.hour: str | None = None
        self._child: subprocess.Popen[str] | None = None
        self._lineage: list[Facts] = []

    def execute(self, context: Context) -> Any:
        """Run the stage. If it is blocked, the task `decide` finds the reason in XCom."""
        self._lineage = []
        try:
            return self.run_stage(context)
        except BlockedError as e:
            context["ti"].xcom_push(key=BLOCKED, value={"stage": self.stage, "hour": self.hour, "said": e.said})
            raise

    def run_stage(self, context: Context) -> Any:
        """Run the stage for the hours of the run. Raises BlockedError if someone must decide."""
        hours, environment = self.given(context)
        options = stage_options(hours, redo=bool(context["params"].get("redo")))
        for hour in hours if self.stage in BY_HOUR else hours[-1:]:
            self._run(hour, options.get(self.stage, []), environment)

    def given(self, context: Context) -> tuple[list[str], dict[str, str]]:
        """Return the run's hours and the child's environment. Raises AirflowFailException for wrong settings."""
        try:
            return hours_of(context["params"], context.get("partition_key")), child_environment(Path(self.schemas), self.feed)
        except ConfigError as e:
            raise AirflowFailException(str(e)) from e

    def command_for(self, hour: str, options: Sequence[str]) -> list[str]:
        """Return the command line of the stage for an hour."""
        return [*self.command, self.stage, "--feed", self.feed, "--hour", hour, "--schemas", self.schemas, *options]

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Return what the stage read and wrote. Airflow's provider of OpenLineage calls it, also if the task failed."""
        return operator_lineage(self._lineage)

    def on_kill(self) -> None:
        """End the child and its processes. A shared Spark server keeps running."""
        child = self._child
        if child is None or child.poll() is not None:
            return
        os.killpg(child.pid, signal.SIGTERM)
        try:
            child.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)

    def _run(self, hour: str, options: Sequence[str], environment: Mapping[str, str]) -> None:
        """Run a child and log its output. Raises AirflowFailException or AirflowException by its exit code."""
        self.hour = hour
        tail, failed = deque[str](maxlen=_TAIL), False
        with subprocess.Popen(
            self.command_for(hour, options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as self._child:
            try:
                for line in self._child.stdout or ():
                    tail.append(printable(line.expandtabs(4).rstrip()))  # Spark and its libraries print arbitrary text
                    failed = failed or tail[-1].startswith(_ERROR)
                    self.log.log(logging.ERROR if failed else level_of(tail[-1]), "%s", tail[-1])
                code = self._child.wait()
            finally:
                self.on_kill()
        if code in (0, 3) and self.stage in STAGES and is_wanted():
            redo = "--redo-from" in options
            self._lineage.append(facts_of(self.schemas, self.feed, self.stage, hour, environment, redo=redo))
        if code == 3:
            self.log.error("what blocks the hour: %s", QualityReportLink().get_link(self, ti_key=None))
        if code:
            raise failure(f"{self.stage} {hour}".rstrip(), code, error_in(tail))


def level_of(line: str) -> int:
    """Return the log level of a line that the command line prints before it fails."""
    return _LEVELS.get(line.lstrip().partition(": ")[0], logging.INFO)


def failure(what: str, code: int, said: str) -> AirflowException:
    """Return the exception for a child's exit code: fail at once for 2 and 3, otherwise to be retried."""
    text = said or f"the child ended with status {code}"
    if code == 3:
        return BlockedError(f"{what}: {text}", said=text)
    return (AirflowFailException if code == 2 else AirflowException)(f"{what}: {text}")


def error_in(lines: Sequence[str]) -> str:
    """Return the last error that the command line printed."""
    starts = [n for n, line in enumerate(lines) if line.startswith(_ERROR)]
    return "\n".join(list(lines)[starts[-1] :]).removeprefix(_ERROR) if starts else ""
