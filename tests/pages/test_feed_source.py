"""What is counted of a feed's ledgers, and how long lists are cut."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.pages.lakes import ADD_NOTE, ELEVEN, ORDERS, declared, hours, lake_of, landed, shop
from tests.pages.taken import page, taken
from tidelake.config.lake_paths import ddl_table, late_table
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog, LakeColumn
from tidelake.lake.ddl_ledger import entries
from tidelake.lake.owner import OWNER
from tidelake.pages import lake_pages
from tidelake.pages.all_feeds import opened_feed
from tidelake.pages.feed_row import FeedRow
from tidelake.spark.lake_settings import lake_settings


def test_late_rows_are_those_of_cuts_that_lead_to_the_newest_one_and_of_the_next_window(tmp_path: Path) -> None:
    feed = declared(tmp_path)
    lake_of(feed, seq=5, parent_seq=0)
    catalog = LakeCatalog(lake_settings(feed))
    catalog.create(late_table("shop"), [LakeColumn(name="seq", type="int")], properties={OWNER: "shop"})
    catalog.append(late_table("shop"), pa.table({"seq": [4, 5, 5, 6]}))
    assert "Late rows arrived after the cut that should hold them 3" in page(tmp_path, "shop/index.html").words, "4 was undone"


def test_a_table_has_the_statements_of_cuts_that_lead_to_the_newest_one(tmp_path: Path) -> None:
    catalog = LakeCatalog(lake_settings(shop(tmp_path)))
    (entry,) = entries(catalog, "shop")
    catalog.append(ddl_table(), pa.Table.from_pylist([entry | {"seq": 9, "statement": "ALTER TABLE orders ADD undone INT"}]))
    words = page(tmp_path, f"shop/tables/{ORDERS}.html").words
    assert (ADD_NOTE in words, "ADD undone INT" in words) == (True, False)


def test_the_first_page_lists_a_bounded_number_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_pages, "MOST_TABLES", 3)
    rows = [FeedRow(feed=name, word="ok", tone="good", tables=("d.a", "d.b")) for name in ("one", "two")]
    found = taken(lake_pages.feeds_page(rows))
    assert "d.a one d.b one d.a two 1 table more: the page of a feed lists all of its tables." in found.words
    assert "more:" not in taken(lake_pages.feeds_page(rows[:1])).words


def test_hours_that_were_landed_long_after_the_newest_cut_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelake.pages.feed_source.this_month", lambda: "2026-08")
    feed = declared(tmp_path)
    lake_of(feed)
    for hour in (*hours(ELEVEN, 2), "2026-07-01T00"):
        landed(open_store(feed.lake.uri), "shop", hour)
    with opened_feed(tmp_path / "schemas", "shop") as source:
        assert source.newer_hours == ["2026-01-05T12", "2026-07-01T00"]
        assert (source.months[0], source.months[-1], len(source.months)) == ("2026-01", "2026-07", 7)
