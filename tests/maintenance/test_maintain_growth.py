"""What grows with the number of cuts, and what maintenance keeps from growing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.maintenance import curve


@pytest.mark.long
@pytest.mark.usefixtures("small_hours")
def test_after_200_cuts_files_snapshots_and_metadata_are_as_after_three_days(tmp_path: Path) -> None:
    kept = list(curve(tmp_path / "kept", 200, every=24))
    third, last = kept[2], kept[-1]
    assert (third.cuts, last.cuts, last.rows) == (72, 200, 201)
    assert all(p.files <= 1 + 200 % 24 for p in kept)
    assert all(p.published_files <= 1 + 200 % 24 + 1 for p in kept)
    assert all(p.changelog_files <= p.cuts // 24 + 1 + 200 % 24 for p in kept), "one a day"
    assert last.snapshots <= third.snapshots + 24 + 6  # the day that is not over, and one for each day
    assert last.metadata_bytes < 2 * third.metadata_bytes


@pytest.mark.long
@pytest.mark.usefixtures("small_hours")
def test_without_maintenance_they_grow(tmp_path: Path) -> None:
    [first, last] = [p for p in curve(tmp_path / "left", 72, every=None) if p.cuts in (24, 72)]
    assert (first.files, last.files) == (25, 73)
    assert last.snapshots - first.snapshots == 48
    assert last.metadata_bytes > 2 * first.metadata_bytes
