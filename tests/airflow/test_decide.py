"""The task `decide`: what it asks about a blocked hour, and what it does with the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from tests.airflow.conftest import Child

HOUR = "2026-01-05T10"
UNDECIDED = "UNDECIDED shop.open[3]@1017: 2 messages of feed bazaar-open could not be decoded"
MESSAGES = [
    {"message": "shop.open[3]@1017", "hour": HOUR, "code": "BAD_JSON", "error": "a | in `it`", "decision": "undecided"},
    {"message": "shop.open[3]@1018", "hour": "2026-01-05T09", "code": "BAD_JSON", "error": "\x1b[31m", "decision": "undecided"},
    {"message": "shop.open[0]@7", "hour": "2026-01-05T08", "code": "BAD_JSON", "error": "", "decision": "accepted"},
]
PUBLISHED = {
    "published_hour": HOUR,
    "cut_hours": [HOUR],
    "published_ts": 463368563725434880,
    "cut": 7,
    "incomplete_because": [{"code": "ACCEPTED_LOSS", "detail": "2 messages"}],
    "tables": {"bazaar.bids": {"rows": 41, "table": "bazaar_open_bazaar.bids", "snapshot_id": 9, "changed": {"deletes": 1}}},
}


class Task:
    """The task of a run, without Airflow's database."""

    def __init__(self, task: Any, said: str, stage: str = "order", tries: int = 1) -> None:
        self.task, self.events = copy(task), list[tuple[str, Any]]()
        blocked = {"stage": stage, "hour": HOUR, "said": said} if said else None
        alias = SimpleNamespace(add=lambda asset, extra: self.events.append((asset.uri, extra)))
        ti = SimpleNamespace(id="ti", try_number=tries, xcom_pull=lambda task_ids, key: [None, blocked], xcom_push=None)
        params = {"hour": HOUR, "until": None, "redo": False}
        self.context = {
            "ti": ti,
            "task_instance": ti,
            "params": params,
            "partition_key": HOUR,
            "outlet_events": {self.task.outlets[0]: alias},
        }

    def ask(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """What it asks, until it waits for the answer."""
        from airflow.sdk.exceptions import TaskAwaitingInput

        asked = dict[str, Any]()
        monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **given: asked.update(given))
        with pytest.raises(TaskAwaitingInput) as waits:
            self.task.execute(self.context)
        return asked | {"waits": waits.value.timeout}

    def answer(self, chosen: str, reason: str = "") -> None:
        """Give the answer of a person."""
        event = {"chosen_options": [chosen], "params_input": {"reason": reason}, "responded_at": datetime.now(UTC)}
        self.task.execute_complete(self.context, event | {"responded_by_user": {"id": "7", "name": "ada"}})


@pytest.fixture
def decide(dag: Any, child: Child, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Task]:
    monkeypatch.setattr("tidelake.airflow.publish._known", lambda context, uri: None)  # no DAG is scheduled on a table
    return lambda *given, **more: Task(dag.get_task("decide"), *given, **more)


@pytest.fixture
def words(dag: Any) -> Any:
    return sys.modules["tidelake.airflow.decide"]


def did(child: Child) -> list[str]:
    return [" ".join(a for a in c["arguments"] if not a.startswith("/")) for c in child.calls]


def test_a_message_in_quarantine_can_be_decoded_again_or_accepted(
    decide: Callable[..., Task], child: Child, words: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    child.plan(quarantine=MESSAGES)
    asked = decide(UNDECIDED).ask(monkeypatch)
    assert asked["subject"] == f"bazaar-open, hour {HOUR}: order is blocked (UNDECIDED)"
    assert asked["options"] == [words.REPLAY, words.ACCEPT, words.STOP]
    assert {name: (p["value"], p["schema"]["type"]) for name, p in asked["params"].items()} == {"reason": (None, ["null", "string"])}
    assert asked["waits"].total_seconds() == 12 * 3600
    assert asked["body"].startswith(f"`order` of hour {HOUR} is blocked.")
    lines = asked["body"].splitlines()
    assert f"    {UNDECIDED}" in lines
    assert [line for line in lines if line.startswith("| `")] == [
        f"| `shop.open[3]@1017` | `{HOUR}` | `BAD_JSON` | `a \\| in 'it'` |",
        "| `shop.open[3]@1018` | `2026-01-05T09` | `BAD_JSON` | `\\x1b[31m` |",
    ]
    assert f"[Quality report of the hour](http://airflow.example:8080/tidelake/quality/bazaar-open/{HOUR})" in lines


@pytest.mark.parametrize("code", ["SCHEMA_MISMATCH", "UNDEFINED_TABLE"])
def test_rows_that_fit_no_table_can_be_accepted_or_read_with_a_mended_file(
    decide: Callable[..., Task], child: Child, words: Any, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    child.plan(quarantine=MESSAGES[:1])
    asked = decide(f"{code} shop.open[3]@1017: 4 rows").ask(monkeypatch)
    assert asked["options"] == [words.AGAIN, words.ACCEPT, words.STOP]
    child.plan(quarantine=MESSAGES[2:])  # decided since by the command line
    assert decide(f"{code} shop.open[3]@1017: 4 rows").ask(monkeypatch)["options"] == [words.AGAIN, words.STOP]


def test_only_so_many_messages_are_shown(decide: Callable[..., Task], child: Child, words: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    child.plan(quarantine=[MESSAGES[0] | {"message": f"shop.open[3]@{n}"} for n in range(1234)])
    body = decide(UNDECIDED).ask(monkeypatch)["body"]
    assert body.count("| `shop.open[3]") == words.SHOWN
    assert "and 1,224 more: `tidelake quarantine list --feed bazaar-open`" in body


def test_an_hour_that_is_blocked_by_something_else_can_be_run_again(
    decide: Callable[..., Task], child: Child, words: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = decide("GAP: offsets are missing;\nbring the files back", stage="land").ask(monkeypatch)
    assert asked["options"] == [words.AGAIN, words.STOP]
    assert "    GAP: offsets are missing;\n    bring the files back\n" in asked["body"]
    assert child.calls == []


def test_an_accepted_loss_is_recorded_with_name_and_reason_and_the_hour_is_published(
    decide: Callable[..., Task], child: Child, words: Any
) -> None:
    child.plan(quarantine=MESSAGES, status=PUBLISHED)
    task = decide(UNDECIDED)
    task.answer(words.ACCEPT, " a test of the shop's team ")
    accept = "quarantine accept --all --hour {} --by ada --reason a test of the shop's team --feed bazaar-open --schemas"
    assert did(child)[:2] == [accept.format("2026-01-05T09"), accept.format(HOUR)]
    assert [c.split(" --")[0] for c in did(child)[2:]] == ["order", "validate", "compact"]
    assert [(uri, e["cut"], e["incomplete"]) for uri, e in task.events] == [
        ("iceberg://lake/bazaar_open_bazaar/bids", 7, ["ACCEPTED_LOSS: 2 messages"]),
        ("tidelake://cuts/bazaar-open", 7, ["ACCEPTED_LOSS: 2 messages"]),
    ]


def test_messages_are_decoded_again_before_the_hour_goes_on(decide: Callable[..., Task], child: Child, words: Any) -> None:
    child.plan(quarantine=MESSAGES, status=PUBLISHED)
    decide(UNDECIDED).answer(words.REPLAY)
    assert [c.split(" --")[0] for c in did(child)] == ["quarantine replay", "order", "validate", "compact"]


def test_an_hour_goes_on_from_the_blocked_stage(decide: Callable[..., Task], child: Child, words: Any) -> None:
    child.plan(status=PUBLISHED)
    decide("EXPECTATION_FAILED: too few rows", stage="validate").answer(words.AGAIN)
    assert [c.split(" --")[0] for c in did(child)] == ["validate", "compact"]


@pytest.mark.parametrize(
    ("chosen", "reason", "codes", "retried", "says"),
    [
        ("STOP", "wait for the shop", {}, False, "^ada stopped the hour: wait for the shop$"),
        ("STOP", "", {}, False, "^ada stopped the hour$"),
        ("ACCEPT", "  ", {}, True, "^ada accepted the loss without a reason: the next try asks again$"),
        ("REPLAY", "", {"quarantine replay": [3]}, True, "quarantine replay: .*; the hour is still blocked: the next try asks again$"),
        ("REPLAY", "", {"order": [3]}, True, "still blocked: the next try asks again$"),
        ("REPLAY", "", {"order": [1]}, True, "^order 2026-01-05T10: STORAGE: no answer$"),
        ("REPLAY", "", {"order": [2]}, False, "^order 2026-01-05T10: STORAGE: no answer$"),
    ],
)
def test_what_is_not_published_ends_with_its_reason(
    decide: Callable[..., Task], child: Child, words: Any, chosen: str, reason: str, codes: dict[str, list[int]], retried: bool, says: str
) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    child.plan(codes, says="error: STORAGE: no answer", quarantine=MESSAGES)
    with pytest.raises(AirflowException, match=says) as e:
        decide(UNDECIDED).answer(getattr(words, chosen), reason)
    assert isinstance(e.value, AirflowFailException) != retried
    assert not any(c.startswith(("validate", "compact", "quarantine accept")) for c in did(child))


def test_a_later_try_runs_the_stage_first_and_asks_about_what_blocks_now(
    decide: Callable[..., Task], child: Child, words: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    child.plan({"validate": [3]}, says="error: EXPECTATION_FAILED: too few rows", quarantine=MESSAGES)
    asked = decide(UNDECIDED, tries=2).ask(monkeypatch)
    assert asked["subject"] == f"bazaar-open, hour {HOUR}: validate is blocked (EXPECTATION_FAILED)"
    assert asked["body"].startswith("Try 1 did not publish the hour. Its log says why.\n\n`validate` of hour")
    child.plan(status=PUBLISHED)
    task = decide(UNDECIDED, tries=3)
    task.task.execute(task.context)
    assert [c.split(" --")[0] for c in did(child)] == ["order", "validate", "order", "validate", "compact"]
    assert len(task.events) == 2


def test_nobody_is_asked_about_a_failure_that_needs_no_decision(decide: Callable[..., Task], child: Child) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    task = decide("")
    with pytest.raises(AirflowFailException, match="a stage failed for a cause that needs no decision: see its log, then clear it"):
        task.task.execute(task.context)
    assert child.calls == []


def test_a_question_that_nobody_answers_fails_the_run(decide: Callable[..., Task], child: Child) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    task = decide("GAP: offsets are missing")
    with pytest.raises(AirflowFailException, match="nobody decided within 12:00:00: clear this task to be asked again"):
        task.task.execute_complete(task.context, {"error": "too late", "error_type": "timeout"})


def test_a_blocked_stage_says_what_blocks_it(dag: Any, child: Child) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    pushed = dict[str, Any]()
    child.plan({"order": [3]}, says="error: GAP: offsets are missing")
    ti = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))
    with pytest.raises(AirflowFailException):
        copy(dag.get_task("order")).execute({"ti": ti, "params": {"hour": HOUR}})
    assert pushed == {"blocked": {"stage": "order", "hour": HOUR, "said": "GAP: offsets are missing"}}
