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
from tidelake.errors import ConfigError

STAGES = ["land", "decode", "order", "validate", "compact"]
TASKS = [*STAGES, "decide", "complete"]
HEAVY = ("pyspark", "great_expectations", "pyarrow", "boto3", "pandas", "duckdb", "numba")
OTHER = """
from airflow.sdk import DAG
with DAG("lighthouse"):
    pass
"""
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


def test_two_lines_in_a_folder_of_dags_make_the_dags_of_all_feeds_beside_others(bag: Any, tmp_path: Path) -> None:
    (tmp_path / "lighthouse.py").write_text(OTHER)
    ours = tmp_path / "harbour.py"
    ours.write_text(f"from tidelake.airflow import tidelake_dags\ntidelake_dags({str(CHECKOUT / 'schemas')!r})\n")
    found = type(bag)(str(tmp_path))
    assert sorted(found.dag_ids) == sorted(["lighthouse", *bag.dag_ids])
    assert found.import_errors == {}
    assert {dag.fileloc for name, dag in found.dags.items() if name != "lighthouse"} == {str(ours)}


def test_two_lines_in_another_file_show_a_broken_feed(bag: Any, tmp_path: Path) -> None:
    (tmp_path / "feeds" / "harbour").mkdir(parents=True)
    (tmp_path / "feeds" / "harbour" / "feed.toml").write_text("protocol = ")
    (tmp_path / "dags").mkdir()
    ours = tmp_path / "dags" / "harbour.py"
    ours.write_text(f"from tidelake.airflow import tidelake_dag_errors\ntidelake_dag_errors({str(tmp_path / 'feeds')!r})\n")
    found = type(bag)(str(tmp_path / "dags"))
    assert (found.dag_ids, list(found.import_errors)) == ([], [str(ours)])
    assert str(tmp_path / "feeds" / "harbour" / "feed.toml") in found.import_errors[str(ours)]


def test_a_feed_that_is_left_out_is_named_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from tidelake.airflow import tidelake_dags

    shutil.copytree(CHECKOUT / "schemas" / "bazaar-open", tmp_path / "schemas" / "bazaar-open")
    (tmp_path / "schemas" / "harbour").mkdir()
    (tmp_path / "schemas" / "harbour" / "feed.toml").write_text("protocol = ")
    monkeypatch.chdir(tmp_path)
    made = tidelake_dags("schemas")
    assert [dag.dag_id for dag in made] == ["tidelake_bazaar-open", "tidelake_bazaar-open.maintenance"]
    assert {task.schemas for dag in made for task in dag.tasks} == {str(tmp_path / "schemas")}  # a task runs in another folder
    assert [r.getMessage() for r in caplog.records if r.name == "tidelake.airflow.factory"] == [
        f"a feed is left out: {tmp_path / 'schemas' / 'harbour' / 'feed.toml'}: not TOML: Invalid value (at end of document)"
    ]


@pytest.mark.parametrize("name", ["tidelake_dags", "tidelake_dag_errors"])
def test_a_folder_without_feeds_is_an_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tidelake.airflow

    with pytest.raises(ConfigError, match=f"{tmp_path} has no [*]/feed.toml; set TIDELAKE_SCHEMAS"):
        getattr(tidelake.airflow, name)(tmp_path)
    monkeypatch.setenv("TIDELAKE_SCHEMAS", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="nowhere has no"):
        getattr(tidelake.airflow, name)()


def test_the_feeds_are_beside_the_folder_of_dags_unless_the_environment_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelake.airflow.stage import schemas_folder

    monkeypatch.delenv("TIDELAKE_SCHEMAS", raising=False)
    assert schemas_folder() == CHECKOUT / "schemas"
    monkeypatch.setenv("TIDELAKE_SCHEMAS", "/harbour/feeds")
    assert schemas_folder() == Path("/harbour/feeds")


def test_a_process_of_airflow_that_only_loads_the_plugin_imports_no_operator() -> None:
    code = "import sys, tidelake.airflow.plugin; print(*(m for m in sys.modules if m.startswith('tidelake.')))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=240)
    light = {"tidelake.airflow", "tidelake.airflow.plugin", "tidelake.airflow.provider"}
    assert set(done.stdout.splitlines()[-1].split()) == light


def test_reading_the_dag_files_and_plugins_imports_nothing_heavy() -> None:
    command = [sys.executable, "-c", PARSE, str(CHECKOUT / "dags"), *HEAVY]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    found = json.loads(done.stdout.rpartition("FOUND")[2])
    assert (found["heavy"], found["errors"]) == ([], {})
    assert found["dags"] == 2 * len(FEEDS)
    assert "tidelake" in found["plugins"]


def test_a_dag_file_is_a_table_of_contents() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in (CHECKOUT / "dags").glob("*.py")}
    assert sorted(lengths) == ["tidelake_broken_feeds.py", "tidelake_feeds.py"]
    assert max(lengths.values()) <= 12, lengths


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
