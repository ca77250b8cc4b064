"""Which cuts are kept: told from the newest, thinned to days, whatever was rolled back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.feed_texts import PLAIN, loaded, refused
from tidelake.config.retention import Maintenance, changes_kept_after, retained
from tidelake.tso import last_of

KEEP = Maintenance.model_validate({"keep_cuts": "2d", "keep_daily": "10d"})
START = datetime(2026, 3, 1, tzinfo=UTC)


def ts(hours: float) -> int:
    """A TSO so many hours after the start."""
    return last_of(START + timedelta(hours=hours))


def test_young_cuts_all_stay_older_ones_are_thinned_to_the_last_of_a_day_and_the_oldest_go() -> None:
    cuts = {n + 1: ts(n * 6) for n in range(4 * 14)}  # four a day for two weeks; the newest on day 13 at 18:00
    kept = retained(cuts, KEEP)
    assert [s for s, why in kept.items() if why == "every"] == list(range(48, 56))  # 48 hours old at most
    assert [s for s, why in kept.items() if why == "daily"] == [16, 20, 24, 28, 32, 36, 40, 44]  # day 3 is 10 days old at 18:00
    assert kept[56] == "newest"
    assert len(kept) == 17


def test_a_feed_that_stands_still_loses_nothing() -> None:
    assert retained({1: ts(-9000), 2: ts(-8999)}, KEEP) == {1: "every", 2: "newest"}


def test_forever_is_forever() -> None:
    cuts = {1: ts(0), 2: ts(1), 3: ts(90000)}
    assert retained(cuts, Maintenance.model_validate({"keep_cuts": "forever"})) == {1: "every", 2: "every", 3: "newest"}
    assert retained(cuts, Maintenance.model_validate({"keep_cuts": "2d", "keep_daily": "forever"})) == {2: "daily", 3: "newest"}


def test_what_a_rollback_undid_stays_as_long_as_any_cut_but_never_stands_for_a_day() -> None:
    cuts = {1: ts(1), 2: ts(5), 3: ts(20), 4: ts(5), 5: ts(19)}  # 4 goes back to 2, 5 goes forward again
    assert retained(cuts, KEEP).keys() == {1, 2, 3, 4, 5}
    assert retained(cuts | {6: ts(100)}, KEEP) == {5: "daily", 6: "newest"}


@given(st.lists(st.integers(0, 24 * 40), min_size=1, max_size=40), st.integers(0, 24 * 40))
def test_letting_go_day_by_day_keeps_what_letting_go_at_once_keeps(hours: list[int], until: int) -> None:
    cuts = {n + 1: ts(h) for n, h in enumerate(sorted(hours))}
    before = {s: t for s, t in cuts.items() if t <= ts(until)}
    left = {s: cuts[s] for s in retained(before, KEEP)} | {s: t for s, t in cuts.items() if s not in before}
    assert retained(left, KEEP) == retained(cuts, KEEP)
    assert max(cuts) in retained(cuts, KEEP)


def test_no_cuts_is_no_mistake() -> None:
    assert retained({}, KEEP) == {}


def test_the_section_is_read_and_has_the_documented_defaults(tmp_path: Path) -> None:
    keep = loaded(tmp_path, PLAIN).maintenance
    assert (keep.keep_cuts, keep.keep_daily, keep.orphan_age) == (timedelta(days=30), timedelta(days=365), timedelta(days=3))
    assert (keep.file_mb, keep.small_files) == (128, 5)
    text = '[maintenance]\nkeep_cuts = "36h"\nkeep_daily = "forever"\nfile_mb = 512\nsmall_files = 8\norphan_age = "7d"\n'
    keep = loaded(tmp_path, PLAIN + text).maintenance
    assert (keep.keep_cuts, keep.keep_daily, keep.orphan_age) == (timedelta(hours=36), None, timedelta(days=7))
    assert (keep.file_mb, keep.small_files) == (512, 8)
    assert (keep.keep_changelog, keep.archive_changelog) == (None, None)
    keep = loaded(tmp_path, PLAIN + '[maintenance]\nkeep_changelog = "90d"\narchive_changelog = "s3://old/changes"\n').maintenance
    assert (keep.keep_changelog, keep.archive_changelog) == (timedelta(days=90), "s3://old/changes")


def test_changes_are_kept_from_the_day_of_the_cut_that_their_age_reaches_back_to() -> None:
    keep = KEEP.model_copy(update={"keep_changelog": timedelta(days=3)})
    cuts = [ts(h) for h in (5, 29, 77, 101, 140)]
    assert changes_kept_after(cuts, ts(140), keep) == ts(24) - (1 << 18), "the cut before 68 is of the second day"
    assert changes_kept_after(cuts, ts(149), keep) == ts(72) - (1 << 18), "a cut of just that age counts"
    assert changes_kept_after(cuts[2:], ts(140), keep) == ts(48) - (1 << 18), "without such a cut age alone tells"
    assert changes_kept_after(cuts, ts(29), keep) == ts(-48) - (1 << 18), "before anything was"
    assert changes_kept_after(cuts, ts(9000), KEEP) == 0


MISTAKES = {
    'keep_cuts = "30"': 'maintenance.keep_cuts: a time like "36h" or "30d", or "forever" (found \'30\')',
    "keep_cuts = 30": 'maintenance.keep_cuts: a time like "36h" or "30d", or "forever" (found 30)',
    'keep_cuts = "0d"': 'maintenance.keep_cuts: a time like "36h" or "30d", or "forever" (found \'0d\')',
    'keep_cuts = "23h"': "maintenance: keep_cuts should be a day at least: readers that use a cut's snapshot ids need that time",
    'keep_daily = "7d"': "maintenance: keep_daily should be as long as keep_cuts at least; older cuts are thinned to one a day",
    'orphan_age = "2d"': 'maintenance: orphan_age should be "3d" at least: younger files may belong to a run that is not published yet',
    'orphan_age = "forever"': 'maintenance: orphan_age should be "3d" at least: younger files may belong to a run '
    "that is not published yet",
    "small_files = 1": "maintenance.small_files: Input should be greater than or equal to 2 (found 1)",
    "keep = 1": "maintenance.keep: unknown key; allowed: keep_cuts, keep_daily, file_mb, small_files, orphan_age, "
    "keep_changelog, archive_changelog",
    'keep_changelog = "29d"': "maintenance: keep_changelog should be as long as keep_cuts at least: "
    "between cuts that are all kept every TSO must be readable",
    'archive_changelog = "s3://b/a"': "maintenance: archive_changelog needs keep_changelog: changes are copied when they reach that age",
    'keep_changelog = "90d"\narchive_changelog = ""': "maintenance.archive_changelog: String should have at least 1 character (found '')",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_says_what_is_allowed(line: str, tmp_path: Path) -> None:
    assert refused(tmp_path, f"{PLAIN}[maintenance]\n{line}\n") == MISTAKES[line]
