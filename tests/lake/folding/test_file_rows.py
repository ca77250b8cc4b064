"""Data files as a fold reads them: by the table's ids, in pieces, without rows that are deleted by position."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.history.ddl.column_types import MysqlType
from tidelake.lake.columns.cells import CastRules, cell_type
from tidelake.lake.columns.fold_columns import Default, FoldColumn, Holder
from tidelake.lake.folding.bucket_rows import BucketOnly, BucketRows
from tidelake.lake.folding.file_rows import FileRef, FileRows, opened
from tidelake.spark.buckets import buckets_of
from tidelake.spark.position_deletes import write_position_deletes

RULES = CastRules(time_zone="UTC", names_sent=True)


def with_id(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def column(name: str, kind: str, *holders: tuple[int, str], default: Default | None = None) -> FoldColumn:
    return FoldColumn(name=name, type=kind, holders=tuple(Holder(field_id=i, type=k) for i, k in holders), default=default)


def wanted_of(rows: FileRows, *numbers: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    out = np.zeros(rows.count, np.bool_)
    out[list(numbers)] = True
    return out


COLUMNS = [
    column("id", "bigint", (1, "bigint")),
    column("v", "string", (2, "string")),
    column("n", "decimal(12,2)", (3, "decimal(9,2)")),
    column("both", "bigint", (5, "bigint"), (4, "string")),
    column("added", "int", default=Default(cell=b"7".hex(), kind=cell_type(MysqlType("int"), RULES))),
    column("late", "int", (6, "int"), default=Default(cell=b"8".hex(), kind=cell_type(MysqlType("int"), RULES), until_ts=10)),
    column("none", "string"),
    column("_commit_ts", "bigint", (9, "bigint")),
]


def files(folder: Path) -> list[FileRef]:
    older = pa.schema(
        [with_id("was", pa.string(), 2), with_id("v", pa.int32(), 1), with_id("x", pa.string(), 4), with_id("ts", pa.int64(), 9)]
    )
    newer = pa.schema(
        [
            with_id("id", pa.int64(), 1),
            with_id("v", pa.string(), 2),
            with_id("n", pa.decimal128(9, 2), 3),
            with_id("both", pa.int64(), 5),
            with_id("both__4", pa.string(), 4),
            with_id("late", pa.int32(), 6),
            with_id("_commit_ts", pa.int64(), 9),
        ]
    )
    pq.write_table(
        pa.table([["a", "b", None], [1, 2, 3], ["5.5", None, "x"], [8, 9, 10]], schema=older), folder / "older", row_group_size=2
    )
    rows = [[4, 5], ["d", "e"], pa.array(["0.50", None]).cast(pa.decimal128(9, 2)), [6, None], [None, "7"], [1, None], [10, 11]]
    pq.write_table(pa.table(rows, schema=newer), folder / "newer")
    return [FileRef(path=f"file:{folder}/{name}", uri=f"{folder}/{name}") for name in ("older", "newer")]


def test_columns_are_found_by_id_converted_joined_and_filled(tmp_path: Path) -> None:
    with opened(files(tmp_path), COLUMNS) as rows:
        assert rows.count == 5
        found = pa.Table.from_batches([p.rows for p in rows.pieces([c.name for c in COLUMNS])]).to_pydict()
        assert found == {
            "id": [1, 2, 3, 4, 5],
            "v": ["a", "b", None, "d", "e"],
            "n": [None, None, None, Decimal("0.50"), None],
            "both": [6, None, None, 6, 7],
            "added": [7] * 5,
            "late": [8, 8, 8, 8, None],
            "none": [None] * 5,
            "_commit_ts": [8, 9, 10, 10, 11],
        }
        assert [(p.first, p.count) for p in rows.pieces(["id"])] == [(0, 2), (2, 1), (3, 2)]
        assert [(p.first, p.count) for p in rows.pieces(["id"], wanted_of(rows, 2))] == [(2, 1)]
        assert [p.first for p in rows.pieces(["added"], wanted_of(rows, 1, 4))] == [0, 3]
        assert np.flatnonzero(rows.may_hold("id", pa.array([3, 9], pa.int64()))).tolist() == [2]
        assert rows.may_hold("v", pa.array(["x"])).all(), "statistics of text may be cut off"
        assert [(path[-5:], at.tolist()) for path, at in rows.positions(wanted_of(rows, 1, 2, 4))] == [("newer", [1]), ("older", [1, 2])]
    for whole, threads in ((False, False), (True, True), (False, True)):
        with opened(files(tmp_path), COLUMNS, whole=whole, threads=threads) as rows:
            assert pa.Table.from_batches([p.rows for p in rows.pieces([c.name for c in COLUMNS])]).to_pydict() == found
    with opened([], COLUMNS) as rows:
        assert (rows.count, list(rows.pieces(["id"]))) == (0, [])


def test_names_with_dots_and_lists_are_told_apart(tmp_path: Path) -> None:
    kinds = {"a": pa.int64(), "a.b": pa.int64(), "v": pa.list_(pa.float32())}
    schema = pa.schema([with_id(name, kind, n) for n, (name, kind) in enumerate(kinds.items(), 1)])
    pq.write_table(pa.table([[1, 2], [30, 40], [[0.5], []]], schema=schema), tmp_path / "dots")
    columns = [
        column("a", "bigint", (1, "bigint")),
        column("a.b", "bigint", (2, "bigint")),
        column("v", "array<float>", (3, "array<float>")),
    ]
    with opened([FileRef(path="dots", uri=f"{tmp_path}/dots")], columns) as rows:
        for name, cells in (("a", [1, 2]), ("a.b", [30, 40]), ("v", [[0.5], []])):
            assert [p.cells(name).to_pylist() for p in rows.pieces([name])] == [cells]
        held = {(name, n): bool(rows.may_hold(name, pa.array([n])).any()) for name in ("a", "a.b") for n in (2, 40)}
        assert held == {("a", 2): True, ("a", 40): False, ("a.b", 2): False, ("a.b", 40): True}


def test_rows_that_are_deleted_by_position_and_other_buckets_are_not_alive(tmp_path: Path) -> None:
    older, newer = files(tmp_path)
    for name, positions in (("one", [0]), ("two", [0, 2])):
        write_position_deletes(tmp_path / name, [(older.path, np.array(positions))])
    refs = [older.model_copy(update={"deletes": (f"{tmp_path}/one", f"{tmp_path}/two")}), newer]
    with opened(refs, COLUMNS) as rows:
        alive = [True] * 2 if (p := next(iter(rows.pieces(["id"])))).alive is None else p.alive.tolist()
        assert alive == [False, True]
        assert [None if p.alive is None else p.alive.tolist() for p in rows.pieces(["v"])] == [[False, True], [False], None]
        inside = buckets_of(pa.array([1, 2, 3, 4, 5], pa.int64()), 2)
        of_bucket = BucketRows(rows, BucketOnly(column="id", buckets=2, number=1))
        found = [(p.first + n, bool(a)) for p in of_bucket.pieces(["v"]) for n, a in enumerate(p.alive if p.alive is not None else [])]
        assert found == [(n, n in (1, 3, 4) and inside[n] == 1) for n in range(5)]
        none = BucketRows(rows, BucketOnly(column="id", buckets=2, number=None))
        assert [bool(a) for p in none.pieces(["v"]) for a in (p.alive if p.alive is not None else [])] == [False] * 5
