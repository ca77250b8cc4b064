"""An hour on YARN by the commands of docs/kubernetes.md: executors are containers, whose Python is that of the archive alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.checkout import CHECKOUT
from tests.conftest import FreshUri
from tests.e2e import bazaar
from tests.spark import event_log
from tests.spark.yarn import Yarn
from tidelake.config.feed import load_feed
from tidelake.demo.generate import generate
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.tso import format_hour

FEED, PROTOCOL = "bazaar-open", "open"
SECONDS = 900
UV = str(Path(sys.executable).with_name("uv"))
PIP = f"{UV} pip install --quiet --python env/bin/python --no-deps"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that goes with the test: it fills 4 GB."""
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.long
@pytest.mark.spark
def test_an_hour_in_containers_of_yarn_is_the_truth(s3: FreshUri, folder: Path) -> None:
    uri, home, events = s3("yarn"), folder / "home", folder / "events"
    workload = generate(open_store(f"{uri}/archive"), [PROTOCOL], hours=1, rows_per_hour=200, ddl_span_hours=1.0)
    variables = {
        "TIDELAKE_ARCHIVE": f"{uri}/archive",
        "TIDELAKE_LAKE": f"{uri}/lake",
        "TIDELAKE_CATALOG": f"jdbc:sqlite:{folder / 'catalog.db'}",
        "TIDELAKE_SCHEMAS": str(bazaar.schemas_for(workload, folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(CHECKOUT),  # for tests.spark.cluster_job; Tidelake is the one in env/
    }
    home.mkdir()
    events.mkdir()
    pack(home, folder)
    jars = Path(find_spec("pyspark").origin).parent / "jars"  # type: ignore[union-attr, arg-type]
    settings = event_log.settings(events) | {"spark.yarn.stagingDir": (folder / "staging").as_uri(), "spark.yarn.jars": f"local:{jars}/*"}
    run = json.dumps([["run", "--feed", FEED, "--hour", format_hour(workload.hours[0])]])
    with Yarn(folder / "yarn") as yarn:
        here = {
            "/etc/hadoop/conf": str(yarn.conf),
            "hdfs:///apps": folder.as_uri(),
            "TIDELAKE_SPARK_CONF='": "TIDELAKE_SPARK_CONF='" + "".join(f"{k}={v}\n" for k, v in settings.items()),
            "env/bin/tidelake run --feed shop --hour 2026-01-05T10": f"env/bin/python -m tests.spark.cluster_job '{run}'",
        }
        shell(replaced(commands()[1], here), home, variables)
        master, *executors = yarn.containers()
    assert "Final app status: SUCCEEDED" in master
    assert len(executors) == 2
    for said in (master, *executors):
        assert ("exec /bin/bash -c" in said, os.environ["AWS_SECRET_ACCESS_KEY"] in said) == (True, False), "no secret in its environment"
    tasks = event_log.tasks(events)
    assert set(tasks) == {"1", "2"}, "of the two executors"
    assert min(tasks.values()) >= 4, tasks
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in event_log.event_log(events).read_text()
    with Lake.of(load_feed(Path(variables["TIDELAKE_SCHEMAS"]), FEED, variables)) as lake:
        bazaar.check(lake, workload, PROTOCOL, workload.hours[0])


def commands() -> list[str]:
    """What the page says to type, block by block."""
    page = (CHECKOUT / "docs" / "kubernetes.md").read_text().partition("\n## YARN\n")[2].partition("\n## ")[0]
    found = re.findall(r"```sh\n(.+?)```", page, re.DOTALL)
    assert len(found) == 2
    return found


def pack(home: Path, apps: Path) -> None:
    """Make the archive of the virtual environment as the page says, with uv, which has the packages already."""
    wheel = [UV, "build", "--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", home, CHECKOUT]
    subprocess.run(wheel, check=True, timeout=SECONDS)
    here = {
        "python3.11 -m venv --copies": f"{sys.executable} -m venv --copies --without-pip",
        "env/bin/pip install --no-deps --require-hashes": f"{PIP} --require-hashes",
        "requirements-runtime.lock": str(CHECKOUT / "requirements-runtime.lock"),
        "env/bin/pip install --no-deps tidelake-0.1.0-py3-none-any.whl": f"{PIP} tidelake-*.whl",
        "--gzip": "--use-compress-program 'gzip -1'",
        "hdfs dfs -put env.tar.gz /apps": f"mv env.tar.gz {apps}",
    }
    shell(replaced(commands()[0], here), home, {})


def replaced(commands: str, here: Mapping[str, str]) -> str:
    """The commands with what this machine has instead."""
    for words, others in here.items():
        assert commands.count(words) == 1, words
        commands = commands.replace(words, others)
    return commands


def shell(commands: str, folder: Path, variables: Mapping[str, str]) -> None:
    """Run them."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | variables
    how: dict[str, Any] = {"env": environment, "capture_output": True, "text": True, "timeout": SECONDS, "check": False}
    done = subprocess.run(["bash", "-euc", commands], cwd=folder, **how)
    assert done.returncode == 0, done.stderr[-8000:]
    sys.stderr.write(done.stderr)
