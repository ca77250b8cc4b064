"""Position delete files: what is written is read again, for each data file its own positions, whatever the row groups."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.errors import StorageError
from tidelake.io.storage import open_store
from tidelake.spark import position_deletes
from tidelake.spark.parquet_files import footer
from tidelake.spark.position_deletes import deleted_positions, write_position_deletes

PATHS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
DELETED = st.dictionaries(PATHS, st.sets(st.integers(0, 1 << 40), max_size=9), max_size=6)


def write(path: Path, deleted: Mapping[str, set[int]]) -> int:
    return write_position_deletes(path, ((p, np.array(sorted(deleted[p]), np.int64)) for p in sorted(deleted)))


@given(st.lists(DELETED, max_size=3), PATHS, st.integers(1, 7))
def test_each_data_file_has_the_union_of_its_positions(files: list[dict[str, set[int]]], other: str, rows: int) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(position_deletes, "GROUP_ROWS", rows)
        for n, deleted in enumerate(files):
            assert write(Path(folder, f"{n}.parquet"), deleted) == sum(map(len, deleted.values()))
        keys = [f"{n}.parquet" for n in range(len(files))]
        for path in {other}.union(*files):
            expected = sorted(set[int]().union(*(f.get(path, set()) for f in files)))
            found = deleted_positions(open_store(folder), keys, path)
            assert (found.tolist(), found.dtype) == (expected, np.int64)


def test_the_file_is_as_iceberg_specifies(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    assert write(path, {"file:/b": {7, 3}, "file:/a": {1 << 33}}) == 3
    file = pq.ParquetFile(path)
    assert file.read().to_pylist() == [{"file_path": p, "pos": n} for p, n in [("file:/a", 1 << 33), ("file:/b", 3), ("file:/b", 7)]]
    fields = [(f.name, f.type, f.nullable, f.metadata[b"PARQUET:field_id"]) for f in file.schema_arrow]
    assert fields == [("file_path", pa.string(), False, b"2147483546"), ("pos", pa.int64(), False, b"2147483545")]
    assert {file.metadata.row_group(0).column(n).compression for n in (0, 1)} == {"ZSTD"}
    assert pq.read_metadata(io.BytesIO(footer(path))).num_rows == 3


def test_row_groups_of_other_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position_deletes, "GROUP_ROWS", 2)
    write(tmp_path / "d.parquet", {"a": {1, 2}, "b": {3, 4}, "c": {5, 6, 7}, "d": {8}})
    read, plain = list[tuple[list[int], list[str]]](), pq.ParquetFile.iter_batches

    def watched(self: pq.ParquetFile, size: int, groups: list[int], columns: list[str], **options: Any) -> Any:
        read.extend([(groups, columns)] if groups else [])
        return plain(self, size, groups, columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    assert [deleted_positions(open_store(str(tmp_path)), ["d.parquet"], p).tolist() for p in "bcx"] == [[3, 4], [5, 6, 7], []]
    assert read == [([1], ["pos"]), ([2], ["pos"]), ([3], ["file_path", "pos"])]


def test_a_file_without_statistics_is_read_whole(tmp_path: Path) -> None:
    rows = pa.table({"file_path": ["a", "b"], "pos": [1, 2]}, position_deletes.POSITION_DELETES)
    pq.write_table(rows, tmp_path / "d.parquet", write_statistics=False)
    assert deleted_positions(open_store(str(tmp_path)), ["d.parquet"], "b").tolist() == [2]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([("b", [1]), ("a", [1])], "a comes after b"),
        ([("a", [1]), ("a", [2])], "a comes after a"),
        ([("a", [2, 1])], "a: positions must ascend"),
        ([("a", [1, 1])], "a: positions must ascend"),
        ([("a", [-1])], "a: positions must ascend from 0"),
    ],
)
def test_what_does_not_ascend_is_refused(found: list[tuple[str, list[int]]], said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        write_position_deletes(tmp_path / "d.parquet", ((p, np.array(n, np.int64)) for p, n in found))


def test_a_delete_file_that_is_lost_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"lost\.parquet") as found:
        deleted_positions(open_store(str(tmp_path)), ["lost.parquet"], "a")
    assert found.value.code == "NOT_FOUND"
