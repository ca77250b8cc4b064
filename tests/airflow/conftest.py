"""Airflow's settings, in the environment before anything imports airflow; a metadata database, migrated once per session.

Nothing here, and no test module, imports airflow at its top: pytest must be able to collect without it.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.airflow import warm
from tests.checkout import CHECKOUT

HOME = Path(tempfile.mkdtemp(prefix="tidelake-airflow-home-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
Run = Callable[..., dict[str, Any]]
FEEDS = ("bazaar-avro", "bazaar-canal", "bazaar-craft", "bazaar-open")

os.environ |= {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "86400",  # `run` changes the DAG, of which Airflow would store a second version
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME / 'airflow.db'}",
    "AIRFLOW__API__BASE_URL": "http://airflow.example:8080",
    "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),  # what Airflow makes up itself is short enough for a warning
}

# Airflow's and its libraries' own, met while they are imported or used; ours stay errors.
_NOISE = ("ignore:Using `httpx` with `starlette.testclient` is deprecated",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here is marked `airflow`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.airflow)
            for line in _NOISE:
                item.add_marker(pytest.mark.filterwarnings(line))


@pytest.fixture(scope="session")
def kept_children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with warm.kept(tmp_path_factory.mktemp("warm")) as path:
        yield path


@pytest.fixture(scope="module")
def warm_children(kept_children: str) -> Iterator[None]:
    """Children of the package find their imports made: for files whose tests are not about how children start."""
    with warm.warm_children(kept_children):
        yield


@pytest.fixture(scope="session")
def metadata_database() -> None:
    """Airflow's tables."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture(scope="session")
def bag(metadata_database: None) -> Any:
    """The DAGs of dags/."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(str(CHECKOUT / "dags"))


@pytest.fixture(scope="session")
def plugin(bag: Any) -> Any:
    """The module of the operators that the DAGs were made with."""
    from tidelake.airflow import stage

    return stage


@pytest.fixture
def dag(bag: Any, plugin: Any) -> Any:
    """The DAG of the feed bazaar-open."""
    return bag.dags["tidelake_bazaar-open"]


NOTHING = {"cut": None, "published_hour": None, "incomplete_because": []}


class Child:
    """Stands for the command line: says what it was told to, writes down how it was called, ends as told."""

    def __init__(self, folder: Path) -> None:
        self.script, self._plan, self._calls, self._asked = (folder / n for n in ("child.py", "plan.json", "calls", "asked"))
        self._calls.mkdir()
        self._asked.mkdir()
        self.command = (sys.executable, "-I", "-S", str(self.script))
        self.script.write_text(_CHILD.format(plan=str(self._plan), calls=str(self._calls), asked=str(self._asked)))
        self.plan()

    def plan(
        self,
        codes: dict[str, list[int]] | None = None,
        says: str = "done",
        status: dict[str, Any] | None = None,
        waits: list[list[str] | int] | None = None,
        quarantine: list[dict[str, Any]] | None = None,
    ) -> None:
        """codes: per stage, the exit codes of its calls in turn, then 0; `quarantine replay` counts as a stage. status: what `--status`
        gets. waits: what the questions whether an hour is complete are answered in turn, or exit codes; then nothing is waited for.
        quarantine: what `quarantine list --json` prints."""
        plan = {"codes": codes or {}, "says": says, "status": status or NOTHING, "waits": waits or []}
        plan["quarantine"] = quarantine or []
        self._plan.write_text(json.dumps(plan))

    @property
    def asked(self) -> list[str]:
        """The hours of which was asked whether they are complete, in order."""
        return [path.read_text() for path in sorted(self._asked.iterdir())]

    @property
    def calls(self) -> list[dict[str, Any]]:
        """arguments and environment of every call, in order."""
        return [json.loads(path.read_text()) for path in sorted(self._calls.iterdir())]


_CHILD = """
import json, os, pathlib, sys

plan, calls = json.loads(pathlib.Path({plan!r}).read_text()), pathlib.Path({calls!r})
stage, number = sys.argv[1], len(list(calls.iterdir()))
if sys.argv[1:3] == ["quarantine", "list"]:
    print(json.dumps(plan["quarantine"]))
    sys.exit(0)
stage = " ".join(sys.argv[1:3]) if stage == "quarantine" else stage
if "--dry-run" in sys.argv:
    asked = pathlib.Path({asked!r})
    number = len(list(asked.iterdir()))
    (asked / f"{{number:04d}}").write_text(sys.argv[sys.argv.index("--hour") + 1])
    answer = plan["waits"][number] if number < len(plan["waits"]) else []
    if isinstance(answer, int):
        print(plan["says"], file=sys.stderr)
        sys.exit(answer)
    print(json.dumps({{"waits_for": answer}}))
    sys.exit(0)
before = sum(" ".join(json.loads(p.read_text())["arguments"]).startswith(stage) for p in calls.iterdir())
(calls / f"{{number:04d}}").write_text(json.dumps({{"arguments": sys.argv[1:], "environment": dict(os.environ)}}))
print(os.path.expandvars(plan["says"]))
if "--status" in sys.argv:
    pathlib.Path(sys.argv[sys.argv.index("--status") + 1]).write_text(json.dumps(plan["status"]))
codes = plan["codes"].get(stage, [])
sys.exit(codes[before] if before < len(codes) else 0)
"""


@pytest.fixture
def child(tmp_path: Path, plugin: Any, monkeypatch: pytest.MonkeyPatch) -> Child:
    """What the tasks run instead of the command line."""
    fake = Child(tmp_path)
    monkeypatch.setattr(plugin.StageOperator, "command", fake.command)
    return fake


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """dag.test looks once a second what can be done; here it looks at once."""
    pause = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: pause(min(seconds, 0.02)))


@pytest.fixture(scope="session")
def stored(bag: Any) -> None:
    """Airflow's database has the DAGs of dags/."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db

    DagBundlesManager().sync_bundles_to_db()
    (bundle,) = DagBundlesManager().get_all_dag_bundles()
    sync_bag_to_db(BundleDagBag(dag_folder=bundle.path, bundle_path=bundle.path, bundle_name=bundle.name), bundle.name, None)


@pytest.fixture
def stored_once(stored: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """dag.test stores all DAGs of dags/ each time, and checks the schemas of parameters anew in each task: here that is done already."""
    from airflow.dag_processing import dagbag
    from jsonschema import Draft202012Validator

    store = dagbag.sync_bag_to_db
    monkeypatch.setattr(dagbag, "BundleDagBag", lambda **_: None)
    monkeypatch.setattr(dagbag, "sync_bag_to_db", lambda bag, *given: bag is not None and store(bag, *given))
    monkeypatch.setattr(Draft202012Validator, "check_schema", lambda *_, **__: None)


@pytest.fixture
def run(dag: Any, child: Child, short_pauses: None, stored_once: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the DAG with a fake child; state and number of tries of the run and its tasks."""
    for task in dag.tasks:
        monkeypatch.setattr(task, "retry_delay", timedelta(seconds=0.01))
        monkeypatch.setattr(task, "retry_exponential_backoff", 0)  # which waits for a second at least
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", nobody_answers)

    def run_with(**conf: Any) -> dict[str, Any]:
        given = {"hour": None, "until": None, "redo": False, "wait": True}  # because dag.test leaves a run's parameters in the DAG
        done = dag.test(logical_date=None, run_conf=given | conf)
        tasks = {ti.task_id: (str(ti.state), ti.try_number) for ti in done.get_task_instances()}
        return {"state": str(done.state), "run_id": done.run_id, **tasks}

    return run_with


def nobody_answers(**_: Any) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    raise AirflowFailException("nobody answers in a test")
