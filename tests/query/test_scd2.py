"""Versions of rows, and tables of the past as frames: what ends a version, what a version holds, what has none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.checkout import CHECKOUT
from tests.lake.histories import ddl, feeder, publish, publish_again, resolved, row, row_schema
from tests.lake.windows import KV, TEXT
from tidelake.config.policy import Policy
from tidelake.errors import ConfigError
from tidelake.io.storage import Store
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import statements
from tidelake.lake.ddl_ledger import entries
from tidelake.lake.opened import Lake
from tidelake.query.frames import asof, scd2

KVN = row_schema("id bigint", "v varchar", "n int")
SQL = "CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE d.m (v VARCHAR(20)); CREATE TABLE d.e (id BIGINT PRIMARY KEY);"
PARTS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"
SQL += f"CREATE TABLE d.p (id BIGINT PRIMARY KEY, v VARCHAR(20)) {PARTS}; CREATE TABLE d.q (id BIGINT PRIMARY KEY, v VARCHAR(20)) {PARTS};"

pytestmark = pytest.mark.usefixtures("small_hours")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Two cuts, at 30 and 60; k is emptied at 25 and gets a column at 40; p loses rows with a partition at 26 and 52."""
    folder = tmp_path_factory.mktemp("scd2")
    made = feeder(folder, SQL)
    (folder / "lake").mkdir()
    first = [
        row(0, "insert", 10, KV, ("1", "a")),
        row(0, "insert", 10, KV, ("2", "b")),
        row(0, "insert", 10, TEXT, ("x",), table="m"),
        row(0, "update", 15, KV, ("1", "aa"), ("1", "a")),
        row(0, "delete", 20, KV, None, ("2", "b")),
        *ddl(25, "TRUNCATE TABLE k"),
        *(row(0, "insert", 20, KV, (id, "a"), table="p") for id in ("1", "2", "15", "16")),
        *ddl(26, "ALTER TABLE p TRUNCATE PARTITION p0", table="p"),
        row(0, "insert", 26, KV, ("1", "a"), table="q"),
        *ddl(27, "ALTER TABLE q TRUNCATE PARTITION ALL", table="q"),
        row(0, "insert", 28, KV, ("1", "b"), table="p"),
        row(0, "insert", 28, KV, ("2", "b"), table="q"),
        row(0, "insert", 28, KV, ("1", "again")),
        row(0, "insert", 28, KV, ("3", "c")),
        *resolved(30),
    ]
    second = [
        *ddl(40, "ALTER TABLE k ADD COLUMN n INT DEFAULT 5"),
        row(0, "update", 50, KVN, ("3", "c", "6"), ("3", "c", "5")),
        row(0, "update", 51, KV, ("15", "b"), ("15", "a"), table="p"),
        *ddl(52, "ALTER TABLE p DROP PARTITION p1", table="p"),
        row(0, "delete", 55, KVN, None, ("3", "c", "6")),
        row(0, "insert", 55, KVN, ("3", "d", "7")),
        row(0, "update", 57, KVN, ("4", "again", "5"), ("1", "again", "5")),
        *resolved(60),
    ]
    with Lake.of(made.feed) as opened:
        for messages in (first, second):
            publish(opened, made.add(opened, messages))
        yield opened


def versions(lake: Lake, ts: int | None = None, table: str = "k") -> set[tuple[Any, ...]]:
    """All of a table's, as (columns, from, to, current)."""
    rows = scd2(lake.spark, lake.feed, f"d.{table}", ts).drop("_valid_from", "_valid_to").collect()
    assert len(set(rows)) == len(rows)
    return {tuple(r) for r in rows}


def test_changes_deletes_and_a_truncate_end_a_version_and_the_last_change_of_a_commit_counts(lake: Lake) -> None:
    assert versions(lake) == {
        (1, "a", 5, 10, 15, False),
        (1, "aa", 5, 15, 25, False),
        (2, "b", 5, 10, 20, False),
        (1, "again", 5, 28, 57, False),
        (3, "c", 5, 28, 50, False),
        (3, "c", 6, 50, 55, False),
        (3, "d", 7, 55, None, True),
        (4, "again", 5, 57, None, True),
    }


def test_as_known_at_an_earlier_ts_what_ends_later_is_valid_still(lake: Lake) -> None:
    assert versions(lake, 22) == {(1, "a", 10, 15, False), (1, "aa", 15, None, True), (2, "b", 10, 20, False)}


def test_rows_that_leave_with_their_partition_end_there_also_cuts_later(lake: Lake) -> None:
    gone = {(1, "a", 20, 26, False), (2, "a", 20, 26, False)}
    standing = {(1, "b", 28, None, True)}
    assert versions(lake, 30, "p") == gone | standing | {(15, "a", 20, None, True), (16, "a", 20, None, True)}
    gone |= {(15, "a", 20, 51, False), (15, "b", 51, 52, False), (16, "a", 20, 52, False)}
    assert versions(lake, table="p") == gone | standing


def test_rows_that_leave_with_all_partitions_end_there(lake: Lake) -> None:
    assert versions(lake, table="q") == {(1, "a", 26, 27, False), (2, "b", 28, None, True)}


def test_the_times_are_those_of_the_tsos(lake: Lake) -> None:
    found = scd2(lake.spark, lake.feed, "d.k").where("_valid_from_ts = 55")
    assert found.selectExpr("unix_millis(_valid_from) AS a", "_valid_to IS NULL AS b").collect() == [(0, True)]


def test_a_table_without_a_key_is_refused_and_one_without_changes_has_no_versions(lake: Lake) -> None:
    with pytest.raises(ConfigError, match=r"table d\.m has no key, so its rows have no versions") as refused:
        scd2(lake.spark, lake.feed, "d.m")
    assert (refused.value.code, refused.value.exit_code) == ("NO_KEY", 2)
    empty = scd2(lake.spark, lake.feed, "d.e")
    assert (empty.count(), empty.columns[:2]) == (0, ["id", "_valid_from_ts"])


def test_a_table_as_of_a_ts_is_a_frame_at_a_cut_and_between_cuts(lake: Lake) -> None:
    def at(ts: int | None) -> set[tuple[Any, ...]]:
        return {tuple(r) for r in asof(lake.spark, lake.feed, "d.k", ts).collect()}

    assert at(22) == {(1, "aa")}
    assert at(30) == {(1, "again"), (3, "c")}
    assert at(45) == {(1, "again", 5), (3, "c", 5)}
    assert at(None) == {(3, "d", 7), (4, "again", 5)}
    with pytest.raises(ConfigError, match="ts and at exclude each other"):
        asof(lake.spark, lake.feed, "d.k", 22, "2026-01-05T12:00:00Z")


def test_the_recipe_of_the_documentation_gives_the_same_without_spark(lake: Lake) -> None:
    text = (CHECKOUT / "docs" / "time-travel.md").read_text()
    recipe: dict[str, Any] = {}
    exec(text.split("```python recipe\n")[1].split("```")[0], recipe)
    for ts, rows in ((30, {(1, "again"), (3, "c")}), (52, {(1, "again", 5), (3, "c", 6)}), (60, {(3, "d", 7), (4, "again", 5)})):
        found = recipe["asof"](lake.catalog.catalog, "shop", "d.k", "d_changelog.k", ["id"], ts)
        if ts == 52:  # a column came after the cut at 30: the recipe's frame has those of the cut
            rows = {r[:2] for r in rows}
        assert {tuple(r.values()) for r in found.to_pylist()} == rows


@pytest.mark.parametrize("table", ["k", "q"])
def test_no_cut_before_the_newest_is_read_for_what_its_statements_ended(lake: Lake, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = versions(lake, table=table)

    def newest(store: Store, feed: str, seq: int) -> Cut:
        assert seq == 2
        return read_cut(store, feed, seq)

    monkeypatch.setattr("tidelake.query.scd2.read_cut", newest)
    monkeypatch.setattr("tidelake.lake.cuts.read_cut", newest)
    assert versions(lake, table=table) == before


def test_a_truncate_that_a_redo_ignores_ends_no_version(tmp_path: Path) -> None:
    made = feeder(tmp_path, SQL)
    (tmp_path / "lake").mkdir()
    with Lake.of(made.feed) as lake:
        hour = made.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *ddl(25, "TRUNCATE TABLE k"), *resolved(30)])
        publish(lake, hour)
        assert versions(lake) == {(1, "a", 10, 25, False)}
    with Lake.of(made.feed.model_copy(update={"policy": Policy(ignore_ddl=(25,))})) as lake:
        publish_again(lake, hour, hour)
        assert versions(lake) == {(1, "a", 10, None, True)}
        assert [(e["seq"], e["effect"]) for e in entries(lake.catalog, "shop")] == [(1, "applied"), (2, "ignored")]
        assert [(e["seq"], e["effect"]) for e in statements(lake.catalog, "shop")] == [(2, "ignored")]
