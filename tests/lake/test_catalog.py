"""The catalog's control plane: ownership, columns, branches, two writers at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.lake import lakes
from tidelake.errors import ConfigError, StorageError
from tidelake.lake.catalog import LakeCatalog, LakeColumn
from tidelake.lake.scans import After


def test_a_namespace_belongs_to_the_feed_that_took_it_first(tmp_path: Path) -> None:
    lake = lakes.catalog(tmp_path)
    lake.claim_namespace("d", "shop")
    lake.claim_namespace("d", "shop")
    with pytest.raises(ConfigError, match="belongs to feed 'shop', feed 'other' may not write there") as error:
        lake.claim_namespace("d", "other")
    assert 'namespace = "{feed}_{database}"' in error.value.remedy


def test_a_namespace_that_was_there_before_is_left_alone(tmp_path: Path) -> None:
    lake = lakes.catalog(tmp_path)
    lake.catalog.create_namespace("theirs")
    with pytest.raises(ConfigError, match="was not created by Tidelake"):
        lake.claim_namespace("theirs", "shop")


def test_many_threads_claim_one_namespace(tmp_path: Path) -> None:
    lake = lakes.catalog(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: lake.claim_namespace("d", "shop"), range(16))) == [None] * 16


@pytest.mark.parametrize(
    "kind",
    [
        "int",
        "bigint",
        "float",
        "double",
        "date",
        "timestamp_ntz",
        "timestamp",
        "string",
        "binary",
        "boolean",
        "decimal(20,0)",
        "array<float>",
    ],
)
def test_a_column_of_every_lake_type_comes_back_as_it_was_said(kind: str, tmp_path: Path) -> None:
    lake = lakes.catalog(tmp_path)
    column = LakeColumn(name="c", type=kind, doc="7: whatever")
    made = lakes.table(lake, "d.t", columns=(column, LakeColumn(name="_commit_ts", type="bigint")))
    assert made.columns()[0] == column
    assert (made.columns()[0].source_id, made.columns()[1].source_id) == (7, None)


def test_a_table_keeps_its_uuid_under_another_name(tmp_path: Path) -> None:
    lake = lakes.catalog(tmp_path)
    made = lakes.table(lake, "d.t", [(1, "a")])
    lake.rename("d.t", "d.u")
    assert lake.find("d.t") is None
    assert lake.load("d.u").uuid == made.uuid
    assert lakes.contents(lake, "d.u") == [{"id": 1, "v": "a", "_commit_ts": 1}]


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    lake = lakes.catalog(tmp_path)
    for name in ("d.t", "d.u"):
        lakes.table(lake, name)
    with pytest.raises(StorageError) as error:
        lake.rename("d.t", "d.u")
    assert error.value.code == "TABLE_EXISTS"


def test_rows_on_a_branch_are_not_seen_until_main_moves_there(tmp_path: Path) -> None:
    lake = lakes.catalog(tmp_path)
    made = lakes.table(lake, "d.t", [(1, "a")])
    head = lakes.stage(lake, made, "run_1", [(2, "b")])
    assert len(lakes.contents(lake, "d.t")) == 1
    lake.advance(lake.load("d.t"), made.main, head, "run_1")
    after = lake.load("d.t")
    assert (after.main, after.branches, len(lakes.contents(lake, "d.t"))) == (head, [], 2)


def test_main_does_not_move_from_where_it_is_not(tmp_path: Path) -> None:
    lake = lakes.catalog(tmp_path)
    made = lakes.table(lake, "d.t", [(1, "a")])
    head = lakes.stage(lake, made, "run_1", [(2, "b")])
    moved = lake.append("d.t", lakes.batch(made, [(3, "c")]))
    with pytest.raises(StorageError) as error:
        lake.advance(lake.load("d.t"), made.main, head, "run_1")
    assert error.value.code == "TABLE_MOVED"
    assert lake.load("d.t").main == moved


def test_appends_at_once_all_arrive(tmp_path: Path) -> None:
    lake = lakes.catalog(tmp_path)
    made = lakes.table(lake, "d.t")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: lake.append("d.t", lakes.batch(made, [(n, "x")])), range(8)))
    assert [r["id"] for r in lakes.contents(lake, "d.t")] == list(range(8))


def meanwhile(lake: LakeCatalog, patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Acts right after a table was loaded for the next time."""
    plain = lake.catalog.load_table

    def load(identifier: str) -> Any:
        table = plain(identifier)
        patch.undo()
        act()
        return table

    patch.setattr(lake.catalog, "load_table", load)


def test_a_commit_on_another_branch_meanwhile_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lakes.catalog(tmp_path)
    made = lakes.table(lake, "d.t", [(1, "a")])
    meanwhile(lake, monkeypatch, lambda: lakes.stage(lake, made, "run_1_1", [(2, "b")]))
    lake.append("d.t", lakes.batch(made, [(3, "c")]))
    stood = lake.load("d.t")
    assert [r["id"] for r in lakes.contents(lake, "d.t")] == [1, 3]
    assert [r["id"] for r in lakes.contents(lake, "d.t", stood.branch("run_1_1"))] == [1, 2]


def test_rows_of_a_file_that_was_rewritten_meanwhile_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lakes.catalog(tmp_path)
    lakes.table(lake, "d.t", [(1, "a"), (2, "b"), (3, "c")])
    meanwhile(lake, monkeypatch, lambda: lake.remove("d.t", {"id": 1}))
    lake.remove("d.t", {"id": 2})
    assert [r["id"] for r in lakes.contents(lake, "d.t")] == [3]


def test_a_scan_takes_values_lists_and_ranges(tmp_path: Path) -> None:
    lake = lakes.catalog(tmp_path)
    made = lakes.table(lake, "d.t", [(n, "ab"[n % 2]) for n in range(6)])
    found = {
        "value": made.scan({"v": "a"}, ["id"]),
        "list": made.scan({"id": [1, 3, 99]}, ["id"]),
        "range": made.scan({"id": After(1, 3)}, ["id"]),
    }
    ids = {name: sorted(reader.read_all().column("id").to_pylist()) for name, reader in found.items()}
    assert ids == {"value": [0, 2, 4], "list": [1, 3], "range": [2, 3]}
