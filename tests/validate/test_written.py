"""What was written is counted the same by Spark and without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.histories import publish, resolved, row, row_schema
from tests.lake.windows import KV, opened
from tidelake.lake.cut import TableCounts
from tidelake.lake.staged import Target, read_staged
from tidelake.run import order
from tidelake.tso import parse_hour
from tidelake.validate.written import AT_HAND, appended, as_frame, rows_at_hand, written


@pytest.mark.usefixtures("small_hours")
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
        staged.counts[life] = TableCounts(changes=AT_HAND + 1)
        monkeypatch.setattr("tidelake.validate.written._here", None)
        assert written(lambda: lake.spark, lake.catalog, staged) == {life: wanted}


KINDS = "id bigint", "n int", "p decimal", "at datetime", "seen timestamp", "day date", "t time", "f float", "d double", "raw varbinary"
TYPES = "id BIGINT PRIMARY KEY, n INT, p DECIMAL(12,2), at DATETIME(6), seen TIMESTAMP(6), day DATE, t TIME, f FLOAT, d DOUBLE, raw BLOB"
EVERY = "7", "12.50", "2026-01-05 10:00:00.123456", "2026-01-05 10:00:00.5", "2026-01-05", "10:00:00", "0.5", "0.1", "\x01é"


@pytest.mark.usefixtures("small_hours")
def test_rows_are_the_same_frame_read_by_spark_or_not(tmp_path: Path) -> None:
    sent = row_schema(*KINDS, "v vector", "j json", "u bigint unsigned", "b bit")
    with opened(tmp_path, f"CREATE TABLE d.k ({TYPES}, v VECTOR(2), j JSON, u BIGINT UNSIGNED, b BIT(9));") as (feed, lake):
        whole = ("1", *EVERY, "[1,0.5]", '{"a": 1}', "18446744073709551615", "5")
        messages = [row(0, "insert", 20, sent, whole), row(0, "insert", 21, sent, ("2", *[None] * 13)), *resolved(25)]
        order(lake, parse_hour(hour := feed.add(lake, messages)))
        _, staged = read_staged(lake, Target(hour))
        assert staged is not None
        (advance,) = staged.changelogs.values()
        table = lake.catalog.load(advance.identifier)
        at_hand = rows_at_hand(table, advance, 2)
        assert at_hand is not None
        assert rows_at_hand(table, advance, AT_HAND + 1) is None
        here, there = as_frame(lake.spark, at_hand), appended(lake.spark, advance)
        assert here.schema.simpleString() == there.schema.simpleString()
        assert len(here.columns) == 14 + 9
        rows = [sorted(map(repr, frame.collect())) for frame in (here, there)]
    assert len(rows[0]) == 2
    assert rows[0] == rows[1]
