"""Workers stage in Arrow what Spark stages. A table that workers do not take is left to Spark, whole."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lake.histories import Message, ddl, feeder, resolved, row, row_schema
from tests.logged import messages_of
from tidelake.config.feed import TablePolicy
from tidelake.config.policy import ColumnPolicy
from tidelake.lake.cut import Staged
from tidelake.lake.opened import Lake
from tidelake.order.arrow import arrow_plan, arrow_writer
from tidelake.order.arrow import arrow_staging as arrow_order
from tidelake.order.arrow.arrow_source import OrderJob, RowsReader
from tidelake.run import order
from tidelake.spark.worker_secrets import Handed
from tidelake.tso import parse_hour

pytestmark = pytest.mark.usefixtures("spark_app")

SQL = """CREATE TABLE d.k (id BIGINT, part VARCHAR(9), price DECIMAL(12,2), at DATETIME(6), kind ENUM('a','b,c'), tags SET('x','y'),
 raw VARBINARY(9),
 seen TIMESTAMP, n INT UNSIGNED, f DOUBLE, e ENUM('','z'), v VECTOR(2), word VARCHAR(9), gone TEXT, PRIMARY KEY (id, part));
CREATE TABLE d.bag (v VARCHAR(20), n INT);
"""
COLUMNS = {
    "id": "bigint",
    "part": "varchar",
    "price": "decimal",
    "at": "datetime",
    "kind": "enum",
    "tags": "set",
    "raw": "varbinary",
    "seen": "timestamp",
    "n": "int unsigned",
    "f": "double",
    "e": "enum",
    "v": "vector",
    "word": "varchar",
    "gone": "text",
}
MASKED = {"d.k": {"word": ColumnPolicy(mask="truncate(2)"), "gone": ColumnPolicy(mask="null"), "n": ColumnPolicy(invalid_values="null")}}
ALL = row_schema(*(f"{n} {t}" for n, t in COLUMNS.items()), key=("id", "part"))
KEY = row_schema("id bigint", "part varchar", key=("id", "part"))
MORE = row_schema(*(f"{n} {t}" for n, t in COLUMNS.items()), "late int", key=("id", "part"))
HOUR_MS = 3_600_000
DAY = 24 * HOUR_MS


def ts(ms: int, logical: int = 0) -> int:
    return (ms << 18) + logical


def image(key: tuple[int, str], version: int, late: bool) -> tuple[str | None, ...]:
    n = key[0] * 7 + version
    cells: tuple[str | None, ...] = (
        str(key[0]),
        key[1],
        f"{n}.{n % 100:02d}" if n % 5 else None,
        f"2026-01-0{n % 9 + 1} 10:00:00.{n:06d}" if n % 11 else "0000-00-00 00:00:00",
        str(n % 3),
        str(n % 4),
        f"r{n}" if n % 2 else "\x01\x02",
        f"2026-11-01 0{n % 10}:00:00",
        str(n) if n % 13 else f"{n} pieces",
        f"{n}.5" if n % 17 else "NaN",
        str(n % 4),
        f"[{n},0.5]",
        f"é{n}",
        "secret",
    )
    return (*cells, str(version) if version % 2 else None) if late else cells


def told(chance: random.Random) -> Iterator[list[Message]]:
    """Commits: keys that come, change, move to other keys and go, over two days, with old rows whole, by their key alone or unsaid; some
    are sent again, some come as a delete and an insert; in between a column comes."""
    there: dict[tuple[int, str], int] = {}
    for n in range(260):
        at, late = ts(n * 2 * DAY // 300, n % 3), n > 130
        if n == 131:
            yield ddl(at, "ALTER TABLE k ADD COLUMN late INT, MODIFY word TEXT", 0, 1)
            continue
        shaped = MORE if late else ALL
        key, other = ((chance.randrange(40), chance.choice(("p", "q"))) for _ in range(2))
        partition, version = chance.randrange(2), n
        if key not in there:
            op, after, before = "insert", image(key, version, late), None
        elif chance.random() < 0.2:
            op, after, before = "delete", None, image(key, there[key], late)
        elif other not in there and chance.random() < 0.3:
            op, after, before = "update", image(other, version, late), image(key, there[key], late)
        else:
            op, after, before = "update", image(key, version, late), image(key, there[key], late)
        if op in ("delete", "update"):
            there.pop(key)
        if op != "delete":
            there[other if after is not None and after[:2] != (str(key[0]), key[1]) else key] = version
        yield list(sent(n, row(partition, op, at, shaped, after, before)))


def sent(n: int, m: Message) -> Iterator[Message]:
    """A change in one of the ways that protocols have."""
    e, split = m.event, n % 9 == 0 and m.event.op == "update"
    if split:
        yield replace(m, event=replace(e, op="delete", row_schema=None, after=None))
        yield replace(m, event=replace(e, op="insert", before_schema=None, before=None))
    elif e.before is not None and n % 4 == 0:
        yield replace(m, event=replace(e, before_schema=KEY, before=e.before[:2]))
    elif e.before is not None and e.after is not None and n % 7 == 0 and e.before[:2] == e.after[:2]:
        yield replace(m, event=replace(e, before_schema=None, before=None))
    else:
        yield m


def messages(seed: int) -> list[Message]:
    chance = random.Random(seed)
    out = list[Message]()
    for commit in told(chance):
        for m in commit:
            out.append(m)
            if chance.random() < 0.1:
                out.append(m)  # comes again
    return [*out, *resolved(ts(2 * DAY), 0, 1)]


@contextmanager
def opened(folder: Path, **changes: Any) -> Iterator[tuple[Any, Lake]]:
    feed = feeder(folder, SQL, 2, **({"tables": {"d.k": TablePolicy(buckets=4)}} | changes))
    (folder / "lake").mkdir(exist_ok=True)
    with Lake.of(feed.feed) as lake:
        yield feed, lake


def staged_by(
    lake: Lake, hour: str, tells: list[str] | None = None, table: str = "k"
) -> tuple[Staged, list[dict[str, Any]], dict[str, list[int]]]:
    """(what order said, the changelog's rows as they are in each bucket, rows by bucket and day)."""
    with messages_of("order") as heard:
        staged = order(lake, parse_hour(hour)).staged
    if tells is not None:
        tells += heard
    assert staged is not None
    advance = staged.changelogs[f"d.{table}@-1"]
    spark = lake.spark.read.option("versionAsOf", advance.to).table(f"lake.{advance.identifier}")
    rows = [r.asDict() for r in spark.orderBy("_change_seq", *(["id", "part"] if table == "k" else []), "_kafka_partition").collect()]
    places: dict[str, list[int]] = {}
    for f in lake.catalog.load(advance.identifier).files({}, [], advance.to):
        places.setdefault(str(tuple(f.partition)), []).append(f.rows)
    return staged, rows, places


@pytest.mark.parametrize("seed", [1, 2])
def test_workers_stage_what_spark_stages(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, columns=MASKED, time_zone="America/New_York") as (feed, lake):
        hour = feed.add(lake, messages(seed))
        heard: list[str] = []
        ours, rows, places = staged_by(lake, hour, heard)
        assert not any("left to Spark's SQL" in h for h in heard), heard
        monkeypatch.setattr(arrow_order, "can_be_read", lambda *_: False)
        by_spark, wanted, wanted_places = staged_by(lake, hour)
    assert rows == wanted
    assert {k: sum(v) for k, v in places.items()} == {k: sum(v) for k, v in wanted_places.items()}
    assert len(places) == 8, "four buckets, two days"
    counts = ours.counts["d.k@-1"]
    assert counts == by_spark.counts["d.k@-1"]
    lost = counts.nulled_zero_dates, counts.nulled_values, counts.invalid_values, counts.ambiguous
    assert [*map(set, lost)] == [{"at"}, {"n"}, {"f", "e"}, {"seen", "e"}], lost
    assert min(n for found in lost for n in found.values()) > 3, lost
    assert set(counts.invalid_value_examples) == {"f", "e"}
    assert {(r["word"][0], len(r["word"])) for r in rows if r["word"] is not None} == {("é", 2)}
    assert {r["gone"] for r in rows} == {None}
    assert min(counts.duplicates, counts.key_changes, counts.updates_without_before_image, counts.deletes, counts.inserts) > 3, counts
    assert counts.changes == len(rows) > 300


def test_rows_come_by_commit_ts_in_every_file(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        staged, _, _ = staged_by(lake, feed.add(lake, messages(3)))
        advance = staged.changelogs["d.k@-1"]
        for f in lake.catalog.load(advance.identifier).files({}, [], advance.to):
            found = lake.spark.read.parquet(f.path).select("_commit_ts").toPandas()["_commit_ts"].tolist()
            assert found == sorted(found)
            assert len(found) == f.rows


def test_a_table_with_a_key_that_is_null_is_left_to_spark_whole(tmp_path: Path) -> None:
    two = row_schema("id bigint", "part varchar", "at datetime", key=("id", "part"))
    rows = [row(n % 2, "insert", 10 + n, two, (str(n), "p", "2026-01-01 00:00:00")) for n in range(50)]
    late = row(0, "insert", 99, two, ("no number", "p", "2026-01-01 00:00:00"))
    with opened(tmp_path) as (feed, lake):
        heard: list[str] = []
        feed.add(lake, [*rows, *resolved(5, 0, 1)])  # files of their own, which workers read and write before they see the other one
        staged, found, _ = staged_by(lake, feed.add(lake, [late, *resolved(100, 0, 1)]), heard)
        assert (len(found), found[-1]["id"]) == (51, None)
        assert any("left to Spark's SQL" in h for h in heard), heard
        counts = staged.counts["d.k@-1"]
        assert (counts.events, counts.invalid_values) == (51, {"id": 1})
        advance = staged.changelogs["d.k@-1"]
        location = lake.catalog.load(advance.identifier).table.location().removeprefix("file://")
        known = {Path(f.path.removeprefix("file://")).name for f in lake.catalog.load(advance.identifier).files({}, [], advance.to)}
        assert {p.name for p in Path(location).parent.glob("k-*/data/**/*.parquet")} == known, "what workers wrote is gone"
        assert len(lake.catalog.tables("d_changelog")) == 1


def sent_again(chance: random.Random) -> list[Message]:
    """Events of a table without key: equal ones in one transaction, some of it sent again after the resolved ts went back."""
    one, out = row_schema("v varchar", "n int", key=()), list[Message]()
    for partition in (0, 1):
        commits = [
            row(partition, op, 10 + chance.randrange(4), one, *(cells if op == "insert" else (None, cells)), table="bag")
            for op in chance.choices(("insert", "insert", "delete"), k=40)
            for cells in [(chance.choice("ab"), chance.choice(("1", None, "many")))]
        ]
        for again in (commits, chance.sample(commits, 30), commits[5:]):
            out += [*sorted(again, key=lambda m: m.event.commit_ts or 0), *resolved(9, partition), *resolved(8, partition)]
    return [*out, *resolved(20, 0, 1)]


@pytest.mark.parametrize("seed", [1, 2])
def test_workers_stage_tables_without_key_as_spark_does(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as (feed, lake):
        hour, heard = feed.add(lake, sent_again(random.Random(seed))), list[str]()
        ours, rows, places = staged_by(lake, hour, heard, table="bag")
        assert not any("left to Spark's SQL" in h for h in heard), heard
        monkeypatch.setattr(arrow_order, "can_be_read", lambda *_: False)
        by_spark, wanted, wanted_places = staged_by(lake, hour, table="bag")
    assert rows == wanted
    assert places == wanted_places
    counts = ours.counts["d.bag@-1"]
    assert counts == by_spark.counts["d.bag@-1"]
    assert (counts.events, counts.changes) == (210, len(rows))
    assert 40 < len(rows) < 120
    assert counts.invalid_values["n"] > 10


def test_tables_with_large_buckets_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool]] = []
    true = arrow_plan.can_be_read

    def noted(table: Any, rows: int) -> bool:
        asked.append((table.incarnation.name, true(table, rows)))
        return asked[-1][1]

    monkeypatch.setattr(arrow_order, "can_be_read", noted)
    with opened(tmp_path) as (feed, lake):
        hour = feed.add(lake, messages(4))
        rows = staged_by(lake, hour)[1]
        assert asked == [("d.k", True)]
        monkeypatch.setattr(arrow_plan, "MOST_ROWS", 10)
        asked.clear()
        assert staged_by(lake, hour)[1] == rows
        assert asked == [("d.k", False)]


def test_a_bucket_that_is_too_large_for_a_worker_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[OrderJob] = []
    run = arrow_order._run
    monkeypatch.setattr(arrow_order, "_run", lambda spark, job: (jobs.append(job), run(spark, job))[1])
    with opened(tmp_path) as (feed, lake):
        staged_by(lake, feed.add(lake, messages(5)))
    sent = [b for part in jobs[0].parts for b in RowsReader(jobs[0]).rows(part)]
    files = sorted(tmp_path.glob("lake/**/*.parquet"))
    monkeypatch.setattr(arrow_writer, "MOST_BYTES", 1000)
    rows = [r for b in arrow_writer.Writer(jobs[0], Handed())(sent) for r in b.to_pylist()]
    (outcome,) = (arrow_writer.TableOutcome.model_validate_json(r["outcome"]) for r in rows if r["path"] is None)
    assert re.fullmatch(r"[0-9,]+ bytes of bucket [0-3] are too many for a worker", outcome.refused)
    assert [r for r in rows if r["path"] is not None] == []
    assert sorted(tmp_path.glob("lake/**/*.parquet")) == files
