"""The simulated upstream: its truth, its transactions, its statements, and the odd things it promises to hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.demo import replay
from tidelake.demo.bazaar import ALL_DDL, tables
from tidelake.demo.history import History
from tidelake.demo.messages.model import Ddl, Row, SourceChange, Transaction
from tidelake.tso import from_ms

SMALL = History(rows_per_hour=1500, seed=5)
NAMES = [t.name for t in tables()]


@pytest.fixture(scope="module")
def rows() -> list[SourceChange]:
    return [r for c in SMALL.commits() if isinstance(c, Transaction) for r in c.rows]


@pytest.mark.parametrize("seed", [5, 6])
def test_the_truth_is_what_a_naive_replay_of_the_commits_gives(seed: int) -> None:
    history = History(rows_per_hour=500, seed=seed)
    commits = list(history.commits())
    ddl = [c.commit_ts for c in commits if isinstance(c, Ddl)]
    points = sorted({0, *ddl, *(ts - 1 for ts in ddl), *(c.commit_ts for c in commits[:: len(commits) // 12]), 1 << 62})
    for point, truth in zip(points, history.truths(points), strict=True):
        want = replay.tables_after((c for c in commits if c.commit_ts <= point), NAMES)
        assert set(truth) == {f"bazaar.{name}" for name in want}
        for name, wanted in want.items():
            assert replay.same_rows(truth[f"bazaar.{name}"]["rows"], wanted), (name, point)


def test_the_truth_at_a_commit_s_ts_includes_the_commit_and_just_before_it_does_not() -> None:
    first = next(SMALL.commits())
    assert isinstance(first, Transaction)
    before, at = SMALL.truth(first.commit_ts - 1), SMALL.truth(first.commit_ts)
    assert sum(len(t["rows"]) for t in before.values()) == 0
    assert sum(len(t["rows"]) for t in at.values()) == len(first.rows)


def test_the_truth_says_columns_types_and_key_of_every_table_as_they_are_by_then() -> None:
    start, end = SMALL.truth(0), SMALL.truth(1 << 62)
    assert sorted(start) == sorted(f"bazaar.{name}" for name in NAMES)
    assert sorted(end) == ["bazaar.bids", "bazaar.boxes", "bazaar.listings", "bazaar.merchants", "bazaar.parcels", "bazaar.visits"]
    assert start["bazaar.listings"]["columns"][3] == "description"
    assert (end["bazaar.listings"]["columns"][3], end["bazaar.listings"]["columns"][-1]) == ("details", "shipping")
    assert "fax" in start["bazaar.sellers"]["columns"]
    assert "fax" not in end["bazaar.merchants"]["columns"]
    assert [end[f"bazaar.{t}"]["key"] for t in ("bids", "parcels", "visits")] == [["listing_id", "bid_no"], ["tracking"], None]
    assert end["bazaar.boxes"]["types"] == {
        "id": "int",
        "label": "str",
        "content": "json",
        "photo": "bin",
        "lights": "bit",
        "temperature": "double",
        "checked": "time",
    }


def test_commit_ts_rise_and_lie_inside_the_hours() -> None:
    ts = [c.commit_ts for c in SMALL.commits()]
    assert ts == sorted(set(ts))
    assert from_ms(SMALL.start_ms) < ts[0]
    assert ts[-1] < from_ms(SMALL.end_ms)


@pytest.mark.parametrize("rows_per_hour", [60, 1500, 20_000])
def test_there_are_about_as_many_row_events_as_asked_for(rows_per_hour: int) -> None:
    history = History(rows_per_hour=rows_per_hour)
    count = sum(len(c.rows) for c in history.commits() if isinstance(c, Transaction))
    assert count == pytest.approx(3 * rows_per_hour, rel=0.1)


def test_statements_depend_neither_on_the_rows_nor_on_the_seed() -> None:
    seen = [[c for c in History(rows_per_hour=n, seed=s).commits() if isinstance(c, Ddl)] for n, s in ((60, 1), (2000, 1), (500, 9))]
    assert seen[0] == seen[1] == seen[2] == [s.ddl for s in History().statements()]
    assert [d.code for d in seen[0]] == [5, 3, 12, 12, 11, 14, 6, 4]
    assert seen[0][5] == Ddl(seen[0][5].commit_ts, "bazaar", "merchants", "RENAME TABLE `sellers` TO `merchants`", 14)


def test_only_the_statements_asked_for_happen() -> None:
    history = History(rows_per_hour=300, ddl=["drop_column", "truncate_table", "rename_column"])
    queries = [c.query for c in history.commits() if isinstance(c, Ddl)]
    assert queries == ["ALTER TABLE `listings` RENAME COLUMN `description` TO `details`", "ALTER TABLE `sellers` DROP COLUMN `fax`"]


def test_the_plan_of_statements_fits_into_one_hour_if_told_to() -> None:
    statements = History(hours=1, ddl_span_hours=1).statements()
    assert len(statements) == len(ALL_DDL) == 8
    assert statements[0].ddl.commit_ts == from_ms(History().start_ms + 600_000, 1)


def test_a_row_has_one_net_event_per_transaction_or_a_delete_before_an_insert() -> None:
    splits = 0
    for commit in SMALL.commits():
        if isinstance(commit, Transaction):
            assert commit.rows
            ops: dict[object, list[str]] = {}
            for r in commit.rows:
                assert r.before != r.after
                ops.setdefault((r.table.name, r.row_id if r.row_id is not None else r.key), []).append(r.op)
            assert {tuple(o) for o in ops.values()} <= {("insert",), ("update",), ("delete",), ("delete", "insert")}
            splits += sum(len(o) == 2 for o in ops.values())
    assert splits > 20


def test_a_key_that_leaves_and_returns_in_one_transaction_is_deleted_first() -> None:
    both = 0
    for commit in SMALL.commits():
        ops: dict[tuple[str, Row], list[str]] = {}
        for r in commit.rows if isinstance(commit, Transaction) else []:
            if r.table.key:
                ops.setdefault((r.table.name, r.key), []).append(r.op)
        assert {tuple(o) for o in ops.values()} <= {("insert",), ("update",), ("delete",), ("delete", "insert")}
        both += sum(len(o) == 2 for o in ops.values())
    assert both > 5


def test_no_update_changes_a_key_or_a_unique_column(rows: list[SourceChange]) -> None:
    updates = [r for r in rows if r.op == "update"]
    assert len(updates) > 1000
    for r in updates:
        assert r.before is not None
        assert r.after is not None
        assert all(r.before[i] == r.after[i] for i in r.table.split_by)


def test_deletes_come_first_where_a_key_moved() -> None:
    moved = 0
    for commit in SMALL.commits():
        groups: dict[int, list[SourceChange]] = {}
        for r in commit.rows if isinstance(commit, Transaction) else []:
            groups.setdefault(r.physical_id or r.table.physical_ids[0], []).append(r)
        for group in groups.values():
            gone = {r.row_id for r in group if r.op == "delete" and r.row_id is not None}
            if any(r.op == "insert" and r.row_id in gone for r in group):
                moved += 1
                assert [r.op for r in group] == sorted((r.op for r in group), key="delete update insert".split().index)
    assert moved > 10


def test_the_rows_hold_the_odd_values_that_are_promised(rows: list[SourceChange]) -> None:
    cells = {(r.table.name, c.name, v) for r in rows for c, v in zip(r.table.columns, r.after or r.before or (), strict=True)}

    def of(table: str, column: str) -> set[Any]:
        return {v for t, c, v in cells if (t, c) == (table, column)}

    assert max(of("listings", "id")) > 1 << 63
    assert min(of("sellers", "id")) < 0
    assert {None, "0000-00-00 00:00:00"} < of("sellers", "last_seen")
    assert {"", None, "two lines\nof text", "<b>bold</b> & <i>fast</i>", "👩‍🔧🛠️ repaired", 'she said: "no"'} < of("parcels", "note")
    assert max(of("bids", "quantity")) > 65_535
    assert {None, b""} < of("visits", "visitor")
    assert {1, 2, 3, 4} == of("listings", "grade")
    assert {None, 0, 31} < of("listings", "tags")
    assert {5e-324, 1.7976931348623157e308, 1e21} < of("parcels", "weight")
    assert {r.physical_id for r in rows if r.table.name == "boxes"} == {111, 112, 113, 114}
    assert {r.row_id for r in rows if r.table.name in ("bids", "flash_sales")} == {None}


def test_equal_rows_of_one_transaction_are_real_in_the_table_without_a_key(rows: list[SourceChange]) -> None:
    inserts = Counter((r.commit_ts, r.after) for r in rows if r.table.name == "visits" and r.op == "insert")
    assert sum(n >= 3 for n in inserts.values()) > 20
    visits = [tuple(r.items()) for r in SMALL.truth(1 << 62)["bazaar.visits"]["rows"] if r["visitor"] is None]
    assert len(visits) > len(set(visits))


def test_deleted_keys_come_back_in_later_transactions(rows: list[SourceChange]) -> None:
    deleted_ts: dict[tuple[str, Row], int] = {}
    back = 0
    for r in rows:
        place = (r.table.name, r.key)
        if r.op == "delete":
            deleted_ts[place] = r.commit_ts
        elif r.op == "insert" and r.table.key:
            back += deleted_ts.get(place, r.commit_ts) < r.commit_ts
    assert back > 10


def test_unique_values_are_never_held_twice(rows: list[SourceChange]) -> None:
    held: dict[str, set[object]] = {"sellers": set(), "merchants": set(), "flash_sales": set()}
    held["merchants"] = held["sellers"]
    changes = 0
    for commit in SMALL.commits():
        if isinstance(commit, Ddl):
            if commit.query == "TRUNCATE TABLE `flash_sales`":
                held["flash_sales"].clear()
            continue
        for name, values in held.items():
            values.difference_update(r.before[1] for r in commit.rows if r.table.name == name and r.before)
            come = [r.after[1] for r in commit.rows if r.table.name == name and r.after and r.after[1] is not None]
            assert len(set(come)) == len(come)
            assert not values & set(come)
            values.update(come)
            changes += len(come)
    assert changes > 500


def test_created_and_truncated_tables_are_filled_again() -> None:
    for number, name in ((1, "create_table"), (4, "truncate_table")):
        ts = SMALL.statements()[number].ddl.commit_ts
        assert SMALL.statements()[number].ddl.code == {"create_table": 3, "truncate_table": 11}[name]
        at, later = SMALL.truths([ts, from_ms((ts >> 18) + 300_000)])
        assert len(at["bazaar.flash_sales"]["rows"]) == 0
        assert len(later["bazaar.flash_sales"]["rows"]) >= 50


def test_added_columns_take_their_default_without_row_events() -> None:
    ts = SMALL.statements()[0].ddl.commit_ts
    before, at = SMALL.truths([ts - 1, ts])
    old, new = before["bazaar.listings"]["rows"], at["bazaar.listings"]["rows"]
    assert len(old) > 50
    assert new == [r | {"shipping": "4.90"} for r in old]
