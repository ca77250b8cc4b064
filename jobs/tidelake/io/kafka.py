"""Live topics: what there is, where a time begins, messages in order. The only user of confluent_kafka, whose client is librdkafka.

Only what is committed is read. Whoever reads says from where to where; nothing is taken from or left to consumer groups, but for the
offsets that `commit` records for people and monitors to look at.
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

ANSWER_SECONDS = 15.0  # how long a question to the brokers may take
SILENCE_SECONDS = 90.0  # how long none of the messages that must be there may come; brokers restart within that
BATCH_MESSAGES = 2_000  # more are not faster, and heavy: each is an object of Python's and one of the client's
BATCH_BYTES = 4 << 20
SOURCE, ARCHIVER = "source", "source.archiver"  # sections of feed.toml

_WAIT_SECONDS = 0.05  # consume waits so long for a full batch, even at the end of a partition
_PATIENCE_SECONDS = 5.0  # beyond what a request may take, for a client that should have said so itself
_FIRST_BATCH = 100  # before it is known how large messages are
_OURS: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",  # an offset that is not there any more is an error, not a leap
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
}
_DEFAULTS: dict[str, Any] = {
    "client.id": "tidelake",
    "check.crcs": True,
    "queued.max.messages.kbytes": 4 << 10,  # of each consumer, that is of each reader
    "fetch.message.max.bytes": 2 << 20,
    "fetch.queue.backoff.ms": 5,  # a reader that was full and waits a second is what limits it
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
    """The topics of a cluster. `with Topics(servers, settings, group) as topics: …`; usable by several threads.

    servers: `host:port,…`; settings: librdkafka's and those of msk_iam, beside those that are ours; section: of feed.toml, where both
    stand. Raises ConfigError for settings that it refuses, StorageError (NO_CREDENTIALS).
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
        """How many partitions every topic has that this client may see. Raises StorageError."""
        with self._lent("list the topics") as consumer:
            found = consumer.list_topics(timeout=ANSWER_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in found.items() if topic.error is None}

    def ids(self, names: Collection[str]) -> dict[str, str]:
        """Kafka's ids of these topics: one that is made anew under the name of another has an id of its own (KIP-516).

        A topic that is not there is absent, as is every one of brokers that give no ids (before Kafka 2.8). Raises StorageError. For one
        thread at a time.
        """
        if not names:
            return {}
        with self._administering("describe the topics") as admin:
            asked = admin.describe_topics(TopicCollection(list(names)), request_timeout=ANSWER_SECONDS)
            found = {name: _id_of(answer) for name, answer in asked.items()}
        return {name: topic_id for name, topic_id in found.items() if topic_id is not None}

    def bounds(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """The first offset that is still there, and the one behind the last message that is committed. Raises StorageError."""
        with self._lent("ask for the offsets of its partitions") as consumer:
            return {place: _bounds(consumer, place) for place in places}

    def first_since(self, places: Sequence[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int | None]:
        """The offset of each partition's first message that has this timestamp or a later one, None without one. Raises StorageError."""
        if not places:
            return {}
        with self._lent("look up timestamps") as consumer:
            found = consumer.offsets_for_times([KafkaPartition(*place, timestamp_ms) for place in places], timeout=ANSWER_SECONDS)
            _raise_first(found)
        return {(at.topic, at.partition): at.offset if at.offset >= 0 else None for at in found}

    def read(
        self, place: TopicPartition, begin: int, end: int, stopped: Callable[[], bool] = lambda: False
    ) -> Generator[pa.RecordBatch, None, None]:
        """The messages of a partition from offset begin up to, not including, end: all that the log holds of them, in order, as MESSAGE.

        When one came, or the last of all, the client's position has passed every offset before: what did not come is not there. stopped:
        asked all the time; reading ends early when it says so. Raises StorageError: NO_BROKER where nothing comes for long, SOURCE_CHANGED
        where offsets of the range expire meanwhile.
        """
        with self._lent(f"read {Coordinates(*place)}") as consumer:
            consumer.assign([KafkaPartition(*place, begin)])
            try:
                yield from _messages(consumer, place, begin, end, stopped, self._silent)
            finally:
                consumer.unassign()  # or it would go on fetching

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Record in the consumer group where the next hour goes on. Raises StorageError. For one thread at a time."""
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
        """The client for what consumers cannot do, or cannot do in time; its failures become StorageErrors, and it is not used again."""
        try:
            self._admin = self._admin or AdminClient(self._settings | {"error_cb": self._heard}, logger=_LOG)
            yield self._admin
        except KafkaException as e:
            if self._admin is not None:
                self._admin.poll(0)  # for complaints that wait
            self._admin = None
            raise self._failed(purpose, e.args[0]) from None

    @contextmanager
    def _lent(self, purpose: str) -> Iterator[Consumer]:
        """A consumer for one thread; what the client cannot do becomes a StorageError, and the consumer is not used again."""
        try:
            consumer = self._idle.pop()
        except IndexError:  # others have them all
            consumer = self._opened()
        try:
            yield consumer
        except KafkaException as e:
            consumer.poll(0)  # for complaints that wait
            consumer.close()
            raise self._failed(purpose, e.args[0]) from None
        except GeneratorExit:  # enough was read
            self._idle.append(consumer)
            raise
        except BaseException:
            consumer.close()
            raise
        self._idle.append(consumer)

    def _opened(self, more: Mapping[str, Any] = _NOTHING) -> Consumer:
        try:
            return Consumer({**self._settings, "error_cb": self._heard, **more}, logger=_LOG)
        except KafkaException as e:
            raise _refused(self._settings, self._section, e.args[0]) from None

    def _heard(self, error: KafkaError) -> None:
        """What the client complains of while it tries on; why it cannot log in says more than that no broker is left."""
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
    """A consumer that only commits, and is asked to without waiting inside the client.

    A commit that waits does not come back while brokers are away, and what the admin client asks a group's coordinator may end the
    process when that goes away (librdkafka issue 4605: an assertion).
    """

    def __init__(self, opened: Callable[[Mapping[str, Any]], Consumer]) -> None:
        self._answers: list[tuple[KafkaError | None, list[KafkaPartition]]] = []
        self._consumer = opened({"on_commit": lambda error, ends: self._answers.append((error, ends))})

    def commit(self, ends: list[KafkaPartition]) -> None:
        """Raises KafkaException; no other commit is asked for then."""
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
        """Close it whenever it can be: that waits for its commit, which may never come through; the end of the process does not wait.

        Where it does come through, later commits may have been before it; the next one is right again.
        """
        Thread(target=self._consumer.close, daemon=True).start()


def check_settings(settings: Mapping[str, Any], section: str = SOURCE) -> None:
    """Raise ConfigError for the first setting that librdkafka does not know, and for a log-in that is not installed; touches no network."""
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
    """Asked again while the partition's leader moves, as after a broker's restart. Raises KafkaException."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return consumer.get_watermark_offsets(KafkaPartition(*place), timeout=ANSWER_SECONDS)
        except KafkaException as e:
            if e.args[0].code() not in _NO_LEADER or time.monotonic() > deadline:
                raise
        time.sleep(_WAIT_SECONDS)


def _answered(answer: Future[Any]) -> Any:
    """What came of a request. Raises KafkaException."""
    try:
        return answer.result(ANSWER_SECONDS + _PATIENCE_SECONDS)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None


def _id_of(answer: Future[Any]) -> str | None:
    """None for a topic that is not there, or has no id. Raises KafkaException."""
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
    """What comes of the assigned partition until the client's position is at the end."""
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
    """Those before offset `end`, which may be none. The one place where Python handles single messages; a record without headers has an
    empty list of them, as the log says so."""
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
    """How many messages to ask for, so that they weigh about BATCH_BYTES."""
    nbytes: int = batch.nbytes
    return max(1, min(BATCH_MESSAGES, BATCH_BYTES * len(batch) // max(nbytes, 1)))


def _end_of_log(event: Message, place: TopicPartition, position: int) -> int:
    """Where the log ends, of an event that says so. Raises what any other says."""
    error = event.error()
    assert error is not None
    if error.code() == KafkaError._PARTITION_EOF:
        return event.offset() or 0
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise StorageError(
            f"offsets that were there are not any more ({error.str()})",
            code="SOURCE_CHANGED",
            at=Coordinates(*place, position),
            remedy="retention deleted them while they were read: land the hour again, it says what is gone",
        )
    raise KafkaException(error)


def _raise_first(found: Iterable[KafkaPartition] | None) -> None:
    for at in found or ():
        if at.error is not None:
            raise KafkaException(at.error)
