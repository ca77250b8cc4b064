"""Progress of archiving: a log line every LOG_SECONDS, and the totals of the run."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa

from tidelake.io.texts import plural
from tidelake.land.archiver.write import WrittenObject

LOG_SECONDS = 30.0

_MB = 1_000_000

log = logging.getLogger("tidelake.archive")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTotals:
    """Totals of what one run made durable. bytes: of the messages' keys and values."""

    messages: int = 0
    bytes: int = 0
    objects: int = 0
    topics: tuple[str, ...] = ()


class ArchiveProgress:
    """Counts the work of readers and the uploader, from several threads, and logs it every LOG_SECONDS."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._messages = self._bytes = 0  # read since the last line
        self._since = time.monotonic()
        self.archived = ArchiveTotals()

    def read(self, batch: pa.RecordBatch) -> None:
        """Count messages that were read."""
        with self._lock:
            self._messages += len(batch)
            self._bytes += batch.nbytes

    def wrote(self, written: WrittenObject) -> None:
        """Count an object that is durable."""
        before = self.archived
        self.archived = ArchiveTotals(
            messages=before.messages + written.messages,
            bytes=before.bytes + written.bytes,
            objects=before.objects + 1,
            topics=tuple(sorted({*before.topics, written.topic})),
        )

    def now_and_then(self, lags: Iterable[tuple[str, int]]) -> None:
        """Log a line if LOG_SECONDS have passed. lags: topic, and unread messages of one of its partitions."""
        passed = time.monotonic() - self._since
        if passed < LOG_SECONDS:
            return
        lag = defaultdict[str, int](int)
        for topic, behind in lags:
            lag[topic] += behind
        with self._lock:
            messages, speed = self._messages, self._bytes / _MB / passed
            self._messages = self._bytes = 0
        self._since += passed
        behind_of = ", ".join(f"{topic} {behind:,}" for topic, behind in sorted(lag.items()))
        read, written = plural(messages, "message"), plural(self.archived.objects, "object")
        log.info(f"{read} read, {speed:.1f} MB/s; {written} written; behind: {behind_of or 'no topics'}")
