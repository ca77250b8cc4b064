"""What goes wrong while live topics are landed: brokers that go, landings that are killed, settings that are none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from tests.archives.objects import Message
from tests.checkout import CHECKOUT
from tests.io.kafka_broker import KafkaBroker
from tests.land.archive import at, contents, lake
from tests.land.live import FIRST_MS, fresh, live_feed, messages, produce
from tidelake.errors import ConfigError, StorageError
from tidelake.io import kafka as client
from tidelake.land import land_hour


@pytest.fixture
def much(kafka: KafkaBroker) -> str:
    """A topic with 30 MB that take several fetches."""
    topic = fresh("much")
    kafka.create(topic, 2)
    for number in range(2):
        produce(kafka, topic, number, [Message(i, b"%07d" % i * 2_000, None, FIRST_MS + i) for i in range(1_100)])
    return topic


def test_a_broker_that_is_killed_and_comes_back_while_it_is_read_costs_nothing(kafka: KafkaBroker, much: str, tmp_path: Path) -> None:
    calm = live_feed(tmp_path / "calm", kafka, much, partitions=2, lake={"uri": f"{tmp_path}/calm"})
    land_hour(calm, at(0))
    feed = live_feed(tmp_path, kafka, much, partitions=2, kafka={"queued.max.messages.kbytes": 1024})
    restarts: list[Thread] = []
    report = land_hour(feed, at(0), _once(lambda: restarts.append(_restart(kafka))))
    restarts[0].join()
    assert (report.messages, len(restarts)) == (2_200, 1)
    assert contents(lake(feed)) == contents(lake(calm))


def test_a_broker_that_does_not_come_back_ends_the_hour_and_the_next_try_gives_the_same(
    kafka: KafkaBroker, much: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = live_feed(tmp_path / "calm", kafka, much, partitions=2, lake={"uri": f"{tmp_path}/calm"})
    land_hour(calm, at(0))
    feed = live_feed(tmp_path, kafka, much, partitions=2, kafka={"queued.max.messages.kbytes": 1024})
    monkeypatch.setattr(client, "SILENCE_SECONDS", 1.0)
    try:
        with pytest.raises(
            StorageError, match=rf"^NO_BROKER {much}\[.\]@\d+: nothing came for 1 s from the brokers at {kafka.servers}: .*"
        ):
            land_hour(feed, at(0), _once(kafka.kill))
    finally:
        kafka.start()
    assert [key for key in contents(lake(feed)) if key.startswith("manifests/")] == []
    assert land_hour(feed, at(0)).messages == 2_200
    assert contents(lake(feed)) == contents(lake(calm))


def _once(act: Callable[[], object]) -> Callable[[int, int], None]:
    """Acts at the first progress."""
    left = [act]

    def progress(done: int, total: int) -> None:
        if left and done < total:
            left.pop()()

    return progress


def _restart(kafka: KafkaBroker) -> Thread:
    kafka.kill()
    thread = Thread(target=kafka.start)
    thread.start()
    return thread


def test_a_landing_that_is_killed_at_any_step_is_completed_by_the_next(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic = fresh()
    kafka.create(topic, 2)
    for number in range(2):
        produce(kafka, topic, number, [*messages(0, 10), *messages(10, 5, hours=1)])
    feed = live_feed(tmp_path, kafka, topic, partitions=2)
    land_hour(feed, at(0))
    whole = contents(lake(feed))
    (tmp_path / "scratch").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "scratch")}
    command = [sys.executable, "-m", "tests.land.killed", str(tmp_path), kafka.servers, topic]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, capture_output=True, text=True)
    points, code = map(int, done.stdout.split())
    assert (points >= 10, code) == (True, 0)
    for point in range(1, points + 2):
        killed = live_feed(tmp_path, kafka, topic, partitions=2, lake={"uri": f"{tmp_path}/lake-{point}"})
        left = {key: data for key, data in contents(lake(killed)).items() if not key.startswith("probe-")}
        assert left.items() <= whole.items()
        assert land_hour(killed, at(0)).new is (not any(key.startswith("manifests/") for key in left))
        assert {key: data for key, data in contents(lake(killed)).items() if not key.startswith("probe-")} == whole


class OneTake(client.Consumer):
    """A client that hands out these messages, once."""

    taken: ClassVar[list[list[client.Message]]]

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[client.Message]:
        return self.taken.pop()


def test_a_message_behind_the_end_ends_the_reading_though_none_is_of_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "Consumer", OneTake)
    OneTake.taken = [[client.Message(topic="t", partition=0, offset=7, value=b"v", timestamp=(1, 5))]]
    with client.Topics("127.0.0.1:1", {}, "none") as topics:
        assert list(topics.read(("t", 0), 3, 6)) == []
    assert OneTake.taken == []


class Moving(client.Consumer):
    """A client whose partition has no leader, three times."""

    left = 3

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        if Moving.left:
            Moving.left -= 1
            raise client.KafkaException(client.KafkaError(client.KafkaError.NOT_LEADER_FOR_PARTITION))
        return 3, 7


def test_a_partition_whose_leader_moves_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "Consumer", Moving)
    with client.Topics("127.0.0.1:1", {}, "none") as topics:
        assert topics.bounds([("t", 0)]) == {("t", 0): (3, 7)}
        monkeypatch.setattr(client, "ANSWER_SECONDS", -1.0)
        Moving.left = 3
        with pytest.raises(StorageError, match=r"^NO_BROKER: .* did not ask for the offsets of its partitions: Broker: Not leader"):
            topics.bounds([("t", 0)])
    assert Moving.left == 2


def test_messages_without_timestamps_and_headers_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "Consumer", OneTake)
    stamped = [client.Message(topic="t", partition=0, offset=i, key=b"k", timestamp=(i, -1 if i == 0 else 5)) for i in range(2)]
    OneTake.taken = [stamped]
    with client.Topics("127.0.0.1:1", {}, "none") as topics:
        (batch,) = topics.read(("t", 0), 0, 2)
    assert batch.to_pylist() == [
        {"topic": "t", "partition": 0, "offset": i, "timestamp_ms": ms, "key": b"k", "value": None, "headers": []}
        for i, ms in enumerate([None, 5])
    ]


def test_servers_that_are_none_end_in_an_error_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.5)
    with pytest.raises(StorageError) as caught, client.Topics("127.0.0.1:1", {}, "none") as topics:
        topics.partitions()
    said = str(caught.value)
    assert said.startswith("NO_BROKER: the brokers at 127.0.0.1:1 did not list the topics: Failed to get metadata: Local: ")
    assert "Connection refused" in said
    assert said.endswith("under the names they advertise, and check uri and [source.kafka] in feed.toml")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"security.protocl": "ssl"}, 'No such configuration property: "security.protocl"'),
        ({"security.protocol": "hunter"}, 'Invalid value "hunter" for configuration property "security.protocol"'),
    ],
)
def test_settings_that_the_client_refuses_are_named(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        client.Topics("127.0.0.1:1", settings, "none")
    assert str(caught.value).startswith(f"CONFIG: [source.kafka]: {said}; its keys are those of librdkafka's CONFIGURATION.md")


def test_secrets_are_not_shown_where_the_client_shows_them() -> None:
    with pytest.raises(ConfigError) as caught:
        client.Topics("127.0.0.1:1", {"sasl.password": "hunter2", "security.protocol": "hunter2"}, "none")
    assert 'Invalid value "…" for configuration property "security.protocol"' in str(caught.value)


def test_check_finds_settings_that_do_not_exist() -> None:
    client.check_settings({"security.protocol": "${PROTOCOL}", "sasl.password": "${PASSWORD}", "ssl.ca.location": "/nowhere"})
    with pytest.raises(ConfigError, match=r'^CONFIG: \[source.kafka\]: No such configuration property: "security.protocl"; its keys are'):
        client.check_settings({"security.protocl": "ssl"})
