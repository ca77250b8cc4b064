"""What goes wrong while topics are archived: kills, signals, brokers and stores that fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from tests.archives.objects import Message
from tests.checkout import CHECKOUT
from tests.cli.calls import call
from tests.cli.feeds import write
from tests.io.kafka_broker import KafkaBroker
from tests.land.archive import archive as store_of
from tests.land.archive import make_feed
from tests.land.archiver.topics import archived, archiving, following, keys, run, spans
from tests.land.live import FIRST_MS, fresh, messages, produce
from tests.logged import log_calls, messages_of
from tidelake.config.lake_paths import SYSTEM
from tidelake.errors import ConfigError, LeaseError, StorageError
from tidelake.io import kafka as client
from tidelake.io import lease
from tidelake.io.storage import _LocalStore, open_store
from tidelake.land import pipeline
from tidelake.land.archiver import follow
from tidelake.land.archiver import write as write_module
from tidelake.land.archiver.follow import Goal, archive
from tidelake.land.store.manifest import Landed
from tidelake.land.store.objects import Draft, described

TEN, ELEVEN = "2026-01-05T10", "2026-01-05T11"


def test_an_archiver_that_is_killed_at_any_step_leaves_what_the_next_completes(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic = fresh()
    kafka.create(topic, 2)
    content = {number: [*messages(0, 10), *messages(10, 5, hours=1)] for number in range(2)}
    for number in range(2):
        produce(kafka, topic, number, content[number])
    (tmp_path / "scratch").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "scratch")}
    command = [sys.executable, "-m", "tests.land.archiver.killed", str(tmp_path), kafka.servers, topic]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, capture_output=True, text=True)
    points, code = map(int, done.stdout.split())
    assert (points >= 10, code) == (True, 0)
    whole = {f"{TEN}/{n}": [(0, 9)] for n in range(2)} | {f"{ELEVEN}/{n}": [(10, 14)] for n in range(2)}
    left = list[int]()
    for point in range(1, points + 1):
        feed = archiving(tmp_path, kafka, topic, partitions=2, source={"uri": f"{tmp_path}/archive-{point}"})
        left.append(len(keys(feed)))
        assert spans(feed).items() <= whole.items()
        assert run(feed).objects == 4 - left[-1]
        assert spans(feed) == whole
        assert archived(feed, tmp_path) == {(topic, number): content[number] for number in range(2)}
    assert set(left) == {0, 1, 2, 3, 4}


def feed_file(root: Path, kafka: KafkaBroker, topic: str) -> Path:
    """A folder of feeds with one that archives a topic."""
    feed = f'protocol = "craft"\ntopics = ["{topic}"]\npartitions = 1\n[source]\nlayout = "canonical"\nuri = "{root}/archive"\n'
    write(root / "schemas", feed=f'{feed}[source.archiver]\nservers = "${{BROKERS}}"\n[lake]\nuri = "{root}/lake"\n')
    return root / "schemas"


@contextmanager
def program(root: Path, kafka: KafkaBroker, topic: str) -> Iterator[subprocess.Popen[str]]:
    """`tidelake archive`, which follows; it has signals of its own."""
    schemas = feed_file(root, kafka, topic)
    command = [sys.executable, "-m", "tidelake", "archive", "--feed", "shop", "--schemas", str(schemas)]
    with subprocess.Popen(
        command, env=os.environ | {"BROKERS": kafka.servers}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_makes_durable_what_was_read_and_gives_the_lease_back(
    kafka: KafkaBroker, topic: str, number: int, code: int, tmp_path: Path
) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, [*messages(0, 5), *messages(5, 1, hours=1)])
    with program(tmp_path, kafka, topic) as process:
        while not keys(feed):  # the hour ended as the last message was read, whose object is open for minutes
            assert process.poll() is None
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err) == (code, False)
    assert out == (f"archived 6 messages (0.0 MB) in 2 objects of {topic}\n" if code == 0 else "")
    assert spans(feed) == {f"{TEN}/0": [(0, 4)], f"{ELEVEN}/0": [(5, 5)]}
    held = lease.Lease.model_validate_json(open_store(f"{tmp_path}/archive/{SYSTEM}").read("leases/archiver.json"))
    assert (held.work, held.expires_ms) == ("archive of feed shop", 0)


def test_the_command_line_archives_once(kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = feed_file(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    done = call("archive", "--feed", "shop", "--once", "--schemas", schemas)
    assert (done.code, done.out) == (2, "")
    assert "source.archiver.servers: the environment has no BROKERS" in done.err
    monkeypatch.setenv("BROKERS", kafka.servers)
    done = call("archive", "--feed", "shop", "--once", "--schemas", schemas)
    assert (done.code, done.out, done.err) == (0, f"archived 10 messages (0.0 MB) in 1 object of {topic}\n", "")
    monkeypatch.delenv("BROKERS")  # landing needs no brokers
    done = call("land", "--feed", "shop", "--hour", TEN, "--schemas", schemas)
    assert (done.code, done.out.partition("\n")[0]) == (0, "landed 2026-01-05T10: 10 messages of 1 source, generation 1")


class FailingStore:
    """Makes a store's conditional puts of objects fail so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
        self.left, self.tried = failures, list[str]()
        put = _LocalStore.put_if_absent

        def put_if_absent(store: _LocalStore, key: str, data: bytes) -> bool:
            if key.endswith(".parquet"):
                self.tried.append(key)
                if self.left:
                    self.left -= 1
                    raise StorageError("503", code="UNAVAILABLE")
            return put(store, key, data)

        monkeypatch.setattr(_LocalStore, "put_if_absent", put_if_absent)
        monkeypatch.setattr(pipeline, "BACK_OFF_SECONDS", 0.01)


def test_an_upload_that_fails_is_tried_again(kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 5))
    store = FailingStore(monkeypatch, pipeline.ATTEMPTS - 1)
    assert run(feed).messages == 5
    assert (len(store.tried), set(store.tried)) == (pipeline.ATTEMPTS, set(keys(feed)))


def test_a_store_that_stays_away_ends_the_run_and_the_next_one_goes_on(
    kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, [*messages(0, 5), *messages(5, 5, hours=1)])
    store = FailingStore(monkeypatch, pipeline.ATTEMPTS)
    with pytest.raises(StorageError, match=r"^UNAVAILABLE: 503"):
        run(feed)
    assert (keys(feed), store.left) == ([], 0)
    assert run(feed).messages == 10
    assert archived(feed, tmp_path) == {(topic, 0): [*messages(0, 5), *messages(5, 5, hours=1)]}


def test_a_broker_that_is_killed_and_comes_back_costs_nothing(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 5))
    with following(feed) as follower:
        follower.until(lambda: len(keys(feed)) == 1)
        kafka.kill()
        kafka.start()
        produce(kafka, topic, 0, messages(5, 5))
        follower.until(lambda: spans(feed)[f"{TEN}/0"][-1][1] == 9)
    assert archived(feed, tmp_path) == {(topic, 0): [*messages(0, 5), *messages(5, 5)]}


def test_brokers_that_stay_away_end_it_when_all_that_was_read_is_durable(
    kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, [*messages(0, 5), *messages(5, 1, hours=1)])
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.2)
    with ThreadPoolExecutor(1) as pool, messages_of("archive") as lines:
        running = pool.submit(archive, feed, Goal(), Event(), wait_seconds=0.0)
        while not keys(feed):
            assert not running.done()
        kafka.kill()
        try:
            with pytest.raises(StorageError, match=r"^NO_BROKER: .* and check servers and \[source.archiver.kafka\] in feed.toml"):
                running.result()
        finally:
            kafka.start()
    assert len(lines) == pipeline.ATTEMPTS - 1
    assert all(line.endswith("; trying again") for line in lines)
    assert spans(feed) == {f"{TEN}/0": [(0, 4)], f"{ELEVEN}/0": [(5, 5)]}


def test_offsets_that_another_archiver_wrote_meanwhile_are_not_written_again(
    kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    other = f"{topic}/hour={TEN}/partition=0/{9:020d}-{12:020d}-0af3.parquet"
    monkeypatch.setattr(lease, "check", lambda *_: None)
    monkeypatch.setattr(follow, "check", lambda *_: store_of(feed).write(other, b"x"))
    with pytest.raises(LeaseError, match=rf"^OVERLAP {topic}\[0\]@9: {tmp_path}/archive/{other} already has offsets 9; another archiver"):
        run(feed)
    assert keys(feed) == [other]


def test_nothing_is_put_when_the_lease_was_taken_over(
    kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = archiving(tmp_path, kafka, topic)
    produce(kafka, topic, 0, messages(0, 10))
    system = open_store(f"{tmp_path}/archive/{SYSTEM}")

    def taken_over(draft: Draft) -> Landed:
        held = lease.Lease.model_validate_json(system.read("leases/archiver.json"))
        system.write("leases/archiver.json", held.model_copy(update={"fence": held.fence + 1}).model_dump_json().encode())
        return described(draft)

    monkeypatch.setattr(write_module, "described", taken_over)
    with pytest.raises(LeaseError, match=rf"^LEASE: the lease of the archive {tmp_path}/archive was taken over while this run held it"):
        run(feed)
    assert keys(feed) == []


def test_many_partitions_are_held_on_disk_where_they_are_more_than_the_budget(
    kafka: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = fresh()
    kafka.create(topic, 12)
    content = [Message(i, bytes([i]) * 100_000, None, FIRST_MS + i) for i in range(20)]
    for number in range(12):
        produce(kafka, topic, number, content, **{"max.in.flight": 1})  # large batches keep their order
    feed = archiving(tmp_path, kafka, topic, partitions=12, source={"in_flight": "1 MB"})
    monkeypatch.setattr(follow, "TURN_BYTES", 1)
    monkeypatch.setattr(client, "_FIRST_BATCH", 4)
    held, turns = dict[int, int](), list[int]()
    turn = follow._Follower._turn

    def watched(self: follow._Follower, partition: follow._Partition, most: int) -> None:
        turn(self, partition, most)
        held[partition.place[1]] = partition.hours.held
        turns.append(partition.place[1])
        assert partition.hours.unfinished
        assert most == (1 << 20) // 4 // 12

    monkeypatch.setattr(follow._Follower, "_turn", watched)
    assert run(feed).messages == 240
    assert held == dict.fromkeys(range(12), 0)
    assert all(turns.count(number) >= 5 for number in range(12))  # four messages each, or fewer
    assert archived(feed, tmp_path) == {(topic, number): content for number in range(12)}


def test_whoever_waits_for_the_lease_can_be_stopped(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed, stop = archiving(tmp_path, kafka, topic), Event()
    lines: list[str] = []

    def heard(_: str, line: str) -> None:
        lines.append(line)
        stop.set()

    with following(feed) as follower:
        follower.until(lambda: store_of(feed).head(f"{SYSTEM}/leases/archiver.json") is not None)
        with pytest.raises(LeaseError, match="is held by archive of feed small"), log_calls(heard):
            archive(feed, Goal(), stop, wait_seconds=600)
    assert [line.startswith("waiting for archive of feed small on ") for line in lines] == [True]


def test_a_feed_without_the_section_is_told_what_to_add(tmp_path: Path) -> None:
    feed = make_feed(tmp_path)
    with pytest.raises(ConfigError, match=r'source.archiver: missing; add \[source.archiver\] with servers = "host:port'):
        run(feed)


def test_once_and_until_exclude_each_other() -> None:
    done = call("archive", "--feed", "shop", "--once", "--until", TEN)
    assert (done.code, done.err) == (2, "error: CONFIG: --once and --until exclude each other; leave one out\n")
