"""What a producer wrote to its topic, and a copy of it whose messages lie in hours that are over.

Producers stamp messages with the time at which they send them. A test cannot wait for hours, so each phase of its work becomes an hour of
the copied topic: same order, same offsets, same keys, values and headers; other timestamps.
"""

from __future__ import annotations

import time

from tests.archives.objects import Message
from tests.io.kafka_broker import KafkaBroker
from tests.land.live import FIRST_MS, HOUR_MS, produce
from tests.upstream.process import Process
from tidelake.errors import StorageError
from tidelake.io.kafka import Topics

ANSWER_SECONDS = 60
MINUTES = 50  # of an hour in which its messages are


class Hours:
    """The topic of a producer, with one partition, and its copy by hours."""

    def __init__(self, broker: KafkaBroker, sent: str) -> None:
        self.broker, self.sent, self.topic = broker, sent, f"{sent}-hours"
        self.hour = 0
        self._next = 0
        broker.create(self.sent, 1)
        broker.create(self.topic, 1)

    def messages(self, first: int = 0) -> list[Message]:
        """What the producer sent, from an offset on."""
        with Topics(self.broker.servers, {}, "reads") as topics:
            place = (self.sent, 0)
            begin, end = _bounds(topics, place)
            if max(begin, first) >= end:
                return []
            rows = [row for batch in topics.read(place, max(begin, first), end) for row in batch.to_pylist()]
        headers = [[(h["key"], h["value"]) for h in row["headers"] or ()] for row in rows]
        return [Message(r["offset"], r["value"], r["key"], r["timestamp_ms"], h) for r, h in zip(rows, headers, strict=True)]

    def quiet(self, producer: Process, token: str, seconds: float = 180) -> None:
        """Wait until the producer sent a message whose value has the token."""
        producer.until(lambda: self._holds(token.encode()), f"{token} in topic {self.sent}", seconds)

    def close(self) -> int:
        """Copy what came since the last hour into the next one; the number of messages."""
        new = self.messages(self._next)
        begin, step = FIRST_MS + self.hour * HOUR_MS, MINUTES * 60_000 // max(1, len(new))
        copies = [m._replace(timestamp_ms=begin + i * step) for i, m in enumerate(new)]
        assert [m.offset for m in copies] == list(range(self._next, self._next + len(copies))), "the producer's topic has gaps"
        produce(self.broker, self.topic, 0, copies)
        self._next += len(copies)
        self.hour += 1
        return len(copies)

    def _holds(self, token: bytes) -> bool:
        return any(token in (m.value or b"") for m in self.messages(self._next))


def _bounds(topics: Topics, place: tuple[str, int]) -> tuple[int, int]:
    """Of a topic that was made a moment ago, of a broker that was started a moment ago: it may not answer yet."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return topics.bounds([place])[place]
        except StorageError:
            if time.monotonic() > deadline:
                raise
