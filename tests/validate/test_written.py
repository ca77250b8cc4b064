"""What was written is counted the same by Spark and without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.histories import publish, resolved, row
from tests.lake.windows import KV, opened
from tidelake.lake.cut import TableCounts
from tidelake.lake.staged import Target, read_staged
from tidelake.run import order
from tidelake.tso import parse_hour
from tidelake.validate import written as module
from tidelake.validate.written import written


@pytest.mark.usefixtures("spark_app")
def test_changes_null_keys_and_bounds_are_counted_the_same_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *resolved(15)]))
        messages = [
            row(0, "update", 20, KV, ("1", "b"), ("1", "a")),
            row(0, "insert", 21, KV, ("2", "c")),
            row(0, "insert", 22, KV, (None, "d")),
            row(0, "delete", 24, KV, None, ("1", "b")),
            *resolved(25),
        ]
        hour = feed.add(lake, messages)
        order(lake, parse_hour(hour))
        _, staged = read_staged(lake, Target(hour))
        assert staged is not None
        (life,) = staged.changelogs
        wanted = {"INSERT": 2, "UPDATE_BEFORE": 1, "UPDATE_AFTER": 1, "DELETE": 1, "null_keys": 1, "first_ts": 20, "last_ts": 24}
        assert written(lambda: lake.spark, lake.catalog, staged) == {life: wanted}
        staged.counts[life] = TableCounts(changes=module.AT_HAND + 1)
        monkeypatch.setattr(module, "_here", None)
        assert written(lambda: lake.spark, lake.catalog, staged) == {life: wanted}
