"""Rows with only their key sent, where the feed accepts them: what is known of a row stays known, and the cut says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lake.histories import Message, publish, resolved, row, row_schema, rows_of
from tests.lake.windows import KV, TEXT, opened, table
from tidelake.config.policy import Policy
from tidelake.errors import OrderError
from tidelake.lake.cut import Cut
from tidelake.lake.opened import Lake
from tidelake.query.changes import changes_of
from tidelake.validate.quality.report import render
from tidelake.validate.report import hour_facts

KEY = row_schema("id bigint")
ACCEPT = Policy(handle_only="accept")

pytestmark = pytest.mark.usefixtures("small_hours")


def key(op: str, ts: int, id: str, former: str | None = None) -> Message:
    """A row event that carries its key alone."""
    made = row(0, op, ts, KEY, None if op == "delete" else (id,), None if op == "insert" else (former or id,))
    return replace(made, event=replace(made.event, handle_only=True))


def done(cut: Cut | None) -> Cut:
    assert cut is not None
    return cut


def test_what_is_known_of_a_row_stays_within_a_window_and_across_windows(tmp_path: Path) -> None:
    with opened(tmp_path, policy=ACCEPT) as (feed, lake):
        whole = [row(0, "insert", 10, KV, (i, v)) for i, v in zip("123", "abc", strict=True)]
        cut = done(publish(lake, feed.add(lake, [*whole, key("update", 12, "1"), key("insert", 12, "4"), *resolved(15)])))
        assert rows_of(lake, "d.k") == table(("1", "a"), ("2", "b"), ("3", "c"), ("4", None))
        assert cut.incomplete
        later = [
            key("update", 20, "2"),
            row(0, "delete", 20, KV, None, ("3", "c")),
            key("insert", 22, "3"),
            row(0, "update", 22, KV, ("4", "d"), ("4", "x")),
            key("update", 23, "4"),
            *(key(op, 24, "1") for op in ("delete", "insert")),
            *resolved(25),
        ]
        publish(lake, feed.add(lake, later))
        assert rows_of(lake, "d.k") == table(("1", "a"), ("2", "b"), ("3", None), ("4", "d"))
        assert rows_of(lake, "d.k", 21) == table(("1", "a"), ("2", "b"), ("4", None))
        publish(lake, feed.add(lake, [key("update", 30, "2", former="1"), key("delete", 31, "4"), *resolved(35)]))
        assert rows_of(lake, "d.k") == table(("2", "b"), ("3", None))


def test_partial_rows_are_counted_marked_and_told(tmp_path: Path) -> None:
    with opened(tmp_path, policy=ACCEPT) as (feed, lake):
        sent = [row(0, "insert", 10, KV, ("1", "a")), key("update", 11, "1"), key("insert", 12, "2"), key("delete", 13, "2"), *resolved(15)]
        hour = feed.add(lake, sent)
        cut = done(publish(lake, hour))
        assert cut.incomplete
        assert changelog(lake) == [
            ("INSERT", 10, "a", False),
            ("UPDATE_BEFORE", 11, None, True),
            ("UPDATE_AFTER", 11, None, True),
            ("INSERT", 12, None, True),
            ("DELETE", 13, None, False),
        ]
        facts = hour_facts(lake, hour)
        assert facts.tables["d.k"].partial == 2
        assert "2 rows arrived with only the key" in render(facts, [])
        after = done(publish(lake, feed.add(lake, [row(0, "insert", 20, KV, ("7", "g")), *resolved(25)])))
        assert after.incomplete


def changelog(lake: Lake) -> list[tuple[Any, ...]]:
    """Type, commit ts, v and the mark of every change, in order."""
    rows = [r for part in changes_of(lake, "d.k", 0, None) for r in part.rows.read_all().to_pylist()]
    return [
        (r["_change_type"], r["_commit_ts"], r["v"], r["_partial"])
        for r in sorted(rows, key=lambda r: (r["_offset"], -len(r["_change_type"])))
    ]


def test_deletes_by_key_alone_leave_nothing_incomplete(tmp_path: Path) -> None:
    with opened(tmp_path, policy=ACCEPT) as (feed, lake):
        cut = publish(lake, feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), key("delete", 11, "1"), *resolved(15)]))
        assert not done(cut).incomplete
        assert rows_of(lake, "d.k") == table()


def test_a_whole_copy_of_a_change_is_taken_before_a_partial_one(tmp_path: Path) -> None:
    with opened(tmp_path, policy=ACCEPT) as (feed, lake):
        cut = publish(lake, feed.add(lake, [key("insert", 10, "1"), *resolved(5), row(0, "insert", 10, KV, ("1", "a")), *resolved(15)]))
        assert rows_of(lake, "d.k") == table(("1", "a"))
        assert not done(cut).incomplete


def test_expectations_do_not_judge_cells_that_were_not_sent(tmp_path: Path) -> None:
    with opened(tmp_path, policy=ACCEPT) as (feed, lake):
        rules = feed.feed.folder / "expectations"
        rules.mkdir()
        (rules / "d.k.toml").write_text('[[expect]]\ntype = "expect_column_values_to_not_be_null"\ncolumn = "v"\nseverity = "critical"\n')
        assert done(publish(lake, feed.add(lake, [key("insert", 10, "1"), *resolved(15)]))).seq == 1
        assert done(publish(lake, feed.add(lake, [key("insert", 20, "2"), row(0, "insert", 20, KV, ("3", "c")), *resolved(25)]))).seq == 2


def test_a_changelog_from_before_the_policy_gets_the_mark(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *resolved(15)]))
        lake.feed = feed.feed = feed.feed.model_copy(update={"policy": ACCEPT})
        publish(lake, feed.add(lake, [key("update", 20, "1"), *resolved(25)]))
        assert rows_of(lake, "d.k") == table(("1", "a"))
        assert [c[3] for c in changelog(lake)] == [None, True, True]
        lake.feed = feed.feed = feed.feed.model_copy(update={"policy": Policy()})
        publish(lake, feed.add(lake, [row(0, "insert", 30, KV, ("2", "b")), *resolved(35)]))
        assert rows_of(lake, "d.k") == table(("1", "a"), ("2", "b"))


def test_a_partial_row_of_a_table_without_a_key_blocks_the_window(tmp_path: Path) -> None:
    with opened(tmp_path, policy=ACCEPT) as (feed, lake):
        made = row(0, "delete", 10, TEXT, None, ("x",), table="m")
        hour = feed.add(lake, [replace(made, event=replace(made.event, handle_only=True)), *resolved(15)])
        with pytest.raises(OrderError, match=r"1 row of d\.m, which has no key, arrived with only their handle") as error:
            publish(lake, hour)
        assert (error.value.code, error.value.exit_code) == ("HANDLE_ONLY", 3)
