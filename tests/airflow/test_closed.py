"""The sensor that waits until the archive has a whole hour, with a fake command line."""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.airflow.conftest import CHECKOUT, Child
from tidelake.tso import format_hour

JUST_OVER = datetime.now(UTC) - timedelta(hours=1)
HOUR, NEXT, AFTER = (format_hour(JUST_OVER + timedelta(hours=n)) for n in range(3))
GIVEN = {"params": {"hour": HOUR, "until": None, "redo": False, "wait": True}}
MISSING = ["shop[0]: no object of a later hour is there", "shop[1]: no object of a later hour is there"]


@pytest.fixture
def sensor(dag: Any) -> Any:
    return copy(dag.get_task("closed"))


def ago(**span: int) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


def test_a_complete_hour_is_not_waited_for(sensor: Any, child: Child) -> None:
    sensor.execute(GIVEN)
    assert child.asked == [HOUR]


def test_an_open_hour_is_asked_for_again_after_a_minute(sensor: Any, child: Child, capfd: pytest.CaptureFixture[str]) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    child.plan(waits=[MISSING])
    before = datetime.now(UTC)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute(GIVEN)
    since = datetime.fromisoformat(deferred.value.kwargs["since"])
    path, settings = deferred.value.trigger.serialize()
    assert path == "airflow.providers.standard.triggers.temporal.DateTimeTrigger"
    assert timedelta(minutes=1) <= settings["moment"] - since
    assert before <= since
    assert f"hour {HOUR} is not complete in the archive; it waits for {MISSING[0]}; {MISSING[1]}" in capfd.readouterr().out
    getattr(sensor, deferred.value.method_name)(GIVEN, **deferred.value.kwargs, event=None)
    assert child.asked == [HOUR, HOUR]


def test_patience_ends_and_the_task_says_what_is_missing(sensor: Any, child: Child) -> None:
    from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

    assert sensor.patience == timedelta(hours=3)
    many = [f"shop[{n}]: no object" for n in range(7)]
    child.plan(waits=[many, many])
    with pytest.raises(TaskDeferred):
        sensor.ask(GIVEN, ago(hours=2, minutes=59))
    with pytest.raises(AirflowFailException) as failed:
        sensor.ask(GIVEN, ago(hours=3))
    said = str(failed.value)
    assert said.startswith(f"hour {HOUR} is not complete in the archive; it waits for shop[0]: no object; ")
    assert "shop[4]: no object and 2 more. Waited since " in said
    assert said.endswith("does the archiver run? Trigger the hour with `wait` off to land what is there")


def test_an_hour_that_is_long_over_is_not_waited_for(sensor: Any, child: Child, capfd: pytest.CaptureFixture[str]) -> None:
    old = "2026-01-05T10"
    child.plan(waits=[MISSING])
    sensor.execute({"params": GIVEN["params"] | {"hour": old}})
    assert child.asked == [old]
    assert f"hour {old} is long over and not waited for, although it lacks: {MISSING[0]}; {MISSING[1]}" in capfd.readouterr().out


def test_every_hour_of_a_range_must_be_complete(sensor: Any, child: Child) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    given = {"params": GIVEN["params"] | {"until": AFTER}}
    child.plan(waits=[[], MISSING])
    with pytest.raises(TaskDeferred):
        sensor.execute(given)
    assert child.asked == [HOUR, NEXT]
    sensor.ask(given, ago(hours=1))
    assert child.asked[2:] == [HOUR, NEXT, AFTER]


def test_nothing_is_asked_where_nobody_wants_to_wait(sensor: Any, child: Child) -> None:
    sensor.execute({"params": GIVEN["params"] | {"wait": False}})
    assert child.asked == []


@pytest.mark.parametrize(("code", "final"), [(1, False), (2, True), (3, True)])
def test_a_question_that_fails_is_retried_only_if_it_may_pass(sensor: Any, child: Child, code: int, final: bool) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    child.plan(says="told before\nerror: STORAGE: no answer", waits=[code])
    with pytest.raises(AirflowException, match=f"^{HOUR}: STORAGE: no answer$") as failed:
        sensor.execute(GIVEN)
    assert isinstance(failed.value, AirflowFailException) == final


def test_the_sensor_asks_the_real_command_line(dag: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's hours are closed as soon as they are over."""
    for name in ("ARCHIVE", "LAKE"):
        monkeypatch.setenv(f"TIDELAKE_{name}", str(tmp_path / name))
    monkeypatch.setenv("TIDELAKE_CATALOG", "jdbc:sqlite:/nowhere")
    sensor = copy(dag.get_task("closed"))
    assert sensor.schemas == str(CHECKOUT / "schemas")
    from tidelake_stage import child_environment

    environment = child_environment(CHECKOUT / "schemas", "bazaar-open")
    assert sensor._waits_for(HOUR, environment) == []
    assert sensor._waits_for("9999-01-05T10", environment) == ["the hour ends at 9999-01-05T11:00:00Z"]
