"""A large table without key: tasks share it by ranges of its first column whose values have an order."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lake.histories import Message, publish, resolved, row, row_schema
from tests.lake.lakes import contents
from tests.lake.windows import opened
from tidelake.compact import fold_files, fold_tables
from tidelake.compact.fold_source import FoldJob, FoldReader
from tidelake.lake.columns import survivors
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.folding.units import Unit
from tidelake.lake.opened import Lake
from tidelake.spark import workers

pytestmark = pytest.mark.usefixtures("small_hours")

SQL = "CREATE TABLE d.log (note VARCHAR(20), level INT, at BIGINT);"
LOG = row_schema("note varchar", "level int", "at bigint")
GHOST = ("never written", "7", "7")
Cells = tuple[str | None, ...]


def _window(rng: random.Random, rows: Counter[Cells], ts: int) -> list[Message]:
    """Changes of rows, which follow them."""
    out = []
    for _ in range(80 if ts == 10 else 8):
        new = (rng.choice(["a", "b", None]), rng.choice([None, *map(str, range(-3, 20))]), rng.choice(["1", "2"]))
        held = sorted(rows.elements(), key=str)
        old = rng.choice(held) if ts > 10 and rng.random() < 0.7 else None
        gone = old is not None and rng.random() < 0.4
        out.append(row(0, "insert" if old is None else "delete" if gone else "update", ts, LOG, None if gone else new, old, table="log"))
        rows.subtract([old] * (old is not None))
        rows.update([new] * (not gone))
    return out


def _levels(lake: Lake) -> list[list[int | None]]:
    """The column of ranges, file by file."""
    files = lake.catalog.load("d.log").table.scan().plan_files()
    return [pq.read_table(t.file.file_path, columns=["level"], partitioning=None)["level"].to_pylist() for t in files]


@pytest.mark.parametrize("tables", [1, 2])
def test_arrow_has_all_cores_where_one_unit_is_folded_alone(tables: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, folded = list[int](), fold_files._folded
    monkeypatch.setattr(fold_files, "_folded", lambda *given: (found.append(pa.cpu_count()), folded(*given))[1])
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _: range(7), raising=False)
    monkeypatch.setattr(workers.os, "cpu_count", lambda: 7)
    with opened(tmp_path, "".join(SQL.replace("log", f"log{n}") for n in range(tables))) as (made, lake):
        rows = [row(0, "insert", 10, LOG, ("a", "1", "2"), None, table=f"log{n}") for n in range(tables)]
        publish(lake, made.add(lake, [*rows, *resolved(15)]))
    assert found == ([7] if tables == 1 else [pa.cpu_count()] * 2)


@pytest.mark.parametrize("seed", range(3))
def test_every_unit_folds_the_rows_of_its_range(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    units, rng, rows = list[list[Unit]](), random.Random(seed), Counter[Cells]()

    def noted(job: FoldJob) -> FoldReader:
        units.append([unit for part in job.parts for unit in part])
        return FoldReader(job)

    monkeypatch.setattr(survivors, "PASS_ROWS", 6)
    monkeypatch.setattr(fold_tables, "FoldReader", noted)
    with opened(tmp_path, SQL) as (made, lake):
        for ts in (10, 20, 30, 40):
            messages = _window(rng, rows, ts)
            ghost = [row(0, "delete", ts + 1, LOG, None, GHOST, table="log")] if ts == 30 else []
            cut = publish(lake, made.add(lake, [*messages, *ghost, *resolved(ts + 5)]))
            assert cut is not None
            held = contents(lake.catalog, "d.log")
            assert Counter(tuple(None if v is None else str(v) for c, v in r.items() if c != "_commit_ts") for r in held) == +rows
            counts = read_certificate(lake.store, "shop", cut.seq)["rows"]["d.log"].get("before_images", {})
            assert counts.get("missing", 0) == len(ghost)
            of_files = [[n for n in levels if n is not None] for levels in _levels(lake) if ts > 10]
            assert all(levels == sorted(levels) for levels in of_files)
            spans = sorted((levels[0], levels[-1]) for levels in of_files if levels)
            assert all(last < first for (_, last), (first, _) in pairwise(spans))
    assert len(units[0]) == 1, "every unit would read all changes"
    assert all(len(units[n]) <= len(units[n + 1]) for n in (0, 1, 2))
    assert len(units[-1]) >= 4
    assert all(u.keys is not None and u.keys.column == "level" for of_window in units[1:] for u in of_window)
