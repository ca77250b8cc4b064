"""`tidelake diff`: two cuts of small tables, and what is said to have changed between them. No Spark: both are cuts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.cli.calls import Called, call
from tests.lake import lakes
from tests.query.verify import everything
from tidelake.config.feed import Feed
from tidelake.history.ddl.statement import parse
from tidelake.history.evolution import apply
from tidelake.history.incarnations import Catalog, Incarnation
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut, TableCut
from tidelake.lake.cuts import record
from tidelake.lake.identity import establish
from tidelake.lake.tables import create_snapshot, reshape
from tidelake.spark.lake_settings import lake_settings
from tidelake.tso import from_ms

Row = dict[str, Any]
A, B = from_ms(1_767_607_200_000), from_ms(1_767_610_800_000)
BEFORE = """
CREATE TABLE d.k (id INT NOT NULL PRIMARY KEY, v VARCHAR(9), b VARBINARY(9), old INT);
CREATE TABLE d.bag (v VARCHAR(9));
CREATE TABLE d.gone (id INT PRIMARY KEY);
CREATE TABLE d.same (id INT PRIMARY KEY);
CREATE TABLE d.a (id INT PRIMARY KEY, x FLOAT)
"""
BETWEEN = """
ALTER TABLE d.k ADD COLUMN new INT;
ALTER TABLE d.k DROP COLUMN old;
DROP TABLE d.gone;
CREATE TABLE d.fresh (id INT PRIMARY KEY);
RENAME TABLE d.a TO d.z
"""
ROWS: dict[str, tuple[list[Row], list[Row]]] = {
    "d.k": (
        [{"id": 1, "v": None, "b": b"\1"}, {"id": 2, "v": "x", "b": b""}, {"id": 3, "v": "x"}, {"id": 4, "v": "same", "old": 1}],
        [{"id": 1, "v": "~", "b": b"\1"}, {"id": 2, "v": "x", "b": b"\2"}, {"id": 5, "v": "y", "new": 1}, {"id": 4, "v": "same", "new": 2}],
    ),
    "d.bag": ([{"v": "a"}, {"v": "a"}, {"v": "a"}, {"v": None}, {"v": "b"}], [{"v": "a"}, {"v": None}, {"v": None}, {"v": "b"}]),
    "d.gone": ([{"id": 1}, {"id": 2}], []),
    "d.same": ([{"id": 1}], [{"id": 1}]),
    "d.z": ([{"id": 1, "x": 0.5}], [{"id": 1, "x": 0.5}]),
    "d.fresh": ([], [{"id": 9}]),
}


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    """Cuts at A and B."""
    folder = tmp_path_factory.mktemp("lake")
    feed = lakes.feed(folder)
    feed.folder.mkdir(parents=True)
    (feed.folder / "feed.toml").write_text(everything.FEED.format(folder=folder))
    catalog, store = LakeCatalog(lake_settings(feed)), open_store(feed.lake.uri)
    first = _after(Catalog(), BEFORE, 1)
    last = _after(first, BETWEEN, A + 5)
    cut = Cut(feed="shop", seq=1, hour="2026-01-05T10", applied_ts=0, resolved_ts=A, run="a", version="0", catalog=first)
    named = {i.id: i.name if i.name in ROWS else "d.z" for i in last.incarnations.values()}
    for i in first.incarnations.values():
        cut.snapshots[i.id] = _filled(catalog, feed, i, ROWS[named[i.id]][0], None)
    record(catalog, store, cut)
    later = cut.model_copy(update={"seq": 2, "resolved_ts": B, "hour": "2026-01-05T11", "catalog": last, "snapshots": dict(cut.snapshots)})
    for i in last.alive():
        if i.name != "d.same":
            later.snapshots[i.id] = _filled(catalog, feed, i, ROWS[i.name][1], cut.snapshots.get(i.id))
    record(catalog, store, later)
    establish(feed, store, lake_settings(feed), catalog)
    return feed


def _after(known: Catalog, statements: str, ts: int) -> Catalog:
    for statement in filter(str.strip, statements.split(";")):
        for change in parse(statement.strip(), "d"):
            known = apply(known, ts, change)
    return known


def _filled(catalog: LakeCatalog, feed: Feed, i: Incarnation, rows: list[Row], base: TableCut | None) -> TableCut:
    table = create_snapshot(catalog, feed, i, i.name, 1) if base is None else catalog.load(base.identifier)
    if base is not None:
        assert reshape(catalog, feed, i, table) is not None
        table = catalog.load(base.identifier)
    contents = pa.Table.from_pylist([{**r, "_commit_ts": 1} for r in rows], schema=table.table.schema().as_arrow())
    (table.table.append if base is None else table.table.overwrite)(contents)
    now = catalog.load(table.identifier)
    return TableCut(identifier=now.identifier, uuid=now.uuid, snapshot_id=now.main, rows=len(rows))


def diff(feed: Feed, *more: object, ts: tuple[int, int] = (A, B)) -> Called:
    return call("diff", "--feed", "shop", "--schemas", feed.folder.parent, "--ts", ts[0], "--ts", ts[1], *more)


def test_every_table_says_how_many_rows_changed(feed: Feed) -> None:
    done = diff(feed)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "d.bag: 1 added, 2 removed",
        "d.fresh: new, 1 added",
        "d.gone: dropped, 2 removed",
        "d.k: 1 added, 1 removed, 2 changed, column new added, column old dropped",
        "d.same: unchanged",
        "d.z: was d.a",
    ]


def test_the_other_way_round_is_the_opposite(feed: Feed) -> None:
    said = diff(feed, ts=(B, A)).out.splitlines()
    assert said[:3] == ["d.a: was d.z", "d.bag: 2 added, 1 removed", "d.fresh: dropped, 1 removed"]
    assert diff(feed, ts=(A, A)).out.splitlines() == [f"d.{t}: unchanged" for t in ("a", "bag", "gone", "k", "same")]


def test_rows_are_as_asof_prints_them(feed: Feed) -> None:
    done = diff(feed, "--table", "d.k", "--rows", "--format", "jsonl")
    assert done.err == "d.k: 1 added, 1 removed, 2 changed, column new added, column old dropped\n"
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(r["_change"], r["id"], r["v"], r["b"]) for r in rows] == [
        ("before", "1", None, {"hex": "01"}),
        ("after", "1", "~", {"hex": "01"}),
        ("before", "2", "x", {"hex": ""}),
        ("after", "2", "x", {"hex": "02"}),
        ("removed", "3", "x", None),
        ("added", "5", "y", None),
    ]
    assert {tuple(r) for r in rows} == {("_table", "_change", "id", "v", "b")}


def test_rows_of_a_table_without_a_key_come_as_often_as_they_changed(feed: Feed) -> None:
    done = diff(feed, "--table", "d.bag", "--rows", "--format", "jsonl")
    rows = [(r["_change"], r["v"]) for r in map(json.loads, done.out.splitlines())]
    assert sorted(rows, key=str) == [("added", None), ("removed", "a"), ("removed", "a")]


def test_rows_for_people(feed: Feed) -> None:
    said = diff(feed, "--table", "d.k", "--rows").out
    assert "│ after   │ 2  │ x │ 0x02 │" in said
    assert "│ before  │ 1  │ ∅ │ 0x01 │" in said


def test_a_table_is_found_by_either_name(feed: Feed) -> None:
    assert diff(feed, "--table", "d.a").out == diff(feed, "--table", "d.z").out == "d.z: was d.a\n"


def test_programs_get_counts(feed: Feed) -> None:
    found = {d["name_after"]: d for d in json.loads(diff(feed, "--json").out)}
    assert (found["d.k"]["changed"], found["d.bag"]["changed"]) == (2, None)
    assert (found[None]["name_before"], found[None]["removed"]) == ("d.gone", 2)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--table", "d.none"), "no table 'd.none' at either TSO: no table ever had that name"),
        (("--ts", "3"), "--ts is given 3 times; give it twice"),
        (("--rows", "--json"), "give --rows --format jsonl"),
    ],
)
def test_wrong_use(more: tuple[str, ...], said: str, feed: Feed) -> None:
    done = diff(feed, *more)
    assert done.code == 2
    assert done.out == "" or json.loads(done.out)["error"]["exit_code"] == 2  # programs get it as an object
    assert said in done.err


def test_a_tso_that_is_not_published_is_an_error(feed: Feed, tmp_path: Path) -> None:
    done = diff(feed, ts=(A, B + 1))
    assert (done.code, done.out) == (1, "")
    assert "NOT_PUBLISHED" in done.err
