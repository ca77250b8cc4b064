"""Live topics of a real broker land hour by hour as exactly what was produced."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.archives.objects import Message
from tests.cli.calls import call
from tests.cli.feeds import write
from tests.io.kafka_broker import KafkaBroker
from tests.land.archive import at, codes, contents, lake, landed, manifest
from tests.land.live import (
    FIRST_MS,
    HOUR_MS,
    committed,
    fresh,
    live_feed,
    messages,
    offsets,
    produce,
    transact,
    transaction,
    two_hours_of_three_partitions,
)
from tidelake.config.feed import Feed
from tidelake.errors import ConfigError, OrderError, StorageError
from tidelake.io import kafka as client
from tidelake.land import land_hour, live
from tidelake.land.store.coverage import coverage
from tidelake.land.store.manifest import all_newest

TEN, ELEVEN, TWELVE = (f"2026-01-05T{hour}" for hour in (10, 11, 12))


def found(feed: Feed, hour: str, folder: Path) -> list[Message]:
    """The messages of an hour of a feed with one partition."""
    return next(iter(landed(feed, manifest(feed, hour), folder).values()), [])


def span(feed: Feed, hour: str, topic: str, partition: int = 0) -> tuple[int | None, int | None]:
    """The offsets of an hour: the first, and the one behind the last."""
    facts = manifest(feed, hour).partitions[topic][partition]
    return facts.start, facts.next


def test_two_hours_of_three_partitions_land_as_they_were_produced(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic, ten, eleven = two_hours_of_three_partitions(kafka)
    feed = live_feed(tmp_path, kafka, topic, partitions=3)
    report = land_hour(feed, at(0))
    assert (report.new, report.generation, report.messages, report.sources, report.objects_written) == (True, 1, 123, 3, 3)
    assert report.findings == ()
    assert landed(feed, manifest(feed, TEN), tmp_path) == {(topic, number): ten[number] for number in range(3)}
    report = land_hour(feed, at(1))
    assert (report.messages, report.findings) == (75, ())
    assert landed(feed, manifest(feed, ELEVEN), tmp_path) == {(topic, number): eleven[number] for number in range(3)}
    made = manifest(feed, ELEVEN)
    assert [source.model_dump() for source in made.sources] == [
        {"key": f"kafka:{topic}/{n}/{40 + n}-{64 + n}", "size": report.bytes // 3, "etag": None, "sha256": None} for n in range(3)
    ]
    facts = made.partitions[topic][2]
    assert (facts.start, facts.next, facts.ranges, facts.legal_gaps, facts.expired) == (42, 67, ((42, 66),), (), ())
    assert (facts.min_timestamp_ms, facts.max_timestamp_ms) == (FIRST_MS + HOUR_MS, FIRST_MS + HOUR_MS + 24_000)


def test_the_command_line_lands_live_topics(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = f'protocol = "craft"\ntopics = ["{topic}"]\npartitions = 1\n[source]\nkind = "kafka"\nuri = "{kafka.servers}"\n'
    write(tmp_path, feed=f'{feed}[source.kafka]\nclient.id = "me"\n[lake]\nuri = "{tmp_path}/lake"\n')
    produce(kafka, topic, 0, messages(0, 10))
    done = call("land", "--feed", "shop", "--hour", TEN, "--schemas", tmp_path)
    assert (done.code, done.out) == (0, "landed 2026-01-05T10: 10 messages of 1 source, generation 1\n")


def test_an_hour_that_is_landed_is_not_read_again(kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    land_hour(feed, at(0))
    before = contents(lake(feed))
    produce(kafka, topic, 0, messages(10, 10))
    monkeypatch.setattr(client.Topics, "read", lambda *_: pytest.fail("the topic was read again"))
    report = land_hour(feed, at(0))
    assert (report.new, report.messages, report.objects_written, report.objects_kept, codes(report.findings)) == (False, 10, 0, 1, [])
    assert contents(lake(feed)) == before


def test_hours_join_whatever_the_timestamps_do(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    clock = [0, 3599, 3600, 10, 7200, 3601, 20, 10_800]
    content = [Message(i, b"v", None, FIRST_MS + 1000 * second) for i, second in enumerate(clock)]
    produce(kafka, topic, 0, content)
    assert [land_hour(feed, at(hours)).messages for hours in range(3)] == [2, 2, 3]
    assert [span(feed, hour, topic) for hour in (TEN, ELEVEN, TWELVE)] == [(0, 2), (2, 4), (4, 7)]
    assert [m for hour in (TEN, ELEVEN, TWELVE) for m in found(feed, hour, tmp_path)] == content[:7]


def test_a_message_that_comes_after_its_hour_was_landed_belongs_to_the_next(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 5))
    land_hour(feed, at(0))
    late = messages(5, 3)
    produce(kafka, topic, 0, [*late, *messages(8, 4, hours=1)])
    assert land_hour(feed, at(1)).messages == 7
    assert found(feed, ELEVEN, tmp_path) == [*late, *messages(8, 4, hours=1)]


def test_hours_that_are_landed_in_another_order_join_too(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, [m for hours in range(4) for m in messages(10 * hours, 10, hours)])
    for hours in (3, 1, 0, 2):
        assert land_hour(feed, at(hours)).messages == 10
    assert [span(feed, f"2026-01-05T{10 + hours}", topic) for hours in range(4)] == [(0, 10), (10, 20), (20, 30), (30, 40)]


def test_hours_join_where_the_later_was_landed_before_the_last_messages_came(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 5))
    land_hour(feed, at(1))
    produce(kafka, topic, 0, messages(5, 3))
    assert [land_hour(feed, at(hours)).messages for hours in (0, 2)] == [5, 3]
    assert [span(feed, hour, topic) for hour in (TEN, ELEVEN, TWELVE)] == [(0, 5), (5, 5), (5, 8)]


def test_an_hour_in_which_nothing_came_lands_empty_and_the_next_goes_on_behind_it(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 5))
    land_hour(feed, at(0))
    report = land_hour(feed, at(1))
    assert (report.messages, report.sources, span(feed, ELEVEN, topic)) == (0, 0, (5, 5))
    assert codes(report.findings) == [("MISSING_PARTITION", "info"), ("EMPTY", "info")]
    produce(kafka, topic, 0, messages(5, 5, hours=2))
    assert (land_hour(feed, at(2)).messages, span(feed, TWELVE, topic)) == (5, (5, 10))


def test_an_hour_that_is_not_over_is_refused(kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 5))
    now = datetime(2026, 1, 5, 10, 59, 59, tzinfo=UTC)
    monkeypatch.setattr(live, "_now", lambda: now)
    with pytest.raises(OrderError) as caught:
        land_hour(feed, at(0))
    assert str(caught.value) == (
        "HOUR_NOT_CLOSED: hour 2026-01-05T10 is not over: more messages may arrive; land it from 2026-01-05T11:00Z on"
    )
    assert contents(lake(feed)) == {}
    now = datetime(2026, 1, 5, 11, 0, 0, tzinfo=UTC)
    assert land_hour(feed, at(0)).messages == 5


def test_only_what_is_committed_is_landed_and_markers_are_legal(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    transact(kafka, topic, 0, [(messages(0, 3), True), (messages(4, 3), False), (messages(8, 2), True), (messages(11, 2), False)])
    transact(kafka, topic, 0, [(messages(14, 3, hours=1), True)])
    report = land_hour(feed, at(0))
    assert found(feed, TEN, tmp_path) == [*messages(0, 3), *messages(8, 2)]
    facts = manifest(feed, TEN).partitions[topic][0]
    assert (facts.ranges, facts.legal_gaps, facts.gaps) == (((0, 2), (8, 9)), ((3, 7), (10, 13)), ())
    assert codes(report.findings) == [("LEGAL_GAPS", "info")]
    assert report.findings[0].detail == "the topic holds no messages at offsets 3–7, 10–13 (9)"
    assert (land_hour(feed, at(1)).messages, span(feed, ELEVEN, topic)) == (3, (14, 18))
    complete = coverage(all_newest(lake(feed), feed.name).values())
    assert (complete.prefixes, complete.holes) == ({topic: {0: (0, 17)}}, {})


def test_an_open_transaction_is_left_to_the_next_hour(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 2))
    with transaction(kafka, topic, 0, messages(2, 3)):
        produce(kafka, topic, 0, messages(5, 2))
        assert (land_hour(feed, at(0)).messages, span(feed, TEN, topic)) == (2, (0, 2))
    produce(kafka, topic, 0, messages(8, 2, hours=2))
    report = land_hour(feed, at(1))
    assert (report.messages, span(feed, ELEVEN, topic)) == (5, (2, 8))
    assert found(feed, ELEVEN, tmp_path) == [*messages(2, 3), *messages(5, 2)]
    assert report.findings[0].detail == "the topic holds no messages at offsets 7 (1)"


def test_what_compaction_took_out_is_legal(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic = fresh()
    kafka.create(topic, 1, cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.0", min_compaction_lag_ms="0")
    content = [Message(i, bytes(200_000), b"k%d" % (i % 3 if i else 9), FIRST_MS + i) for i in range(12)]
    produce(kafka, topic, 0, content, **{"batch.num.messages": 1})
    assert any(offsets(kafka, topic) == [0, 7, 8, 9, 10, 11] for _ in range(500))  # the cleaner runs several times a second
    feed = live_feed(tmp_path, kafka, topic)
    report = land_hour(feed, at(0))
    facts = manifest(feed, TEN).partitions[topic][0]
    assert (facts.ranges, facts.legal_gaps, facts.count) == (((0, 0), (7, 11)), ((1, 6),), 6)
    assert codes(report.findings) == [("LEGAL_GAPS", "info")]


@pytest.mark.parametrize("severity", ["critical", "warning"])
def test_what_retention_deleted_before_it_was_landed_is_missing(kafka: KafkaBroker, topic: str, severity: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic, policy={"on_gap": "block" if severity == "critical" else "warn"})
    produce(kafka, topic, 0, [*messages(0, 10), *messages(10, 10, hours=1)])
    land_hour(feed, at(0))
    kafka.delete_before(topic, 0, 14)
    if severity == "critical":
        with pytest.raises(OrderError, match=rf"^EXPIRED {topic}\[0\]@10: .* retention deleted offsets 10–13 \(4 messages\) before"):
            land_hour(feed, at(1))
    else:
        assert codes(land_hour(feed, at(1)).findings) == [("EXPIRED", "warning")]
    facts = manifest(feed, ELEVEN).partitions[topic][0]
    assert (facts.ranges, facts.expired, facts.legal_gaps, facts.start, facts.next) == (((14, 19),), ((10, 13),), (), 10, 20)
    assert found(feed, ELEVEN, tmp_path) == messages(10, 10, hours=1)[4:]
    complete = coverage(all_newest(lake(feed), feed.name).values())
    assert (complete.prefixes[topic][0], list(complete.holes.values())) == ((0, 9), [(10, 13)])


def test_what_retention_deletes_while_it_is_read_ends_the_hour(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    with client.Topics(kafka.servers, {}, "looks") as topics:
        kafka.delete_before(topic, 0, 5)
        with pytest.raises(StorageError, match=rf"^SOURCE_CHANGED {topic}\[0\]@2: .*land the hour again to list what is missing"):
            list(topics.read((topic, 0), 2, 10))
    assert land_hour(feed, at(0)).messages == 5


def test_a_new_partition_is_landed_and_blocks_until_it_is_expected(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, [*messages(0, 5), *messages(5, 5, hours=1)])
    land_hour(feed, at(0))
    kafka.grow(topic, 2)
    produce(kafka, topic, 1, [*messages(0, 2), *messages(2, 3, hours=1)])
    with pytest.raises(OrderError, match=rf"^UNEXPECTED_PARTITION {topic}\[1\]: .*feed.toml sets 1 partition"):
        land_hour(feed, at(1))
    both = landed(feed, manifest(feed, ELEVEN), tmp_path)
    assert both == {(topic, 0): messages(5, 5, hours=1), (topic, 1): [*messages(0, 2), *messages(2, 3, hours=1)]}
    report = land_hour(feed.model_copy(update={"partitions": 2}), at(1))
    assert (report.new, report.messages, report.findings) == (False, 10, ())


def test_a_topic_that_newly_fits_a_pattern_is_landed_from_its_beginning(kafka: KafkaBroker, tmp_path: Path) -> None:
    name = fresh("fits")
    feed = live_feed(tmp_path, kafka, f"/{name}_.*/")
    for topic in (f"{name}_a", f"other_{name}_"):
        kafka.create(topic, 1)
        produce(kafka, topic, 0, [*messages(0, 4), *messages(4, 4, hours=1)])
    assert land_hour(feed, at(0)).messages == 4
    kafka.create(f"{name}_b", 1)
    produce(kafka, f"{name}_b", 0, [*messages(0, 2), *messages(2, 3, hours=1)])
    assert land_hour(feed, at(1)).messages == 9
    assert landed(feed, manifest(feed, ELEVEN), tmp_path)[f"{name}_b", 0] == [*messages(0, 2), *messages(2, 3, hours=1)]


def test_a_topic_that_does_not_exist_is_named(kafka: KafkaBroker, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"^UNKNOWN_TOPIC: .*topics: {kafka.servers} has no topic 'nowhere' that this client may read"):
        land_hour(live_feed(tmp_path, kafka, "nowhere"), at(0))


def test_a_topic_that_was_recreated_is_refused_however_many_messages_it_has(
    kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    land_hour(feed, at(0))
    kafka.make_anew(topic, 1)
    produce(kafka, topic, 0, messages(0, 3, hours=1))
    with monkeypatch.context() as old:
        old.setattr(client.Topics, "ids", lambda *_: {})  # brokers before 2.8 give none
        with pytest.raises(OrderError) as caught:
            land_hour(feed, at(1))
    assert str(caught.value).startswith(
        f"OFFSETS_WENT_BACK {topic}[0]@10: the hours beside this one reach up to offset 10, and the log ends at 3;"
    )
    produce(kafka, topic, 0, messages(3, 17, hours=1))
    known = re.escape(manifest(feed).topic_ids[topic])
    for hours in (1, 5):  # the next hour, and one behind a hole
        said = rf"^TOPIC_RECREATED: topic {topic} has the id \S+, and the hours beside this one have {known}; the topic was recreated, or"
        with pytest.raises(OrderError, match=said) as again:
            land_hour(feed, at(hours))
    assert (again.value.exit_code, sorted(contents(lake(feed)))[-1]) == (3, f"manifests/small/hour={TEN}/000001.json")


def test_a_topic_that_is_made_anew_while_it_is_read_is_not_landed(
    kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    told = iter([{topic: "one"}, {topic: "other"}])
    monkeypatch.setattr(client.Topics, "ids", lambda *_: next(told))
    with pytest.raises(OrderError, match=rf"^TOPIC_RECREATED: topic {topic} has the id other, and had one; "):
        land_hour(feed, at(0))
    assert [key for key in contents(lake(feed)) if key.startswith("manifests/")] == []


def test_an_hour_of_before_there_were_ids_is_read_and_the_next_one_has_them(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, [*messages(0, 5), *messages(5, 5, hours=1)])
    land_hour(feed, at(0))
    key = f"manifests/small/hour={TEN}/000001.json"
    found = json.loads(lake(feed).read(key))
    known = found.pop("topic_ids")
    lake(feed).write(key, json.dumps(found).encode())
    assert land_hour(feed, at(1)).messages == 5
    assert (manifest(feed).topic_ids, manifest(feed, ELEVEN).topic_ids, list(known)) == ({}, known, [topic])


def test_offsets_are_committed_after_the_manifest_and_never_back(
    kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = live_feed(tmp_path, kafka, topic, name=fresh("feed"))
    group = f"tidelake-{feed.name}"
    produce(kafka, topic, 0, [*messages(0, 5), *messages(5, 5, hours=1)])
    with monkeypatch.context() as broken:
        broken.setattr(live, "record", _refuse)
        with pytest.raises(StorageError, match="no room"):
            land_hour(feed, at(0))
    assert committed(kafka, group, topic) < 0
    land_hour(feed, at(0))
    assert committed(kafka, group, topic) == 5
    land_hour(feed, at(1))
    land_hour(feed, at(0))
    assert committed(kafka, group, topic) == 10
    own = live_feed(tmp_path / "own", kafka, topic, kafka={"group.id": fresh("group")})
    land_hour(own, at(0))
    assert committed(kafka, own.source.kafka["group.id"], topic) == 5


def _refuse(*_: object) -> None:
    raise StorageError("no room")
