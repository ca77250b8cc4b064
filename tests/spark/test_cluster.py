"""Our own small workload on a Spark standalone cluster of two workers: nothing assumes that driver and executors are one process.

The executors' processes know no object store, and the driver's temporary files are where no other process finds them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FreshUri
from tests.e2e import bazaar
from tests.spark import event_log
from tests.spark.cluster import Cluster
from tidelake.config.feed import load_feed
from tidelake.demo.generate import Workload, generate
from tidelake.demo.verify import differences
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake
from tidelake.tso import format_hour

FEED, PROTOCOL, TABLE = "bazaar-open", "open", "bazaar.bids"


@dataclass(frozen=True)
class _Run:
    """A driver that has ended well: what it printed and the files that it wrote."""

    printed: str
    folder: Path

    def lines(self) -> list[dict[str, Any]]:
        """The printed JSON lines."""
        return [json.loads(line) for line in self.printed.splitlines() if line.startswith("{")]


@pytest.mark.long
@pytest.mark.spark
def test_the_line_on_two_workers_is_the_truth(s3: FreshUri, tmp_path: Path) -> None:
    uri = s3("cluster")
    workload = generate(open_store(f"{uri}/archive"), [PROTOCOL], hours=2, rows_per_hour=200, ddl_span_hours=2.0)
    variables = {
        "TIDELAKE_ARCHIVE": f"{uri}/archive",
        "TIDELAKE_LAKE": f"{uri}/lake",
        "TIDELAKE_CATALOG": f"jdbc:sqlite:{tmp_path / 'catalog.db'}",
        "TIDELAKE_SCHEMAS": str(bazaar.schemas_for(workload, tmp_path)),
    }
    first, second = (format_hour(h) for h in workload.hours[:2])
    between = _between(workload)
    commands = [
        ["run", "--feed", FEED, "--hour", first, "--hours", "2"],
        ["redo", "--feed", FEED, "--from", second],
        ["asof", "--feed", FEED, "--table", TABLE, "--ts", str(between), "--format", "jsonl", "--output", "asof.jsonl"],
        ["changelog", "--feed", FEED, "--table", TABLE, "--scd2", "--format", "jsonl"],
        ["maintain", "--feed", FEED],
    ]
    with Cluster(tmp_path / "cluster", workers=2) as cluster:
        done = _driven(cluster, commands, variables)
        assert cluster.executors() == [1, 1]
        tasks = event_log.tasks(cluster.events)
        assert set(tasks) == {"0", "1"}, "of the executors that the workers started, none of the driver"
        assert min(tasks.values()) > 20, tasks
        assert os.environ["AWS_SECRET_ACCESS_KEY"] not in event_log.event_log(cluster.events).read_text()
        assert cluster.left_in("temp") == [], "executors write nothing to a path of the driver's"
    _compare(done, workload, between, variables, Path(variables["TIDELAKE_SCHEMAS"]))


def _between(workload: Workload) -> int:
    """A TSO in the middle of the second hour."""
    one, other = (workload.deliveries[PROTOCOL].resolved(hour) for hour in workload.hours[:2])
    return (one + other) // 2


def _driven(cluster: Cluster, commands: list[list[str]], variables: dict[str, str]) -> _Run:
    command = [sys.executable, "-m", "tests.spark.cluster_job", json.dumps(commands)]
    settings = os.environ | variables | cluster.driver
    settings["PYTHONPATH"] += f"{os.pathsep}{bazaar.CHECKOUT}"
    done = subprocess.run(command, env=settings, cwd=cluster.home, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    sys.stderr.write(done.stderr)
    return _Run(done.stdout, cluster.home)


def _compare(done: _Run, workload: Workload, between: int, variables: dict[str, str], schemas: Path) -> None:
    with Lake.of(load_feed(schemas, FEED, variables)) as lake:
        for hour in workload.hours[:2]:
            bazaar.check(lake, workload, PROTOCOL, hour)
        assert lake._spark is None, "these are cuts, which need no Spark here"
    assert "every table holds the same rows as before" in done.printed
    asof = [json.loads(line) for line in (done.folder / "asof.jsonl").read_text().splitlines()]
    assert differences(asof, workload.history.truth(between)[TABLE]) == []
    assert asof
    now = [{k: v for k, v in row.items() if not k.startswith("_")} for row in done.lines() if row["_current"]]
    assert differences(now, workload.truth(PROTOCOL, workload.hours[1])[TABLE]) == []
