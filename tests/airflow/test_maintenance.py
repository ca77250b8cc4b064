from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.airflow.conftest import CHECKOUT, FEEDS, Child


@pytest.mark.parametrize("feed", FEEDS)
def test_every_feed_has_a_maintenance_dag_of_one_task_by_the_rules_of_all(bag: Any, feed: str) -> None:
    dag = bag.dags[f"tidelake_{feed}.maintenance"]
    [task] = dag.tasks
    assert (task.task_id, task.feed, task.stage, task.owner) == ("maintain", feed, "maintain", "tidelake")
    assert (dag.catchup, dag.max_active_runs, len(dag.tags)) == (False, 1, 2)
    assert (task.retries >= 3, task.retry_exponential_backoff, task.execution_timeout) == (True, 2, timedelta(hours=6))
    assert dag.timetable.expression == "40 3 * * *"
    assert "docs/maintenance.md" in dag.doc_md


def test_it_comes_back_from_its_serialised_form_without_a_link_to_a_report(bag: Any) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    stored = DagSerialization.serialize_dag(bag.dags["tidelake_bazaar-open.maintenance"])
    assert DagSerialization.deserialize_dag(json.loads(json.dumps(stored))).task_ids == ["maintain"]
    assert not stored["tasks"][0]["__var"].get("_operator_extra_links")


@pytest.mark.usefixtures("stored_once")
@pytest.mark.parametrize(("codes", "state", "tries"), [([0], "success", 1), ([1, 0], "success", 2), ([2], "failed", 1)])
def test_the_task_is_the_command_and_its_exit_code_decides(
    bag: Any, child: Child, monkeypatch: pytest.MonkeyPatch, codes: list[int], state: str, tries: int
) -> None:
    dag = bag.dags["tidelake_bazaar-open.maintenance"]
    monkeypatch.setattr(type(dag.tasks[0]), "command", child.command)
    monkeypatch.setattr(dag.tasks[0], "retry_delay", timedelta(seconds=0.01))
    monkeypatch.setattr(dag.tasks[0], "retry_exponential_backoff", 0)
    child.plan(codes={"maintain": codes})
    done = dag.test(logical_date=None)
    assert str(done.state) == state
    assert [c["arguments"] for c in child.calls] == [["maintain", "--feed", "bazaar-open", "--schemas", str(CHECKOUT / "schemas")]] * tries
