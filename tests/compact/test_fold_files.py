"""Data files as the fold reads them: by the table's ids, whatever they call a column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.compact.fold_files import FileRows


def with_id(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def test_columns_are_found_by_id_widened_and_null_where_a_file_has_none(tmp_path: Path) -> None:
    older = pa.schema([with_id("was", pa.string(), 2), with_id("v", pa.int32(), 1), with_id("gone", pa.string(), 7)])
    newer = pa.schema([with_id("id", pa.int64(), 1), with_id("v", pa.string(), 2), with_id("n", pa.decimal128(9, 2), 3)])
    pq.write_table(pa.table([["a", "b", None], [1, 2, 3], ["x"] * 3], schema=older), tmp_path / "older", row_group_size=2)
    pq.write_table(pa.table([[4, 5], ["d", "e"], pa.array(["0.50", None]).cast(pa.decimal128(9, 2))], schema=newer), tmp_path / "newer")
    wanted = pa.schema([newer.field("id"), newer.field("v"), with_id("n", pa.decimal128(12, 2), 3)])
    rows = FileRows([pq.ParquetFile(tmp_path / name) for name in ("older", "newer")], wanted)
    some, others, none = np.array([1, 2, 4]), np.array([0, 3]), np.array([], np.int64)
    for _ in range(2):  # read, then from what was kept of the key
        assert [c.to_pylist() for c in rows.cells("id", some, others, none)] == [[2, 3, 5], [1, 4], []]
        assert rows.whole("id").equals(pa.array([1, 2, 3, 4, 5], pa.int64()))
    assert [c.to_pylist() for c in rows.cells("v", some, others)] == [["b", None, "e"], ["a", "d"]]
    (n,) = rows.cells("n", np.arange(5))
    assert (n.type, [None if x is None else str(x) for x in n.to_pylist()]) == (pa.decimal128(12, 2), [None, None, None, "0.50", None])
    assert FileRows([], wanted).whole("n").equals(pa.array([], pa.decimal128(12, 2)))
