"""Rewind and forward again, with statements between the cuts: nothing is there twice, nothing is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lake import lakes
from tests.lake.histories import ddl, feeder, publish, resolved, row, rows_of, shape
from tidelake.errors import StorageError
from tidelake.lake.asof import placed_now
from tidelake.lake.changes import changes_of
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import lineage, newest_cut, published
from tidelake.lake.opened import Lake
from tidelake.lake.rewind import rewind

KV, KVN = shape("id bigint", "v varchar"), shape("id bigint", "n int")
TEXT = shape("v varchar", key=())
SQL = """CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE d.m (v VARCHAR(20));
CREATE TABLE d.z (id BIGINT PRIMARY KEY, v INT);"""

pytestmark = pytest.mark.usefixtures("spark_app")


@contextmanager
def three_cuts(folder: Path) -> Iterator[tuple[Lake, list[Cut]]]:
    """Cuts at 15, 25 and 35: k gives up a column for another and its name, m is dropped, z is built anew, b is born."""
    made = feeder(folder, SQL)
    (folder / "lake").mkdir(exist_ok=True)
    with Lake.of(made.feed) as lake:
        first = [row(0, "insert", 10, KV, ("1", "a")), row(0, "insert", 10, KV, ("2", "b"))]
        first += [row(0, "insert", 10, TEXT, ("x",), table="m"), row(0, "insert", 10, KV, ("1", "7"), table="z")]
        second = [
            *ddl(20, "ALTER TABLE k ADD COLUMN n INT DEFAULT 5"),
            *ddl(20, "ALTER TABLE k DROP COLUMN v"),
            *ddl(21, "DROP TABLE m"),
            *ddl(21, "CREATE TABLE b (id BIGINT PRIMARY KEY, v VARCHAR(20))"),
            *ddl(21, "ALTER TABLE z MODIFY COLUMN v VARCHAR(9)"),
            row(0, "insert", 22, KVN, ("3", "6")),
            row(0, "insert", 22, KV, ("9", "new"), table="b"),
            row(0, "update", 22, KV, ("1", "eight"), ("1", "7"), table="z"),
        ]
        third = [*ddl(30, "RENAME TABLE k TO c"), row(0, "delete", 31, KVN, None, ("1", "5"), table="c")]
        hours = ((first, 15), (second, 25), (third, 35))
        cuts = [publish(lake, made.add(lake, [*messages, *resolved(ts)])) for messages, ts in hours]
        yield lake, [c for c in cuts if c is not None]


def bag(names: str, *rows: tuple[str | None, ...]) -> Counter[tuple[tuple[str, Any], ...]]:
    """Rows as `rows_of` gives them."""
    return Counter(tuple(zip(names.split(), r, strict=True)) for r in rows)


def main(lake: Lake, identifier: str, snapshot_id: int | None = None) -> list[dict[str, Any]]:
    """What a reader of a table sees, without the commit ts."""
    return [{k: v for k, v in r.items() if k != "_commit_ts"} for r in lakes.contents(lake.catalog, identifier, snapshot_id)]


AT_15 = {"d.k": [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], "d.m": [{"v": "x"}], "d.z": [{"id": 1, "v": 7}]}
AT_35 = {"d.c": [{"id": 2, "n": 5}, {"id": 3, "n": 6}], "d.b": [{"id": 9, "v": "new"}], "d.z": [{"id": 1, "v": "eight"}]}


def test_a_rewind_sets_back_rows_columns_and_names_and_forward_again_all_is_as_before(tmp_path: Path) -> None:
    with three_cuts(tmp_path) as (lake, cuts):
        assert {t: main(lake, t) for t in lake.catalog.tables("d")} == AT_35
        held = {t.identifier: t for t in cuts[2].snapshots.values()}
        plan = rewind(lake, "15", dry_run=True)
        assert {(t.table, t.what, t.rows_before, t.rows_after, t.changes) for t in plan.tables} == {
            ("d.k", "back", 2, 2, 2),
            ("d.m", "returns", 0, 1, 0),
            ("d.z", "returns", 1, 1, 2),
            ("d.b", "leaves", 1, 0, 1),
        }
        assert published(lake.catalog, "shop") == {1: 15, 2: 25, 3: 35}, "a dry run publishes nothing"
        assert rewind(lake, "15") == plan
        assert {t: main(lake, t) for t in lake.catalog.tables("d")} == AT_15
        assert [len(main(lake, t)) for t in lake.catalog.tables("d_changelog")] == [2, 1, 1]
        assert (published(lake.catalog, "shop"), lineage(lake.catalog, "shop")) == ({1: 15, 2: 25, 3: 35, 4: 15}, {4: 15, 1: 15})
        newest = newest_cut(lake.catalog, lake.store, "shop")
        assert newest is not None
        for name, t in held.items():  # who read the undone cut by snapshot id reads on
            assert main(lake, placed_now(newest, t).identifier, t.snapshot_id) == AT_35[name]
        with pytest.raises(StorageError, match="the newest cut is at 15"):
            rows_of(lake, "d.k", 20)
        assert rows_of(lake, "d.k", 12) == bag("id v", ("1", "a"), ("2", "b"))
        for hour in ("2026-01-05T11", "2026-01-05T12"):
            publish(lake, hour)
        assert {t: main(lake, t) for t in lake.catalog.tables("d")} == AT_35
        assert lineage(lake.catalog, "shop") == {6: 35, 5: 25, 4: 15, 1: 15}
        assert rows_of(lake, "d.k", 20) == bag("id n", ("1", "5"), ("2", "5"))
        assert rows_of(lake, "d.m", 20) == bag("v", ("x",))
        assert rows_of(lake, "d.z", 22) == bag("id v", ("1", "eight"))
        assert sum(c.rows.read_all().num_rows for c in changes_of(lake, "d.z", 0, None)) == 3
