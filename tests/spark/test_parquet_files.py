"""Parquet files of workers: what is in them when columns come as dictionaries."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.spark.parquet_files import OpenFile

SCHEMA = pa.schema([pa.field("v", pa.string(), metadata={"PARQUET:field_id": "7"}), pa.field("n", pa.int64())])
LONG = [f"{n:064d}" for n in range(5000)]  # together longer than a dictionary that the writer makes itself


def test_a_dictionary_is_written_whole_and_read_as_the_values_of_the_schema(tmp_path: Path) -> None:
    path, repeated = tmp_path / "f.parquet", LONG * 10
    with OpenFile(path, SCHEMA) as file:
        file.write(pa.table({"n": range(len(repeated)), "v": pa.array(repeated).dictionary_encode()}))
        file.write(pa.table({"n": [1, 2], "v": ["plain", None]}))
    assert file.rows == len(repeated) + 2
    assert pq.read_table(path).column("v").to_pylist() == [*repeated, "plain", None]
    assert pq.read_schema(path).field("v").equals(SCHEMA.field("v"), check_metadata=True)
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size < 68 * len(LONG) + 4 * len(repeated)


def test_bounds_are_those_of_values_that_rows_have(tmp_path: Path) -> None:
    path, cells = tmp_path / "f.parquet", pa.array(["a", "m", "n", None, "z"]).dictionary_encode()
    with OpenFile(path, SCHEMA) as file:
        file.write(pa.table({"n": [1, 2, 3], "v": cells[1:4]}))
    found = pq.read_metadata(path).row_group(0).column(0).statistics
    assert (found.min, found.max, found.null_count) == ("m", "n", 1)


def test_a_file_without_rows_has_its_schema(tmp_path: Path) -> None:
    with OpenFile(tmp_path / "f.parquet", SCHEMA) as file:
        pass
    assert file.rows == pq.read_table(tmp_path / "f.parquet").num_rows == 0
    assert pq.read_schema(tmp_path / "f.parquet").equals(SCHEMA, check_metadata=True)
