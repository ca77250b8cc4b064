"""The rule `closed_by = "resolved"` for live topics of a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.archives.objects import Message
from tests.io.kafka_broker import KafkaBroker
from tests.land.archive import HOUR, codes, lake
from tests.land.live import FIRST_MS, HOUR_MS, fresh, live_feed, produce
from tests.land.resolved import END, MUST, NOTES, SECOND, resolved, rows, waits
from tidelake.io.kafka import Topics
from tidelake.land import land_hour
from tidelake.tso import show


def stamped(*content: Message, minutes: int) -> list[Message]:
    """The messages some minutes after the beginning of the hour."""
    return [m._replace(timestamp_ms=FIRST_MS + minutes * HOUR_MS // 60) for m in content]


def test_messages_behind_the_hour_are_read_until_the_resolved_ts_has_passed_it(
    kafka: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = fresh()
    kafka.create(topic, 2)
    feed = live_feed(tmp_path, kafka, topic, partitions=2, protocol="open")
    feed = feed.model_copy(update={"source": feed.source.model_copy(update={"closed_by": "resolved"})})
    produce(kafka, topic, 0, stamped(*rows(0, 9), resolved(10, END + SECOND), minutes=59))  # of the hour itself: counts for nothing
    produce(kafka, topic, 1, stamped(*rows(0, 4), minutes=59))
    produce(kafka, topic, 0, stamped(*rows(11, 12), resolved(13, END - SECOND), minutes=70))
    stands = f"{topic}[0]: its resolved ts is {show(END - SECOND)}, at offset 13; {MUST}"
    assert waits(feed) == [stands, f"{topic}[1]: there is no message after the hour"]
    assert json.loads(lake(feed).read(NOTES)) == {
        "format": 1,
        "objects": {f"kafka:{topic}/0": {"etag": "", "ranges": [[11, 13]], "resolved_ts": END - SECOND, "offset": 13}},
    }
    report = land_hour(feed, HOUR)
    assert (report.messages, codes(report.findings)) == (16, [("HOUR_NOT_CLOSED", "warning"), ("HOUR_NOT_CLOSED", "warning")])
    assert land_hour(feed, HOUR).findings == report.findings
    produce(kafka, topic, 0, stamped(*rows(14, 15), resolved(16, END + 1), minutes=75))
    produce(kafka, topic, 1, stamped(resolved(5, END + SECOND), *rows(6, 9), minutes=80))
    read: list[tuple[int, int]] = []
    original = Topics.read

    def noted(self: Topics, place: tuple[str, int], begin: int, end: int, *more: Any) -> Iterator[pa.RecordBatch]:
        read.append((place[1], begin))
        return original(self, place, begin, end, *more)

    monkeypatch.setattr(Topics, "read", noted)
    assert (waits(feed), read) == ([], [(0, 14), (1, 5)])
    report = land_hour(feed, HOUR)
    assert (report.new, report.findings, read) == (False, (), [(0, 14), (1, 5)])
