"""The rows of cuts: a few files are rewritten at a time, and the cuts are what they were."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake import lakes
from tests.searches import examples
from tidelake.config.lake_paths import ddl_table, published_table
from tidelake.history.window import LedgerEntry
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import changelog_retained_after, ensure_published, known_cuts
from tidelake.lake.ddl_ledger import enter, entries
from tidelake.maintenance import published_rows
from tidelake.maintenance.published_rows import join_statements, let_go, raise_retained_after

Rows = list[tuple[int, str | None, bool]]


def publish(catalog: LakeCatalog, feed: str, seq: int, tables: Sequence[int]) -> None:
    """A file with the rows of a cut, one for each of these tables."""
    ensure_published(catalog)
    schema = catalog.load(published_table()).table.schema().as_arrow()
    rows = [{"feed": feed, "seq": seq, "hour": f"h{seq}", "resolved_ts": seq * 10, "table": f"t{n}", "snapshot_id": n} for n in tables]
    catalog.append(published_table(), pa.Table.from_pylist(rows, schema=schema), {})


def rows_of(catalog: LakeCatalog, feed: str) -> Rows:
    found = catalog.load(published_table()).scan({"feed": feed}).read_all().to_pylist()
    return sorted((r["seq"], r["table"] or "", bool(r["expired"])) for r in found)


def files(catalog: LakeCatalog, identifier: str = published_table()) -> list[int]:
    """Rows of each file."""
    return sorted(task.file.record_count for task in catalog.load(identifier).table.scan().plan_files())


@settings(max_examples=examples(12), deadline=None)
@given(
    tables=st.lists(st.integers(1, 4), min_size=1, max_size=9),
    going=st.lists(st.sets(st.integers(1, 9)), min_size=1, max_size=3),
    many=st.integers(1, 4),
    share=st.integers(1, 12),
)
def test_each_cut_that_goes_leaves_a_mark_and_all_others_stay(
    tables: list[int], going: list[set[int]], many: int, share: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    catalog = lakes.catalog(tmp_path_factory.mktemp("lake"))
    for seq, n in enumerate(tables, 1):
        publish(catalog, "shop", seq, range(1))
        publish(catalog, "shop", seq, range(1, n))
        publish(catalog, "other", seq, range(1))
    gone = set[int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published_rows, "SHARE_ROWS", share)
        for now in going:
            gone |= now & set(range(1, len(tables) + 1))
            let_go(catalog, "shop", sorted(now), many)
            wanted = [(seq, "", True) if seq in gone else (seq, f"t{k}", False) for seq, n in enumerate(tables, 1) for k in range(n)]
            assert rows_of(catalog, "shop") == sorted({*wanted})
            assert {seq: c.expired for seq, c in known_cuts(catalog, "shop").items()} == {n + 1: n + 1 in gone for n in range(len(tables))}
    assert rows_of(catalog, "other") == [(n + 1, "t0", False) for n in range(len(tables))]


def test_files_are_put_together_up_to_the_size_of_a_share_and_then_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_rows, "SHARE_ROWS", 6)
    catalog = lakes.catalog(tmp_path)
    for seq in range(1, 8):
        publish(catalog, "shop", seq, range(2))
    let_go(catalog, "shop", [], 3)
    assert files(catalog) == [2, 6, 6]
    before = catalog.load(published_table()).main
    let_go(catalog, "shop", [], 3)
    assert catalog.load(published_table()).main == before, "nothing is small"
    let_go(catalog, "shop", [2], 3)
    assert files(catalog) == [2, 5, 6], "the other share is not touched"


def test_statements_stay_as_they_are_in_fewer_files(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    join_statements(catalog, "shop", 3)
    assert catalog.find(ddl_table()) is None
    empty = Cut(feed="shop", seq=0, hour="h", applied_ts=0, resolved_ts=0, run="r", version="0")
    for seq in range(1, 6):
        entries_of = [LedgerEntry(commit_ts=seq * 10 + n, database="d", query=f"q{n}", effect="no effect") for n in range(2)]
        for feed in ("shop", "other"):
            enter(catalog, empty.model_copy(update={"feed": feed, "seq": seq, "ledger": entries_of}), None)
    before = {feed: entries(catalog, feed) for feed in ("shop", "other")}
    join_statements(catalog, "shop", 6)
    assert files(catalog, ddl_table()) == [2] * 10, "five are not many"
    join_statements(catalog, "shop", 5)
    assert files(catalog, ddl_table()) == [2] * 5 + [10]
    assert {feed: entries(catalog, feed) for feed in ("shop", "other")} == before
    assert len(before["shop"]) == 10


def test_the_newest_cut_says_up_to_when_changes_are_gone_for_all(tmp_path: Path) -> None:
    catalog = lakes.catalog(tmp_path)
    for seq in (1, 2, 3):
        publish(catalog, "shop", seq, range(2))
    raise_retained_after(catalog, "shop", 3, 25)
    raise_retained_after(catalog, "shop", 3, 20)
    assert (changelog_retained_after(catalog, "shop"), known_cuts(catalog, "shop")[1].changelog_retained_after) == (25, None)
    let_go(catalog, "shop", [3], 1)
    assert changelog_retained_after(catalog, "shop") == 25, "its mark says so, too"
