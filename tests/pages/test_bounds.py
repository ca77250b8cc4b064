"""How many documents a page reads: a bounded number, however many hours and tables a feed has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.lakes import declared, hours, lake_of
from tests.validate.facts import published
from tidelake.config.lake_paths import manifest_key, quality_key
from tidelake.io.object_store import ObjectInfo
from tidelake.io.storage import open_store
from tidelake.pages.hour_states import HEAD_BYTES
from tidelake.pages.page import page_at
from tidelake.validate.quality.facts import TableFacts
from tidelake.validate.quality.trends import HOURS

COUNT = 100 * 24  # hours of the feed: from January to April
FIRST, LAST = "2026-01-01T00", "2026-04-10T23"
TABLES = [f"d.t{n:03}" for n in range(300)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A feed with a report for every hour of 100 days."""
    made = tmp_path_factory.mktemp("many")
    feed = declared(made)
    lake_of(feed, hour=LAST, tables=TABLES, real=False, first_hour=FIRST)
    facts = published(feed="shop", hour=FIRST, tables={t: TableFacts(events=1, inserts=1, rows_after=1) for t in TABLES})
    text = facts.model_dump_json(indent=1)
    read = {*hours("2026-02-13T13", HOURS), *hours("2026-04-09T00", HOURS)}  # by the pages of tests; of others, the beginning at most
    for hour in hours(FIRST, COUNT):
        report = text.replace(FIRST, hour) if hour in read else text[: 2 * HEAD_BYTES].replace(FIRST, hour)
        for key, content in ((manifest_key("shop", hour, 1), "{}"), (quality_key("shop", hour), report)):
            path = Path(feed.lake.uri) / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    assert hours(FIRST, COUNT)[-1] == LAST
    return made


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Counter[str]:
    """Counts reports that are read, whole or their beginning, and documents that are listed."""
    kind, counts = type(open_store(str(folder))), Counter[str]()
    chunks, objects = kind.chunks, kind.objects

    def counted_chunks(self: object, key: str, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
        if key.startswith("reports/"):
            counts["heads" if end == HEAD_BYTES else "documents"] += 1
        return chunks(self, key, begin, end)

    def counted_objects(self: object, prefix: str = "") -> Iterator[ObjectInfo]:
        for o in objects(self, prefix):
            counts["listed"] += prefix.startswith(("reports/", "manifests/", "decoded/"))
            yield o

    monkeypatch.setattr("tidelake.pages.feed_source.this_month", lambda: LAST[:7])  # the feed runs
    monkeypatch.setattr(kind, "chunks", counted_chunks)
    monkeypatch.setattr(kind, "objects", counted_objects)
    return counts


def test_a_month_of_a_feed_reads_the_heads_of_its_hours_and_no_document(folder: Path, used: Counter[str]) -> None:
    assert page_at(folder / "schemas", "shop/2026-02.html").status == 200
    assert (used["heads"], used["documents"]) == (28 * 24, 0)
    assert used["listed"] <= 4 * 31 * 24


def test_the_first_page_reads_no_report_of_a_feed_that_is_not_stopped(folder: Path, used: Counter[str]) -> None:
    assert page_at(folder / "schemas", "index.html").status == 200
    assert (used["heads"], used["documents"]) == (0, 0)


def test_the_page_of_an_hour_reads_the_hours_of_its_plots_and_lists_the_months_beside_it(folder: Path, used: Counter[str]) -> None:
    assert page_at(folder / "schemas", "shop/2026-02-15T12").status == 200
    assert (used["heads"], used["documents"]) == (0, HOURS)
    assert used["listed"] <= 3 * 31 * 24


def test_the_page_of_a_table_reads_the_hours_of_its_plots(folder: Path, used: Counter[str]) -> None:
    assert page_at(folder / "schemas", f"shop/tables/{TABLES[7]}.html").status == 200
    assert (used["heads"], used["documents"]) == (0, HOURS)
