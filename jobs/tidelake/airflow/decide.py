"""The task `decide` of the feed DAGs: asks a person about a blocked hour, carries the answer out, and runs the stages that are left.

It runs if a stage failed. A stage that ended with exit code 3 says in XCom what blocks it. Another failure leaves nothing to decide: the
task fails and names it. The question is a required action of Airflow; its answer comes from the form or from REST.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow.providers.standard.exceptions import HITLTimeoutError
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context, Param, TriggerRule
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidelake.airflow.publish import PublishOperator
from tidelake.airflow.stage import BLOCKED, STAGES, BlockedError, QualityReportLink, error_in, failure
from tidelake.io.printable import printable

REPLAY = "Decode the messages again"
ACCEPT = "Accept the loss"
AGAIN = "Run the stage again"
STOP = "Stop"
MEANS = {
    REPLAY: "after a new schema, option or version",
    ACCEPT: "the cut is published without these messages and marked incomplete; needs a reason, which is recorded in the certificate",
    AGAIN: "after a file, a rule or the source was mended",
    STOP: "the run fails; nothing is published",
}
_TOLD = "Needed to accept a loss. Recorded with your name."
_REASON: dict[str, Any] = {"type": ["null", "string"], "title": "Reason", "description": _TOLD}
REASON = Param(None, source="task", **_REASON)  # with "string" alone the form offers no answer until a reason is there
QUARANTINED = {"UNDECIDED": REPLAY, "SCHEMA_MISMATCH": AGAIN, "UNDEFINED_TABLE": AGAIN}  # errors about quarantined messages and rows
SHOWN = 10


@dataclass(frozen=True, slots=True)
class RequiredAction:
    """What to ask. options: answers that make sense; body: Markdown."""

    subject: str
    body: str
    options: list[str]


class DecideOperator(PublishOperator, HITLOperator):
    """Asks about a blocked hour and goes on. hours: how long it waits for the answer; then the task fails."""

    def __init__(self, *, feed: str, schemas: str, hours: int, **kwargs: Any) -> None:
        kwargs["params"] = {"reason": REASON}  # not those of the DAG, which Airflow adds to every task's: the form would ask for them
        asked = {"subject": "", "options": [STOP], "response_timeout": timedelta(hours=hours)}
        tries = {"retries": 20, "retry_delay": timedelta(seconds=10), "retry_exponential_backoff": 0}  # while the hour is still blocked
        super().__init__(stage="decide", feed=feed, schemas=schemas, trigger_rule=TriggerRule.ONE_FAILED, **asked, **tries, **kwargs)

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Ask about the blocked stage. A later try first runs the stage again, because the cause may be gone.

        Return what PublishOperator returns of compact.
        """
        blocked = self._blocked(context)
        if context["ti"].try_number > 1:
            try:
                return self._go_on(context, blocked["stage"])
            except BlockedError as e:
                blocked = {"stage": self.stage, "hour": str(self.hour), "said": e.said}
        self._ask(blocked, context)
        HITLOperator.execute(self, context)
        return None

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any] | None:
        """Carry the answer out and run the stages that are left. If they are blocked again, the next try asks again.

        Return what PublishOperator returns of compact.
        """
        blocked = self._blocked(context)
        self._ask(blocked, context)
        try:
            answer = HITLOperator.execute_complete(self, context, event)
        except HITLTimeoutError as e:
            raise AirflowFailException(f"nobody decided within {self.response_timeout}: clear this task to be asked again") from e
        (chosen,), reason = answer["chosen_options"], str(answer["params_input"].get("reason") or "").strip()
        user = answer["responded_by_user"] or {}
        who = user.get("name") or user.get("id") or "unknown"
        self.log.info("%s decided: %s; reason: %s", who, chosen, reason or "none")
        if chosen == STOP:
            raise AirflowFailException(f"{who} stopped the hour{f': {reason}' if reason else ''}")
        if chosen == ACCEPT and not reason:
            raise AirflowException(f"{who} accepted the loss without a reason: the next try asks again")
        try:
            self._carry_out(context, chosen, who, reason)
            return self._go_on(context, blocked["stage"])
        except BlockedError as e:
            raise AirflowException(f"{e}; the hour is still blocked: the next try asks again") from e

    def _blocked(self, context: Context) -> dict[str, str]:
        """Return what blocks the run. Raises AirflowFailException if no stage is blocked."""
        said = [b for b in context["ti"].xcom_pull(task_ids=list(STAGES), key=BLOCKED) if b]
        if not said:
            raise AirflowFailException("a stage failed for a cause that needs no decision: see its log, then clear it")
        blocked: dict[str, str] = said[0]
        return blocked

    def _ask(self, blocked: Mapping[str, str], context: Context) -> None:
        """Set the question of the required action."""
        self.hour = blocked["hour"]
        messages = self._undecided(self.given(context)[1]) if code_of(blocked["said"]) in QUARANTINED else []
        asked = required_action(self.feed, blocked, messages, QualityReportLink().get_link(self, ti_key=None))
        last = context["ti"].try_number - 1
        said = f"Try {last} did not publish the hour. Its log says why.\n\n" if last else ""
        self.subject, self.body, self.options = asked.subject, said + asked.body, asked.options

    def _undecided(self, environment: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the quarantined messages without a decision."""
        found = json.loads(self._quarantine(["list", "--json"], environment))
        return [m for m in found if m["decision"] == "undecided"]

    def _carry_out(self, context: Context, chosen: str, who: str, reason: str) -> None:
        """Do with the quarantine what was chosen."""
        environment = self.given(context)[1]
        if chosen == REPLAY:
            self._quarantine(["replay"], environment)
        if chosen == ACCEPT:
            for hour in sorted({m["hour"] for m in self._undecided(environment)}):
                self._quarantine(["accept", "--all", "--hour", hour, "--by", who, "--reason", reason], environment)

    def _go_on(self, context: Context, stage: str) -> dict[str, Any] | None:
        """Run this stage and those after it, up to compact. Raises BlockedError."""
        for self.stage in STAGES[STAGES.index(stage) :]:
            published = self.run_stage(context)
        return published

    def _quarantine(self, arguments: Sequence[str], environment: Mapping[str, str]) -> str:
        """Run `tidelake quarantine` and return what it prints. Raises by its exit code."""
        command = [*self.command, "quarantine", *arguments, "--feed", self.feed, "--schemas", self.schemas]
        done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            said = error_in(done.stderr.splitlines()) or printable(done.stdout.strip())
            raise failure(f"quarantine {arguments[0]}", done.returncode, said)
        return done.stdout


def required_action(feed: str, blocked: Mapping[str, str], messages: Sequence[Mapping[str, str]], report: str) -> RequiredAction:
    """Return the required action about a blocked hour. messages: undecided ones, as `quarantine list --json` prints them."""
    code = code_of(blocked["said"])
    options = [QUARANTINED[code], ACCEPT, STOP] if messages else [AGAIN, STOP]
    lines = [f"`{blocked['stage']}` of hour {blocked['hour']} is blocked. The data is safe, and nothing was published.", ""]
    lines += [f"    {printable(line)}" for line in blocked["said"].splitlines()]
    if messages:
        lines += ["", "| message | hour | code | why |", "|---|---|---|---|"]
        lines += ["| " + " | ".join(_cell(m[name]) for name in ("message", "hour", "code", "error")) + " |" for m in messages[:SHOWN]]
        if len(messages) > SHOWN:
            lines += ["", f"and {len(messages) - SHOWN:,} more: `tidelake quarantine list --feed {feed}`"]
    lines += ["", f"[Quality report of the hour]({report})", ""]
    lines += [f"* **{option}**: {MEANS[option]}." for option in options]
    return RequiredAction(f"{feed}, hour {blocked['hour']}: {blocked['stage']} is blocked ({code})", "\n".join(lines), options)


def code_of(said: str) -> str:
    """Return the code of the command's error, which begins with it."""
    return said.partition(":")[0].partition(" ")[0]


def _cell(text: str) -> str:
    """Text of a message in a cell of a Markdown table, as code."""
    return "`" + printable(text).replace("`", "'").replace("|", "\\|") + "`"
