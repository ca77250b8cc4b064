"""Topics of a real broker are archived by hour, every offset once, and land from there as exactly what was produced."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event

import pytest

from tests.archives.objects import Message
from tests.io.kafka_broker import KafkaBroker
from tests.land.archive import archive as store_of
from tests.land.archive import at, codes, contents, lake, landed, manifest
from tests.land.archiver.topics import archived, archiving, following, keys, run, spans
from tests.land.live import FIRST_MS, HOUR_MS, committed, fresh, messages, produce, transact, two_hours_of_three_partitions
from tests.logged import messages_of
from tidelake.config.feed import Feed
from tidelake.errors import LeaseError, OrderError
from tidelake.io.kafka import Topics
from tidelake.land import land_hour
from tidelake.land.archiver.archiver_progress import ArchiveTotals
from tidelake.land.archiver.follow import Goal, archive
from tidelake.land.store.coverage import coverage
from tidelake.land.store.manifest import all_newest
from tidelake.protocols import Context
from tidelake.sniff.archive import look
from tidelake.sniff.promises import promises

TEN, ELEVEN, THIRTEEN = (f"2026-01-05T{hour}" for hour in (10, 11, 13))


def test_what_is_archived_lands_as_it_was_produced(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic, ten, eleven = two_hours_of_three_partitions(kafka)
    feed = archiving(tmp_path, kafka, topic, partitions=3, name=fresh("feed"))
    done = run(feed)
    assert done == ArchiveTotals(messages=198, bytes=done.bytes, objects=6, topics=(topic,))
    assert spans(feed) == {f"{TEN}/{n}": [(0, 39 + n)] for n in range(3)} | {f"{ELEVEN}/{n}": [(40 + n, 64 + n)] for n in range(3)}
    report = land_hour(feed, at(0))
    assert (report.messages, report.sources, report.findings) == (123, 3, ())
    assert landed(feed, manifest(feed, TEN), tmp_path) == {(topic, number): ten[number] for number in range(3)}
    assert land_hour(feed, at(1)).messages == 75
    assert landed(feed, manifest(feed, ELEVEN), tmp_path) == {(topic, number): eleven[number] for number in range(3)}
    assert [committed(kafka, f"tidelake-archive-{feed.name}", topic, number) for number in range(3)] == [65, 66, 67]


def test_a_second_run_goes_on_and_a_third_writes_nothing(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    assert run(feed).messages == 10
    produce(kafka, topic, 0, messages(10, 5))
    assert run(feed).messages == 5
    before = contents(store_of(feed))
    assert run(feed) == ArchiveTotals()
    after = contents(store_of(feed))
    assert {k: v for k, v in after.items() if "leases" not in k} == {k: v for k, v in before.items() if "leases" not in k}
    assert spans(feed) == {f"{TEN}/0": [(0, 9), (10, 14)]}
    assert archived(feed, tmp_path) == {(topic, 0): [*messages(0, 10), *messages(10, 5)]}


def test_a_late_message_belongs_to_the_open_hour_and_a_restart_opens_no_earlier_one(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = archiving(tmp_path, kafka, topic)
    clock = [0, 3599, 3600, 10, 10_800]
    content = [Message(i, b"v", None, FIRST_MS + 1000 * second) for i, second in enumerate(clock)]
    produce(kafka, topic, 0, content)
    run(feed)
    assert spans(feed) == {f"{TEN}/0": [(0, 1)], f"{ELEVEN}/0": [(2, 3)], f"{THIRTEEN}/0": [(4, 4)]}
    late = [Message(5, b"late", None, FIRST_MS + 20_000), Message(6, b"w", None, FIRST_MS + 4 * HOUR_MS)]
    produce(kafka, topic, 0, late)
    run(feed)
    assert spans(feed) == {f"{TEN}/0": [(0, 1)], f"{ELEVEN}/0": [(2, 3)], f"{THIRTEEN}/0": [(4, 4), (5, 5)], "2026-01-05T14/0": [(6, 6)]}
    assert archived(feed, tmp_path) == {(topic, 0): [*content, *late]}
    assert [land_hour(feed, at(hours)).messages for hours in (0, 1, 3, 4)] == [2, 2, 2, 1]
    (section,) = look(feed.source.uri, Context()).sections
    kept = [promise.says.partition(":")[0] for promise in promises(section) if (promise.what, promise.state) == ("hours", "kept")]
    assert kept == ["2 of 7 records are of an earlier hour than their folder"]


def test_offsets_without_messages_are_legal_when_the_archive_lands(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = archiving(tmp_path, kafka, topic)
    transact(kafka, topic, 0, [(messages(0, 3), True), (messages(4, 3), False), (messages(8, 2), True), (messages(11, 2), False)])
    run(feed)
    transact(kafka, topic, 0, [(messages(14, 3, hours=1), True)])
    run(feed)
    produce(kafka, topic, 0, messages(18, 2, hours=2))
    run(feed)
    assert spans(feed) == {f"{TEN}/0": [(0, 13)], f"{ELEVEN}/0": [(14, 17)], "2026-01-05T12/0": [(18, 19)]}
    assert archived(feed, tmp_path)[topic, 0] == [*messages(0, 3), *messages(8, 2), *messages(14, 3, hours=1), *messages(18, 2, hours=2)]
    ten, eleven, twelve = (land_hour(feed, at(hours)) for hours in range(3))
    assert [codes(report.findings) for report in (ten, eleven, twelve)] == [[("LEGAL_GAPS", "info")], [("LEGAL_GAPS", "info")], []]
    assert ten.findings[0].detail == "the topic holds no messages at offsets 3–7, 10–13 (9)"
    facts = manifest(feed, TEN).partitions[topic][0]
    assert (facts.ranges, facts.legal_gaps, facts.gaps) == (((0, 2), (8, 9)), ((3, 7), (10, 13)), ())
    complete = coverage(all_newest(lake(feed), feed.name).values())
    assert (complete.prefixes, complete.holes) == ({topic: {0: (0, 19)}}, {})
    assert sniffed(feed) == (True, 0, 10)
    store_of(feed).delete(keys(feed)[1])
    assert sniffed(feed) == (True, 4, 9)


def sniffed(feed: Feed) -> tuple[bool, int, int]:
    """What `sniff` says of the only topic's offsets: whether all are covered, how many are missing, and how many hold no message."""
    found = look(feed.source.uri, Context())
    (section,) = found.sections
    assert (section.layout, section.topics[0].damaged, found.unknown, found.ignored) == ("canonical", (), (), 2)
    offsets = section.topics[0].offsets
    assert offsets is not None
    says = {promise.what: promise for promise in promises(section)}
    assert says["offsets"].says.endswith(", and the objects record where the log holds no message (transaction markers, compaction)")
    return offsets.covered, offsets.gaps, offsets.legal


def test_an_hour_that_ends_in_a_marker_is_complete_when_the_next_one_has_begun(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = archiving(tmp_path, kafka, topic, source={"closed_by": "next-offset"})
    transact(kafka, topic, 0, [(messages(0, 3), True), (messages(4, 2, hours=1), True)])
    run(feed)
    assert spans(feed) == {f"{TEN}/0": [(0, 2)], f"{ELEVEN}/0": [(3, 6)]}
    assert codes(land_hour(feed, at(0)).findings) == []
    assert codes(land_hour(feed, at(1)).findings) == [("HOUR_NOT_CLOSED", "warning"), ("LEGAL_GAPS", "info")]


def test_an_hour_lacks_what_an_object_that_was_removed_covered(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = archiving(tmp_path, kafka, topic)
    for first in (0, 5, 10):
        produce(kafka, topic, 0, messages(first, 5))
        run(feed)
    store_of(feed).delete(keys(feed)[1])
    with pytest.raises(OrderError, match=rf"^GAP {topic}\[0\]@5: .*offsets 5–9 are missing \(5 messages\)"):
        land_hour(feed, at(0))


@pytest.mark.parametrize("accepted", [False, True])
def test_what_expired_before_it_was_archived_is_never_skipped_in_silence(
    kafka: KafkaBroker, topic: str, accepted: bool, tmp_path: Path
) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    run(feed)
    produce(kafka, topic, 0, messages(10, 10))
    kafka.delete_before(topic, 0, 14)
    said = rf"^EXPIRED {topic}\[0\]@10: the topic's retention deleted offsets 10–13 before they were archived; .*--accept-expired"
    with pytest.raises(OrderError, match=said) as caught:
        run(feed)
    assert (caught.value.exit_code, spans(feed)) == (3, {f"{TEN}/0": [(0, 9)]})
    if accepted:
        with messages_of("archive") as lines:
            archive(feed, Goal(once=True), Event(), accept_expired=True)
        assert lines == [f"{topic}[0]@10: messages before offset 14 were deleted and are not archived"]
        assert spans(feed) == {f"{TEN}/0": [(0, 9), (14, 19)]}
        with pytest.raises(OrderError, match=rf"^GAP {topic}\[0\]@10: .*offsets 10–13 are missing \(4 messages\)"):
            land_hour(feed, at(0))


def test_a_fresh_partition_begins_at_the_earliest_offset(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    kafka.delete_before(topic, 0, 4)
    run(feed)
    assert spans(feed) == {f"{TEN}/0": [(4, 9)]}
    assert codes(land_hour(feed, at(0)).findings) == [("LATE_START", "warning")]


def test_a_topic_that_was_recreated_is_refused_however_many_messages_it_has(
    kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    run(feed)
    with Topics(kafka.servers, {}, "looks") as topics:
        before = topics.ids([topic, "nowhere"])
    kafka.make_anew(topic, 1)
    with monkeypatch.context() as old:
        old.setattr(Topics, "ids", lambda *_: {})  # brokers before 2.8 give none
        with pytest.raises(OrderError) as caught:
            run(feed)
    assert str(caught.value).startswith(f"OFFSETS_WENT_BACK {topic}[0]@10: the archive reaches up to offset 10, and the log ends at 0;")
    produce(kafka, topic, 0, messages(0, 30))
    known = re.escape(before[topic])
    said = rf"^TOPIC_RECREATED: topic {topic} has the id \S+, and the archive has messages of {known}; the topic was recreated"
    with pytest.raises(OrderError, match=said) as again:
        run(feed)
    assert (again.value.exit_code, list(before), spans(feed)) == (3, [topic], {f"{TEN}/0": [(0, 9)]})


def test_markers_behind_the_last_object_may_expire(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = archiving(tmp_path, kafka, topic)
    transact(kafka, topic, 0, [(messages(0, 3), True)])
    run(feed)
    transact(kafka, topic, 0, [(messages(4, 2), False)])
    with Topics(kafka.servers, {}, "looks") as topics:
        while topics.bounds([(topic, 0)])[topic, 0] != (0, 7):  # the coordinator writes the marker after it has answered
            pass
    run(feed)
    assert spans(feed) == {f"{TEN}/0": [(0, 3)]}
    kafka.delete_before(topic, 0, 7)
    assert run(feed) == ArchiveTotals()
    produce(kafka, topic, 0, messages(7, 2))
    assert run(feed).messages == 2
    assert spans(feed) == {f"{TEN}/0": [(0, 3), (4, 8)]}
    assert codes(land_hour(feed, at(0)).findings) == [("LEGAL_GAPS", "info")]
    produce(kafka, topic, 0, messages(9, 2))
    kafka.delete_before(topic, 0, 10)
    with pytest.raises(OrderError, match=rf"^EXPIRED {topic}\[0\]@9: the topic's retention deleted offsets 9 before they were archived"):
        run(feed)


def test_until_an_hour_ends_when_every_partition_has_passed_it(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic = fresh()
    kafka.create(topic, 2)
    feed = archiving(tmp_path, kafka, topic, partitions=2)
    produce(kafka, topic, 0, [*messages(0, 5), *messages(5, 5, hours=1), *messages(10, 1), *messages(11, 5, hours=2)])
    produce(kafka, topic, 1, messages(0, 3))  # it is idle now, and the hour is over
    assert run(feed, Goal(until=at(1))).messages == 14
    assert spans(feed) == {f"{TEN}/0": [(0, 4)], f"{TEN}/1": [(0, 2)], f"{ELEVEN}/0": [(5, 10)]}
    assert run(feed).messages == 5
    assert archived(feed, tmp_path)[topic, 0][11:] == messages(11, 5, hours=2)


def test_two_archivers_at_once_are_kept_apart(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 5))
    with following(feed) as follower:
        follower.until(lambda: len(keys(feed)) == 1)
        other = archiving(tmp_path, kafka, topic, name="other")
        said = rf"^LEASE: the archive {tmp_path}/archive is held by archive of feed small on .*; wait for it"
        with pytest.raises(LeaseError, match=said):
            run(other)
    assert follower.done.messages == 5
    assert run(other) == ArchiveTotals()


def test_new_partitions_and_topics_are_noticed(kafka: KafkaBroker, tmp_path: Path) -> None:
    name = fresh("fits")
    kafka.create(f"{name}_a", 1)
    produce(kafka, f"{name}_a", 0, messages(0, 4))
    feed = archiving(tmp_path, kafka, f"/{name}_.*/")
    with following(feed) as follower:
        follower.until(lambda: len(keys(feed)) == 1)
        kafka.grow(f"{name}_a", 2)
        produce(kafka, f"{name}_a", 1, messages(0, 2))
        kafka.create(f"{name}_b", 1)
        produce(kafka, f"{name}_b", 0, messages(0, 3))
        follower.until(lambda: len(keys(feed)) == 3)
    assert follower.done == ArchiveTotals(messages=9, bytes=follower.done.bytes, objects=3, topics=(f"{name}_a", f"{name}_b"))
    assert {place: len(content) for place, content in archived(feed, tmp_path).items()} == {
        (f"{name}_a", 0): 4,
        (f"{name}_a", 1): 2,
        (f"{name}_b", 0): 3,
    }
