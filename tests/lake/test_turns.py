"""Hours go in order: one that no cut holds is refused with the command that brings it in, whatever the newest cut reaches to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calls import call
from tests.cli.feeds import FEED, write
from tests.lake.cheap import publish
from tests.lake.histories import publish as publish_hour
from tests.lake.histories import resolved, row, rows_of
from tests.lake.windows import KV, opened, table
from tidelake.config.feed import load_feed
from tidelake.errors import OrderError
from tidelake.io import storage
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.lake.turns import check_hours, is_published
from tidelake.maintenance import redo as redo_module
from tidelake.maintenance.redo import plan_redo, redo
from tidelake.query.status import feed_status
from tidelake.run import decode, order
from tidelake.tso import parse_hour

STAGES = ("run", "decode", "order", "validate", "compact")


@pytest.fixture
def schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Feed shop with an empty archive."""
    (tmp_path / "archive" / "open" / "shop.open").mkdir(parents=True)
    monkeypatch.setenv("TIDELAKE_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("TIDELAKE_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDELAKE_SCHEMAS", str(tmp_path / "schemas"))
    storage.reset()
    write(tmp_path / "schemas")
    yield tmp_path / "schemas"
    storage.reset()


def starting_with(schemas: Path, hour: str) -> None:
    (schemas / "shop" / "feed.toml").write_text(FEED.replace("[lake]", f'first_hour = "{hour}"\n\n[lake]'))


def published(schemas: Path, generations: dict[str, int]) -> None:
    """Cut 1 at 2026-01-01T11, which holds these hours, as versions before `first_hour` wrote it."""
    with Lake.of(load_feed(schemas, "shop")) as lake:
        cut = publish(lake, None, 11)
        lake.store.write("cuts/shop/00000001.json", cut.model_copy(update={"generations": generations}).model_dump_json().encode())


# a fresh feed


def test_a_feed_that_starts_with_an_hour_takes_no_later_one_first(schemas: Path) -> None:
    starting_with(schemas, "2026-01-01T10")
    for command in (["run"], ["run", "--dry-run"]):
        said = call(*command, "--feed", "shop", "--hour", "2026-01-01T12")
        assert said.code == 3
        assert "HOUR_MISSING: feed shop: 2 hours before 2026-01-01T12 are not landed: 2026-01-01T10, 2026-01-01T11" in said.out + said.err
        assert "the feed starts with hour 2026-01-01T10" in said.out + said.err
        assert "run `tidelake run --feed shop --hour 2026-01-01T10 --hours 2`" in said.out + said.err
    assert not (schemas.parent / "lake" / "manifests").exists()  # nothing was landed


def test_hours_before_the_feed_s_first_one_are_refused_in_words(schemas: Path) -> None:
    starting_with(schemas, "2026-01-01T10")
    for stage in (*STAGES, "land", "run --dry-run", "land --dry-run"):
        said = call(*stage.split(), "--feed", "shop", "--hour", "2026-01-01T09")
        assert (said.code, said.out) == (2, ""), stage
        assert "BEFORE_FIRST_HOUR: hour 2026-01-01T09 of feed shop is before its first hour, 2026-01-01T10" in said.err
    said = call("redo", "--feed", "shop", "--from", "2026-01-01T09")
    assert (said.code, "BEFORE_FIRST_HOUR" in said.err) == (2, True)


def test_a_first_hour_that_is_none_is_told_by_check(schemas: Path) -> None:
    starting_with(schemas, "2026-01-05 10:00")
    said = call("check")
    assert said.code == 2
    assert "source.first_hour: an hour (UTC), like 2026-01-05T10 (found '2026-01-05 10:00')" in said.out


def test_the_hours_of_a_window_begin_with_the_feed_s_first(tmp_path: Path) -> None:
    with opened(tmp_path) as (made, _):
        feed = made.feed
        check_hours(feed, None, ["2026-01-05T11"], "2026-01-05T11")
        started = feed.model_copy(update={"source": feed.source.model_copy(update={"first_hour": "2026-01-05T10"})})
        check_hours(started, None, ["2026-01-05T10", "2026-01-05T11"], "2026-01-05T11")
        with pytest.raises(OrderError, match="1 hour before 2026-01-05T11 is not landed: 2026-01-05T10; the feed starts with hour"):
            check_hours(started, None, ["2026-01-05T11"], "2026-01-05T11")
        seed = Cut(feed="shop", seq=1, seeded_ts=5, hour="2026-01-05T08", applied_ts=0, resolved_ts=5, run="r", version="0")
        with pytest.raises(OrderError, match="1 hour before 2026-01-05T11 is not landed: 2026-01-05T10"):
            check_hours(started, seed, ["2026-01-05T11"], "2026-01-05T11")
        check_hours(feed, seed, ["2026-01-05T11"], "2026-01-05T11")


# hours that no cut holds


def test_an_hour_below_the_first_cut_is_not_published_for_any_stage(schemas: Path) -> None:
    published(schemas, {"2026-01-01T11": 1})
    for command in (*STAGES, "run --dry-run"):
        said = call(*command.split(), "--feed", "shop", "--hour", "2026-01-01T10")
        assert said.code == 3, command
        assert (
            "HOUR_SKIPPED: hour 2026-01-01T10 of feed shop is not published: its cuts begin with hour 2026-01-01T11" in said.out + said.err
        )
        assert "`tidelake redo --feed shop --from 2026-01-01T10`" in said.out + said.err
        assert "nothing to" not in said.out
    assert call("run", "--feed", "shop", "--hour", "2026-01-01T11", "--dry-run").out.startswith("shop 2026-01-01T11: already published")


def test_a_dry_run_of_a_skipped_hour_says_what_the_run_says(schemas: Path) -> None:
    published(schemas, {"2026-01-01T11": 1})
    dry, real = (call("run", "--feed", "shop", "--hour", "2026-01-01T13", *more) for more in (["--dry-run"], []))
    assert (dry.code, real.code) == (3, 3)
    assert real.err.removeprefix("error: ").strip() in dry.out
    assert dry.out.startswith("shop 2026-01-01T13: would not be published\n")
    assert "HOUR_MISSING: feed shop: 1 hour before 2026-01-01T13 is not landed: 2026-01-01T12" in dry.out
    for number in (12, 13):
        path = schemas.parent / f"archive/open/shop.open/dt=2026-01-01/hr={number}/shop.open+0+{number:020}.jsonl.gz"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"to come")
    both = call("run", "--feed", "shop", "--hour", "2026-01-01T12", "--hours", "2", "--dry-run")
    assert (both.code, both.out.count("would be published")) == (0, 2)


def test_status_calls_no_hour_published_that_no_cut_holds(tmp_path: Path) -> None:
    with opened(tmp_path) as (feed, lake):
        for messages in (resolved(100), resolved(200)):
            feed.add(lake, messages)
        cut = Cut(feed="shop", seq=1, hour="2026-01-05T11", first_hour="2026-01-05T11", applied_ts=0, resolved_ts=9, run="r", version="0")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tidelake.query.status.newest_cut", lambda *_: cut)
            assert [h["stage"] for h in feed_status(lake)["hours"]] == ["decoded", "published"]


def test_an_hour_that_an_export_holds_is_none_that_was_skipped(tmp_path: Path) -> None:
    with opened(tmp_path) as (made, lake):
        end = 463368564662075392  # in 2026-01-05
        cut = Cut(feed="shop", seq=1, seeded_ts=end, hour="2026-01-05T11", applied_ts=0, resolved_ts=end, run="r", version="0")
        with pytest.raises(OrderError) as refused:
            is_published(made.feed, lake.catalog, lake.store, cut, "2026-01-01T10")
        assert refused.value.code == "BEFORE_SEED"


def test_a_redo_from_before_the_export_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, lake):
        first = publish(lake, None, 11)
        seed = first.model_copy(update={"seeded_ts": first.resolved_ts})
        lake.store.write("cuts/shop/00000001.json", seed.model_dump_json().encode())
        with pytest.raises(OrderError) as refused:
            plan_redo(lake, parse_hour("2026-01-01T10"), parse_hour("2026-01-01T10"))
        assert (refused.value.code, refused.value.remedy) == ("BEFORE_SEED", "redo hours after 2026-01-01T11")


@pytest.mark.usefixtures("small_hours")
def test_a_redo_brings_in_hours_below_the_first_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as (feed, lake):
        feed.hour, ten = 10, [row(0, "insert", 10, KV, ("1", "a")), *resolved(15)]
        eleven = [row(0, "insert", 20, KV, ("2", "b")), row(0, "update", 22, KV, ("1", "c"), ("1", "a")), *resolved(25)]
        feed.offsets[0] = len(ten)
        first = publish_hour(lake, feed.add(lake, eleven))
        assert first is not None
        assert first.first_hour == "2026-01-05T11"

        with pytest.raises(OrderError, match="HOUR_SKIPPED"):
            order(lake, parse_hour("2026-01-05T10"))
        with pytest.raises(OrderError, match="HOUR_SKIPPED"):
            decode(lake, parse_hour("2026-01-05T10"))  # its rows would come late
        plan = plan_redo(lake, parse_hour("2026-01-05T10"), parse_hour("2026-01-05T10"))
        assert (plan.decoded, plan.lands, plan.until) == (["2026-01-05T10"], ["2026-01-05T10"], "2026-01-05T11")
        assert "  land 2026-01-05T10 first" in plan.lines()
        plan = plan_redo(lake, parse_hour("2026-01-05T08"), parse_hour("2026-01-05T08"))
        assert plan.decoded == plan.lands == ["2026-01-05T08", "2026-01-05T09", "2026-01-05T10"]  # without a hole

        def landed(lake: Lake, *_: object, **__: object) -> None:
            feed.hour, feed.offsets[0] = 9, 0
            feed.add(lake, ten)

        monkeypatch.setattr(redo_module, "land", landed)
        monkeypatch.setattr(redo_module, "decode", lambda *_, **__: None)
        done = redo(lake, parse_hour("2026-01-05T10"), parse_hour("2026-01-05T10"))
        assert done.plan.seq == 2
        assert rows_of(lake, "d.k") == table(("1", "c"), ("2", "b"))
        cut = newest_cut(lake.catalog, lake.store, "shop")
        assert cut is not None
        assert (cut.first_hour, cut.hour, cut.parent_seq) == ("2026-01-05T10", "2026-01-05T11", 0)
        assert is_published(lake.feed, lake.catalog, lake.store, cut, "2026-01-05T10")
        assert "is published: cut 2 reaches to hour 2026-01-05T11" in order(lake, parse_hour("2026-01-05T10")).why

        feed.redecoded(lake, "2026-01-05T10", ten, generation=2)
        why = order(lake, parse_hour("2026-01-05T10")).why
        assert "contains the hour as decoded before" in why
        assert "`tidelake redo --feed shop --from 2026-01-05T10` publishes the hour again" in why
