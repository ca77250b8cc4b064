"""Tables that workers fold: the same snapshots as by Spark's SQL, which takes what they refuse."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.compact.large_tables import AFTER, CHANGES, ROWS, first, window
from tests.lake.histories import Message, ddl, publish, resolved, row, row_schema, rows_of
from tests.lake.lakes import contents
from tests.lake.windows import KV, TEXT, opened
from tidelake.compact import fold_files, fold_tables
from tidelake.compact.fold_files import Unit
from tidelake.compact.fold_plan import FoldPlan
from tidelake.compact.fold_target import FoldWork
from tidelake.config.feed import TablePolicy
from tidelake.config.lake_paths import certificate_key
from tidelake.config.policy import Policy
from tidelake.errors import QualityError
from tidelake.lake.catalog import LakeTable
from tidelake.lake.data_files import WrittenFile
from tidelake.lake.opened import Lake

pytestmark = pytest.mark.usefixtures("spark_app")

SQL = """CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20));
CREATE TABLE d.many (a VARCHAR(20), b DECIMAL(6,2), at DATETIME(6), since TIMESTAMP, day DATE, f FLOAT, d DOUBLE, raw VARBINARY(9), j JSON,
  s ENUM('x','y'), PRIMARY KEY (b, a));
CREATE TABLE d.bare (v VARCHAR(20));"""
KNEW = row_schema("id bigint", "w varchar", "n int")
MANY = row_schema(
    *("a varchar", "b decimal", "at datetime", "since timestamp", "day date", "f float", "d double", "raw varbinary", "j json", "s enum"),
    key=("a", "b"),
)
NO_CHANGES = "the changes to fold are unknown, or there are none"


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


def publish_both(folder: Path) -> list[dict[str, Any]]:
    """After each window: what the tables hold, and what the certificates say of them."""
    told = []
    everything = {name: TablePolicy(buckets=4) for name in ("d.k", "d.many")}
    with opened(folder, SQL, tables=everything, policy=Policy(before_images="all")) as (made, lake):
        for messages in (first_window(), second_window(), *statement_windows()):
            cut = publish(lake, made.add(lake, messages))
            assert cut is not None
            proof = json.loads(lake.store.read(certificate_key("shop", cut.seq)))
            held = {t: sorted(contents(lake.catalog, t), key=str) for t in ("d.k", "d.many", "d.bare")}
            told.append({"rows": held, "proof": proof["rows"], "sorted": [keys(lake, t) for t in ("k", "many")]})
    return told


def keys(lake: Lake, table: str) -> list[Any]:
    """Of each data file in turn, by bucket: are they in order."""
    stood = lake.catalog.load(f"d.{table}")
    names = ("id",) if table == "k" else ("b", "a")
    found = []
    for task in sorted(stood.table.scan(selected_fields=names).plan_files(), key=lambda t: t.file.partition[0]):
        rows = pq.read_table(task.file.file_path, columns=list(names), partitioning=None).to_pylist()
        found.append([tuple(r[n] for n in names) for r in rows])
    return found


class Plans:
    """What became of each table in turn: `workers`, or why Spark's SQL folds it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuse: bool = False) -> None:
        self.found: list[tuple[str, str]] = []
        self.made: list[FoldPlan] = []
        plain = fold_tables.plan

        def plan(work: FoldWork) -> FoldPlan | str:
            made = "refused" if refuse else plain(work)
            self.made += [made] if isinstance(made, FoldPlan) else []
            self.found.append((work.fold.incarnation.name, made if isinstance(made, str) else "workers"))
            return made

        monkeypatch.setattr(fold_tables, "plan", plan)


def test_workers_and_sql_make_the_same_of_a_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "workers").mkdir()
    with monkeypatch.context() as patch:
        Plans(patch, refuse=True)
        by_sql = publish_both(tmp_path / "sql")
    plans = Plans(monkeypatch)
    by_workers = publish_both(tmp_path / "workers")
    keyed = [p for p in plans.found if p[0] != "d.bare"]
    assert [p[1] for p in keyed[:4]] == ["workers"] * 4
    assert {p[1] for p in plans.found if p[0] == "d.bare"} == {"no key, or one with a column that has no buckets", NO_CHANGES}
    assert [p[1] for p in plans.found if p[0] == "d.k"][2:] == ["a statement changed the columns", "workers"]
    assert [p[1] for p in plans.found if p[0] == "d.many"][2:] == ["workers", NO_CHANGES]
    assert by_workers == by_sql
    assert by_sql[1]["proof"]["d.many"]["before_images"]["differs"] == 2
    assert all(found == sorted(found) for window in by_workers for table in window["sorted"] for found in table)


def test_what_a_worker_refuses_is_folded_by_sql_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans, plain = Plans(monkeypatch), fold_tables._run
    written: list[str] = []

    def refused(spark: Any, made: Sequence[FoldPlan]) -> list[Any]:
        found = plain(spark, made)
        for f in found:
            written.extend(file.path for file in f.files)
            f.refused = "one of the buckets"
        return found

    monkeypatch.setattr(fold_tables, "_run", refused)
    with opened(tmp_path, SQL, tables={"d.k": TablePolicy(buckets=4)}) as (made, lake):
        first(made, lake)
        publish(lake, made.add(lake, [*CHANGES, *resolved(30)]))
        assert rows_of(lake, "d.k") == AFTER
        location = Path(lake.catalog.load("d.k").table.location())
        assert len(written) == 4 + 3
        assert list(location.rglob("*.parquet"))
        assert not [path for path in written if (location / path).exists()]
        monkeypatch.setattr(fold_files, "MOST_BYTES", 0)
        plan = plans.made[-1]
        units = [Unit(table=7, bucket=b.number, base=b.base, changes=b.changes) for b in plan.buckets]
        (told,) = fold_files.fold_units({7: plan.table}, units)
        assert set(told["refused"].to_pylist()) == {"the bucket is too large for a worker"}
        assert not list(location.rglob("bucket=*/*.parquet"))


def test_keys_that_stand_twice_stop_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = fold_tables.stage_files

    def twice(catalog: Any, identifier: str, branch: str, base: int, gone: Any, files: Sequence[WrittenFile], said: Any) -> LakeTable:
        """A copy of each file is staged, too."""
        location = Path(catalog.load(identifier).table.location())
        for f in files:
            shutil.copy(location / f.path, location / f"{f.path}.again")
        return plain(catalog, identifier, branch, base, gone, [*files, *(replace(f, path=f"{f.path}.again") for f in files)], said)

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
def test_buckets_that_are_deleted_from_by_position_are_sql_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = Plans(monkeypatch)
    with opened(tmp_path, policy=Policy(before_images="all")) as (made, lake):
        first(made, lake)
        window(made, lake, CHANGES, 30)
        window(made, lake, [row(0, "update", 40, KV, (str(n), "c"), (str(n), "a")) for n in range(10, 40)], 50)
    assert [p for n, p in plans.found if n == "d.k"] == ["workers", "merged on read", "rows are deleted by position"]
