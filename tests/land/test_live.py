"""Live topics of a real broker land hour by hour as exactly what was produced."""

from __future__ import annotations

from pathlib import Path

from tests.kafka_broker import KafkaBroker
from tests.land.archive import at, codes, contents, lake, landed, manifest
from tests.land.live import fresh, live_feed, messages, produce
from tidelake.land import land_hour

TEN, ELEVEN = "2026-01-05T10", "2026-01-05T11"


def test_two_hours_of_three_partitions_land_as_they_were_produced(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic = fresh()
    kafka.create(topic, 3)
    feed = live_feed(tmp_path, kafka, topic, partitions=3)
    ten = [messages(0, 40 + number, headers=[("a", b"x"), ("b", None)] if number == 1 else ()) for number in range(3)]
    eleven = [messages(len(before), 25, hours=1) for before in ten]
    for number in range(3):
        produce(kafka, topic, number, [*ten[number], *eleven[number]])
    report = land_hour(feed, at(0))
    assert (report.new, report.generation, report.messages, report.sources, report.objects_written) == (True, 1, 123, 3, 3)
    assert report.findings == ()
    assert landed(feed, manifest(feed, TEN), tmp_path) == {(topic, number): ten[number] for number in range(3)}
    report = land_hour(feed, at(1))
    assert (report.messages, report.findings) == (75, ())
    assert landed(feed, manifest(feed, ELEVEN), tmp_path) == {(topic, number): eleven[number] for number in range(3)}
    found = manifest(feed, ELEVEN)
    assert [source.model_dump() for source in found.sources] == [
        {"key": f"kafka:{topic}/{n}/{40 + n}-{64 + n}", "size": report.bytes // 3, "etag": None, "sha256": None} for n in range(3)
    ]
    facts = found.partitions[topic][2]
    assert (facts.start, facts.next, facts.ranges, facts.legal_gaps, facts.expired) == (42, 67, ((42, 66),), (), ())


def test_an_hour_that_is_landed_is_not_read_again(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic = fresh()
    kafka.create(topic, 1)
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    land_hour(feed, at(0))
    before = contents(lake(feed))
    produce(kafka, topic, 0, messages(10, 10))
    report = land_hour(feed, at(0))
    assert (report.new, report.messages, report.objects_written, report.objects_kept, codes(report.findings)) == (False, 10, 0, 1, [])
    assert contents(lake(feed)) == before
