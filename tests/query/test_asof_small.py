"""A table between two cuts whose files are small is folded without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.histories import publish, resolved, row, rows_of
from tests.lake.windows import KV, opened
from tidelake.lake.opened import Lake
from tidelake.query.asof import table_asof


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """No application is up, and none may be started."""
    monkeypatch.setattr("tidelake.spark.session.is_up", lambda: False)
    monkeypatch.delattr(Lake, "spark")


@pytest.mark.usefixtures("no_spark")
def test_rows_between_two_cuts_are_read_without_spark(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [row(0, "insert", 10, KV, (i, "a")) for i in "123"] + [*resolved(15)]))
        changes = [row(0, "update", 20, KV, ("1", "b"), ("1", "a")), row(0, "delete", 21, KV, None, ("2", "a"))]
        publish(lake, feed.add(lake, [*changes, row(0, "insert", 22, KV, ("4", None)), *resolved(25)]))
        found = {ts: sorted((r["id"], r["v"]) for r in map(dict, rows_of(lake, "d.k", ts))) for ts in (15, 20, 21, 22)}
        first, last = [("1", "a"), ("2", "a"), ("3", "a")], [("1", "b"), ("3", "a"), ("4", None)]
        assert found == {15: first, 20: [("1", "b"), *first[1:]], 21: [("1", "b"), ("3", "a")], 22: last}
        with table_asof(lake, "d.k", 21) as between:
            assert between.rows.schema.names == ["id", "v"]
