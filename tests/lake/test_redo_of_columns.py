"""A redo of hours in which only a table's columns change: nothing is staged for it, and it is published like the other tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.histories import ddl, feeder, printed, publish, publish_again, resolved, row
from tests.lake.windows import KV
from tidelake.lake.opened import Lake


@pytest.mark.usefixtures("small_hours")
@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("ALTER TABLE k RENAME COLUMN v TO w", {"id": "1", "w": "7"}),
        ("ALTER TABLE k DROP COLUMN v", {"id": "1"}),
        ("ALTER TABLE k ADD COLUMN n INT", {"id": "1", "v": "7", "n": None}),
    ],
)
def test_an_hour_that_only_changes_columns_is_redone(sql: str, shown: dict[str, str | None], tmp_path: Path) -> None:
    feed = feeder(tmp_path, "CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20));")
    with Lake.of(feed.feed) as lake:
        publish(lake, feed.add(lake, [row(0, "insert", 10, KV, ("1", "7")), *resolved(20)]))
        publish(lake, hour := feed.add(lake, [*ddl(30, sql), *resolved(40)]))
        for _ in range(2):
            publish_again(lake, hour, hour)
            assert printed(lake, "d.k") == [shown]
