"""What people are told while topics are archived."""

from __future__ import annotations

import pytest

from tests.land.archiver.topics import batch
from tests.logged import messages_of
from tidelake.land.archiver import archiver_progress as progress
from tidelake.land.archiver.archiver_progress import ArchiveProgress


def test_a_line_says_messages_speed_objects_and_what_is_behind_by_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    told = ArchiveProgress()
    whole = batch(range(1000), [1] * 1000)
    with messages_of("archive") as lines:
        told.read(whole)
        clock[0] += progress.LOG_SECONDS - 1
        told.now_and_then([("shop", 5)])
        assert lines == []
        clock[0] += 1
        told.now_and_then([("shop", 5), ("b", 0), ("shop", 1200)])
        speed = whole.nbytes / 1_000_000 / progress.LOG_SECONDS
        assert lines == [f"1,000 messages read, {speed:.1f} MB/s; 0 objects written; behind: b 0, shop 1,205"]
        clock[0] += progress.LOG_SECONDS
        told.now_and_then([])
        assert lines[1] == "0 messages read, 0.0 MB/s; 0 objects written; behind: no topics"
