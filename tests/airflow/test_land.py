"""The task that waits until the archive has a whole hour and lands it, with a fake command line."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.airflow.conftest import CHECKOUT, Child
from tidelake.tso import format_hour

NOW = datetime(2026, 1, 5, 13, 20, tzinfo=UTC)
HOUR, NEXT, AFTER = (format_hour(NOW - timedelta(hours=n)) for n in (3, 2, 1))  # all ended less than three hours ago
GIVEN = {"params": {"hour": HOUR, "until": None, "redo": False, "wait": True}}
MISSING = ["shop[0]: there is no object of a later hour", "shop[1]: there is no object of a later hour"]


def clock(now: Callable[[], datetime]) -> type[datetime]:
    """The class datetime with another now()."""
    return type("Clock", (datetime,), {"now": staticmethod(lambda tz=None: now())})


@pytest.fixture
def land(dag: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The task, which thinks that it is NOW."""
    task = copy(dag.get_task("land"))
    monkeypatch.setitem(task.land_when_complete.__globals__, "datetime", clock(lambda: NOW))
    return task


def ago(**span: int) -> str:
    return (NOW - timedelta(**span)).isoformat()


def landed(child: Child) -> list[str]:
    assert all(c["arguments"][0] == "land" for c in child.calls)
    return [c["arguments"][4] for c in child.calls]


def test_a_complete_hour_is_not_waited_for(land: Any, child: Child) -> None:
    land.execute(GIVEN)
    assert child.asked == [HOUR]
    assert landed(child) == [HOUR]


def test_an_open_hour_is_asked_for_again_after_a_minute(land: Any, child: Child, capfd: pytest.CaptureFixture[str]) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    child.plan(waits=[MISSING])
    with pytest.raises(TaskDeferred) as deferred:
        land.execute(GIVEN)
    assert deferred.value.kwargs == {"since": NOW.isoformat()}
    assert deferred.value.trigger.serialize() == ("tidelake.airflow.wait.MomentTrigger", {"moment": NOW + timedelta(minutes=1)})
    assert f"hour {HOUR} is not complete in the archive: {MISSING[0]}; {MISSING[1]}" in capfd.readouterr().out
    assert landed(child) == []
    getattr(land, deferred.value.method_name)(GIVEN, **deferred.value.kwargs, event=None)
    assert child.asked == [HOUR, HOUR]
    assert landed(child) == [HOUR]


def test_an_hour_is_not_asked_for_before_it_ends(land: Any, child: Child, capfd: pytest.CaptureFixture[str]) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    given = {"params": GIVEN["params"] | {"hour": AFTER, "until": format_hour(NOW)}}
    with pytest.raises(TaskDeferred) as deferred:
        land.execute(given)
    assert (child.asked, landed(child)) == ([AFTER], [])
    assert deferred.value.trigger.serialize()[1] == {"moment": datetime(2026, 1, 5, 14, tzinfo=UTC)}
    assert "hour 2026-01-05T13 ends at 2026-01-05T14:00:00Z" in capfd.readouterr().out


def test_an_hour_that_ends_after_the_patience_fails_at_once(land: Any, child: Child) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    given = {"params": GIVEN["params"] | {"until": format_hour(NOW + timedelta(hours=3))}}
    says = "ends at 2026-01-05T17:00:00Z. `land` waits 3:00:00 at most: trigger the hour when it has ended$"
    with pytest.raises(AirflowFailException, match=says):
        land.execute(given)
    assert (child.asked, child.calls) == ([], [])


def test_the_trigger_waits_for_its_moment_and_logs_nothing(
    land: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.sdk._shared.module_loading import import_string

    wait = sys.modules["tidelake.airflow.wait"]
    now, slept = datetime(2026, 1, 5, 10, tzinfo=UTC), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(wait, "datetime", clock(lambda: now + timedelta(seconds=sum(slept))))
    monkeypatch.setattr(wait.asyncio, "sleep", sleep)
    path, settings = wait.MomentTrigger(now + timedelta(seconds=25)).serialize()
    trigger = import_string(path)(**settings)

    async def events() -> list[Any]:
        return [event.payload async for event in trigger.run()]

    with caplog.at_level("INFO"):
        assert asyncio.run(events()) == ["2026-01-05T10:00:25+00:00"]
    assert slept == [10.0, 10.0, 5.0]
    assert (caplog.messages, capfd.readouterr().out) == ([], "")


def test_patience_ends_and_the_task_says_what_is_missing(land: Any, child: Child) -> None:
    from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

    assert land.patience == timedelta(hours=3)
    many = [f"shop[{n}]: no object" for n in range(7)]
    child.plan(waits=[many, many])
    with pytest.raises(TaskDeferred):
        land.land_when_complete(GIVEN, ago(hours=2, minutes=59))
    with pytest.raises(AirflowFailException) as failed:
        land.land_when_complete(GIVEN, ago(hours=3))
    assert landed(child) == []
    said = str(failed.value)
    assert said.startswith(f"hour {HOUR} is not complete in the archive: shop[0]: no object; ")
    assert "shop[4]: no object and 2 more. Waited since " in said
    assert said.endswith("check that the archiver runs. Trigger the hour with `wait` off to land what the archive has")


def test_an_hour_that_is_long_over_is_landed_without_a_question(land: Any, child: Child) -> None:
    old = "2026-01-05T09"
    child.plan(waits=[MISSING])
    land.execute({"params": GIVEN["params"] | {"hour": old}})
    assert (child.asked, landed(child)) == ([], [old])


def test_of_a_range_only_the_hours_that_ended_lately_are_waited_for(land: Any, child: Child) -> None:
    given = {"params": GIVEN["params"] | {"hour": "2026-01-05T08", "until": "2026-01-05T12"}}
    land.land_when_complete(given, "2026-01-05T13:00:00+00:00")
    hours = [f"2026-01-05T{n:02d}" for n in range(8, 13)]
    assert (child.asked, landed(child)) == (hours[2:], hours)


def test_every_hour_of_a_range_must_be_complete(land: Any, child: Child) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    given = {"params": GIVEN["params"] | {"until": AFTER}}
    child.plan(waits=[[], MISSING])
    with pytest.raises(TaskDeferred):
        land.execute(given)
    assert child.asked == [HOUR, NEXT]
    assert landed(child) == []
    land.land_when_complete(given, ago(hours=1))
    assert child.asked[2:] == [HOUR, NEXT, AFTER]
    assert landed(child) == [HOUR, NEXT, AFTER]


def test_nothing_is_asked_where_nobody_wants_to_wait(land: Any, child: Child) -> None:
    land.execute({"params": GIVEN["params"] | {"wait": False}})
    assert (child.asked, landed(child)) == ([], [HOUR])


@pytest.mark.parametrize(("code", "final"), [(1, False), (2, True), (3, True)])
def test_a_question_that_fails_is_retried_only_if_it_may_pass(land: Any, child: Child, code: int, final: bool) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    child.plan(says="told before\nerror: STORAGE: no answer", waits=[code])
    with pytest.raises(AirflowException, match=f"^{HOUR}: STORAGE: no answer$") as failed:
        land.execute(GIVEN)
    assert isinstance(failed.value, AirflowFailException) == final
    assert landed(child) == []


def test_the_task_asks_the_real_command_line(dag: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's hours are closed as soon as they are over."""
    for name in ("ARCHIVE", "LAKE"):
        monkeypatch.setenv(f"TIDELAKE_{name}", str(tmp_path / name))
    monkeypatch.setenv("TIDELAKE_CATALOG", "jdbc:sqlite:/nowhere")
    (tmp_path / "ARCHIVE" / "open").mkdir(parents=True)
    land = copy(dag.get_task("land"))
    assert land.schemas == str(CHECKOUT / "schemas")
    from tidelake.airflow.stage import child_environment

    environment = child_environment(CHECKOUT / "schemas", "bazaar-open")
    assert land._waits_for(HOUR, environment) == []
    assert land._waits_for("9999-01-05T10", environment) == ["the hour ends at 9999-01-05T11:00:00Z"]
