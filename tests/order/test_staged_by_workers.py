"""Workers stage the changelogs that the specification says, value by value (tests/order/expected_changes.py)."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lake.histories import Message, ddl, feeder, resolved, row, row_schema
from tests.order.expected_changes import compared, expected_bag, expected_changes
from tidelake.config.feed import TablePolicy
from tidelake.config.policy import ColumnPolicy
from tidelake.io.storage import open_store
from tidelake.lake.cut import Staged
from tidelake.lake.opened import Lake
from tidelake.order.arrow import bucket_changes, changelog_writer, staged_by_workers, table_jobs
from tidelake.order.arrow.rows_reader import OrderJob, RowsReader
from tidelake.run import order
from tidelake.spark.spread import tasks
from tidelake.spark.worker_secrets import NONE, Handed
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


def staged_by(lake: Lake, hour: str, table: str = "k") -> tuple[Staged, list[dict[str, Any]], dict[str, list[int]]]:
    """(what order said, the changelog's rows as they are in each bucket, rows by bucket and day)."""
    staged = order(lake, parse_hour(hour)).staged
    assert staged is not None
    advance = staged.changelogs[f"d.{table}@-1"]
    spark = lake.spark.read.option("versionAsOf", advance.to).table(f"lake.{advance.identifier}")
    rows = [r.asDict() for r in spark.orderBy("_change_seq", *(["id", "part"] if table == "k" else []), "_kafka_partition").collect()]
    places: dict[str, list[int]] = {}
    for f in lake.catalog.load(advance.identifier).files({}, [], advance.to):
        places.setdefault(str(tuple(f.partition)), []).append(f.rows)
    return staged, rows, places


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("seed", [1, 2])
def test_changelogs_are_what_the_specification_says(seed: int, tmp_path: Path) -> None:
    with opened(tmp_path, columns=MASKED, time_zone="America/New_York") as (feed, lake):
        hour = feed.add(lake, sent := messages(seed))
        staged, rows, places = staged_by(lake, hour)
    assert compared(rows) == list(expected_changes(sent))
    assert len(places) == 8, "four buckets, two days"
    counts = staged.counts["d.k@-1"]
    lost = counts.nulled_zero_dates, counts.nulled_values, counts.invalid_values, counts.ambiguous
    assert [*map(set, lost)] == [{"at"}, {"n"}, {"f", "e"}, {"seen", "e"}], lost
    assert min(n for found in lost for n in found.values()) > 3, lost
    assert set(counts.invalid_value_examples) == {"f", "e"}
    assert {(r["word"][0], len(r["word"])) for r in rows if r["word"] is not None} == {("é", 2)}
    assert {r["gone"] for r in rows} == {None}
    assert min(counts.duplicates, counts.key_changes, counts.updates_without_before_image, counts.deletes, counts.inserts) > 3, counts
    assert counts.changes == len(rows) > 300


@pytest.mark.parametrize(("rows", "readers"), [(1, 2), (279, 2), (280, 1)])
def test_tables_with_few_events_are_read_by_fewer_tasks(rows: int, readers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables have 560 events, in a file for each of two hours."""
    monkeypatch.setattr(staged_by_workers, "_TABLE_ROWS", rows)
    jobs, run = list[OrderJob](), staged_by_workers._run
    monkeypatch.setattr(staged_by_workers, "_run", lambda workers, job: (jobs.append(job), run(workers, job))[1])
    bag = row_schema("v varchar", "n int", key=())
    with opened(tmp_path) as (feed, lake):
        sent = [row(n % 2, "insert", ts(1 + n % 3), ALL, image((n, "r"), n, False)) for n in range(280)]
        other = [row(n % 2, "insert", ts(1 + n % 3), bag, ("a", str(n)), table="bag") for n in range(280)]
        feed.add(lake, [*sent[::2], *other[:99]])
        staged, found, _ = staged_by(lake, feed.add(lake, [*sent[1::2], *other[99:], *resolved(ts(4), 0, 1)]))
    assert [len(job.parts) for job in jobs] == [readers]
    assert sorted((r["_kafka_partition"], r["_change_type"], r["id"]) for r in found) == sorted((n % 2, "INSERT", n) for n in range(280))
    assert {name: c.changes for name, c in staged.counts.items()} == {"d.k@-1": 280, "d.bag@-1": 280}


@pytest.mark.parametrize("seed", [1, 2])
def test_tasks_that_share_a_bucket_write_the_same_changes(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_jobs, "_SHARE", 1)
    with opened(tmp_path, tables={"d.k": TablePolicy(buckets=1)}, columns=MASKED, time_zone="America/New_York") as (feed, lake):
        many = tasks(lake.spark)
        hour = feed.add(lake, sent := messages(seed))
        staged, rows, places = staged_by(lake, hour)
    assert compared(rows) == list(expected_changes(sent))
    assert [len(files) for files in places.values()] == [many, many], "a file for each day and task"
    assert staged.counts["d.k@-1"].duplicates > 3


def written_again(lake: Lake, job: OrderJob, number: int) -> list[pa.Table]:
    """The files of a table that a writer in this process makes of a job."""
    sent = [b for part in job.parts for b in RowsReader(job).rows(part, NONE)]
    rows = [r for b in changelog_writer.Writer(job, Handed())(sent) for r in b.to_pylist()]
    store = open_store(job.tables[number].location)
    return [pq.read_table(io.BytesIO(store.read(r["path"]))) for r in rows if r["path"] is not None and r["table"] == number]


@pytest.mark.parametrize("name", ["k", "bag"])
def test_a_large_bucket_is_worked_in_portions_with_the_same_changes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, run = list[OrderJob](), staged_by_workers._run
    monkeypatch.setattr(staged_by_workers, "_run", lambda workers, job: (jobs.append(job), run(workers, job))[1])
    with opened(tmp_path) as (feed, lake):
        one = [row(0, "insert", ts(n % 3), ALL, image((n, "r"), n, False)) for n in range(60)]  # large transactions
        sent = [*one, *one[:40], *messages(5)] if name == "k" else sent_again(random.Random(5))
        staged, _, _ = staged_by(lake, feed.add(lake, sent), table=name)
        whole = pa.concat_tables(written_again(lake, jobs[0], 0))
        monkeypatch.setattr(bucket_changes, "PORTION", 9)
        monkeypatch.setattr(bucket_changes, "SLICE", 4)
        files = written_again(lake, jobs[0], 0)
    assert whole.num_rows == staged.counts[f"d.{name}@-1"].changes
    by = [(c, "ascending") for c in ("_change_seq", "_kafka_partition", "_change_type")]
    assert pa.concat_tables(files).sort_by(by).equals(whole.sort_by(by))
    assert all(f["_commit_ts"].to_pylist() == sorted(f["_commit_ts"].to_pylist()) for f in files)


def test_rows_come_by_commit_ts_in_every_file(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        staged, _, _ = staged_by(lake, feed.add(lake, messages(3)))
        advance = staged.changelogs["d.k@-1"]
        for f in lake.catalog.load(advance.identifier).files({}, [], advance.to):
            found = lake.spark.read.parquet(f.path).select("_commit_ts").toPandas()["_commit_ts"].tolist()
            assert found == sorted(found)
            assert len(found) == f.rows


def test_a_key_that_is_null_is_a_key_without_a_bucket(tmp_path: Path) -> None:
    two = row_schema("id bigint", "part varchar", "at datetime", key=("id", "part"))
    rows = [row(n % 2, "insert", 10 + n, two, (str(n), "p", "2026-01-01 00:00:00")) for n in range(50)]
    late = [row(0, "insert", 99, two, ("no number", "p", "2026-01-01 00:00:00"))] * 2
    with opened(tmp_path) as (feed, lake):
        feed.add(lake, [*rows, *resolved(5, 0, 1)])
        staged, found, places = staged_by(lake, feed.add(lake, [*late, *resolved(100, 0, 1)]))
        assert (len(found), found[-1]["id"]) == (51, None)
        assert sum(places["(None, 0)"]) == 1
        counts = staged.counts["d.k@-1"]
        assert (counts.events, counts.duplicates, counts.invalid_values) == (52, 1, {"id": 1})


def sent_again(chance: random.Random) -> list[Message]:
    """Events of a table without key: equal ones in one transaction, some of it sent again after the resolved ts went back."""
    one, out = row_schema("v varchar", "n int", key=()), list[Message]()
    for partition in (0, 1):
        commits = [
            row(partition, op, 10 + chance.randrange(4), one, *((cells,) if op == "insert" else (None, cells)), table="bag")
            for op in chance.choices(("insert", "insert", "delete"), k=40)
            for cells in [(chance.choice("ab"), chance.choice(("1", None, "many")))]
        ]
        for again in (commits, chance.sample(commits, 30), commits[5:]):
            out += [*sorted(again, key=lambda m: m.event.commit_ts or 0), *resolved(9, partition), *resolved(8, partition)]
    return [*out, *resolved(20, 0, 1)]


@pytest.mark.parametrize(("seed", "share"), [(1, 250_000), (2, 250_000), (1, 1), (2, 1)])
def test_tables_without_key_are_multisets(seed: int, share: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str) -> None:
    monkeypatch.setattr(table_jobs, "_SHARE", share)
    with opened(tmp_path) as (feed, lake):
        many = tasks(lake.spark) if workers == "Spark" else 1
        hour = feed.add(lake, sent := sent_again(random.Random(seed)))
        staged, rows, places = staged_by(lake, hour, table="bag")
    assert max(len(files) for files in places.values()) == (many if share == 1 else 1)
    assert Counter((r["_commit_ts"], r["_change_type"], r["v"], r["n"]) for r in rows) == expected_bag(sent)
    counts = staged.counts["d.bag@-1"]
    assert (counts.events, counts.changes) == (210, len(rows))
    assert 40 < len(rows) < 120
    assert counts.invalid_values["n"] > 10
