"""What Airflow hears of a published cut: events of its tables for every hour, links to its report, and whether it is complete."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.airflow.conftest import Child, Run
from tests.airflow.records import events, links, queued

HOUR = "2026-01-05T10"
BIDS = "iceberg://lake/bazaar_open_bazaar/bids"
PAGE = "http://airflow.example:8080/tidelake/quality/bazaar-open"
PUBLISHED = {
    "published_hour": HOUR,
    "cut_hours": [HOUR],
    "published_ts": 463368563725434880,
    "cut": 7,
    "incomplete_because": [],
    "tables": {
        "bazaar.bids": {"rows": 41, "table": "bazaar_open_bazaar.bids", "snapshot_id": 2**62 + 1, "changed": {"inserts": 3, "deletes": 1}},
        "bazaar.quiet": {"rows": 8, "table": "bazaar_open_bazaar.quiet", "snapshot_id": 11, "changed": None},
    },
}
CUTS = "tidelake://cuts/bazaar-open"
HEARD = "iceberg://lake/bazaar_open_bazaar/heard"  # what consumers listen to, also in later tests
OF_HEARD = {"tables": {"bazaar.heard": {"rows": 3, "table": "bazaar_open_bazaar.heard", "snapshot_id": 5, "changed": {}}}}
GAP = [{"code": "GAP", "detail": "t[0] offsets 5 to 9", "cut": 7, "hour": HOUR}]
CONSUMER = """
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable

with DAG({name!r}, schedule=PartitionedAssetTimetable(assets=Asset(uri={uri!r})), is_paused_upon_creation=False):
    EmptyOperator(task_id="listens")
"""


@pytest.fixture
def consumer(dag: Any, tmp_path: Path) -> str:
    """A DAG with a partitioned schedule on a table, known to Airflow. Its id."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    folder = tmp_path / "consumers"
    folder.mkdir()
    name = f"consumer_{tmp_path.name}"
    (folder / "consumer.py").write_text(CONSUMER.format(name=name, uri=HEARD))
    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(str(folder), bundle_path=folder, bundle_name="dags-folder")
    assert bag.import_errors == {}
    sync_bag_to_db(bag, "dags-folder", None)
    return name


def of_tables(run_id: str) -> list[dict[str, Any]]:
    """The events of a run without that of the cut."""
    return [e for e in events(run_id) if e["uri"] != CUTS]


def test_publishing_is_an_event_of_the_cut_and_of_every_table_that_it_changed(run: Run, child: Child) -> None:
    child.plan(status=PUBLISHED)
    table, cut = sorted(events(run(hour=HOUR)["run_id"]), key=lambda e: str(e["uri"]))
    of_both = {
        "feed": "bazaar-open",
        "hour": HOUR,
        "cut": 7,
        "resolved_ts": "463368563725434880",
        "incomplete": [],
        "report": f"{PAGE}/{HOUR}",
    }
    assert (table["name"], table["uri"], table["key"]) == ("bazaar_open_bazaar.bids", BIDS, None)
    assert table["extra"] == of_both | {
        "table": "bazaar.bids",
        "snapshot_id": str(2**62 + 1),
        "rows": 41,
        "changed": {"inserts": 3, "deletes": 1},
    }
    assert (cut["name"], cut["uri"], cut["key"]) == ("tidelake_bazaar-open.cuts", CUTS, None)
    assert cut["extra"] == of_both | {"tables": 2, "changed": ["bazaar.bids"]}
    assert table["aliases"] == cut["aliases"] == ["tidelake_bazaar-open"]


def test_a_cut_that_changed_no_table_is_an_event_of_the_cut_alone(run: Run, child: Child) -> None:
    quiet = PUBLISHED["tables"]["bazaar.quiet"]  # type: ignore[index]
    child.plan(status=PUBLISHED | {"tables": {"bazaar.quiet": quiet}})
    (cut,) = events(run(hour=HOUR)["run_id"])
    assert (cut["uri"], cut["extra"]["tables"], cut["extra"]["changed"]) == (CUTS, 1, [])


def test_a_partitioned_consumer_hears_of_every_hour_that_a_run_without_a_key_publishes(run: Run, child: Child, consumer: str) -> None:
    hours = [HOUR, "2026-01-05T11"]
    child.plan(status=PUBLISHED | OF_HEARD | {"published_hour": hours[1], "cut_hours": hours})
    found = run(hour=hours[0], until=hours[1])
    assert queued(consumer) == hours
    told = of_tables(found["run_id"])
    assert {e["key"] for e in told if e["key"]} == set(hours)
    assert {e["name"] for e in told} == {HEARD}  # by which the consumer knows it
    assert [(e["uri"], e["aliases"]) for e in told if e["key"] is None] == [(HEARD, ["tidelake_bazaar-open"])]
    assert [e["extra"] for e in told] == [told[0]["extra"]] * 3


def test_an_airflow_that_cannot_emit_other_hours_says_so(
    run: Run, child: Child, consumer: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow.sdk.execution_time.context import OutletEventAccessor

    monkeypatch.delattr(OutletEventAccessor, "add_partitions")  # as in 3.2
    child.plan(status=PUBLISHED | OF_HEARD)
    found = run(hour=HOUR)
    assert (found["state"], queued(consumer)) == ("success", [])
    assert {(e["name"], e["key"]) for e in of_tables(found["run_id"])} == {(HEARD, None)}
    assert f"cannot emit events of other hours than the run's: {HOUR}" in capfd.readouterr().out


def test_a_redo_is_an_event_of_every_hour_that_it_published_again_and_leads_to_the_new_report(
    run: Run, child: Child, consumer: str
) -> None:
    hours = [HOUR, "2026-01-05T11", "2026-01-05T12"]
    child.plan(status=PUBLISHED | OF_HEARD | {"published_hour": hours[-1], "cut_hours": hours, "cut": 9})
    found = run(hour=HOUR, redo=True)
    assert queued(consumer) == hours
    new = f"{PAGE}/2026-01-05T12"
    assert {(e["extra"]["hour"], e["extra"]["cut"], e["extra"]["report"]) for e in of_tables(found["run_id"])} == {(hours[-1], 9, new)}
    assert links(found["run_id"]) == dict.fromkeys(("land", "decode", "order", "validate"), f"{PAGE}/{HOUR}") | {
        "compact": new,
        "complete": new,
    }


def test_a_run_with_a_key_emits_its_hour_once(dag: Any, child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.execution_time.context import OutletEventAccessors

    from tidelake.airflow import publish

    monkeypatch.setattr(publish, "_known", lambda context, uri: None)
    child.plan(status=PUBLISHED)
    task, told = copy(dag.get_task("compact")), OutletEventAccessors()
    params = {"hour": None, "until": None, "redo": False}
    task.execute({"params": params, "partition_key": HOUR, "outlet_events": told, "ti": None})
    assert [len(told[outlet].asset_alias_events) for outlet in task.outlets] == [2]
    assert len(told) == 1


def test_an_hour_that_was_published_long_ago_is_no_event(run: Run, child: Child) -> None:
    child.plan(status=PUBLISHED | {"published_hour": "2026-01-05T12"})
    assert events(run(hour=HOUR)["run_id"]) == []


def test_a_complete_cut_is_green_to_the_end(run: Run, child: Child) -> None:
    child.plan(status=PUBLISHED)
    found = run(hour=HOUR)
    assert (found["state"], found["compact"], found["complete"]) == ("success", ("success", 1), ("success", 1))


def test_an_incomplete_cut_skips_the_last_task_and_says_why_in_events_and_logs(
    run: Run, child: Child, capfd: pytest.CaptureFixture[str]
) -> None:
    child.plan(status=PUBLISHED | {"incomplete_because": GAP})
    found = run(hour=HOUR)
    assert (found["state"], found["compact"], found["complete"]) == ("success", ("success", 1), ("skipped", 1))
    assert [e["extra"]["incomplete"] for e in events(found["run_id"])] == [["GAP: t[0] offsets 5 to 9"]] * 2
    lines = [line for line in capfd.readouterr().out.splitlines() if "cut 7 is INCOMPLETE: GAP: t[0] offsets 5 to 9" in line]
    assert len([line for line in lines if "warning" in line]) == 2  # of compact and complete
    assert len(lines) == 3  # Airflow's own of the skipped task is in a group that its interface closes


def test_an_incomplete_cut_that_the_policy_blocks_is_red(run: Run, child: Child) -> None:
    child.plan({"compact": [3]}, says="error: INCOMPLETE: the window up to hour 2026-01-05T10 would be published incomplete")
    found = run(hour=HOUR)
    assert (found["state"], found["compact"], found["complete"]) == ("failed", ("failed", 1), ("upstream_failed", 0))
    assert events(found["run_id"]) == []


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        ([None, {"cut": 7, "hour": HOUR, "incomplete": []}], HOUR),
        ([{"cut": 7, "hour": HOUR, "incomplete": []}, {"cut": 6, "hour": HOUR, "incomplete": ["GAP: old"]}], HOUR),
        (
            [{"cut": 7, "hour": HOUR, "incomplete": []}, {"cut": 8, "hour": HOUR, "incomplete": ["GAP: new"]}],
            "cut 8 is INCOMPLETE: GAP: new",
        ),
        ([None, None], None),
    ],
)
def test_the_last_task_shows_the_newest_cut_that_compact_or_decide_published(dag: Any, said: list[Any], ends: str | None) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    task = copy(dag.get_task("complete"))
    context = {"ti": SimpleNamespace(xcom_pull=lambda task_ids: said if task_ids == ["compact", "decide"] else None)}
    if ends and ends != HOUR:
        with pytest.raises(AirflowSkipException, match=ends):
            task.execute(context)
    else:
        task.execute(context)
        assert task.hour == ends
