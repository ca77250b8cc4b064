"""Files that workers wrote, staged: a branch begins, takes them, and earlier attempts' branches go, in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.lake import lakes
from tidelake.errors import StorageError
from tidelake.lake import data_files
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.data_files import WrittenFile, columns_of_files, stage_files
from tidelake.spark.parquet_files import OpenFile, footer

RUN = "run_2_7"
ROWS = ((3, "c"), (4, "d"))


def written(table: LakeTable, name: str, rows: Sequence[tuple[int, str]], partition: tuple[Any, ...] = ()) -> WrittenFile:
    """A file below the table's location, as a worker leaves it."""
    path = Path(table.table.location(), name)
    with OpenFile(path, columns_of_files(table)) as file:
        file.write(lakes.batch(table, rows))
    return WrittenFile(path=name, partition=partition, size=path.stat().st_size, footer=footer(path))


def commits(catalog: LakeCatalog, table: LakeTable) -> int:
    return len(catalog.load(table.identifier).table.metadata.metadata_log)


def rows(catalog: LakeCatalog, table: LakeTable, branch: str) -> list[int]:
    stood = catalog.load(table.identifier)
    return [int(str(r["id"])) for r in lakes.contents(catalog, table.identifier, stood.branch(branch))]


def paths(table: LakeTable) -> list[str]:
    return [f.path for f in table.files({}, [], table.main)]


def test_one_commit_begins_the_branch_fills_it_and_clears_what_was_left(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    table = lakes.table(catalog, "d.t", [(1, "a")])
    base = table.main
    catalog.append("d.t", lakes.batch(table, [(2, "b")]))
    for left in (RUN, "run_2_6", "theirs"):
        lakes.stage(catalog, catalog.load("d.t"), left, [(9, "left")])
    main, before = catalog.load("d.t").main, commits(catalog, table)
    given = stage_files(catalog, "d.t", RUN, base, (), [written(table, "new.parquet", ROWS)], {"tidelake.run": RUN})
    stood = catalog.load("d.t")
    assert commits(catalog, table) == before + 1
    assert (stood.main, sorted(stood.branches)) == (main, [RUN, "theirs"])
    assert rows(catalog, table, RUN) == [1, 3, 4]
    assert (given.table.branch(RUN), given.table.uuid) == (stood.branch(RUN), table.uuid)
    assert {s.snapshot_id: s.parent_snapshot_id for s in stood.table.snapshots()}[stood.branch(RUN)] == base
    assert stood.summary(stood.branch(RUN))["tidelake.run"] == RUN


def test_files_take_the_place_of_those_of_the_base(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    table = lakes.table(catalog, "d.t", [(1, "a")])
    gone = paths(table)
    catalog.append("d.t", lakes.batch(table, [(2, "b")]))
    base = catalog.load("d.t").main
    stage_files(catalog, "d.t", RUN, base, gone, [written(table, "new.parquet", ROWS)], {})
    assert rows(catalog, table, RUN) == [2, 3, 4]
    assert rows(catalog, table, "main") == [1, 2]


def manifests(catalog: LakeCatalog, branch: str) -> list[tuple[int, ...]]:
    """Spec, and files added, kept and removed, of each manifest that the branch's snapshot wrote."""
    table = catalog.load("d.t").table
    snapshot = table.snapshot_by_name(branch)
    assert snapshot is not None
    counts = ("partition_spec_id", "added_files_count", "existing_files_count", "deleted_files_count")
    new = (m for m in snapshot.manifests(table.io) if m.added_snapshot_id == snapshot.snapshot_id)
    return sorted(tuple(int(getattr(m, c) or 0) for c in counts) for m in new)


def test_files_that_come_and_go_share_a_manifest(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    table = lakes.table(catalog, "d.t", [(1, "a")])
    gone = paths(table)
    stage_files(catalog, "d.t", RUN, table.main, gone, [written(table, "new.parquet", ROWS)], {})
    assert manifests(catalog, RUN) == [(0, 1, 0, 1)]
    assert rows(catalog, table, RUN) == [3, 4]


def test_files_of_other_partitions_get_a_manifest_of_their_own(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    table = lakes.table(catalog, "d.t", [(1, "a")])
    gone = paths(table)
    with table.table.update_spec() as spec:
        spec.add_identity("id")
    stage_files(catalog, "d.t", RUN, table.main, gone, [written(table, "new.parquet", [(3, "c")], (3,))], {})
    assert manifests(catalog, RUN) == [(0, 0, 0, 1), (1, 1, 0, 0)]
    assert rows(catalog, table, RUN) == [3]


def test_of_several_manifests_the_one_of_the_tables_partitions_takes_the_files(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    table = lakes.table(catalog, "d.t", [(1, "a")])
    with table.table.update_spec() as spec:
        spec.add_identity("id")
    catalog.append("d.t", lakes.batch(table, [(2, "b")]))
    with catalog.load("d.t").table.update_spec() as spec:
        spec.remove_field("id")
    both = catalog.load("d.t")
    stage_files(catalog, "d.t", RUN, both.main, paths(both), [written(table, "new.parquet", ROWS)], {})
    assert manifests(catalog, RUN) == [(0, 1, 0, 1), (1, 0, 0, 1)]
    assert rows(catalog, table, RUN) == [3, 4]


def test_files_that_are_not_in_the_base_stop_it(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    table = lakes.table(catalog, "d.t", [(1, "a")])
    base = table.main
    catalog.append("d.t", lakes.batch(table, [(2, "b")]))
    with pytest.raises(StorageError) as found:
        stage_files(catalog, "d.t", RUN, base, paths(catalog.load("d.t")), [], {})
    assert found.value.code == "TABLE_MOVED"
    assert catalog.load("d.t").branches == []


def test_a_commit_that_comes_between_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = lakes.catalog(tmp_path)
    table = lakes.table(catalog, "d.t", [(1, "a")])
    base, plain, tries = table.main, data_files._put, 0

    def put(*given: Any) -> list[str]:
        nonlocal tries
        tries += 1
        if tries == 1:
            catalog.append("d.t", lakes.batch(table, [(2, "b")]))
        return plain(*given)

    monkeypatch.setattr(data_files, "_put", put)
    stage_files(catalog, "d.t", RUN, base, (), [written(table, "new.parquet", ROWS)], {})
    assert rows(catalog, table, RUN) == [1, 3, 4]
    assert rows(catalog, table, "main") == [1, 2]
    assert catalog.load("d.t").branches == [RUN]
