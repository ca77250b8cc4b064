"""Tables of a SQL catalog share what was read, and see what others changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.serializers import FromInputFile
from pyiceberg.types import LongType
from sqlalchemy import text

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


def test_a_commit_copies_no_snapshot(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    before = lakes.table(catalog, "d.t", [(1, "a")]).table.metadata.snapshots
    catalog.set_properties("d.t", {"one": "two"})
    after = catalog.load("d.t").table.metadata.snapshots
    assert [id(s) for s in after] == [id(s) for s in before]


def test_a_commit_takes_the_place_of_what_was_read(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    for name in ("d.t", "d.u"):
        lakes.table(catalog, name, [(1, "a")])
        for n in range(3):
            catalog.set_properties(name, {"one": str(n)})
    client = catalog.catalog
    assert isinstance(client, SharedSqlCatalog)
    assert list(client._known) == [catalog.load(name).table.metadata_location for name in ("d.t", "d.u")]


def test_the_metadata_of_a_commit_is_that_of_its_file(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    table = lakes.table(catalog, "d.t", [(1, "a")])
    stage_files(catalog, "d.t", "run_2_7", table.main, (), [written(table, "new.parquet", ROWS)], {})
    catalog.evolve("d.t", lambda u: u.add_column("more", LongType(), doc="7: bigint"))
    catalog.set_properties("d.t", {"one": "two"})
    catalog.advance(catalog.load("d.t"), table.main, catalog.load("d.t").branch("run_2_7"), "run_2_7")
    known = catalog.load("d.t").table
    assert known.metadata.model_dump() == FromInputFile.table_metadata(known.io.new_input(known.metadata_location)).model_dump()
    assert known.metadata == lakes.catalog(tmp_path).load("d.t").table.metadata


def test_a_commit_that_another_process_overtakes_fails_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, other = lakes.catalog(tmp_path), lakes.catalog(tmp_path)
    table = lakes.table(catalog, "d.t", [(1, "a")])
    assert isinstance(catalog.catalog, SharedSqlCatalog)
    write = catalog.catalog._write_metadata

    def overtaken(**given: object) -> None:
        write(**given)
        other.set_properties("d.t", {"by": "another"})

    monkeypatch.setattr(catalog.catalog, "_write_metadata", overtaken)
    with pytest.raises(CommitFailedException, match=r"updated by another process: d\.t"):
        catalog.catalog.load_table("d.t").transaction().set_properties({"by": "us"}).commit_transaction()
    assert catalog.load("d.t").properties["by"] == "another"
    assert catalog.load("d.t").main == table.main


def test_a_commit_that_changes_nothing_writes_no_metadata(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    before = lakes.table(catalog, "d.t", [(1, "a")])
    catalog.catalog.commit_table(before.table, (), ())
    assert catalog.load("d.t").metadata == before.metadata


def test_a_view_is_no_table(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    lakes.table(catalog, "d.t", [(1, "a")])
    assert isinstance(catalog.catalog, SharedSqlCatalog)
    with catalog.catalog.engine.begin() as connection:
        connection.execute(text("UPDATE iceberg_tables SET iceberg_type = 'VIEW'"))
    with pytest.raises(NoSuchTableError, match=r"Table does not exist: d\.t"):
        catalog.catalog.load_table("d.t")
    assert catalog.find("d.t") is None
