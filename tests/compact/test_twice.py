"""Keys that stand twice in a snapshot are found by Spark and without it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.lake import lakes
from tidelake.compact.snapshot import _twice, _twice_at_hand
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session

KEYS = pa.table({"id": [1, 2, 1, 3, 3], "`b.c`": ["x", "x", "x", "y", "z"]})


@pytest.mark.usefixtures("spark_app")
def test_a_key_of_two_columns_that_is_there_twice_is_found_both_ways(tmp_path: Path) -> None:
    twice = [{"id": 1, "`b.c`": "x"}]
    assert _twice_at_hand(KEYS) == twice
    assert _twice_at_hand(KEYS.slice(1)) == []
    (tmp_path / "lake").mkdir()
    with spark_session(lake_settings(lakes.feed(tmp_path)), "twice") as spark:
        rows = spark.createDataFrame(KEYS.to_pylist(), "id bigint, ```b.c``` string")
        assert _twice(rows) == twice
        assert _twice(rows.where("id != 1")) == []
