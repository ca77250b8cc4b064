"""Reports after a redo and after a rollback: every stored page says what its hour's cut is now."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.cli.calls import call
from tests.lake.histories import publish, publish_again, resolved, row
from tests.lake.killed import Killed, kill_at
from tests.lake.windows import KV, opened
from tests.validate.facts import Page
from tidelake.config.lake_paths import quality_key, report_key
from tidelake.lake.opened import Lake
from tidelake.query.status import feed_status

TEN, ELEVEN, TWELVE = (f"2026-01-05T{h}" for h in (10, 11, 12))


def page(lake: Lake, hour: str) -> Page:
    return Page(lake.store.read(report_key("shop", hour)).decode())


def counts(lake: Lake, hour: str) -> tuple[int | None, int | None]:
    """The cut of an hour's stored report, and the cut that replaced it."""
    facts = json.loads(lake.store.read(quality_key("shop", hour)))
    return facts["cut"], facts["superseded_by"]


@pytest.mark.usefixtures("small_hours")
def test_after_a_redo_the_old_pages_lead_to_its_page_and_its_page_says_which_rows_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as (feed, lake):
        hours = [feed.add(lake, [row(0, "insert", n, KV, (str(n), "a")), *resolved(n + 5)]) for n in (10, 20, 30)]
        assert hours == [TEN, ELEVEN, TWELVE]
        for hour in hours:
            publish(lake, hour)
        lake.store.delete(report_key("shop", ELEVEN))
        feed.redecoded(lake, ELEVEN, [row(0, "insert", 20, KV, ("20", "other")), *resolved(25)])
        publish_again(lake, ELEVEN, ELEVEN)

        assert feed_status(lake)["cut_hours"] == [ELEVEN, TWELVE]
        assert not lake.store.some(report_key("shop", ELEVEN), 1), "a report that nobody wrote is not written now"
        assert (counts(lake, TEN), counts(lake, TWELVE)) == ((1, None), (4, None))
        new = page(lake, TWELVE).words
        assert "A redo: it replaces the cuts after cut 1 up to cut 3; 1 table differs." in new
        assert "Rows that differ from cut 3, which this cut replaces Table Added Removed Changed d.k 0 0 1" in new
        assert "2026-01-05T11 superseded 1 0 0 0" in new, "the plots keep the hour"

        publish_again(lake, ELEVEN, TEN)
        assert counts(lake, TEN) == (1, 5)
        old = page(lake, TEN)
        assert "Superseded by cut 5: a redo replaced cut 1 of feed shop." in old.words
        assert [a["href"] for a in old.elements("a") if not (a["href"] or "").startswith("#")] == [f"{TWELVE}.html"]

        monkeypatch.setattr("tidelake.cli.rollback.opened", lambda *_, **__: nullcontext(lake))
        assert call("rollback", "--feed", "shop", "--to", "cut 1").code == 0
        assert counts(lake, TEN) == (6, None)
        assert "Published: cut 6 of feed shop" in page(lake, TEN).words
        assert "Decoded: feed shop has processed the hour up to this stage and published nothing of it yet" in page(lake, TWELVE).words


@pytest.mark.usefixtures("small_hours")
def test_a_redo_that_was_killed_while_it_published_is_reported_by_the_run_that_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as (feed, lake):
        hours = [feed.add(lake, [row(0, "insert", n, KV, (str(n), "a")), *resolved(n + 5)]) for n in (10, 20, 30)]
        for hour in hours[:2]:
            publish(lake, hour)
        with monkeypatch.context() as patch:
            kill_at(patch, "certificate", 0)
            with pytest.raises(Killed):
                publish_again(lake, ELEVEN, TEN)
        assert (counts(lake, TEN), counts(lake, ELEVEN)) == ((1, None), (2, None))
        publish(lake, TWELVE)
        assert [counts(lake, hour) for hour in hours] == [(1, 3), (3, None), (4, None)]
