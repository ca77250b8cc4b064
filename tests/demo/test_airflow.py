"""What `make airflow` sets and says; tests.airflow.backfill runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tidelake.demo import airflow
from tidelake.demo.play import write_variables


def test_dags_are_not_paused_and_no_run_starts_by_its_schedule(tmp_path: Path) -> None:
    settings = airflow.Airflow(tmp_path, CHECKOUT, 8080).environment
    assert settings["AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION"] == "False"
    assert settings["AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE"] == "False"


def test_the_welcome_says_how_the_command_line_sees_the_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Started(airflow.Airflow):
        password = "sesame"

        def start(self) -> None: ...

        def stop(self) -> None: ...

        def check(self) -> None:
            raise KeyboardInterrupt

    class Lake:
        def __enter__(self) -> dict[str, str]:
            return {"TIDELAKE_LAKE": "s3://lake/lake"}

        def __exit__(self, *_: object) -> None: ...

    class Archive:
        def folders(self) -> list[str]:
            return ["open"]

    monkeypatch.setattr(airflow, "Airflow", Started)
    monkeypatch.setattr(airflow, "demo_lake", lambda folder, fresh: Lake())
    monkeypatch.setattr(airflow, "open_store", lambda uri: Archive())
    monkeypatch.setattr(airflow, "is_free", lambda port: True)
    monkeypatch.setenv("TIDELAKE_ARCHIVE", "s3://lake/archive")
    with pytest.raises(KeyboardInterrupt):
        airflow._serve(CHECKOUT, tmp_path, 8080)
    said = capsys.readouterr().out
    assert f"    source {tmp_path / 'env.sh'}\n    .venv/bin/tidelake status\n" in said
    assert "log in as admin, password sesame" in said
    printed = sourced(tmp_path / "env.sh")
    assert (printed["TIDELAKE_LAKE"], printed["TIDELAKE_SCHEMAS"]) == ("s3://lake/lake", str(CHECKOUT / "schemas"))


def test_a_shell_gets_the_variables_as_they_are_and_nobody_else_reads_them(tmp_path: Path) -> None:
    secret = 'a\'b $HOME "c"'
    script = write_variables(tmp_path, {"AWS_SECRET_ACCESS_KEY": secret})
    assert script.stat().st_mode & 0o777 == 0o600
    assert sourced(script)["AWS_SECRET_ACCESS_KEY"] == secret


def sourced(script: Path) -> dict[str, str]:
    command = ["sh", "-c", f". {script} && env -0"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}).stdout
    return dict(line.split("=", 1) for line in found.split("\0") if line)
