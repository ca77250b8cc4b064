"""Rows of a frame on this machine's disk: as files that Spark writes here, or carried from executors that have other disks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.lake import lakes
from tests.spark.test_run_parts import Words
from tidelake.errors import OrderError
from tidelake.lake.opened import Lake
from tidelake.spark.fetch import fetched
from tidelake.spark.run_parts import SparkWorkers

ROWS = """
SELECT id, IF(id % 3 = 0, NULL, timestamp'2026-01-05 10:00:00.123456Z') AS t, timestamp_ntz'0001-01-01 00:00:00.5' AS d,
date'9999-12-31' AS day, unhex('00ff') AS b, CAST(1.5 AS decimal(38,18)) AS dec, array('ä', NULL) AS a, repeat('x', 1000) AS s
FROM range(0, 18000, 1, 2)
"""


@pytest.mark.usefixtures("spark_app")
def test_both_ways_give_the_same_rows_and_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Lake.of(lakes.feed(tmp_path)) as lake:
        frame = lake.spark.sql(ROWS)
        here = fetched(frame, _new(tmp_path / "here")).read_all().sort_by("id")
        monkeypatch.setenv("TIDELAKE_SPARK_REMOTE", "sc://elsewhere")  # its disks are not ours
        there = fetched(frame, _new(tmp_path / "there")).read_all().sort_by("id")
        nothing = fetched(lake.spark.sql("SELECT CAST(NULL AS timestamp) AS t WHERE false"), _new(tmp_path / "nothing")).read_all()
    assert here.schema.field("t").type == there.schema.field("t").type == pa.timestamp("us", tz="UTC")
    assert (here["id"].to_pylist(), here["t"].null_count) == (list(range(18_000)), 6_000)
    assert there.equals(here.cast(there.schema))
    assert len(list((tmp_path / "there" / "rows").glob("[0-9]*.parquet"))) == 4  # 2 partitions of 9 MB are 2 chunks each
    assert (nothing.num_rows, nothing.schema.field("t").type) == (0, pa.timestamp("us", tz="UTC"))


@pytest.mark.usefixtures("spark_app")
def test_workers_write_the_rows_of_parts_where_they_share_this_machine_s_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Lake.of(lakes.feed(tmp_path)) as lake:
        workers = SparkWorkers(lake.spark)
        here = workers.stream(Words("ab", "", "c"), _new(tmp_path / "here")).read_all()
        with pytest.raises(OrderError, match="a bad part"):
            workers.stream(Words("bad"), _new(tmp_path / "bad"))
        monkeypatch.setenv("TIDELAKE_SPARK_REMOTE", "sc://elsewhere")
        there = workers.stream(Words("ab", "", "c"), _new(tmp_path / "there")).read_all()
    assert [w for w in here.column("word").to_pylist() if w in ("a", "b", "c")] == ["a", "b", "c"], "part after part"
    assert there.sort_by("word").equals(here.sort_by("word"))
    assert sorted(p.name for p in (tmp_path / "here").iterdir()) == ["0.arrow", "1.arrow", "2.arrow"]
    assert [p.name for p in (tmp_path / "there").iterdir()] == ["rows"], "files of remote workers would be on their disks"


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder
