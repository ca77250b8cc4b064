"""Reads the table of an archive of `scale_archive` at a TSO between two cuts, and the snapshot of the cut before it, in turns."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from tests.benchmarks.measure import Used, measured
from tidelake.config.feed import load_feed
from tidelake.lake.branches import sql_name
from tidelake.lake.cuts import cut_for
from tidelake.lake.opened import Lake
from tidelake.query.asof import frame_asof, table_asof
from tidelake.run import kept_session
from tidelake.spark.sql_text import quote

TABLE = "shop.t000"


class Reads:
    """The ways to read the table; each returns the number of rows."""

    def __init__(self, lake: Lake, ts: int) -> None:
        before, _ = cut_for(lake.catalog, lake.store, lake.feed.name, ts)
        assert before is not None
        self._lake, self._ts, (self._snapshot,) = lake, ts, before.snapshots.values()
        self._columns = frame_asof(lake, TABLE, before.resolved_ts, lake.spark).columns

    def ways(self) -> dict[str, dict[str, Callable[[], int]]]:
        """By reader."""
        return {
            "Spark": {"scan": self._spark_scan, "frame_asof": self._spark_asof},
            "Arrow": {"scan": self._arrow_scan, "table_asof": self._arrow_asof},
        }

    def _spark_scan(self) -> int:
        frame = self._lake.spark.read.option("versionAsOf", self._snapshot.snapshot_id).table(sql_name(self._snapshot.identifier))
        return _hashed(frame.select(*map(quote, self._columns)))

    def _spark_asof(self) -> int:
        return _hashed(frame_asof(self._lake, TABLE, self._ts, self._lake.spark))

    def _arrow_scan(self) -> int:
        table = self._lake.catalog.load(self._snapshot.identifier)
        return sum(b.num_rows for b in table.scan(columns=self._columns, snapshot_id=self._snapshot.snapshot_id))

    def _arrow_asof(self) -> int:
        with table_asof(self._lake, TABLE, self._ts) as found:
            return sum(b.num_rows for b in found.rows)


def _hashed(frame: DataFrame) -> int:
    columns = ", ".join(map(quote, frame.columns))
    (row,) = frame.selectExpr("count(*) AS n", f"bit_xor(xxhash64({columns})) AS h").collect()
    return int(row["n"])


def main(folder: Path, ts: int, passes: int) -> None:
    """Print one JSON object."""
    found: dict[str, dict[str, Any]] = {}
    with kept_session("benchmark"), Lake.of(load_feed(folder / "schemas", "scale")) as lake:
        for reader, ways in Reads(lake, ts).ways().items():
            rows = {way: read() for way, read in ways.items()}
            used: dict[str, list[Used]] = {way: [] for way in ways}
            for _ in range(passes):
                for way, read in ways.items():
                    with measured() as now:
                        read()
                    used[way].append(now)
            found[reader] = {way: _summary(used[way]) | {"rows": rows[way]} for way in ways}
    sys.stdout.write(json.dumps(found))


def _summary(passes: list[Used]) -> dict[str, float]:
    memory = {"driver": max(u.driver for u in passes), "worker": max(u.worker for u in passes), "java": max(u.peak["java"] for u in passes)}
    return {"seconds": statistics.median(u.seconds for u in passes), **memory}


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
