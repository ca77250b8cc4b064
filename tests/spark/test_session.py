"""Sessions of one application, one for each lake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake import lakes
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session


@pytest.mark.usefixtures("spark_app")
def test_a_session_begins_beside_one_that_made_a_frame_of_rows(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    settings = lake_settings(lakes.feed(tmp_path))
    with spark_session(settings, "first") as first:
        assert first.createDataFrame([(1,)], "a int").count() == 1
        with spark_session(settings, "second") as second:
            assert second is not first
            assert second.createDataFrame([(1,), (2,)], "a int").count() == 2
            with spark_session(settings, "third") as third:
                assert third.createDataFrame([(1,), (2,), (3,)], "a int").count() == 3
