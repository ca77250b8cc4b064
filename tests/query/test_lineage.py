"""What the newest cut and an hour without documents say of a stage; tests/airflow/test_hour.py has the chain of a real hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.publish.two_cuts import published_twice
from tidelake.lake.opened import Lake
from tidelake.query.lineage import Facts, facts, main

FIRST, SECOND = "2026-01-05T10", "2026-01-05T11"
NOTHING: Facts = {"inputs": [], "outputs": []}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return published_twice(tmp_path)


def test_compact_wrote_the_tables_that_its_cut_changed_from_their_changelogs(lake: Lake, tmp_path: Path) -> None:
    found = facts(lake, "compact", SECOND, redo=False)
    made = {d.table[1]: d for d in found["outputs"] if d.table}
    assert sorted(made) == ["d.a", "d.b", "d.c", "d.young"]  # a has a row more, b and c swapped their names
    warehouse = str(tmp_path / "lake" / "warehouse")
    a, [log] = made["d.a"], found["inputs"]
    assert (a.namespace, a.name.rpartition("-")[0], a.table) == ("file", f"{warehouse}/d/a", (warehouse, "d.a"))
    assert (a.rows, a.source) == (None, log)  # its snapshot only has the column's new name
    assert [(name, kind) for name, kind, _ in a.columns] == [("id", "bigint"), ("w", "string"), ("_commit_ts", "bigint")]
    assert a.version == str(lake.catalog.load("d.a").main)
    assert log.table == (warehouse, "d_changelog.a")
    young = made["d.young"]
    assert (young.rows, young.files, young.source) == (1, 1, None)


def test_a_table_that_the_cut_left_as_it_was_is_no_output(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelake.query.lineage.changed_tables", lambda lake, cut: {"d.young": {}})
    found = facts(lake, "compact", SECOND, redo=False)
    assert [d.table[1] for d in found["outputs"] if d.table] == ["d.young"]
    assert found["inputs"] == []


def test_an_hour_that_another_run_published_is_nothing_but_a_redo_may_end_later(lake: Lake) -> None:
    assert facts(lake, "compact", FIRST, redo=False) == NOTHING
    assert facts(lake, "compact", FIRST, redo=True) == facts(lake, "compact", SECOND, redo=False)
    assert facts(lake, "compact", "2026-01-05T12", redo=True) == NOTHING


@pytest.mark.parametrize("stage", ["land", "order", "validate"])
def test_a_stage_that_did_nothing_has_no_datasets(lake: Lake, stage: str) -> None:
    assert facts(lake, stage, "2026-01-05T12", redo=False) == NOTHING


def test_landed_objects_are_named_by_their_prefix(lake: Lake, tmp_path: Path) -> None:
    [landed] = facts(lake, "decode", FIRST, redo=False)["inputs"]
    assert (landed.namespace, landed.name) == ("file", str(tmp_path / "lake" / "landed" / "shop" / "t"))


def test_a_feed_that_cannot_be_read_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "nobody", "order", FIRST]) == 2
    assert capsys.readouterr().err.startswith("error: CONFIG: no feed 'nobody'")
