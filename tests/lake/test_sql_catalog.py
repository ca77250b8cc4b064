"""Tables of a SQL catalog share what was read, and see what others changed."""

from __future__ import annotations

from pathlib import Path

from tests.lake import lakes
from tests.lake.test_staged_files import ROWS, written
from tidelake.lake.catalogs.sql import SharedSqlCatalog
from tidelake.lake.data_files import stage_files


def test_a_metadata_file_is_read_once_and_a_change_of_another_process_is_seen(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    lakes.table(catalog, "d.t", [(1, "a")])
    assert isinstance(catalog.catalog, SharedSqlCatalog)
    one, two = catalog.load("d.t"), catalog.load("d.t")
    assert one.table.metadata is two.table.metadata
    assert one.table.io is two.table.io
    other = lakes.catalog(tmp_path)
    other.append("d.t", lakes.batch(other.load("d.t"), [(2, "b")]))
    assert catalog.load("d.t").main == other.load("d.t").main != one.main


def test_a_commit_leaves_the_shared_metadata_as_it_was_read(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    table = lakes.table(catalog, "d.t", [(1, "a")])
    before = table.table.metadata.model_dump_json()
    stage_files(catalog, "d.t", "run_2_7", table.main, (), [written(table, "new.parquet", ROWS)], {})
    assert table.table.metadata.model_dump_json() == before
    assert catalog.load("d.t").properties["commit.retry.num-retries"] == "10"
