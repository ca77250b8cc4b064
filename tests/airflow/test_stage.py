from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import CHECKOUT, Child, Run
from tests.airflow.records import links, rendered
from tidelake.config.feed import load_feed
from tidelake.errors import ConfigError
from tidelake.tso import format_hour

HOUR = "2026-01-05T10"
STAGES = ["land", "decode", "order", "validate", "compact"]


def hours_of(child: Child) -> list[str]:
    return [f"{c['arguments'][0]} {c['arguments'][c['arguments'].index('--hour') + 1]}" for c in child.calls]


@pytest.mark.parametrize(
    ("params", "key", "hours"),
    [
        ({"hour": HOUR}, None, [HOUR]),
        ({"hour": None, "until": None}, HOUR, [HOUR]),
        ({"hour": HOUR}, "2026-02-01T00", [HOUR]),
        ({"hour": "2026-01-05T23", "until": "2026-01-06T01"}, None, ["2026-01-05T23", "2026-01-06T00", "2026-01-06T01"]),
        ({"until": HOUR}, HOUR, [HOUR]),
    ],
)
def test_the_hours_come_from_the_parameters_else_from_the_partition_key(
    plugin: Any, params: dict[str, Any], key: str | None, hours: list[str]
) -> None:
    assert plugin.hours_of(params, key) == hours


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({}, "this run has no hour; trigger it with the parameter `hour`"),
        ({"until": HOUR}, "no hour"),
        ({"hour": HOUR, "until": "2026-01-05T09"}, "until 2026-01-05T09 is before hour 2026-01-05T10"),
        ({"hour": "2026-13-05T10"}, "not an hour"),
    ],
)
def test_a_run_without_a_sensible_hour_says_what_to_give(plugin: Any, params: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        plugin.hours_of(params, None)


def test_a_task_of_a_partitioned_run_works_on_the_hour_of_its_key(dag: Any, child: Child) -> None:
    """A backfill's and a schedule's runs: no parameters but the defaults. dag.test can give a run no partition key."""
    for stage in STAGES[:-1]:
        copy(dag.get_task(stage)).execute({"params": {"hour": None, "until": None, "redo": False}, "partition_key": HOUR})
    assert hours_of(child) == [f"{stage} {HOUR}" for stage in STAGES[:-1]]


def test_an_hour_is_five_calls_of_the_command_line(run: Run, child: Child) -> None:
    found = run(hour=HOUR)
    assert (found["state"], found["decide"][0]) == ("success", "skipped")
    assert hours_of(child) == [f"{stage} {HOUR}" for stage in STAGES]
    same = ["--feed", "bazaar-open", "--hour", HOUR, "--schemas", str(CHECKOUT / "schemas")]
    assert all(c["arguments"][1:7] == same for c in child.calls)
    assert not any("--redo" in c["arguments"] for c in child.calls)


def test_an_hour_is_landed_when_it_is_complete(run: Run, dag: Any, child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dag.get_task("land"), "every", timedelta(0))
    child.plan(waits=[["shop[0]: no object"], ["shop[1]: no object"]])
    hour = format_hour(datetime.now(UTC) - timedelta(hours=1))
    found = run(hour=hour)
    assert (found["state"], found["land"][0]) == ("success", "success")
    assert child.asked == [hour, hour, hour]
    assert hours_of(child) == [f"{stage} {hour}" for stage in STAGES]


def test_an_hour_that_cannot_become_complete_in_time_is_not_landed(run: Run, child: Child) -> None:
    found = run(hour=format_hour(datetime.now(UTC) + timedelta(hours=4)))
    assert (found["state"], found["land"], found["decode"]) == ("failed", ("failed", 1), ("upstream_failed", 0))
    assert child.calls == []


def test_a_range_is_landed_and_decoded_by_hour_and_brought_in_at_its_end(run: Run, child: Child) -> None:
    assert run(hour="2026-01-05T10", until="2026-01-05T11", redo=True)["state"] == "success"
    by_hour = ["land 2026-01-05T10", "land 2026-01-05T11", "decode 2026-01-05T10", "decode 2026-01-05T11"]
    assert hours_of(child) == [*by_hour, "order 2026-01-05T11", "validate 2026-01-05T11", "compact 2026-01-05T11"]
    assert [c["arguments"][0] for c in child.calls if "--redo" in c["arguments"]] == ["decode", "decode"]
    anew = {c["arguments"][0]: c["arguments"][7:9] for c in child.calls if "--redo-from" in c["arguments"]}
    assert anew == {stage: ["--redo-from", "2026-01-05T10"] for stage in ("order", "validate", "compact")}


@pytest.mark.parametrize("code", [1, 130, -9], ids=["failed", "interrupted", "killed"])
def test_what_may_pass_is_retried(run: Run, child: Child, code: int) -> None:
    child.plan({"land": [code, code]}, says="error: STORAGE: no answer")
    found = run(hour=HOUR)
    assert found["state"] == "success"
    assert found["land"] == ("success", 3)


@pytest.mark.parametrize("code", [2, 3], ids=["wrong use", "blocked"])
def test_what_someone_must_decide_fails_at_once(run: Run, child: Child, code: int) -> None:
    child.plan({"order": [code]}, says="error: GAP: offsets are missing")
    found = run(hour=HOUR)
    assert found["state"] == "failed"
    assert found["order"] == ("failed", 1)
    assert found["validate"][0] == "upstream_failed"
    assert found["decide"] == ("failed", 1)


def test_a_failed_task_ends_with_what_the_command_line_said_last(dag: Any, child: Child) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    child.plan({"order": [3, 1]}, says="told before\nerror: GAP: offsets are missing;\nlook at the report")
    says = "order 2026-01-05T10: GAP: offsets are missing;\nlook at the report"
    with pytest.raises(AirflowFailException, match=f"^{says}$"):
        dag.get_task("order")._run(HOUR, [], dict(os.environ))
    with pytest.raises(AirflowException, match=f"^{says}$") as e:
        dag.get_task("order")._run(HOUR, [], dict(os.environ))
    assert not isinstance(e.value, AirflowFailException)


def test_warnings_and_errors_of_the_command_line_have_their_level_in_the_log(
    dag: Any, child: Child, capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    says = [
        ("info", "       land  2026-01-05T10: 3 objects"),
        ("warning", "  warning: DUPLICATES t[0]: offsets 1 to 2 came twice"),
        ("error", "  critical: GAP t[0]: offsets 5 to 9 are missing"),
        ("info", "  info: LATE_FILE: one file"),
        ("error", "error: GAP: offsets are missing;"),
        ("error", "    look at the report"),
    ]
    child.plan({"order": [3]}, says="\n".join(line for _, line in says))
    with pytest.raises(AirflowFailException):
        copy(dag.get_task("order"))._run(HOUR, [], dict(os.environ))
    printed = capfd.readouterr().out
    assert [(level, line) for level, line in says if f"[{level:<9}] {line}" in printed] == says


def test_the_log_of_a_blocked_task_has_the_address_of_the_report(dag: Any, child: Child, capfd: pytest.CaptureFixture[str]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    child.plan({"order": [3, 2]}, says="error: GAP: offsets are missing")
    task = copy(dag.get_task("order"))
    for told in (True, False):  # what is wrong use has no report
        with pytest.raises(AirflowFailException):
            task._run(HOUR, [], dict(os.environ))
        assert (f"http://airflow.example:8080/tidelake/quality/bazaar-open/{HOUR}" in capfd.readouterr().out) == told


def test_a_run_without_an_hour_fails_at_once_and_starts_nothing(run: Run, child: Child) -> None:
    found = run(wait=False)
    assert found["land"] == ("failed", 1)
    assert links(found["run_id"])["land"] == ""
    assert run()["land"] == ("failed", 1)
    assert (child.calls, child.asked) == ([], [])


def test_every_stage_links_to_the_report_of_its_hour(run: Run, child: Child) -> None:
    page = "http://airflow.example:8080/tidelake/quality/bazaar-open"
    found = links(run(hour="2026-01-05T10", until="2026-01-05T11")["run_id"])
    assert {stage: found[stage] for stage in STAGES} == dict.fromkeys(STAGES, f"{page}/2026-01-05T11")
    child.plan({"land": [3]})
    assert links(run(hour=HOUR)["run_id"])["land"] == f"{page}/{HOUR}"


def test_every_task_shows_the_hours_of_a_run_without_a_partition_key(run: Run, child: Child) -> None:
    fields = rendered(run(hour="2026-01-05T10", until="2026-01-05T11")["run_id"])
    assert {str(f) for f in fields.values()} == {"{'hours': '2026-01-05T10 to 2026-01-05T11'}"}
    assert fields.keys() == {*STAGES, "complete"}
    assert rendered(run(hour=HOUR)["run_id"])["land"] == {"hours": HOUR}


def test_connections_reach_the_child_and_are_masked_in_logs(run: Run, child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk._shared.secrets_masker import redact

    s3 = {"endpoint_url": "http://127.0.0.1:9", "region_name": "eu-north-1"}
    bucket = {"conn_type": "aws", "login": "harbour-key", "password": "harbour-secret", "extra": s3}
    variables = {
        "conn_type": "generic",
        "extra": {"TIDELAKE_LAKE": "s3://harbour/lake", "TIDELAKE_ARCHIVE": "s3://unused", "OTHER": "unused"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_TIDELAKE_S3", json.dumps(bucket))
    monkeypatch.setenv("AIRFLOW_CONN_TIDELAKE", json.dumps(variables))
    monkeypatch.setenv("TIDELAKE_ARCHIVE", "s3://of-the-environment")
    monkeypatch.delenv("TIDELAKE_LAKE", raising=False)
    assert run(hour=HOUR)["state"] == "success"
    environment = child.calls[0]["environment"]
    wanted = {
        "AWS_ACCESS_KEY_ID": "harbour-key",
        "AWS_SECRET_ACCESS_KEY": "harbour-secret",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_REGION": "eu-north-1",
        "TIDELAKE_LAKE": "s3://harbour/lake",
        "TIDELAKE_ARCHIVE": "s3://of-the-environment",
    }
    assert {name: environment.get(name) for name in wanted} == wanted
    assert "OTHER" not in environment
    assert not [name for name in environment if name.startswith("AIRFLOW_")]
    assert redact("harbour-key harbour-secret s3://harbour/lake") == "*** *** ***"


def test_a_connection_that_is_named_must_be_there(dag: Any, child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    monkeypatch.setenv("TIDELAKE_AWS_CONN_ID", "nowhere")
    with pytest.raises(AirflowFailException, match="no Airflow connection 'nowhere', which TIDELAKE_AWS_CONN_ID names"):
        copy(dag.get_task("land")).execute({"params": {"hour": HOUR}})
    assert child.calls == []


def test_stages_share_a_spark_server_unless_the_environment_says_where_spark_is(bag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelake.airflow.connections import stage_environment

    for name in ("TIDELAKE_SPARK_SERVER", "TIDELAKE_SPARK_REMOTE", "TIDELAKE_SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)
    assert stage_environment({})["TIDELAKE_SPARK_SERVER"] == str(Path(os.environ["AIRFLOW_HOME"]) / "tidelake-spark")
    monkeypatch.setenv("TIDELAKE_SPARK_MASTER", "spark://cluster:7077")
    assert "TIDELAKE_SPARK_SERVER" not in stage_environment({})


def test_a_killed_task_takes_its_child_and_what_that_started_along(plugin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import pathlib, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(tmp_path / 'other')!r}).write_text(str(other.pid))\n"
        "print('started', flush=True); time.sleep(600)\n"
    )
    monkeypatch.setattr(plugin.StageOperator, "command", (sys.executable, str(script)))
    monkeypatch.setattr(plugin, "KILL_SECONDS", 0.2)
    task = plugin.StageOperator(stage="land", feed="bazaar-open", schemas="schemas")
    errors: list[BaseException] = []

    def execute() -> None:
        try:
            task._run(HOUR, [], dict(os.environ))
        except Exception as e:  # noqa: BLE001  # looked at below
            errors.append(e)

    thread = threading.Thread(target=execute)
    thread.start()
    wait_for(lambda: (tmp_path / "other").exists() and bool((tmp_path / "other").read_text()))
    task.on_kill()
    thread.join(180)  # a process that is killed ends when the machine gets to it
    assert not thread.is_alive()
    assert f"status {-signal.SIGKILL}" in str(errors[0])
    wait_for(lambda: not runs(int((tmp_path / "other").read_text())))


def test_the_child_is_the_command_line(plugin: Any) -> None:
    command = [*plugin.StageOperator.command, "land", "--feed", "nobody", "--hour", HOUR, "--schemas", str(CHECKOUT / "schemas")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: CONFIG: no feed 'nobody'")


def test_a_feed_names_no_variable_that_nothing_gives(bag: Any) -> None:
    """What the demo sets is what the demo feeds name, so `make airflow` needs no connection."""
    from tidelake.airflow.connections import given

    feed = load_feed(CHECKOUT / "schemas", "bazaar-open", expand=False)
    assert given(feed) == {}


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
