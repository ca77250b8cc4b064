"""What a query observed is there, also where the server did not send it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest

from tests.lake import lakes
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.observed_counts import Observed
from tidelake.spark.session import spark_session


@pytest.mark.usefixtures("spark_app")
@pytest.mark.parametrize("sent", [True, False])
def test_the_aggregates_of_what_was_written(sent: bool, tmp_path: Path) -> None:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    (tmp_path / "lake").mkdir()
    with spark_session(lake_settings(lakes.feed(tmp_path)), "observed") as spark:
        frame = spark.range(10)
        all_of_it = Observed(frame, F.count(F.lit(1)).alias("rows"))
        even = Observed(all_of_it.rows.where("id % 2 = 0"), F.sum("id").alias("total"), again=lambda: frame.where("id % 2 = 0"))
        assert even.rows.count() == 5
        if sent:
            assert (all_of_it.values(), even.values()) == ({"rows": 10}, {"total": 20})
            return
        nothing: Any = PropertyMock(return_value={})
        with patch.object(Observation, "get", nothing):
            assert (all_of_it.values(), even.values()) == ({"rows": 10}, {"total": 20})
