"""Statements that move or remove rows without an event for each: one history with all of them, compared at its cuts and between."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.lake.histories import Row, ddl, resolved, row, row_schema
from tests.lake.truths import compare, published
from tests.lake.windows import KV, TEXT, opened
from tidelake.cli import run
from tidelake.config.policy import Policy
from tidelake.history.incarnations import Catalog
from tidelake.history.partitions import emptied
from tidelake.history.window import Statement, compile_window
from tidelake.lake.cut import Cut
from tidelake.lake.ddl_ledger import entries
from tidelake.lake.folding.fold import Fold
from tidelake.lake.opened import Lake
from tidelake.lake.tables import lake_column

pytestmark = pytest.mark.usefixtures("small_hours")
BARE = row_schema("id bigint", "v varchar", key=())
BOTH = row_schema("id bigint", "v varchar", key=("id", "v"))
PRICE, WHOLE = row_schema("id bigint", "n decimal"), row_schema("id bigint", "n int")
RANGE = "RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN MAXVALUE)"
SQL = """CREATE TABLE d.late (id BIGINT PRIMARY KEY); CREATE TABLE d.gone (v VARCHAR(9));"""
FIRST = [
    *ddl(10, f"CREATE TABLE p (id BIGINT, v VARCHAR(9), PRIMARY KEY (id)) PARTITION BY {RANGE}"),
    *ddl(
        10,
        "CREATE TABLE h (id BIGINT, v VARCHAR(9)) PARTITION BY LIST (id) (PARTITION a VALUES IN (1, NULL), PARTITION b VALUES IN (2, 3))",
    ),
    *ddl(10, "CREATE TABLE r (id BIGINT PRIMARY KEY, n DECIMAL(5,2))"),
    *ddl(10, "CREATE TABLE e (id BIGINT, v VARCHAR(9))"),
    *ddl(12, "ALTER TABLE e ADD PRIMARY KEY (id)"),
    *(row(0, "insert", 20, KV, (i, "a"), table="p") for i in ("1", "11", "21")),
    *(row(0, "insert", 20, BARE, (i, "a"), table="h") for i in ("1", "1", "2", None)),
    *(row(0, "insert", 20, PRICE, r, table="r") for r in (("1", "1.50"), ("2", "-2.50"))),
    row(0, "insert", 20, row_schema("id bigint"), ("1",), table="late"),
    row(0, "insert", 20, TEXT, ("x",), table="gone"),
    *ddl(10, "CREATE TABLE l.x (id BIGINT PRIMARY KEY, v VARCHAR(9))"),
    row(0, "insert", 20, KV, ("1", "a"), table="x", database="l"),
    *ddl(30, "ALTER TABLE p TRUNCATE PARTITION p1"),
    row(0, "insert", 40, KV, ("11", "again"), table="p"),
    *resolved(50),
]
SECOND = [
    *ddl(50, "ALTER TABLE late ADD w INT NOT NULL DEFAULT 7"),  # as old as the cut that is published
    *ddl(50, "TRUNCATE TABLE gone"),
    row(0, "delete", 60, KV, None, ("21", "a"), table="p"),
    row(0, "insert", 60, KV, ("5", "a"), table="p"),  # moved into p0
    row(0, "update", 62, KV, ("11", "b"), ("11", "again"), table="p"),
    row(0, "insert", 62, BARE, ("1", "b"), table="h"),
    *ddl(70, "ALTER TABLE p DROP PARTITION p0"),
    *ddl(70, "ALTER TABLE h TRUNCATE PARTITION a"),
    row(0, "insert", 75, KV, ("2", "c"), table="p"),  # of p1 now
    row(0, "insert", 75, BARE, ("1", "c"), table="h"),
    row(0, "update", 80, PRICE, ("2", "2.49"), ("2", "-2.50"), table="r"),
    *ddl(85, "DROP TABLE r"),
    row(0, "update", 86, KV, ("1", "last"), ("1", "a"), table="x", database="l"),
    *ddl(87, "DROP DATABASE l"),
    *resolved(90),
]
THIRD = [
    *ddl(95, "RECOVER TABLE r"),
    row(0, "insert", 96, PRICE, ("3", "-0.50"), table="r"),
    *ddl(97, "ALTER TABLE r MODIFY n INT"),
    row(0, "insert", 98, WHOLE, ("4", "9"), table="r"),
    *ddl(98, "ALTER TABLE e DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)"),
    *(row(0, "insert", 99, BOTH, ("1", v), table="e") for v in "ab"),
    *ddl(100, "ALTER TABLE p REORGANIZE PARTITION p1 INTO (PARTITION x VALUES LESS THAN (5), PARTITION y VALUES LESS THAN (20))"),
    *ddl(101, "ALTER TABLE p TRUNCATE PARTITION x"),
    *ddl(105, "FLASHBACK DATABASE l TO f"),
    *resolved(110),
]
# (table, TSO) → its rows then
TRUTH: dict[tuple[str, int], list[Row]] = {
    ("p", 30): [("1", "a"), ("21", "a")],
    ("p", 50): [("1", "a"), ("11", "again"), ("21", "a")],
    ("p", 65): [("1", "a"), ("5", "a"), ("11", "b")],
    ("p", 70): [("11", "b")],
    ("p", 90): [("11", "b"), ("2", "c")],
    ("p", 110): [("11", "b")],
    ("h", 50): [("1", "a"), ("1", "a"), ("2", "a"), (None, "a")],
    ("h", 70): [("2", "a")],
    ("h", 90): [("2", "a"), ("1", "c")],
    ("r", 95): [("1", "1.50"), ("2", "2.49")],
    ("r", 97): [("1", "2"), ("2", "2"), ("3", "-1")],
    ("r", 110): [("1", "2"), ("2", "2"), ("3", "-1"), ("4", "9")],
    ("e", 90): [],
    ("e", 110): [("1", "a"), ("1", "b")],
    ("late", 50): [("1",)],
    ("late", 55): [("1", "7")],
    ("gone", 50): [("x",)],
    ("gone", 90): [],
    ("f.x", 107): [("1", "last")],
    ("f.x", 110): [("1", "last")],
}


def test_rows_leave_and_come_back_with_their_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = Policy(before_images="all", on_before_image="block")  # no statement makes an old value look lost
    with opened(tmp_path, SQL, policy=policy) as (feed, lake):
        cuts = [published(lake, feed.add(lake, hour)) for hour in (FIRST, SECOND, THIRD)]
        compare(lake, TRUTH)
        ends = [{i.name.partition(".")[2]: c.snapshots[i.id].rows for i in c.catalog.alive()} for c in cuts]
        assert ends == [
            {"late": 1, "gone": 1, "p": 3, "h": 4, "r": 2, "e": 0, "x": 1},
            {"late": 1, "gone": 0, "p": 2, "h": 2, "e": 0},
            {"late": 1, "gone": 0, "p": 1, "h": 2, "r": 4, "e": 2, "x": 1},
        ]
        assert cuts[2].snapshots[named(cuts[2].catalog, "d.r")].identifier == "d.r"
        assert lake.catalog.load("d.e").properties["tidelake.key"] == "1,2"
        check_ledger(lake, cuts)
        monkeypatch.setattr("tidelake.cli.ddl.opened", lambda *_, **__: nullcontext(lake))
        assert run(["ddl", "--feed", "shop", "--table", "D.R", "--json"]) == 0
        assert [r["commit_ts"] for r in json.loads(capsys.readouterr().out)] == [10, 85, 95, 97]
        assert run(["ddl", "--feed", "shop"]) == 0
        assert "ALTER TABLE p DROP PARTITION p0" in capsys.readouterr().out


IDS = [None, -21, -11, -10, -1, 0, 1, 9, 10, 11, 19, 20, 21, 2**62]
DAYS = [
    None,
    date(1, 1, 1),
    date(2024, 12, 31),
    date(2025, 1, 1),
    date(2025, 6, 30),
    date(2025, 12, 31),
    date(2026, 1, 1),
    date(9999, 12, 31),
]
TIMES = [
    None,
    *(datetime.fromisoformat(t) for t in ("2024-12-31T23:59:59.999999", "2025-01-01", "2025-01-01T12:00:00.500000", "2026-01-01")),
]
YEARS = "(PARTITION a VALUES LESS THAN (2025), PARTITION b VALUES LESS THAN (2026), PARTITION c VALUES LESS THAN MAXVALUE)"
MOMENTS = YEARS.replace("2025", "'2025-01-01'").replace("2026", "'2025-01-01 12:00:00.5'")


def keyed(partitions: int, *row: object) -> str:
    """The partition by KEY that TiDB puts a row in."""
    return f"p{crc32(b''.join(bytes(1) if v is None else str(v).encode() for v in row)) % partitions}"


# partitioning, type of the column, its values, and the partition that the server puts each in
PLACES: list[tuple[str, str, list[Any], Callable[[Any], str]]] = [
    (RANGE, "BIGINT", IDS, lambda n: "p0" if n is None or n < 10 else "p1" if n < 20 else "p2"),
    ("HASH (c) PARTITIONS 4", "BIGINT", IDS, lambda n: f"p{abs(n or 0) % 4}"),
    ("HASH (c) PARTITIONS 3", "BIGINT UNSIGNED", [n for n in IDS if n is None or n >= 0], lambda n: f"p{(n or 0) % 3}"),
    ("HASH (c) PARTITIONS 5", "BIGINT UNSIGNED", [2**63 - 1, 2**63, 2**64 - 7, 2**64 - 1], lambda n: f"p{min(n, 2**64 - n) % 5}"),
    (
        "LIST (c) (PARTITION a VALUES IN (-1, NULL), PARTITION b VALUES IN (0, 20))",
        "INT",
        [None, -1, 0, 20],
        lambda n: "b" if n in (0, 20) else "a",
    ),
    ("KEY (c) PARTITIONS 3", "BIGINT", IDS, lambda n: keyed(3, n)),
    ("KEY (c) PARTITIONS 5", "BIGINT UNSIGNED", [None, 0, 2**63, 2**64 - 1, *range(20)], lambda n: keyed(5, n)),
    ("KEY (c) PARTITIONS 4", "VARBINARY(9)", [None, "", " ", "a", "a  ", "abc", "xyz"], lambda b: keyed(4, b)),
    (f"RANGE (YEAR(c)) {YEARS}", "DATE", DAYS, lambda d: "a" if d is None or d.year < 2025 else "b" if d.year < 2026 else "c"),
    (f"RANGE (YEAR(c)) {YEARS}", "DATETIME(6)", TIMES, lambda d: "a" if d is None or d.year < 2025 else "b" if d.year < 2026 else "c"),
    (
        f"RANGE COLUMNS (c) {MOMENTS}",
        "DATETIME(6)",
        TIMES,
        lambda t: "a" if t is None or t < datetime(2025, 1, 1) else "b" if t < datetime(2025, 1, 1, 12, 0, 0, 500000) else "c",  # noqa: DTZ001
    ),
]


def test_a_row_leaves_with_the_partition_that_the_server_put_it_in(tmp_path: Path) -> None:
    typed, told, wanted = [], [], []
    with opened(tmp_path) as (_, lake):
        for n, (by, kind, values, place) in enumerate(PLACES):
            made = f"CREATE TABLE t (c{n} {kind}) PARTITION BY {by.replace('(id)', '(c)').replace('(c)', f'(c{n})')}"
            catalog, _, _ = compile_window(Catalog(), [Statement(commit_ts=1, database="d", query=made)], [], Policy())
            (i,) = catalog.incarnations.values()
            typed.append(f"CAST(IF(n = {n}, v, NULL) AS {lake_column(lake.feed, i, i.columns[0]).type}) AS c{n}")
            for name in dict.fromkeys(place(v) for v in values):
                left = emptied(replace(i, empty=False), (name,), 9)
                fold = Fold(feed=lake.feed, incarnation=left, columns=i.columns, applied_ts=1, until_ts=9)
                told.append(f"IF(n = {n} AND {fold.left(fold.removals[0])}, '{name}', NULL)")
            wanted += [(n, str(v), [place(v)]) for v in values]
        cells = ", ".join(f"({n}, '{v}', {'NULL' if v is None else repr(str(v))})" for n, p in enumerate(PLACES) for v in p[2])
        rows = lake.spark.sql(f"SELECT * FROM VALUES {cells} AS t(n, text, v)")  # createDataFrame would leave the session the active one
        found = rows.selectExpr("n", "text", *typed).selectExpr("n", "text", f"array_compact(array({', '.join(told)})) AS gone").collect()
    assert [(r["n"], r["text"], r["gone"]) for r in found] == wanted


PAIRS = "RANGE COLUMNS (c, d) (PARTITION a VALUES LESS THAN (5, '2026-01-02'), PARTITION b VALUES LESS THAN (7, MAXVALUE))"
TUPLES = "LIST COLUMNS (c, d) (PARTITION a VALUES IN ((5, '2026-01-01'), (NULL, '2026-01-02')), PARTITION b VALUES IN ((5, NULL)))"


def test_rows_leave_with_a_partition_of_a_key_of_several_columns(tmp_path: Path) -> None:
    rows = [(c, d) for c in (None, -5, 0, 12) for d in (None, "", "7", "12 ")]
    made = "CREATE TABLE t (d VARBINARY(9), c INT) PARTITION BY KEY (c, d) PARTITIONS 3"
    (i,) = compile_window(Catalog(), [Statement(commit_ts=1, database="d", query=made)], [], Policy()).catalog.incarnations.values()
    left = emptied(replace(i, empty=False), ("p0", "p1", "p2"), 9)
    with opened(tmp_path) as (_, lake):
        fold = Fold(feed=lake.feed, incarnation=left, columns=i.columns, applied_ts=1, until_ts=9)
        cells = ", ".join(f"({'NULL' if c is None else c}, CAST({'NULL' if d is None else repr(d)} AS BINARY))" for c, d in rows)
        told = ", ".join(f"IF({fold.left(r)}, 'p{n}', NULL)" for n, r in enumerate(fold.removals))
        found = lake.spark.sql(f"SELECT array_compact(array({told})) AS gone FROM VALUES {cells} AS t(c, d)").collect()
    assert [r["gone"] for r in found] == [[keyed(3, *row)] for row in rows]


@pytest.mark.parametrize("by", [PAIRS, TUPLES])
def test_rows_leave_with_a_partition_of_several_columns(by: str, tmp_path: Path) -> None:
    rows = [(c, d) for c in (None, 4, 5, 6, 7, 8) for d in (None, "2026-01-01", "2026-01-02", "2026-01-03")]
    with opened(tmp_path) as (_, lake):
        made = f"CREATE TABLE t (c INT, d DATE) PARTITION BY {by}"
        catalog, _, _ = compile_window(Catalog(), [Statement(commit_ts=1, database="d", query=made)], [], Policy())
        (i,) = catalog.incarnations.values()
        gone = {}
        for name in ("a", "b"):
            left = emptied(replace(i, empty=False), (name,), 9)
            fold = Fold(feed=lake.feed, incarnation=left, columns=i.columns, applied_ts=1, until_ts=9)
            gone[name] = " OR ".join(f"({fold.left(r)})" for r in fold.removals)
        cells = ", ".join(f"({'NULL' if c is None else c}, {'NULL' if d is None else f'DATE {d!r}'})" for c, d in rows)
        told = ", ".join(f"IF({condition}, '{name}', NULL) AS {name}" for name, condition in gone.items())
        found = lake.spark.sql(f"SELECT c, CAST(d AS STRING) AS d, {told} FROM VALUES {cells} AS t(c, d)").collect()
    where = {(r["c"], r["d"]): r["a"] or r["b"] for r in found if r["a"] or r["b"]}
    pairs = {row: "a" if (row[0] or 0, row[1] or "") < (5, "2026-01-02") else "b" for row in rows if (row[0] or 0) <= 7}
    assert where == (pairs if by == PAIRS else {(5, "2026-01-01"): "a", (None, "2026-01-02"): "a", (5, None): "b"})


def named(catalog: Catalog, name: str) -> str:
    (found,) = [i.id for i in catalog.alive() if i.name == name]
    return found


def check_ledger(lake: Lake, cuts: list[Cut]) -> None:
    """Every statement once, with the table's snapshots at the cuts around it."""
    said = entries(lake.catalog, "shop")
    events = sorted((m.event for m in (*FIRST, *SECOND, *THIRD)), key=lambda e: e.commit_ts or 0)
    sent = [e for e in events if e.kind == "ddl"]
    assert [(r["commit_ts"], r["statement"], r["effect"]) for r in said] == [(e.commit_ts, e.ddl, "applied") for e in sent]
    r = named(cuts[2].catalog, "d.r")
    before, after = cuts[0].snapshots[r].snapshot_id, cuts[2].snapshots[r].snapshot_id
    mine = [(e["commit_ts"], e["seq"], e["snapshot_before"], e["snapshot_after"]) for e in said if e["incarnation"] == r]
    assert mine == [(10, 1, None, before), (85, 2, before, None), (95, 3, None, after), (97, 3, None, after)]
