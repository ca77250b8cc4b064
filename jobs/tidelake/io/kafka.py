"""Read live topics: partitions, offsets by time, messages in order. The only user of confluent_kafka, whose client is librdkafka.

Only committed messages are read. The caller gives the offsets to read; consumer groups are not used for reading. `commit` records
offsets in the group for monitoring.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import chain
from threading import Thread
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    Uuid,
)
from confluent_kafka import (
    TopicPartition as KafkaPartition,
)
from confluent_kafka.admin import AdminClient

from tidelake.errors import ConfigError, Coordinates, StorageError, TopicPartition
from tidelake.history.event import HEADERS, MESSAGE
from tidelake.io import msk_iam

ANSWER_SECONDS = 15.0  # longest time for a request to the brokers
SILENCE_SECONDS = 90.0  # longest time without an expected message; brokers restart within that
BATCH_MESSAGES = 2_000  # larger batches are not faster and use memory: each message is a Python object and a client object
BATCH_BYTES = 4 << 20
SOURCE, ARCHIVER = "source", "source.archiver"  # section names in feed.toml

_WAIT_SECONDS = 0.05  # time that consume waits for a full batch, even at the end of a partition
_PATIENCE_SECONDS = 5.0  # beyond ANSWER_SECONDS, for a client that does not report its own time-out
_FIRST_BATCH = 100  # messages, before their size is known
_OURS: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",  # an expired offset is an error and not skipped
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
}
_DEFAULTS: dict[str, Any] = {
    "client.id": "tidelake",
    "check.crcs": True,
    "queued.max.messages.kbytes": 4 << 10,  # per consumer, that is per reader
    "fetch.message.max.bytes": 2 << 20,
    "fetch.queue.backoff.ms": 5,  # the default of one second limits a reader whose queue was full
    "fetch.wait.max.ms": 100,
}
_SECRET = re.compile(r"password|secret|token|jaas|\.pem$|credentials|sasl\.oauthbearer\.(config|extensions)")
_UNKNOWN = "No such configuration property"
_NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
_NO_ID = str(Uuid(0, 0))
_NOTHING: Mapping[str, Any] = {}
_LOG = logging.getLogger("tidelake.io.kafka")
_LOG.addHandler(logging.NullHandler())


class Topics:
    """The topics of a cluster. Use it as `with Topics(servers, settings, group) as topics: …`, from several threads.

    servers: `host:port,…`; settings: librdkafka's and msk_iam's, beside those that Tidelake sets; section: the section of feed.toml that
    holds both. Raises ConfigError for settings that the client refuses, StorageError (NO_CREDENTIALS).
    """

    def __init__(self, servers: str, settings: Mapping[str, Any], group: str, section: str = SOURCE) -> None:
        self._servers, self._section = servers, section
        self._settings = (
            {"bootstrap.servers": servers, "group.id": group} | _DEFAULTS | msk_iam.logged_in(settings, servers, section) | _OURS
        )
        self._said = ""
        self._idle = [self._opened()]
        self._admin: AdminClient | None = None
        self._committer: _Committer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while self._idle:
            self._idle.pop().close()
        if self._committer is not None:
            self._committer.close()

    def partitions(self) -> dict[str, int]:
        """Return the number of partitions of every topic that this client may see. Raises StorageError."""
        with self._lent("list the topics") as consumer:
            found = consumer.list_topics(timeout=ANSWER_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in found.items() if topic.error is None}

    def ids(self, names: Collection[str]) -> dict[str, str]:
        """Return Kafka's ids of these topics. A topic that is recreated under the same name has another id (KIP-516).

        A topic that does not exist is absent, and so are all topics of brokers without ids (before Kafka 2.8). For one thread at a time.
        Raises StorageError.
        """
        if not names:
            return {}
        with self._administering("describe the topics") as admin:
            asked = admin.describe_topics(TopicCollection(list(names)), request_timeout=ANSWER_SECONDS)
            found = {name: _id_of(answer) for name, answer in asked.items()}
        return {name: topic_id for name, topic_id in found.items() if topic_id is not None}

    def bounds(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Return per partition the first offset that still exists, and the one after the last committed message. Raises StorageError."""
        with self._lent("ask for the offsets of its partitions") as consumer:
            return {place: _bounds(consumer, place) for place in places}

    def first_since(self, places: Sequence[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int | None]:
        """Return the offset of each partition's first message at or after this timestamp (ms), None without one. Raises StorageError."""
        if not places:
            return {}
        with self._lent("look up timestamps") as consumer:
            found = consumer.offsets_for_times([KafkaPartition(*place, timestamp_ms) for place in places], timeout=ANSWER_SECONDS)
            _raise_first(found)
        return {(at.topic, at.partition): at.offset if at.offset >= 0 else None for at in found}

    def read(
        self, place: TopicPartition, begin: int, end: int, stopped: Callable[[], bool] = lambda: False
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the messages of a partition from offset begin up to, not including, end, as MESSAGE batches: all that the log holds, in
        order.

        When a message, or the end, is reached, the client has passed every offset before: an offset that did not come does not exist.
        stopped: polled during the read; returns True to end it early.

        Raises StorageError: NO_BROKER where nothing comes for SILENCE_SECONDS, SOURCE_CHANGED where offsets of the range expire during the
        read.
        """
        with self._lent(f"read {Coordinates(*place)}") as consumer:
            consumer.assign([KafkaPartition(*place, begin)])
            try:
                yield from _messages(consumer, place, begin, end, stopped, self._silent)
            finally:
                consumer.unassign()  # otherwise it continues fetching

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Record in the consumer group where the next hour continues. For one thread at a time. Raises StorageError."""
        if not offsets:
            return
        committer, self._committer = self._committer or _Committer(self._opened), None
        try:
            committer.commit([KafkaPartition(*place, offset) for place, offset in offsets.items()])
        except KafkaException as e:
            committer.abandon()
            raise self._failed("commit offsets", e.args[0]) from None
        except BaseException:
            committer.abandon()
            raise
        self._committer = committer

    @contextmanager
    def _administering(self, purpose: str) -> Iterator[AdminClient]:
        """Yield the admin client, for requests that consumers cannot make, or not in time. Raise its errors as StorageError, discard it."""
        try:
            self._admin = self._admin or AdminClient(self._settings | {"error_cb": self._keep_error}, logger=_LOG)
            yield self._admin
        except KafkaException as e:
            if self._admin is not None:
                self._admin.poll(0)  # for complaints that wait
            self._admin = None
            raise self._failed(purpose, e.args[0]) from None

    @contextmanager
    def _lent(self, purpose: str) -> Iterator[Consumer]:
        """Yield a consumer for one thread. Raise its errors as StorageError and discard the consumer."""
        try:
            consumer = self._idle.pop()
        except IndexError:  # other threads use all consumers
            consumer = self._opened()
        try:
            yield consumer
        except KafkaException as e:
            consumer.poll(0)  # for complaints that wait
            consumer.close()
            raise self._failed(purpose, e.args[0]) from None
        except GeneratorExit:  # the caller stopped reading
            self._idle.append(consumer)
            raise
        except BaseException:
            consumer.close()
            raise
        self._idle.append(consumer)

    def _opened(self, more: Mapping[str, Any] = _NOTHING) -> Consumer:
        try:
            return Consumer({**self._settings, "error_cb": self._keep_error, **more}, logger=_LOG)
        except KafkaException as e:
            raise _refused(self._settings, self._section, e.args[0]) from None

    def _keep_error(self, error: KafkaError) -> None:
        """Keep the client's last error, but do not replace one with "all brokers down": a failed login is more specific."""
        if not self._said or error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._said = error.str()

    def _failed(self, purpose: str, error: KafkaError) -> StorageError:
        why = error.str() if self._said in ("", error.str()) else f"{error.str()}; {self._said}"
        return StorageError(f"the brokers at {self._servers} did not {purpose}: {why}", code="NO_BROKER", remedy=self._remedy())

    def _silent(self, at: Coordinates) -> StorageError:
        why = f": {self._said}" if self._said else ""
        said = f"nothing came for {SILENCE_SECONDS:g} s from the brokers at {self._servers}{why}"
        return StorageError(said, code="NO_BROKER", at=at, remedy=self._remedy())

    def _remedy(self) -> str:
        settings = f"{'uri' if self._section == SOURCE else 'servers'} and [{self._section}.kafka]"
        return f"see that they run and can be reached from here under the names they advertise, and check {settings} in feed.toml"


class _Committer:
    """A consumer that only commits, asynchronously.

    A synchronous commit does not return while brokers are away. The admin client's group requests may end the process when the coordinator
    goes away (librdkafka issue 4605: an assertion).
    """

    def __init__(self, opened: Callable[[Mapping[str, Any]], Consumer]) -> None:
        self._answers: list[tuple[KafkaError | None, list[KafkaPartition]]] = []
        self._consumer = opened({"on_commit": lambda error, ends: self._answers.append((error, ends))})

    def commit(self, ends: list[KafkaPartition]) -> None:
        """Commit the offsets. Raises KafkaException; the committer must not be used again then."""
        self._consumer.commit(offsets=ends, asynchronous=True)
        deadline = time.monotonic() + ANSWER_SECONDS
        while not self._answers:
            if time.monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            self._consumer.poll(_WAIT_SECONDS)
        error, answered = self._answers.pop()
        if error is not None:
            raise KafkaException(error)
        _raise_first(answered)

    def close(self) -> None:
        self._consumer.close()

    def abandon(self) -> None:
        """Close the consumer in a thread. Closing waits for its commit, which may never end; the end of the process does not wait for it.

        If the commit does succeed, it may overwrite later commits; the next commit corrects that.
        """
        Thread(target=self._consumer.close, daemon=True).start()


def check_settings(settings: Mapping[str, Any], section: str = SOURCE) -> None:
    """Raise ConfigError for the first setting that librdkafka does not know, and for a log-in that is not installed. Uses no network."""
    if msk_iam.is_wanted(settings):
        msk_iam.signer(section)
    for name, value in msk_iam.librdkafkas(settings).items():
        try:
            Consumer({"group.id": "check", name: value}, logger=_LOG).close()
        except KafkaException as e:
            if _UNKNOWN in e.args[0].str():
                raise _refused(settings, section, e.args[0]) from None


def _refused(settings: Mapping[str, Any], section: str, error: KafkaError) -> ConfigError:
    said = error.str()
    for name, value in settings.items():
        if _SECRET.search(name) and value:
            said = said.replace(str(value), "…")
    return ConfigError(
        f"[{section}.kafka]: {said}",
        remedy="its keys are those of librdkafka's CONFIGURATION.md, like security.protocol and sasl.mechanisms",
    )


def _bounds(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Return a partition's bounds; ask again while its leader moves, as after a broker's restart. Raises KafkaException."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return consumer.get_watermark_offsets(KafkaPartition(*place), timeout=ANSWER_SECONDS)
        except KafkaException as e:
            if e.args[0].code() not in _NO_LEADER or time.monotonic() > deadline:
                raise
        time.sleep(_WAIT_SECONDS)


def _answered(answer: Future[Any]) -> Any:
    """Return the result of a request. Raises KafkaException."""
    try:
        return answer.result(ANSWER_SECONDS + _PATIENCE_SECONDS)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None


def _id_of(answer: Future[Any]) -> str | None:
    """Return a topic's id, None for a topic that does not exist or has no id. Raises KafkaException."""
    try:
        topic_id = str(_answered(answer).topic_id)
    except KafkaException as e:
        if e.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise
    return None if topic_id == _NO_ID else topic_id


def _messages(
    consumer: Consumer,
    place: TopicPartition,
    begin: int,
    end: int,
    stopped: Callable[[], bool],
    silent: Callable[[Coordinates], StorageError],
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of the assigned partition until the client's position is at the end."""
    position, most, silence = begin, _FIRST_BATCH, 0.0
    while position < end and not stopped():
        got = consumer.consume(most, _WAIT_SECONDS)
        silence = 0.0 if got else silence + _WAIT_SECONDS
        if silence > SILENCE_SECONDS:
            raise silent(Coordinates(*place, position))
        if any(map(Message.error, got)):
            events, got = [m for m in got if m.error()], [m for m in got if not m.error()]
            position = max([position, *(_end_of_log(event, place, position) for event in events)])
        if got:
            position = max(position, (got[-1].offset() or 0) + 1)
            batch = _message_batch(got, place, end)
            del got
            if len(batch):
                most = _next_batch(batch)
                yield batch


def _message_batch(messages: Sequence[Message], place: TopicPartition, end: int) -> pa.RecordBatch:
    """Return the messages before offset `end`, possibly none. The only place where Python handles single messages. A record without headers
    gets an empty list, as in the log.
    """
    offsets = np.fromiter(map(Message.offset, messages), np.int64, len(messages))
    count = int(np.searchsorted(offsets, end))
    messages = messages if count == len(messages) else messages[:count]
    kinds, stamps = np.fromiter(chain.from_iterable(map(Message.timestamp, messages)), np.int64, 2 * count).reshape(-1, 2).T
    headers = list(map(Message.headers, messages))
    columns = {
        "topic": pa.repeat(pa.scalar(place[0], pa.string()), count),
        "partition": pa.repeat(pa.scalar(place[1], pa.int32()), count),
        "offset": pa.array(offsets[:count]),
        "timestamp_ms": pa.array(stamps, mask=kinds == TIMESTAMP_NOT_AVAILABLE),
        "key": pa.array(map(Message.key, messages), pa.binary(), size=count),
        "value": pa.array(map(Message.value, messages), pa.binary(), size=count),
        "headers": pa.array([several or () for several in headers], HEADERS) if any(headers) else _no_headers(count),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in MESSAGE.names], schema=MESSAGE)


def _no_headers(count: int) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], HEADERS.value_type), type=HEADERS)


def _next_batch(batch: pa.RecordBatch) -> int:
    """Return how many messages to request, so that they weigh about BATCH_BYTES."""
    nbytes: int = batch.nbytes
    return max(1, min(BATCH_MESSAGES, BATCH_BYTES * len(batch) // max(nbytes, 1)))


def _end_of_log(event: Message, place: TopicPartition, position: int) -> int:
    """Return the end of the log for an end-of-partition event. Raise the error of any other event."""
    error = event.error()
    assert error is not None
    if error.code() == KafkaError._PARTITION_EOF:
        return event.offset() or 0
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise StorageError(
            f"offsets no longer exist ({error.str()})",
            code="SOURCE_CHANGED",
            at=Coordinates(*place, position),
            remedy="retention deleted them while they were read: land the hour again to list what is missing",
        )
    raise KafkaException(error)


def _raise_first(found: Iterable[KafkaPartition] | None) -> None:
    for at in found or ():
        if at.error is not None:
            raise KafkaException(at.error)
