"""What goes wrong in a Spark worker reaches the user as the error that it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import bazaar
from tidelake.config.feed import load_feed
from tidelake.errors import ConfigError, Coordinates, OrderError
from tidelake.lake.opened import Lake
from tidelake.run import decode, land
from tidelake.spark.worker_errors import errors_as_text, errors_of_workers


def test_an_error_of_ours_survives_as_text() -> None:
    with pytest.raises(RuntimeError, match="tidelake error") as raised, errors_as_text():
        raise ConfigError('schéma 1\nis "another"', code="SCHEMA_CHANGED", at=Coordinates("t", 1, 5), remedy="put it back")
    with pytest.raises(ConfigError) as again, errors_of_workers():
        raise ValueError(f"Traceback …\nRuntimeError: {raised.value}\n\n  at org.apache.spark …")
    assert str(again.value) == 'SCHEMA_CHANGED t[1]@5: schéma 1\nis "another"; put it back'
    assert again.value.exit_code == 2


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError), errors_of_workers(), errors_as_text():
        _ = 1 / 0


@pytest.mark.usefixtures("spark_app")
def test_a_landed_object_that_is_gone_is_named(tmp_path: Path) -> None:
    made = bazaar.make(tmp_path, ["open"], hours=1, rows=20, crashes=())
    with Lake.of(load_feed(tmp_path / "schemas", bazaar.FEED, made.variables)) as lake:
        land(lake, made.workload.hours[0])
        gone = sorted((tmp_path / "lake" / "landed").rglob("*.parquet"))[0]
        gone.unlink()
        with pytest.raises(OrderError, match=gone.name) as raised:
            decode(lake, made.workload.hours[0])
    assert (raised.value.code, raised.value.exit_code) == ("LANDED_DAMAGED", 3)
