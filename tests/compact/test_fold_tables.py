"""Windows of several tables: snapshots are what the rules of order say (history.ordering), and are kept in buckets, sorted by key."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.compact.large_tables import AFTER, CHANGES, ROWS, first, window
from tests.lake.histories import Message, ddl, publish, resolved, row, row_schema, rows_of
from tests.lake.lakes import contents
from tests.lake.windows import KV, TEXT, opened, table
from tidelake.compact import bucket_files, fold_files, fold_tables
from tidelake.compact.fold_files import UnitOutcome
from tidelake.compact.fold_source import FoldJob, FoldReader
from tidelake.config.feed import TablePolicy
from tidelake.config.policy import Policy
from tidelake.errors import QualityError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ordering import RowCells, RowChange, fold, fold_multiset, in_window
from tidelake.lake.columns import survivors
from tidelake.lake.columns.cells import CastRules, cell_type, values
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.data_files import StagedFiles, WrittenFile
from tidelake.lake.folding import file_rows
from tidelake.lake.folding.units import Unit
from tidelake.lake.opened import Lake
from tidelake.run import compact, order, validate
from tidelake.spark.buckets import buckets_of
from tidelake.spark.run_parts import Workers
from tidelake.tso import parse_hour

pytestmark = pytest.mark.usefixtures("small_hours")

COMPARED = {"compared": 7, "duplicate_inserts": 1, "examples": ["id=9 at t[0]@47: insert of a row that already exists"]}
SQL = """CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20));
CREATE TABLE d.many (a VARCHAR(20), b DECIMAL(6,2), at DATETIME(6), since TIMESTAMP, day DATE, f FLOAT, d DOUBLE, raw VARBINARY(9), j JSON,
  s ENUM('x','y'), PRIMARY KEY (b, a));
CREATE TABLE d.bare (v VARCHAR(20));"""
KNEW = row_schema("id bigint", "w varchar", "n int")
MANY = row_schema(
    *("a varchar", "b decimal", "at datetime", "since timestamp", "day date", "f float", "d double", "raw varbinary", "j json", "s enum"),
    key=("a", "b"),
)
MANY_KINDS = {"a": "text", "b": "decimal(6,2)", "at": "datetime(6)", "since": "timestamp", "day": "date", "f": "float", "d": "double"}
MANY_KINDS |= {"raw": "varbinary(9)", "j": "json", "s": "enum('x','y')"}


def many(a: str, b: str, n: int) -> tuple[str | None, ...]:
    """A row of d.many; every seventh has NULLs."""
    moment, number = f"2026-01-0{1 + n % 9} 10:00:0{n % 10}", "-0" if n % 2 else "0.25"
    values = (f"{moment}.00000{n % 10}", moment, moment[:10], f"{n}.5", number, f"\u00e9{n}", str(n), "12"[n % 2])
    return (a, b, *(values if n % 7 else (None,) * len(values)))


def first_window() -> list[Message]:
    rows = [many(f"k{n % 10}", f"{n // 10}.25", n) for n in range(60)]
    return [
        *(row(0, "insert", 10, KV, r) for r in ROWS),
        *(row(0, "insert", 11, MANY, r, table="many") for r in rows),
        row(0, "update", 12, MANY, many("k1", "0.25", 30), rows[1], table="many"),
        row(0, "delete", 13, MANY, None, rows[2], table="many"),
        row(0, "insert", 13, TEXT, ("a",), table="bare"),
        *resolved(15),
    ]


def second_window() -> list[Message]:
    rows = [many(f"k{n % 10}", f"{n // 10}.25", n) for n in range(60)]
    return [
        *CHANGES,
        *(row(0, "update", 20, MANY, many(*rows[n][:2], n + 1), rows[n], table="many") for n in range(10, 30)),
        *(row(0, "update", 21, MANY, many(*rows[n][:2], n + 2), many(*rows[n][:2], n + 3), table="many") for n in (12, 13)),
        *(row(0, "delete", 22, MANY, None, rows[n], table="many") for n in (40, 41)),
        row(0, "insert", 22, MANY, rows[41], table="many"),
        row(0, "update", 23, MANY, ("new", *rows[50][1:]), rows[50], table="many"),
        row(0, "insert", 31, MANY, many("after", "1.00", 5), table="many"),
        row(0, "delete", 22, TEXT, None, ("a",), table="bare"),
        *resolved(30),
    ]


def statement_windows() -> list[list[Message]]:
    """A statement, with a change of one bucket, and a window after it that changes rows of files from before the statement."""
    statement = ddl(41, "ALTER TABLE k ADD COLUMN n INT, RENAME COLUMN v TO w", 0)
    others = [row(0, "update", 50, KNEW, (str(n), "late", "2"), (str(n), "a", None)) for n in range(10, 40, 2)]
    return [
        [*statement, row(0, "update", 42, KNEW, ("1", "w", "1"), ("1", "a", None)), *resolved(45)],
        [*others, row(0, "update", 51, KNEW, ("1", "w", "2"), ("1", "lost", "1")), *resolved(55)],
    ]


def typed(kinds: dict[str, str], rows: Iterable[RowCells]) -> list[dict[str, Any]]:
    """Rows of text as the lake has them, without their commit ts, in a fixed order."""
    out = []
    for cells in rows:
        row_of = dict(zip(kinds, (*cells, *(None,) * (len(kinds) - len(cells))), strict=True))
        out.append({name: value(cell, kinds[name]) for name, cell in row_of.items()})
    return sorted(out, key=str)


def value(cell: object, kind: str) -> Any:
    """A cell in its type of SQL."""
    if cell is None or kind == "text":
        return cell
    mysql = MysqlType.parse(kind)
    found, lost = values(pa.array([str(cell).encode()], pa.binary()), cell_type(mysql, CastRules(time_zone="UTC", names_sent=False)))
    assert lost is None
    return found[0].as_py()


class Rules:
    """What the rules of order make of the messages so far, table by table. key_of: positions of the key's cells; () without key."""

    def __init__(self, key_of: dict[str, tuple[int, ...]]) -> None:
        self.key_of, self.applied, self.offset = key_of, 0, 0
        self.changes: list[RowChange] = []
        self.keyed: dict[str, dict[RowCells, RowCells]] = {t: {} for t in key_of}
        self.bare: dict[str, Counter[RowCells]] = {t: Counter() for t in key_of}

    def window(self, messages: Sequence[Message], until: int) -> None:
        """Fold one window."""
        for m in messages:
            e, self.offset = m.event, self.offset + 1
            if e.kind == "row":
                before, after = (None if c is None else tuple(x if x is None else x.decode() for x in c) for c in (e.before, e.after))
                at = ("t", 0, self.offset, 0)
                self.changes.append(
                    RowChange(table=str(e.table), op=str(e.op), commit_ts=e.commit_ts or 0, at=at, before=before, after=after)
                )
        for name, key_of in self.key_of.items():
            mine = [c for c in in_window(self.changes, self.applied, until) if c.table == name]
            if key_of:
                self.keyed[name] = fold(self.keyed[name], mine, key_of)
            else:
                self.bare[name] = fold_multiset(self.bare[name], mine)
        self.applied = until

    def rows(self, name: str) -> list[RowCells]:
        """The rows of a table."""
        return [*self.keyed[name].values(), *self.bare[name].elements()]


def keys(lake: Lake, name: str) -> list[Any]:
    """Of each data file in turn, by bucket: are they in order."""
    stood = lake.catalog.load(f"d.{name}")
    names = ("id",) if name == "k" else ("b", "a")
    found = []
    for task in sorted(stood.table.scan(selected_fields=names).plan_files(), key=lambda t: t.file.partition[0]):
        rows = pq.read_table(task.file.file_path, columns=list(names), partitioning=None).to_pylist()
        found.append([tuple(r[n] for n in names) for r in rows])
    return found


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("workers", [pytest.param("Spark", marks=pytest.mark.long), "this process"], indirect=True)
def test_snapshots_are_what_the_rules_of_order_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_tables, "AT_ONCE", 2)  # of three
    everything = {name: TablePolicy(buckets=4) for name in ("d.k", "d.many")}
    by = Rules({"k": (0,), "many": (1, 0), "bare": ()})
    found = []
    with opened(tmp_path, SQL, tables=everything, policy=Policy(before_images="all")) as (made, lake):
        for messages, until in zip((first_window(), second_window(), *statement_windows()), (15, 30, 45, 55), strict=True):
            cut = publish(lake, made.add(lake, messages))
            assert cut is not None
            by.window(messages, until)
            of_k = {"id": "bigint", "v": "text"} if until < 40 else {"id": "bigint", "w": "text", "n": "int"}
            for name, kinds in (("k", of_k), ("many", MANY_KINDS), ("bare", {"v": "text"})):
                held = [{c: v for c, v in r.items() if c != "_commit_ts"} for r in contents(lake.catalog, f"d.{name}")]
                assert sorted(held, key=str) == typed(kinds, by.rows(name)), f"{name} at {until}"
            assert all(of_file == sorted(of_file) for t in ("k", "many") for of_file in keys(lake, t))
            found.append(read_certificate(lake.store, "shop", cut.seq)["rows"])
    assert found[1]["d.many"]["before_images"] == {
        "compared": 24,
        "differs": 2,
        "columns": {"at": 2, "since": 2, "day": 2, "d": 1, "raw": 2, "s": 1},
        "examples": found[1]["d.many"]["before_images"]["examples"],
    }
    assert found[1]["d.bare"]["before_images"] == {"compared": 1}
    assert [f["d.k"]["written"] for f in found] == ["all", "3 of 4 buckets", "1 of 4 buckets", "all"]


def test_a_job_folds_at_most_so_many_tables_and_the_results_are_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a job runs is decided by what all jobs so far read. Its files are committed while the next one runs."""
    jobs, asked, next_runs = list[int](), list[list[int]](), Event()
    plain, stage_files = Lake.workers, fold_tables.stage_files

    def noted(job: FoldJob) -> FoldReader:
        jobs.append(len(job.tables))
        if len(jobs) == 2:
            next_runs.set()
        return FoldReader(job)

    def asked_for(lake: Lake, sizes: Sequence[int]) -> Workers:
        asked.append(list(sizes))
        return plain(lake, sizes)

    def committed(*given: Any) -> StagedFiles:
        assert next_runs.wait(60)
        return stage_files(*given)

    with opened(tmp_path, SQL) as (made, lake):
        hour = made.add(lake, first_window())
        order(lake, parse_hour(hour))
        validate(lake, parse_hour(hour))
        monkeypatch.setattr(fold_tables, "AT_ONCE", 2)
        monkeypatch.setattr(fold_tables, "FoldReader", noted)
        monkeypatch.setattr(fold_tables, "stage_files", committed)
        monkeypatch.setattr(Lake, "workers", asked_for)
        cut = compact(lake, parse_hour(hour)).cut
        assert cut is not None
        assert jobs == [2, 1]
        assert [len(sizes) for sizes in asked] == [2, 3]
        assert asked[1][:2] == asked[0]
        assert sorted((t.identifier, t.rows) for t in cut.snapshots.values()) == [("d.bare", 1), ("d.k", len(ROWS)), ("d.many", 59)]


@pytest.mark.parametrize("rows", [1, 7])
def test_buckets_of_any_size_are_folded_in_passes_and_written_as_several_files(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process: what a worker does with more rows than it takes at once."""
    jobs: list[FoldJob] = []

    def noted(job: FoldJob) -> FoldReader:
        jobs.append(job)
        return FoldReader(job)

    monkeypatch.setattr(fold_tables, "FoldReader", noted)
    with opened(tmp_path, SQL, tables={"d.k": TablePolicy(buckets=2)}, policy=Policy(before_images="all")) as (made, lake):
        first(made, lake)
        publish(lake, made.add(lake, [*CHANGES, *resolved(30)]))
        wanted = [tuple(r.values()) for r in contents(lake.catalog, "d.k")]
        for module, name in ((survivors, "PASS_ROWS"), (file_rows, "PIECE_ROWS"), (bucket_files, "SORTED_BYTES")):
            monkeypatch.setattr(module, name, rows)
        monkeypatch.setattr(bucket_files, "FILE_BYTES", 1)
        monkeypatch.setattr(bucket_files, "ROW_GROUP_BYTES", 1)
        job = jobs[-1]
        found, files = [], 0
        for unit in job.parts[0] + (job.parts[1] if len(job.parts) > 1 else []):
            (told,) = fold_files.fold_units(job.tables, [unit])
            for path in told["path"].drop_null().to_pylist():
                files += 1
                written = Path(job.tables[unit.table].location) / path
                found += [tuple(r.values()) for r in pq.read_table(written, partitioning=None).to_pylist()]
            outcome = UnitOutcome.model_validate_json(told["outcome"].drop_null()[0].as_py())
            assert outcome.changed
    assert sorted(found) == sorted(wanted)
    assert files > 10


@pytest.mark.parametrize(("rows", "buckets", "units"), [(1000, 1, 1), (6, 1, 9), (6, 2, 9)])
def test_tasks_share_a_bucket_by_ranges_of_its_keys(
    rows: int, buckets: int, units: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it has more rows than one pass takes. One unit is what is expected of all."""
    parts: list[Unit] = []

    def noted(job: FoldJob) -> FoldReader:
        parts.extend(unit for part in job.parts for unit in part)
        return FoldReader(job)

    with opened(tmp_path, SQL, tables={"d.k": TablePolicy(buckets=buckets)}, policy=Policy(before_images="all")) as (made, lake):
        first(made, lake)
        monkeypatch.setattr(survivors, "PASS_ROWS", rows)
        monkeypatch.setattr(fold_tables, "FoldReader", noted)
        _, _, proof = window(made, lake, CHANGES, 30)
        assert rows_of(lake, "d.k") == AFTER
        assert (len(parts), {(u.keys is None, u.alone) for u in parts}) == (units, {(units == 1, units == 1)})
        assert (proof["rows"]["d.k"]["written"], proof["rows"]["d.k"]["before_images"]) == ("all", COMPARED)
        parts.clear()
        _, _, proof = window(made, lake, [row(0, "update", 40, KV, ("5", "z"), ("5", "b"))], 50)
        assert proof["rows"]["d.k"]["written"] == ("all" if buckets == 1 else "1 of 2 buckets")
        assert rows_of(lake, "d.k") == AFTER - table(("5", "b")) + table(("5", "z")), "the other units of the bucket write their rows again"


def test_keys_that_stand_twice_stop_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = fold_tables.stage_files

    def twice(catalog: Any, identifier: str, branch: str, base: int, gone: Any, files: Sequence[WrittenFile], *said: Any) -> StagedFiles:
        """A copy of each file is staged, too."""
        location = Path(catalog.load(identifier).table.location())
        for f in files:
            shutil.copy(location / f.path, location / f"{f.path}.again")
        return plain(catalog, identifier, branch, base, gone, [*files, *(replace(f, path=f"{f.path}.again") for f in files)], *said)

    with opened(tmp_path) as (made, lake):
        with monkeypatch.context() as patch:
            patch.setattr(fold_tables, "stage_files", twice)
            publish(lake, made.add(lake, [row(0, "insert", 10, KV, ("1", "a")), *resolved(15)]))
        hour = made.add(lake, [row(0, "insert", 20, KV, ("2", "a")), *resolved(25)])
        with pytest.raises(QualityError, match=r"d\.k: keys occur twice in the snapshot: \{'id': 1\}") as found:
            publish(lake, hour)
        assert found.value.code == "KEY_NOT_UNIQUE"
        assert len(list(Path(lake.catalog.load("d.k").table.location()).rglob("*.parquet"))) == 1


@pytest.mark.usefixtures("forced")
def test_rows_that_are_deleted_by_position_do_not_come_back(tmp_path: Path) -> None:
    """A window that is merged on read, one that rewrites, and then a key that was deleted by position."""
    with opened(tmp_path, policy=Policy(before_images="all")) as (made, lake):
        first(made, lake)
        window(made, lake, CHANGES, 30)
        _, summary, _ = window(made, lake, [row(0, "update", 40, KV, (str(n), "c"), (str(n), "a")) for n in range(10, 40)], 50)
        assert summary["total-position-deletes"] == "0"
        _, _, proof = window(made, lake, [row(0, "insert", 60, KV, ("6", "back")), row(0, "delete", 61, KV, None, ("7", "a"))], 70)
        assert proof["rows"]["d.k"]["before_images"]["missing"] == 1
        assert rows_of(lake, "d.k")[(("id", "6"), ("v", "back"))] == 1


def test_a_key_of_another_type_moves_its_rows_to_other_buckets(tmp_path: Path) -> None:
    """Neither the snapshot from before the statement nor the changelog has the new table's buckets."""
    text = row_schema("id varchar", "v varchar")
    with opened(tmp_path, SQL, tables={"d.k": TablePolicy(buckets=4)}, policy=Policy(before_images="all")) as (made, lake):
        first(made, lake)
        statement = ddl(41, "ALTER TABLE k MODIFY COLUMN id VARCHAR(20)", 0)
        publish(lake, made.add(lake, [*statement, row(0, "update", 42, text, ("1", "b"), ("1", "a")), *resolved(45)]))
        now = table(*(r for r in ROWS if r[0] != "1"), ("1", "b"))
        assert rows_of(lake, "d.k") == now
        _, _, proof = window(made, lake, [row(0, "update", 50, text, ("2", "c"), ("2", "a")), row(0, "insert", 51, text, ("x", "d"))], 55)
        assert rows_of(lake, "d.k") == table(*(r for r in ROWS if r[0] not in ("1", "2")), ("1", "b"), ("2", "c"), ("x", "d"))
        assert proof["rows"]["d.k"]["before_images"] == {"compared": 2}
        assert proof["rows"]["d.k"]["written"] in ("1 of 4 buckets", "2 of 4 buckets"), "buckets without changes stay"
        assert rows_of(lake, "d.k", 50) == table(*(r for r in ROWS if r[0] not in ("1", "2")), ("1", "b"), ("2", "c"))
        for task in lake.catalog.load("d.k").table.scan().plan_files():
            ids = pq.read_table(task.file.file_path, columns=["id"], partitioning=None).column("id").combine_chunks()
            assert set(buckets_of(ids, 4)) == {task.file.partition[0]}
