"""Rollback and forward again, and redo, with statements between the cuts: nothing is there twice, nothing is missing.

Every test leaves the lake as it found it: at 35, with the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.lake import lakes
from tests.lake.histories import Feeder, Message, ddl, feeder, publish, publish_again, resolved, row, row_schema, rows_of
from tests.lake.windows import KV, TEXT
from tidelake.errors import StorageError
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import lineage, newest_cut, published
from tidelake.lake.opened import Lake
from tidelake.publish.rollback import rollback
from tidelake.query.asof import placed_now
from tidelake.query.changes import changes_of
from tidelake.run import compact
from tidelake.tso import parse_hour

KVN = row_schema("id bigint", "n int")
SQL = """CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE d.m (v VARCHAR(20));
CREATE TABLE d.z (id BIGINT PRIMARY KEY, v INT);"""
TEN, ELEVEN, TWELVE = (f"2026-01-05T{h}" for h in (10, 11, 12))

pytestmark = pytest.mark.usefixtures("small_hours")


@dataclass
class Made:
    """A lake with cuts at 15, 25 and 35."""

    feed: Feeder
    lake: Lake

    @property
    def newest(self) -> Cut:
        cut = newest_cut(self.lake.catalog, self.lake.store, "shop")
        assert cut is not None
        return cut

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """What readers see under every name."""
        return {t: self.main(t) for t in self.lake.catalog.tables("d")}

    def main(self, identifier: str, snapshot_id: int | None = None) -> list[dict[str, Any]]:
        """What a reader of a table sees, without the commit ts."""
        return [{k: v for k, v in r.items() if k != "_commit_ts"} for r in lakes.contents(self.lake.catalog, identifier, snapshot_id)]

    def changes(self, table: str) -> int:
        """How many changes a name has."""
        return sum(c.rows.read_all().num_rows for c in changes_of(self.lake, table, 0, None))


def second(n: str = "6", *, drops: bool = True) -> list[Message]:
    """The hour in which k gives up a column for another, m is dropped, z gets a type that Iceberg refuses, and b is born."""
    return [
        *ddl(20, "ALTER TABLE k ADD COLUMN n INT DEFAULT 5"),
        *(ddl(20, "ALTER TABLE k DROP COLUMN v") if drops else resolved(15)),
        *ddl(21, "DROP TABLE m"),
        *ddl(21, "CREATE TABLE b (id BIGINT PRIMARY KEY, v VARCHAR(20))"),
        *(ddl(21, "ALTER TABLE z MODIFY COLUMN v VARCHAR(9)") if drops else resolved(15)),
        row(0, "insert", 22, KVN, ("3", n)),
        row(0, "insert", 22, KV, ("9", "new"), table="b"),
        row(0, "update", 22, KV, ("1", "eight" if drops else "8"), ("1", "7"), table="z"),
        *resolved(25),
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Three hours; in the third k is renamed to c."""
    folder = tmp_path_factory.mktemp("rollback")
    feed = feeder(folder, SQL)
    (folder / "lake").mkdir(exist_ok=True)
    first = [row(0, "insert", 10, KV, ("1", "a")), row(0, "insert", 10, KV, ("2", "b"))]
    first += [row(0, "insert", 10, TEXT, ("x",), table="m"), row(0, "insert", 10, KV, ("1", "7"), table="z")]
    third = [*ddl(30, "RENAME TABLE k TO c"), row(0, "delete", 31, KVN, None, ("1", "5"), table="c"), *resolved(35)]
    with Lake.of(feed.feed) as lake:
        for messages in ([*first, *resolved(15)], second(), third):
            publish(lake, feed.add(lake, messages))
        yield Made(feed, lake)


def bag(names: str, *rows: tuple[str | None, ...]) -> Counter[tuple[tuple[str, Any], ...]]:
    """Rows as `rows_of` gives them."""
    return Counter(tuple(zip(names.split(), r, strict=True)) for r in rows)


AT_15 = {"d.k": [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], "d.m": [{"v": "x"}], "d.z": [{"id": 1, "v": 7}]}
AT_35 = {"d.c": [{"id": 2, "n": 5}, {"id": 3, "n": 6}], "d.b": [{"id": 9, "v": "new"}], "d.z": [{"id": 1, "v": "eight"}]}


def check(made: Made) -> None:
    """Everything at 35, and between the cuts."""
    assert made.tables() == AT_35
    assert rows_of(made.lake, "d.k", 12) == bag("id v", ("1", "a"), ("2", "b"))
    assert rows_of(made.lake, "d.k", 20) == bag("id n", ("1", "5"), ("2", "5"))
    assert rows_of(made.lake, "d.m", 20) == bag("v", ("x",))
    assert rows_of(made.lake, "d.z", 22) == bag("id v", ("1", "eight"))
    assert (made.changes("d.k"), made.changes("d.c"), made.changes("d.z")) == (3, 1, 3)


def test_forward_again_from_a_rollback_all_is_as_before(made: Made) -> None:
    before, seqs = made.newest, published(made.lake.catalog, "shop")
    plan = rollback(made.lake, "15", dry_run=True)
    assert {(t.table, t.what, t.rows_before, t.rows_after, t.changes) for t in plan.tables} == {
        ("d.k", "back", 2, 2, 2),
        ("d.m", "returns", 0, 1, 0),
        ("d.z", "returns", 1, 1, 2),
        ("d.b", "leaves", 1, 0, 1),
    }
    assert rollback(made.lake, "15") == plan
    assert made.tables() == AT_15
    assert [len(made.main(t)) for t in made.lake.catalog.tables("d_changelog")] == [2, 1, 1]
    assert published(made.lake.catalog, "shop") == seqs | {before.seq + 1: 15}
    for t in before.snapshots.values():  # who read the undone cut by snapshot id reads on
        assert made.main(placed_now(made.newest, t).identifier, t.snapshot_id) == AT_35[t.identifier]
    with pytest.raises(StorageError, match="the newest cut is at 15"):
        rows_of(made.lake, "d.k", 20)
    assert rows_of(made.lake, "d.k", 12) == bag("id v", ("1", "a"), ("2", "b"))
    for hour in (ELEVEN, TWELVE):
        publish(made.lake, hour)
    check(made)
    assert list(lineage(made.lake.catalog, "shop").items())[:3] == [(before.seq + 3, 35), (before.seq + 2, 25), (before.seq + 1, 15)]


def test_a_redo_of_the_same_events_changes_nothing_and_one_of_others_says_what(made: Made) -> None:
    before = made.newest
    cut, differs = publish_again(made.lake, ELEVEN, TEN, meanwhile=lambda: check(made))  # readers have what is published
    assert (cut.seq, cut.parent_seq, cut.applied_ts, cut.resolved_ts, cut.hour, differs) == (before.seq + 1, 0, 0, 35, TWELVE, {})
    assert lineage(made.lake.catalog, "shop") == {cut.seq: 35}
    assert compact(made.lake, parse_hour(ELEVEN), TEN).cut is None, "a task that is run again finds it published"
    check(made)
    rollback(made.lake, f"cut {before.seq}")  # cuts at 15 and 25 again
    made.feed.redecoded(made.lake, ELEVEN, second("66", drops=False))
    cut, differs = publish_again(made.lake, ELEVEN, ELEVEN)
    assert (cut.applied_ts, cut.resolved_ts, differs) == (15, 35, {"d.c": {"changed": 1}, "d.z": {"changed": 1}})
    kept = [{"id": 2, "v": "b", "n": 5}, {"id": 3, "v": None, "n": 66}]
    assert made.tables() == AT_35 | {"d.c": kept, "d.z": [{"id": 1, "v": 8}]}
    assert rows_of(made.lake, "d.k", 20) == bag("id v n", ("1", "a", "5"), ("2", "b", "5"))
    for t in before.snapshots.values():
        assert made.main(placed_now(made.newest, t).identifier, t.snapshot_id) == AT_35[t.identifier]
    made.feed.redecoded(made.lake, ELEVEN, second())
    _, differs = publish_again(made.lake, TWELVE, ELEVEN)
    assert differs == {"d.c": {"changed": 1}, "d.z": {"changed": 1}}
    check(made)
