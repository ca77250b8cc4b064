"""Rows that come after the cut that should hold them: replays are known as such, all others stand in the late ledger."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.lake.histories import publish, resolved, row, rows_of
from tests.lake.windows import KV, TEXT, judged, opened, table
from tidelake.cli import run
from tidelake.config.policy import Policy
from tidelake.errors import OrderError
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.order.late.ledger import late_rows
from tidelake.spark.run_parts import SparkWorkers

pytestmark = pytest.mark.usefixtures("small_hours")
FIRST = [row(0, "insert", 100, KV, ("1", "a")), row(0, "insert", 110, KV, ("2", "b")), *resolved(200)]


def ledger(lake: Lake) -> list[tuple[int, str, int, int, str]]:
    """The late ledger: cut, verdict, offset, commit ts, table."""
    return [(r["seq"], r["verdict"], r["offset"], r["commit_ts"], r["table"]) for r in late_rows(lake.catalog, lake.feed.name)]


def test_a_replay_is_counted_and_nothing_else(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, FIRST))
        publish(lake, feed.add(lake, [*FIRST, row(0, "insert", 300, KV, ("3", "c")), *resolved(300)]))
        assert judged(lake) == ({"d.k": {"replays": 2}}, False)
        assert ledger(lake) == []


def test_late_rows_of_a_small_hour_are_judged_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Lake, "spark")
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, FIRST))
        publish(lake, feed.add(lake, [*FIRST, row(0, "insert", 150, KV, ("7", "x")), *resolved(300)]))
        assert judged(lake) == ({"d.k": {"replays": 2, "late": 1}}, True)


@pytest.mark.parametrize("tasks", [1, 3])
def test_the_ledger_has_every_row_once_however_many_tasks_and_shares_there_are(
    tasks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidelake.order.late.judge._SHARE_ROWS", 7)
    if tasks > 1:
        monkeypatch.setattr(Lake, "workers", lambda lake, sizes: SparkWorkers(lake.spark))
    many = [row(0, "insert", 100 + n // 4, KV, (str(n), "a")) for n in range(40)]
    late = [row(0, "insert", 100 + n // 4, KV, (str(n), "b" if n % 3 else "a")) for n in range(0, 60, 2)]
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [*many, *resolved(200)]))
        publish(lake, feed.add(lake, [*late, *resolved(300)]))
        assert judged(lake) == ({"d.k": {"replays": 7, "conflicts": 13, "late": 10}}, True)
        first = len(many) + 1
        found = [(first + i, "conflict" if n < 40 else "late") for i, n in enumerate(range(0, 60, 2)) if n >= 40 or n % 3]
        assert [(offset, verdict) for _, verdict, offset, *_ in ledger(lake)] == found


def test_rows_that_were_never_published_and_those_that_contradict_stand_in_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, FIRST))
        late = [row(0, "insert", 100, KV, ("1", "z")), row(0, "insert", 150, KV, ("7", "x")), row(0, "delete", 110, KV, None, ("1", "a"))]
        publish(lake, feed.add(lake, [*late, row(0, "insert", 110, KV, ("2", "b")), row(0, "insert", 300, KV, ("3", "c")), *resolved(300)]))
        assert judged(lake) == ({"d.k": {"replays": 1, "conflicts": 1, "late": 2}}, True)
        assert ledger(lake) == [(2, "conflict", 3, 100, "k"), (2, "late", 4, 150, "k"), (2, "late", 5, 110, "k")]
        assert rows_of(lake, "d.k") == table(("1", "a"), ("2", "b"), ("3", "c"))
        monkeypatch.setattr("tidelake.cli.late.opened", lambda *_, **__: nullcontext(lake))
        assert run(["late", "--feed", "shop", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert [(r["cut"], r["published"], r["verdict"], r["message"], r["table"], r["op"]) for r in said] == [
            (2, True, "conflict", "t[0]@3", "d.k", "insert"),
            (2, True, "late", "t[0]@4", "d.k", "insert"),
            (2, True, "late", "t[0]@5", "d.k", "delete"),
        ]
        assert run(["late", "--feed", "shop"]) == 0
        assert "truly late: no such change is published" in capsys.readouterr().out


def test_an_update_comes_again_as_its_two_halves_or_the_other_way_round(tmp_path: Path) -> None:
    moved = row(0, "update", 150, KV, ("3", "a"), ("1", "a"))
    same = row(0, "update", 160, KV, ("2", "c"), ("2", "b"))
    halves = [row(0, "delete", 150, KV, None, ("1", "a")), row(0, "insert", 150, KV, ("3", "a"))]
    other = [row(0, "delete", 160, KV, None, ("2", "b")), row(0, "insert", 160, KV, ("2", "c"))]
    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [*FIRST[:2], moved, *other, *resolved(200)]))
        publish(lake, feed.add(lake, [*halves, same, *resolved(300)]))
        assert judged(lake) == ({"d.k": {"replays": 3}}, False)
        assert rows_of(lake, "d.k") == table(("3", "a"), ("2", "c"))


def test_equal_rows_of_a_table_without_key_count_by_replay_epoch(tmp_path: Path) -> None:
    def m(value: str, ts: int) -> Any:
        return row(0, "insert", ts, TEXT, (value,), table="m")

    with opened(tmp_path) as (feed, lake):
        publish(lake, feed.add(lake, [m("x", 100), m("x", 100), m("y", 110), *resolved(200)]))
        publish(lake, feed.add(lake, [*resolved(90), m("x", 100), m("x", 100), m("x", 100), m("y", 110), m("y", 120), *resolved(300)]))
        assert judged(lake) == ({"d.m": {"replays": 3, "late": 2}}, True)
        assert ledger(lake) == [(2, "late", 7, 100, "m"), (2, "late", 9, 120, "m")]


def test_an_hour_decoded_again_after_its_cut_is_looked_at_again(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        first = feed.add(lake, FIRST)
        publish(lake, first)
        publish(lake, feed.add(lake, resolved(300)))
        feed.more(lake, first, [row(0, "insert", 150, KV, ("7", "x")), row(0, "insert", 350, KV, ("8", "y"))])
        publish(lake, feed.add(lake, resolved(400)))
        assert judged(lake) == ({"d.k": {"replays": 2, "late": 1}}, True)
        assert [entry[1:4] for entry in ledger(lake)] == [("late", 4, 150)]
        assert rows_of(lake, "d.k") == table(("1", "a"), ("2", "b"), ("8", "y")), "what is after the last cut is taken into the next"
        publish(lake, feed.add(lake, resolved(500)))
        assert judged(lake)[0] == {}, "once"


def test_a_feed_may_stop_at_them(tmp_path: Path) -> None:
    with opened(tmp_path, policy=Policy(on_late="block")) as (feed, lake):
        publish(lake, feed.add(lake, FIRST))
        hour = feed.add(lake, [row(0, "insert", 150, KV, ("7", "x")), *resolved(300)])
        for _ in range(2):
            with pytest.raises(OrderError, match=r"LATE_ROWS.*d\.k: 1 truly late, 0 in conflict.*tidelake late") as stopped:
                publish(lake, hour)
        assert stopped.value.exit_code == 3
        assert ledger(lake) == [(2, "late", 3, 150, "k")]
        cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
        assert cut is not None
        assert cut.seq == 1


def test_the_ledger_forgets_what_an_attempt_found_that_was_not_published(tmp_path: Path) -> None:
    with opened(tmp_path, policy=Policy(on_late="block")) as (feed, lake):
        publish(lake, feed.add(lake, FIRST))
        hour = feed.add(lake, [row(0, "insert", 150, KV, ("7", "x")), *resolved(300)])
        with pytest.raises(OrderError, match="LATE_ROWS"):
            publish(lake, hour)
        assert len(ledger(lake)) == 1
        feed.again(lake, hour, [row(0, "insert", 100, KV, ("1", "a")), *resolved(300)])
        publish(lake, hour)
        assert judged(lake) == ({"d.k": {"replays": 1}}, False)
        assert ledger(lake) == []
        publish(lake, feed.add(lake, [row(0, "insert", 400, KV, ("8", "y")), *resolved(400)]))
        assert judged(lake) == ({}, False)
