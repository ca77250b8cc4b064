"""One hour of a feed through its DAG, on a real S3 server, against the truth."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
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
def workload(s3: FreshUri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workload]:
    """An hour of the bazaar, archived; the variables that its feed names; a Spark server that ends with the test."""
    archive = s3("archive")
    monkeypatch.setenv("TIDELAKE_ARCHIVE", archive)
    monkeypatch.setenv("TIDELAKE_LAKE", s3("lake"))
    monkeypatch.setenv("TIDELAKE_CATALOG", f"jdbc:sqlite:{tmp_path / 'catalog.db'}")
    monkeypatch.setenv("TIDELAKE_SPARK_SERVER", str(tmp_path / "spark"))
    for name, value in QUICK_SPARK.items():
        monkeypatch.setenv(name, value)
    yield generate(open_store(archive), ["open"], hours=1, rows_per_hour=200)
    os.kill(json.loads((tmp_path / "spark" / "server.json").read_text())["pid"], signal.SIGTERM)


@pytest.mark.spark
def test_the_first_hour_of_a_feed_becomes_the_tables_as_they_stood_then(dag: Any, workload: Workload) -> None:
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
