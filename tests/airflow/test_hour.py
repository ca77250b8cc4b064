"""One hour of a feed through its DAG, on a real S3 server, against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import CHECKOUT
from tests.airflow.records import events
from tests.conftest import FreshUri
from tests.quick_spark import QUICK_SPARK
from tidelake.config.feed import load_feed
from tidelake.demo.generate import Workload, generate
from tidelake.demo.play import compare
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.query.status import feed_status
from tidelake.tso import format_hour


@pytest.fixture
def workload(s3: FreshUri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workload:
    """An hour of the bazaar, archived; the variables that its feed names."""
    archive = s3("archive")
    monkeypatch.setenv("TIDELAKE_ARCHIVE", archive)
    monkeypatch.setenv("TIDELAKE_LAKE", s3("lake"))
    monkeypatch.setenv("TIDELAKE_CATALOG", f"jdbc:sqlite:{tmp_path / 'catalog.db'}")
    monkeypatch.setenv("TIDELAKE_SPARK_SERVER", str(tmp_path / "spark"))
    for name, value in QUICK_SPARK.items():
        monkeypatch.setenv(name, value)
    return generate(open_store(archive), ["open"], hours=1, rows_per_hour=200)


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What OpenLineage would be told of each stage."""
    from tidelake.airflow import stage

    found, asked = dict[str, Any](), stage.facts_of

    def recorded(*given: Any, redo: bool) -> Any:
        found[given[2]] = asked(*given, redo=redo)
        return found[given[2]]

    monkeypatch.setattr(stage, "is_wanted", lambda: True)
    monkeypatch.setattr(stage, "facts_of", recorded)
    return found


@pytest.mark.spark
@pytest.mark.usefixtures("short_pauses", "stored_once", "warm_children")
def test_the_first_hour_of_a_feed_becomes_the_tables_as_they_stood_then(
    dag: Any, workload: Workload, facts: dict[str, Any], tmp_path: Path
) -> None:
    hour = workload.hours[0]
    run = dag.test(logical_date=None, run_conf={"hour": format_hour(hour), "until": None, "redo": False, "wait": True})
    assert str(run.state) == "success"
    with Lake.of(load_feed(CHECKOUT / "schemas", "bazaar-open")) as lake:
        found = compare(lake, workload, "open", hour)
        tables = feed_status(lake)["tables"]
    assert found
    assert found == {table: [] for table in found}
    *told, cuts = sorted(events(run.run_id), key=lambda e: str(e["uri"]))
    assert [e["name"] for e in told] == sorted(t["table"] for t in tables.values())
    assert {e["extra"]["table"]: e["extra"]["changed"] for e in told} == {name: t["changed"] for name, t in tables.items()}
    assert sum(e["extra"]["changed"]["inserts"] for e in told) >= sum(e["extra"]["rows"] for e in told) > 0
    assert cuts["extra"]["changed"] == sorted(tables)
    assert not (tmp_path / "spark").exists(), "so little work needs no server that outlives it"
    check_lineage(facts, tables)


def check_lineage(facts: dict[str, Any], tables: dict[str, Any]) -> None:
    """From the archive to every table, each stage reads what the one before wrote."""
    assert list(facts) == ["land", "decode", "order", "validate", "compact"]
    wrote = {stage: [d["name"] for d in found["outputs"]] for stage, found in facts.items()}
    read = {stage: [d["name"] for d in found["inputs"]] for stage, found in facts.items()}
    assert len(read["land"]) == 1
    assert wrote["land"] == read["decode"]
    assert wrote["decode"] == read["order"] == read["validate"][:1]
    assert len(wrote["order"]) > 0
    assert wrote["order"] == read["validate"][1:]
    assert set(read["compact"]) <= set(wrote["order"])
    assert all(check["success"] for d in facts["validate"]["inputs"] for check in d["checks"])
    assert all(d["checks"] for d in facts["validate"]["inputs"][1:])
    [landed], [events] = facts["land"]["outputs"], facts["decode"]["outputs"]
    assert landed["rows"] > 0
    assert events["table"][1] == "_tidelake.bazaar_open_events"
    made = {d["table"][1]: d for d in facts["compact"]["outputs"]}
    assert {name: d["version"] for name, d in made.items()} == {t["table"]: str(t["snapshot_id"]) for t in tables.values()}
    assert {name: d["rows"] for name, d in made.items() if d["rows"]} == {t["table"]: t["rows"] for t in tables.values() if t["rows"]}
    taken = [d for d in made.values() if d["source"]]
    assert {d["source"]["name"] for d in taken} == set(read["compact"])
    assert all({name for name, *_ in d["columns"]} <= {name for name, *_ in d["source"]["columns"]} for d in taken)
