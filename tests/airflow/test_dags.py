from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import CHECKOUT, FEEDS

STAGES = ["land", "decode", "order", "validate", "compact"]
TASKS = [*STAGES, "decide", "complete"]
HEAVY = ("pyspark", "great_expectations", "pyarrow", "boto3", "pandas", "duckdb", "numba")
PARSE = """
import json, sys
from airflow import plugins_manager
from airflow.dag_processing.dagbag import DagBag
dags, *heavy = sys.argv[1:]
plugins_manager.ensure_plugins_loaded()
bag = DagBag(dags)
found = {"dags": len(bag.dag_ids), "plugins": [p.name for p in plugins_manager._get_plugins()[0]]}
errors = {"errors": bag.import_errors | plugins_manager.get_import_errors()}
print("FOUND" + json.dumps(found | errors | {"heavy": [m for m in heavy if m in sys.modules]}))
"""


def test_there_are_an_hourly_and_a_maintenance_dag_for_each_feed_and_nothing_else(bag: Any) -> None:
    assert sorted(bag.dag_ids) == [f"tidelake_{feed}{kind}" for feed in FEEDS for kind in ("", ".maintenance")]
    assert bag.import_errors == {}
    assert bag.captured_warnings == {}


@pytest.mark.parametrize("feed", FEEDS)
def test_a_dag_has_the_five_stages_one_after_another_a_question_about_those_that_fail_and_whether_the_cut_is_complete(
    bag: Any, feed: str
) -> None:
    dag = bag.dags[f"tidelake_{feed}"]
    assert sorted(dag.task_ids) == sorted(TASKS)
    edges = {(t.task_id, down) for t in dag.tasks for down in t.downstream_task_ids}
    assert edges == {*pairwise([*STAGES, "complete"]), *((stage, "decide") for stage in STAGES), ("decide", "complete")}
    rules = {t.task_id: t.trigger_rule for t in dag.tasks}
    assert rules == dict.fromkeys(STAGES, "all_success") | {"decide": "one_failed", "complete": "one_success"}
    assert all(t.feed == feed for t in dag.tasks)
    assert [dag.get_task(task).stage for task in TASKS] == TASKS


def test_the_stages_are_those_of_the_package(plugin: Any) -> None:
    from tidelake.run import STAGES as OF_THE_PACKAGE

    assert plugin.STAGES == OF_THE_PACKAGE


@pytest.mark.parametrize("feed", FEEDS)
def test_a_dag_keeps_the_rules_of_all_feed_dags(bag: Any, feed: str) -> None:
    dag = bag.dags[f"tidelake_{feed}"]
    assert dag.catchup is False
    assert dag.max_active_runs == 1
    assert dag.dagrun_timeout is not None
    assert "tidelake" in dag.tags
    assert len(dag.tags) == 2
    assert dag.doc_md
    assert "unpause the DAG (while it is paused, the runs stay queued). Then\n  `airflow backfill create" in dag.doc_md
    for task in dag.tasks:
        assert task.owner == "tidelake"
        assert task.retries >= 3
        assert task.retry_exponential_backoff or task.task_id == "decide"
        assert task.execution_timeout is not None


def test_the_partition_key_is_the_hour_just_ended_in_utc(dag: Any) -> None:
    from airflow.serialization.encoders import coerce_to_core_timetable
    from airflow.timetables.base import TimeRestriction

    timetable = coerce_to_core_timetable(dag.timetable)
    info = timetable.next_dagrun_info_v2(last_dagrun_info=None, restriction=TimeRestriction(None, None, catchup=False))
    assert info.run_after.minute == 0
    assert info.partition_key == datetime.fromtimestamp(info.run_after.timestamp() - 3600, UTC).strftime("%Y-%m-%dT%H")


def test_a_backfill_has_a_run_for_each_hour_of_its_range(dag: Any) -> None:
    from airflow.serialization.encoders import coerce_to_core_timetable

    timetable = coerce_to_core_timetable(dag.timetable)
    first, last = datetime(2026, 1, 5, 10, tzinfo=UTC), datetime(2026, 1, 5, 12, tzinfo=UTC)
    infos = timetable.iter_partition_dagrun_infos(earliest=first, latest=last)
    assert [info.partition_key for info in infos] == ["2026-01-05T10", "2026-01-05T11", "2026-01-05T12"]


def test_a_dag_comes_back_from_its_serialised_form_unchanged(bag: Any) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in (bag.dags[f"tidelake_{feed}"] for feed in FEEDS):
        stored = DagSerialization.serialize_dag(dag)
        again = DagSerialization.deserialize_dag(json.loads(json.dumps(stored)))
        assert sorted(again.task_ids) == sorted(TASKS)
        assert set(again.params) == {"hour", "until", "redo", "wait"}
        assert [a.name for a in again.get_task("compact").outlets] == [dag.dag_id]
        links = {t["__var"]["task_id"]: t["__var"].get("_operator_extra_links") for t in stored["tasks"]}
        assert links == {stage: {"Quality report": "_link_QualityReportLink"} for stage in TASKS}


@pytest.mark.parametrize(
    "wrong",
    [{"hour": "2026-01-05"}, {"hour": "2026-01-05T10:00"}, {"until": "yesterday"}, {"redo": "yes"}, {"hour": 10}],
    ids=lambda wrong: json.dumps(wrong),
)
def test_wrong_parameters_are_refused_before_anything_runs(dag: Any, wrong: dict[str, Any]) -> None:
    from airflow.sdk.definitions.param import process_params
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError):
        process_params(dag, dag.get_task("land"), wrong, suppress_exception=False)


def test_the_dialog_of_a_backfill_asks_for_no_parameter(dag: Any) -> None:
    """Airflow's page wants a value for every parameter whose type excludes null, also for a backfill, whose runs have their hours."""
    params = {name: dag.params.get_param(name) for name in dag.params}
    wanted = {name for name, param in params.items() if "null" not in param.schema["type"] and param.value in (None, "")}
    assert (len(params), wanted) == (4, set())


def test_reading_the_dag_files_and_plugins_imports_nothing_heavy() -> None:
    command = [sys.executable, "-c", PARSE, str(CHECKOUT / "dags"), *HEAVY]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    found = json.loads(done.stdout.rpartition("FOUND")[2])
    assert (found["heavy"], found["errors"]) == ([], {})
    assert found["dags"] == 2 * len(FEEDS)
    assert "tidelake" in found["plugins"]


def test_a_dag_file_is_a_table_of_contents() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in (CHECKOUT / "dags").glob("*.py")}
    assert "tidelake_feeds.py" in lengths
    assert max(lengths.values()) <= 60, lengths


def test_a_broken_feed_is_shown_as_an_import_error_and_hides_no_other_feed(
    bag: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CHECKOUT / "schemas", tmp_path / "schemas")
    (tmp_path / "schemas" / "bazaar-craft" / "feed.toml").write_text("protocol = ")
    (tmp_path / "schemas" / "bazaar-open" / "feed.toml").write_text('protocol = "semaphore"')
    monkeypatch.setenv("TIDELAKE_SCHEMAS", str(tmp_path / "schemas"))
    found = type(bag)(bag.dag_folder)
    assert sorted(found.dag_ids) == [f"tidelake_{feed}{kind}" for feed in ("bazaar-avro", "bazaar-canal") for kind in ("", ".maintenance")]
    [(file, error)] = found.import_errors.items()
    assert file.endswith("tidelake_broken_feeds.py")
    assert str(tmp_path / "schemas" / "bazaar-craft" / "feed.toml") in error
    assert "semaphore" in error
    assert error.count("CONFIG: ") == 1
