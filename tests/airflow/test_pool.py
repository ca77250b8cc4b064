"""The pool of the tasks that start Spark, and which of them go first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.airflow.conftest import CHECKOUT

SPARK = {"decode", "order", "validate", "compact", "decide", "maintain"}


def pools(bag: Any) -> dict[str, str]:
    """The pool of every task of a feed."""
    read = type(bag)(str(CHECKOUT / "dags"))
    assert read.import_errors == {}
    return {t.task_id: t.pool for name in ("", ".maintenance") for t in read.dags[f"tidelake_bazaar-open{name}"].tasks}


def test_tasks_that_start_spark_are_in_the_pool_that_the_environment_names(bag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELAKE_POOL", "spark_of_this_host")
    found = pools(bag)
    assert {task for task, pool in found.items() if pool == "spark_of_this_host"} == SPARK
    assert {task for task, pool in found.items() if pool == "default_pool"} == {"land", "complete"}


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_name_all_tasks_are_in_the_pool_that_every_airflow_has(
    bag: Any, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("TIDELAKE_POOL", raising=False)
    if value is not None:
        monkeypatch.setenv("TIDELAKE_POOL", value)
    assert set(pools(bag).values()) == {"default_pool"}


def test_the_later_stage_of_an_hour_goes_before_the_first_of_another_and_before_maintenance(bag: Any) -> None:
    """By the weights that Airflow's scheduler computes from the stored DAG."""
    from airflow.serialization.serialized_objects import DagSerialization

    weights = dict[str, int]()
    for name in ("", ".maintenance"):
        stored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(bag.dags[f"tidelake_bazaar-open{name}"]))
        weights |= {t.task_id: t.weight_rule.get_weight(SimpleNamespace(task=t)) for t in stored.tasks}
    order = sorted(SPARK, key=lambda task: -weights[task])
    assert order == ["decide", "compact", "validate", "order", "decode", "maintain"]
    assert len({weights[task] for task in SPARK}) == len(SPARK)
