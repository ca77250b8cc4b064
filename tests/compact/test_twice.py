"""Keys that a seeded table has twice are found."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.lake import lakes
from tidelake.compact.filled_table import _twice
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session

KEYS = pa.table({"id": [1, 2, 1, 3, 3], "`b.c`": ["x", "x", "x", "y", "z"]})


@pytest.mark.usefixtures("small_hours")
def test_a_key_of_two_columns_that_is_there_twice_is_found(tmp_path: Path) -> None:
    twice = [{"id": 1, "`b.c`": "x"}]
    (tmp_path / "lake").mkdir()
    with spark_session(lake_settings(lakes.feed(tmp_path)), "twice") as spark:
        rows = spark.createDataFrame(KEYS.to_pylist(), "id bigint, ```b.c``` string")
        assert _twice(rows) == twice
        assert _twice(rows.where("id != 1")) == []
