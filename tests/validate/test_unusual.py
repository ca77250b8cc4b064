"""A staged window compared with the stored reports of the same hour of earlier days."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lake import lakes
from tests.validate.facts import APPLIED, HOUR, RESOLVED, published
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import quality_key
from tidelake.config.policy import Policy
from tidelake.io.storage import open_store
from tidelake.lake.cut import Cut, Staged, TableCounts
from tidelake.tso import from_ms
from tidelake.validate.quality.facts import HourFacts, TableFacts
from tidelake.validate.quality.judge import judge_measures
from tidelake.validate.quality.same_hours import RULE
from tidelake.validate.quality.verdict import Check
from tidelake.validate.unusual import MOST_TABLES, unusual_measures

CHECK = "numbers as in the same hour of earlier days"
_MINUTE = 60_000 << 18


def report(feed: Feed, day: int, tables: Mapping[str, TableFacts], **more: Any) -> None:
    """The stored report of the hour, `day` days before the 5th of January."""
    hour = f"2026-01-{5 - day:02d}T10" if day < 5 else f"2025-12-{36 - day:02d}T10"
    shift = from_ms(day * 86_400_000)
    facts = {"hour": hour, "tables": dict(tables), "applied_ts": APPLIED - shift, "resolved_ts": RESOLVED - shift} | more
    written = HourFacts.model_validate(published().model_dump() | facts)
    open_store(feed.lake.uri).write(quality_key(feed.name, hour), written.model_dump_json(indent=1).encode())


def week(feed: Feed, tables: Mapping[str, TableFacts]) -> None:
    """Reports of seven days."""
    for day in range(1, 8):
        report(feed, day, tables)


def staged(counts: Mapping[str, TableCounts], *others: str, applied_ts: int = APPLIED, resolved_ts: int = RESOLVED) -> Staged:
    """A staged window with changes of these tables, and other tables without changes."""
    known = lakes.names(*counts, *others)
    ids = {i.name.partition(".")[2]: i.id for i in known.alive()}
    cut = Cut(feed="shop", seq=9, hour=HOUR, applied_ts=applied_ts, resolved_ts=resolved_ts, run="r", version="0", catalog=known)
    return Staged(cut=cut, counts={ids[t]: c for t, c in counts.items()})


def judged(feed: Feed, window: Staged) -> list[Check]:
    """The checks of the comparison."""
    return judge_measures(unusual_measures(feed, open_store(feed.lake.uri), window))


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    made = lakes.feed(tmp_path)
    (made.folder / "expectations").mkdir(parents=True)
    return made


def history(feed: Feed, table: str, action: str) -> None:
    (feed.folder / "expectations" / f"{table}.toml").write_text(f'history = "{action}"\n')


ORDERS = {"d.orders": TableFacts(inserts=10_000, updates=400)}


def test_a_table_with_unusual_numbers_gets_a_warning_with_all_of_them(feed: Feed) -> None:
    week(feed, ORDERS)
    whole, orders = judged(feed, staged({"orders": TableCounts(inserts=12, updates=400)}))
    assert (orders.table, orders.rule, orders.severity, orders.success, orders.unexpected) == ("d.orders", CHECK, "warning", False, 2)
    assert orders.observed == (
        "rows 412, the same hour of the last 7 days had 10,400 to 10,400 (median 10,400); "
        "inserts 12, the same hour of the last 7 days had 10,000 to 10,000 (median 10,000)"
    )
    assert orders.expected == "rows 7,800 to 13,000; inserts 7,500 to 12,500"
    assert orders.origin == f"UNUSUAL_NUMBERS: {RULE}"
    assert "`history` in the table's file of expectations/ decides for one table" in orders.remedy
    assert (whole.table, whole.success, whole.unexpected) == ("", False, 1)
    assert whole.observed == (
        "rows 412, the same hour of the last 7 days had 10,400 to 10,400 (median 10,400); 7 numbers compared, 1 table with unusual ones"
    )


def test_a_usual_hour_gets_one_check_that_passes_whatever_the_number_of_tables(feed: Feed) -> None:
    week(feed, ORDERS | {f"d.t{n}": TableFacts() for n in range(30)})
    (whole,) = judged(feed, staged({"orders": TableCounts(inserts=10_100, updates=390)}, *(f"t{n}" for n in range(30))))
    assert (whole.success, whole.severity, whole.expected) == (True, "warning", "no unusual number")
    assert whole.observed == "157 numbers compared, 0 tables with unusual ones"
    assert whole.remedy == ""


def test_a_table_without_changes_is_compared_too_and_a_new_one_is_not(feed: Feed) -> None:
    week(feed, ORDERS)
    whole, orders = judged(feed, staged({"fresh": TableCounts(inserts=10_400)}, "orders"))
    assert orders.table == "d.orders"
    assert orders.observed.startswith("rows 0, the same hour")
    assert whole.success
    assert whole.observed == "7 numbers compared, 1 table with unusual ones, 5 numbers with fewer than 4 earlier values"


def test_nulls_by_policy_are_compared_as_a_share_and_none_before_is_zero(feed: Feed) -> None:
    week(feed, {"d.orders": TableFacts(inserts=1000, nulled_zero_dates={"day": 10})})
    some = TableCounts(inserts=1000, nulled_zero_dates={"day": 15}, nulled_values={"tax": 300, "day": 2})
    _, orders = judged(feed, staged({"orders": some}))
    assert orders.observed == "NULL by policy of tax 30 %, the same hour of the last 7 days had 0 % to 0 % (median 0 %)"


def test_nothing_is_compared_with_fewer_than_four_reports_and_the_log_says_so(feed: Feed, caplog: pytest.LogCaptureFixture) -> None:
    for day in (1, 2, 3):
        report(feed, day, ORDERS)
    report(feed, 4, ORDERS, superseded_by=12)
    report(feed, 5, ORDERS, cut=None, status="blocked")
    report(feed, 8, ORDERS)
    with caplog.at_level(logging.INFO, "tidelake"):
        assert judged(feed, staged({"orders": TableCounts()})) == []
    assert "numbers are not compared: 3 reports of the same hour of the last 7 days, 4 are needed" in caplog.text
    report(feed, 6, ORDERS)
    assert len(judged(feed, staged({"orders": TableCounts()}))) == 2


def test_a_report_that_cannot_be_read_is_left_out_and_the_log_names_it(feed: Feed, caplog: pytest.LogCaptureFixture) -> None:
    week(feed, ORDERS)
    open_store(feed.lake.uri).write(quality_key("shop", "2026-01-04T10"), b"{")
    _, orders = judged(feed, staged({"orders": TableCounts()}))
    assert "(median 10,400, 6 of them known)" in orders.observed
    assert "2026-01-04T10.json (1 bytes) cannot be read" in caplog.text
    assert "it is not compared with" in caplog.text


def test_counts_of_a_window_that_is_not_an_hour_long_are_not_compared_but_its_lag_is(feed: Feed) -> None:
    week(feed, ORDERS)
    (whole,) = judged(feed, staged({"orders": TableCounts()}, applied_ts=APPLIED - 16 * _MINUTE))
    assert whole.observed == "1 number compared, 0 tables with unusual ones"
    (late,) = judged(feed, staged({"orders": TableCounts()}, resolved_ts=RESOLVED - 16 * _MINUTE))
    assert not late.success
    assert late.observed.startswith("lag 16 min 3 s, the same hour of the last 7 days had 3.4 s to 3.4 s (median 3.4 s)")
    for day in range(1, 5):
        report(feed, day, ORDERS, applied_ts=0)
    (few,) = judged(feed, staged({"orders": TableCounts()}))
    assert few.observed == "1 number compared, 0 tables with unusual ones, 6 numbers with fewer than 4 earlier values"


def test_the_feed_decides_what_unusual_numbers_do(tmp_path: Path) -> None:
    blocking, ignoring = (lakes.feed(tmp_path, policy=Policy(on_finding={"UNUSUAL_NUMBERS": a})) for a in ("block", "ignore"))
    week(blocking, ORDERS)
    assert [c.severity for c in judged(blocking, staged({"orders": TableCounts()}))] == ["critical", "critical"]
    assert judged(ignoring, staged({"orders": TableCounts()})) == []


def test_the_file_of_a_table_decides_for_the_table(feed: Feed) -> None:
    history(feed, "d.orders", "block")
    history(feed, "d.noisy", "ignore")
    week(feed, ORDERS | {"d.noisy": TableFacts(inserts=10_000), "d.plain": TableFacts(inserts=10_000)})
    checks = judged(feed, staged({}, "orders", "noisy", "plain"))
    assert [(c.table, c.severity) for c in checks] == [("", "warning"), ("d.orders", "critical"), ("d.plain", "warning")]


def test_a_table_is_compared_where_the_feed_ignores_unusual_numbers_and_the_file_does_not(tmp_path: Path) -> None:
    quiet = lakes.feed(tmp_path, policy=Policy(on_finding={"UNUSUAL_NUMBERS": "ignore"}))
    (quiet.folder / "expectations").mkdir(parents=True)
    history(quiet, "d.orders", "warn")
    week(quiet, ORDERS | {"d.plain": TableFacts(inserts=10_000)})
    assert [c.table for c in judged(quiet, staged({}, "orders", "plain"))] == ["", "d.orders"]


def test_the_most_distant_tables_are_listed_and_the_others_counted(feed: Feed) -> None:
    tables = {f"d.t{n:02d}": TableFacts(inserts=1000 + n) for n in range(MOST_TABLES + 5)}
    history(feed, "d.t03", "block")
    week(feed, tables)
    whole, first, *others = judged(feed, staged({}, *(name.removeprefix("d.") for name in tables)))
    assert (first.table, first.severity) == ("d.t03", "critical")
    assert len(others) == MOST_TABLES - 1
    assert f"{len(tables)} tables with unusual ones; only the first 50 of these tables are listed, not d." in whole.observed
    assert not whole.success
