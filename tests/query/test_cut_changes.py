"""Which tables a cut changed, as consumers hear of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lake import lakes
from tidelake.config.lake_paths import certificate_key
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.incarnations import Catalog, Column
from tidelake.io.storage import open_store
from tidelake.lake.cut import Cut, TableCut
from tidelake.lake.cuts import record
from tidelake.lake.opened import Lake
from tidelake.maintenance.published_rows import let_go
from tidelake.query.cut_changes import changed_tables

NONE = {"inserts": 0, "updates": 0, "deletes": 0, "upserts": 0}


class History:
    """Cuts that are published one after another."""

    def __init__(self, folder: Path) -> None:
        catalog = lakes.catalog(folder)
        self.lake = Lake(feed=lakes.feed(folder), store=open_store(str(folder / "lake")), settings=catalog.settings, catalog=catalog)
        self._seq = 0

    def publish(self, snapshots: dict[str, int], *, tables: Catalog | None = None, **certificate: Any) -> dict[str, dict[str, int]]:
        """Publish the next cut. snapshots: of each table; certificate: members of it. Returns what it changed."""
        self._seq += 1
        cut = Cut(
            feed="shop",
            seq=self._seq,
            hour=f"2026-01-05T{self._seq:02d}",
            applied_ts=0,
            resolved_ts=self._seq,
            run=f"run_{self._seq}_1",
            version="0",
            catalog=tables or lakes.names(*snapshots),
            snapshots={f"d.{t}@-1": TableCut(identifier=f"d.{t}", uuid=t, snapshot_id=n) for t, n in snapshots.items()},
        )
        self.lake.store.write(certificate_key("shop", self._seq), json.dumps(certificate).encode())
        record(self.lake.catalog, self.lake.store, cut)
        return changed_tables(self.lake, cut)


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


def test_the_first_cut_changes_every_table(history: History) -> None:
    rows = {"d.a": {"inserts": 3, "duplicates": 2, "rows_after": 3}, "d.gone": {"deletes": 1}}
    assert history.publish({"a": 1, "b": 1}, rows=rows) == {"d.a": NONE | {"inserts": 3}, "d.b": NONE}


def test_a_table_that_keeps_its_snapshot_is_not_changed(history: History) -> None:
    history.publish({"a": 1, "b": 1})
    counts = {"inserts": 1, "updates": 2, "deletes": 3, "upserts": 4, "key_changes": 1, "changes": 10}
    assert history.publish({"a": 2, "b": 1}, rows={"d.a": counts, "d.b": {}}) == {
        "d.a": {"inserts": 1, "updates": 2, "deletes": 3, "upserts": 4}
    }
    assert history.publish({"a": 2, "b": 1}) == {}


def test_a_new_table_is_changed_and_a_dropped_one_is_gone(history: History) -> None:
    history.publish({"a": 1, "b": 1})
    assert history.publish({"a": 1, "young": 1}) == {"d.young": NONE}


def test_other_columns_or_another_name_are_a_change_of_the_table(history: History) -> None:
    tables = lakes.names("a", "b")
    history.publish({"a": 1, "b": 1}, tables=tables)
    was = tables.incarnations["d.a@-1"]
    wider = lakes.with_columns(was, *was.columns, Column(id=2, name="v", type=MysqlType("int"), nullable=True))
    altered = replace(tables, incarnations=dict(tables.incarnations) | {was.id: wider})
    assert history.publish({"a": 1, "b": 1}, tables=altered) == {"d.a": NONE}
    named = replace(wider, names=(replace(wider.names[-1], table="other"),))
    renamed = replace(tables, incarnations=dict(tables.incarnations) | {was.id: named})
    assert history.publish({"a": 1, "b": 1}, tables=renamed) == {"d.other": NONE}


def test_what_a_rollback_undid_is_a_change_of_the_next_cut(history: History) -> None:
    history.publish({"a": 1, "b": 1, "c": 1})
    history.publish({"a": 2, "b": 1, "c": 1})
    history.publish({"a": 1, "b": 1, "c": 1}, rollback={"to_cut": 1})
    assert history.publish({"a": 1, "b": 2, "c": 1}) == {"d.a": NONE, "d.b": NONE}


def test_a_redo_changes_the_tables_of_which_it_found_rows_different(history: History) -> None:
    history.publish({"a": 1, "b": 1, "c": 1})
    redo = {"replaces": 1, "tables": {"d.a": {"added": 1, "removed": 0, "changed": 0}}}
    assert history.publish({"a": 2, "b": 2, "c": 1}, redo=redo) == {"d.a": NONE}
    undone = {"to_cut": 1}
    history.publish({"a": 1, "b": 1, "c": 1}, rollback=undone)
    again = {"replaces": 3, "tables": {}}  # compared with the rollback, which nobody heard of
    assert history.publish({"a": 4, "b": 2, "c": 1}, redo=again) == {"d.a": NONE}


def test_without_the_cut_before_every_table_counts_as_changed(history: History) -> None:
    history.publish({"a": 1, "b": 1})
    let_go(history.lake.catalog, "shop", [1], many_files=9)
    assert history.publish({"a": 1, "b": 1}) == {"d.a": NONE, "d.b": NONE}
