"""Live topics for tests: what is produced, and feeds that land it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.archives.objects import Message
from tests.io.kafka_broker import KafkaBroker
from tests.land.archive import HOUR, make_feed
from tidelake.config.feed import Feed
from tidelake.io.kafka import Topics

HOUR_MS = 3_600_000
FIRST_MS = int(HOUR.timestamp() * 1000)

_NAMES = count(1)


def fresh(name: str = "shop") -> str:
    """The name of a topic that no test used."""
    return f"{name}-{next(_NAMES)}"


def live_feed(root: Path, broker: KafkaBroker, *topics: str, partitions: int = 1, kafka: dict[str, Any] | None = None, **more: Any) -> Feed:
    """A feed that lands topics of the broker in a lake below root."""
    source = {"kind": "kafka", "uri": broker.servers, "kafka": kafka or {}}
    return make_feed(root, topics=topics, partitions=partitions, source=source, **more)


def messages(first: int, number: int, hours: int = 0, text: str = "v", headers: Any = ()) -> list[Message]:
    """Messages with the offsets from `first` on, a second apart from the beginning of an hour (HOUR + hours) on."""
    begin = FIRST_MS + hours * HOUR_MS
    return [
        Message(first + i, f"{text}{first + i}".encode(), b"k%d" % i if i % 3 else None, begin + 1000 * i, list(headers))
        for i in range(number)
    ]


def produce(broker: KafkaBroker, topic: str, partition: int, content: Iterable[Message], **settings: Any) -> None:
    """Append messages to a partition; their offsets are not looked at."""
    producer = Producer(_settings(broker) | settings)
    _append(producer, topic, partition, content)
    assert producer.flush(30) == 0


def two_hours_of_three_partitions(broker: KafkaBroker) -> tuple[str, list[list[Message]], list[list[Message]]]:
    """A topic, and what the first and the second hour of each partition hold: headers, a tombstone, an empty value among it."""
    topic = fresh()
    broker.create(topic, 3)
    ten = [messages(0, 40 + number, headers=[("a", b"x"), ("b", None)] if number == 1 else ()) for number in range(3)]
    ten[2][7] = ten[2][7]._replace(value=None)
    ten[2][8] = ten[2][8]._replace(value=b"", key=b"")
    eleven = [messages(len(before), 25, hours=1) for before in ten]
    for number in range(3):
        produce(broker, topic, number, [*ten[number], *eleven[number]])
    return topic, ten, eleven


def transact(broker: KafkaBroker, topic: str, partition: int, parts: Sequence[tuple[Sequence[Message], bool]]) -> None:
    """Append transactions one after the other: messages, and whether they are committed. Each leaves a marker behind its messages."""
    producer = Producer(_settings(broker) | {"transactional.id": fresh("t")})
    producer.init_transactions(30)
    for content, commit in parts:
        producer.begin_transaction()
        _append(producer, topic, partition, content)
        assert producer.flush(30) == 0
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)


@contextmanager
def transaction(broker: KafkaBroker, topic: str, partition: int, content: Sequence[Message]) -> Iterator[None]:
    """A transaction with these messages that is open inside the block and committed behind it."""
    producer = Producer(_settings(broker) | {"transactional.id": fresh("t")})
    producer.init_transactions(30)
    producer.begin_transaction()
    _append(producer, topic, partition, content)
    assert producer.flush(30) == 0
    yield
    producer.commit_transaction(30)


def _settings(broker: KafkaBroker) -> dict[str, Any]:
    return {"bootstrap.servers": broker.servers, "linger.ms": 5, "max.in.flight": 1, "queue.buffering.max.messages": 0, "log_level": 0}


def _append(producer: Producer, topic: str, partition: int, content: Iterable[Message]) -> None:
    for m in content:
        headers = list(m.headers) if m.headers else None
        producer.produce(topic, m.value, m.key, partition, timestamp=m.timestamp_ms or 0, headers=headers)


def committed(broker: KafkaBroker, group: str, topic: str, partition: int = 0) -> int:
    """What the group was told, below 0 if nothing."""
    with Consumer(_settings(broker) | {"group.id": group}) as consumer:
        (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=30)
        return found.offset


def offsets(broker: KafkaBroker, topic: str, partition: int = 0) -> list[int]:
    """The offsets that a partition has messages at."""
    with Topics(broker.servers, {}, "looks") as topics:
        place = (topic, partition)
        return [offset for batch in topics.read(place, *topics.bounds([place])[place]) for offset in batch.column("offset").to_pylist()]
