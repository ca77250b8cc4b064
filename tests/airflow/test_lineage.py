"""What Airflow tells OpenLineage of a run, by the file transport of its provider."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.airflow.conftest import CHECKOUT, HOME, Child

HOUR = "2026-01-05T10"
PLAIN = {"table": None, "version": None, "columns": [], "rows": None, "size": None, "files": None, "checks": [], "source": None}
LOG = {
    "namespace": "s3://harbour",
    "name": "lake/warehouse/d_changelog/a-1",
    "table": ["s3://harbour/lake/warehouse", "d_changelog.a"],
    "version": str(2**62),
    "columns": [["id", "bigint", "1: bigint"], ["_op", "string", ""]],
}
CHANGELOG = PLAIN | LOG
SNAPSHOT = PLAIN | {
    "namespace": "s3://harbour",
    "name": "lake/warehouse/d/a-2",
    "table": ["s3://harbour/lake/warehouse", "d.a"],
    "version": "7",
    "columns": [["id", "bigint", "1: bigint"], ["_commit_ts", "bigint", ""]],
    "rows": 3,
    "size": 512,
    "files": 1,
    "source": CHANGELOG,
}
CHECKS = [
    {"table": "d.a", "rule": "unique", "severity": "critical", "success": False, "column": "id", "observed": "2 twice", "expected": "once"},
    {"table": "d.a", "rule": "row count", "severity": "warning", "success": True},
]
RUN = """
import json, os, sys
from airflow.dag_processing.dagbag import DagBag
from tidelake.airflow import stage
from airflow.providers.standard.operators import hitl
from tests.airflow.conftest import Child, nobody_answers
from pathlib import Path

folder, facts = Path(sys.argv[1]), json.loads(sys.argv[2])
child = Child(folder)
child.plan(codes={"validate": [3]}, says="error: EXPECTATION_FAILED: too few rows")
stage.StageOperator.command = child.command
stage.facts_of = lambda schemas, feed, name, hour, environment, *, redo: facts.get(name, {})
hitl.upsert_hitl_detail = nobody_answers
dag = DagBag(sys.argv[3]).dags["tidelake_bazaar-open"]
dag.test(logical_date=None, run_conf={"hour": sys.argv[4], "until": None, "redo": False, "wait": True})
"""


@pytest.fixture
def lineage(bag: Any) -> Any:
    from tidelake.airflow import lineage

    return lineage


def as_json(datasets: list[Any]) -> list[dict[str, Any]]:
    from openlineage.client.serde import Serde

    found: list[dict[str, Any]] = [json.loads(Serde.to_json(d)) for d in datasets]
    return found


def test_a_run_with_the_providers_file_transport_names_what_each_stage_read_and_wrote(tmp_path: Path, metadata_database: None) -> None:
    """Also of a stage that is blocked."""
    told = tmp_path / "events.jsonl"
    home = tmp_path / "home"
    home.mkdir()
    with closing(sqlite3.connect(HOME / "airflow.db")) as made, closing(sqlite3.connect(home / "airflow.db")) as copy:
        made.backup(copy)
    transport = {"type": "file", "log_file_path": str(told), "append": True}
    settings = {"AIRFLOW_HOME": str(home), "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}"}
    settings |= {"AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport), "AIRFLOW__OPENLINEAGE__NAMESPACE": "harbour"}
    settings |= {"AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "120"}  # on a busy machine
    settings |= {"TIDELAKE_SCHEMAS": str(tmp_path / "schemas")}
    shutil.copytree(CHECKOUT / "schemas" / "bazaar-open", tmp_path / "schemas" / "bazaar-open")  # of one feed: Airflow stores all DAGs
    facts = {
        "order": {"inputs": [], "outputs": [CHANGELOG]},
        "validate": {"inputs": [CHANGELOG | {"checks": CHECKS}], "outputs": []},
    }
    (tmp_path / "child").mkdir()
    command = [sys.executable, "-c", RUN, str(tmp_path / "child"), json.dumps(facts), str(CHECKOUT / "dags"), HOUR]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=300, check=False, cwd=CHECKOUT)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    events = [json.loads(line) for line in told.read_text().splitlines()]
    ended = {e["job"]["name"].rpartition(".")[2]: e for e in events if e["eventType"] in ("COMPLETE", "FAIL")}
    assert {name: e["eventType"] for name, e in ended.items() if name in ("land", "order", "validate")} == {
        "land": "COMPLETE",
        "order": "COMPLETE",
        "validate": "FAIL",
    }
    assert [d["name"] for d in ended["order"]["outputs"]] == [CHANGELOG["name"]]
    [checked] = ended["validate"]["inputs"]
    assert [a["success"] for a in checked["inputFacets"]["dataQualityAssertions"]["assertions"]] == [False, True]
    assert {e["job"]["namespace"] for e in ended.values()} == {"harbour"}


def test_a_table_has_schema_version_catalog_name_statistics_and_the_source_of_its_columns(lineage: Any) -> None:
    [told] = as_json(lineage.operator_lineage([{"inputs": [], "outputs": [SNAPSHOT]}]).outputs)
    facets = told["facets"]
    assert (told["namespace"], told["name"]) == ("s3://harbour", "lake/warehouse/d/a-2")
    assert [(f["name"], f["type"], f.get("description")) for f in facets["schema"]["fields"]] == [
        ("id", "bigint", "1: bigint"),
        ("_commit_ts", "bigint", None),
    ]
    assert facets["version"]["datasetVersion"] == "7"
    assert facets["symlinks"]["identifiers"] == [{"namespace": "s3://harbour/lake/warehouse", "name": "d.a", "type": "TABLE"}]
    taken = {"namespace": LOG["namespace"], "name": LOG["name"], "field": "id"}
    assert facets["columnLineage"]["fields"] == {
        "id": {"inputFields": [taken | {"transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}]}]}
    }
    statistics = told["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (3, 512, 1)


def test_checks_are_assertions_of_what_was_checked(lineage: Any) -> None:
    [told] = as_json(lineage.operator_lineage([{"inputs": [CHANGELOG | {"checks": CHECKS}], "outputs": []}]).inputs)
    assert [{k: v for k, v in a.items() if v != {}} for a in told["inputFacets"]["dataQualityAssertions"]["assertions"]] == [
        {"assertion": "unique", "success": False, "column": "id", "severity": "error", "expected": "once", "actual": "2 twice"},
        {"assertion": "row count", "success": True, "severity": "warn"},
    ]


def test_the_hours_of_a_range_are_one_dataset_with_their_sums(lineage: Any) -> None:
    hours = [{"inputs": [LOG | PLAIN], "outputs": [SNAPSHOT]}, {"inputs": [LOG | PLAIN], "outputs": [SNAPSHOT | {"rows": 4}]}, {}]
    found = lineage.operator_lineage(hours)
    assert (len(found.inputs), len(found.outputs)) == (1, 1)
    statistics = as_json(found.outputs)[0]["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (7, 1024, 2)
    assert "outputStatistics" not in as_json(found.inputs)[0].get("inputFacets", {})


def test_nothing_is_asked_while_airflow_sends_no_events(dag: Any, child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("tidelake.airflow.stage.facts_of", lambda *given, **more: asked.append(given[2]) or {})
    task = dag.get_task("order")
    task._run(HOUR, [], dict(os.environ))
    assert asked == []
    monkeypatch.setattr("tidelake.airflow.stage.is_wanted", lambda: True)
    child.plan({"order": [0, 3, 1]})
    for code in (3, 1):  # a blocked stage has evidence; one that is retried has nothing yet
        with pytest.raises(Exception, match=f"status {code}"):
            task._run(HOUR, [], dict(os.environ))
    assert asked == ["order"]


def test_facts_that_cannot_be_read_are_a_warning(
    lineage: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    assert lineage.facts_of(str(tmp_path), "nobody", "order", HOUR, dict(os.environ), redo=False) == {}
    late = SimpleNamespace(run=lambda *given, **more: (_ for _ in ()).throw(subprocess.TimeoutExpired("lineage", 1)))
    monkeypatch.setattr(lineage, "subprocess", SimpleNamespace(run=late.run, TimeoutExpired=subprocess.TimeoutExpired))
    assert lineage.facts_of(str(tmp_path), "nobody", "order", HOUR, {}, redo=False) == {}
    said = [r.getMessage() for r in caplog.records if r.name == "tidelake.airflow.lineage"]
    assert said[0].startswith("no lineage: error: CONFIG: no feed 'nobody'")
    assert said[1:] == ["no lineage: no answer within 120 s"]
