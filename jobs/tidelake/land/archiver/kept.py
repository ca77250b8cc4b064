"""The archiver's records about a topic beside its objects: Kafka's id, and the offsets without messages after its last object.

Without the id, a recreated topic with more messages than before would go unnoticed. Without the empty spans, expired transaction
markers after the last object would look like messages that were never archived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import BaseModel, ValidationError

from tidelake.config.lake_paths import archived_topic_key
from tidelake.errors import StorageError, TopicPartition
from tidelake.io.documents import Document, refuse_newer
from tidelake.io.storage import Store
from tidelake.land.store.topic_identity import check_ids


class TopicState(Document, BaseModel):
    """Record about a topic. topic_id: None if the brokers have no ids. empty: by partition, the offset after its last object, and the
    offset after the span without messages.
    """

    topic_id: str | None = None
    empty: dict[int, tuple[int, int]] = {}


class Kept:
    """Records about the topics of an archive, read on demand. check: raises LeaseError if nothing may be written."""

    def __init__(self, system: Store, check: Callable[[], None]) -> None:
        self._system, self._check = system, check
        self._states = dict[str, TopicState]()

    def identify(self, ids: Mapping[str, str]) -> None:
        """Record the ids of new topics. Raises OrderError (TOPIC_RECREATED), StorageError."""
        known = {topic: topic_id for topic in ids if (topic_id := self._state(topic).topic_id) is not None}
        check_ids(known, ids, "the archive has messages of")
        for topic in ids.keys() - known.keys():
            self._write(topic, self._state(topic).model_copy(update={"topic_id": ids[topic]}))

    def behind_empty(self, place: TopicPartition, begin: int) -> int:
        """Return where to resume reading. begin: the offset after the partition's last object. Raises StorageError."""
        at, behind = self._state(place[0]).empty.get(place[1], (begin, begin))
        return behind if at == begin else begin

    def note_empty(self, spans: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """Record where partitions hold no message after their last object, if it changed. Raises StorageError."""
        for topic in sorted({topic for topic, _ in spans}):
            state = self._state(topic)
            empty = state.empty | {number: span for (name, number), span in spans.items() if name == topic}
            if empty != state.empty:
                self._write(topic, state.model_copy(update={"empty": empty}))

    def _state(self, topic: str) -> TopicState:
        if topic not in self._states:
            key = archived_topic_key(topic)
            text = self._system.read_if_present(key)
            if text is not None:
                refuse_newer(self._system, key, text)
            try:
                self._states[topic] = TopicState() if text is None else TopicState.model_validate_json(text)
            except ValidationError as e:
                raise StorageError(f"{self._system.uri_of(key)} is not the archiver's record of a topic: {e}", code="BAD_OBJECT") from e
        return self._states[topic]

    def _write(self, topic: str, state: TopicState) -> None:
        self._check()
        self._system.write(archived_topic_key(topic), state.model_dump_json().encode())
        self._states[topic] = state
