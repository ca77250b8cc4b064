"""Cut one partition's ordered messages into drafts of objects by hour; no object spans two hours.

An hour ends before the first message with a later timestamp. Hours therefore only go forward, and join without gap or overlap for any
timestamps. A late message belongs to the open hour, and so does a message with a timestamp in the future of this machine's clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.land.store.objects import Draft, ObjectWriter
from tidelake.land.store.stream import Completed, ObjectCutter
from tidelake.tso import format_hour, parse_hour
from tidelake.wire.kernels.arrays import Longs

HOUR_MS = 3_600_000


class HourCutter:
    """Cuts a partition into objects by hour. `begin`: the first offset that no object covers yet; `hour`: the open hour, as in keys.

    folder: an existing folder on local disk, for the objects' files until they are durable. Objects cover all offsets from the end of the
    previous one: uncovered ones have no message in the log either.
    """

    def __init__(self, folder: Path, feed: str, topic: str, partition: int, begin: int, hour: str | None = None) -> None:
        self._folder, self._feed, self._place = folder, feed, (topic, partition)
        self._open = None if hour is None else int(parse_hour(hour).timestamp() * 1000) // HOUR_MS
        self._cutter: ObjectCutter | None = None
        self._last = begin - 1  # last offset that was added
        self.begin = begin

    @property
    def hour(self) -> str | None:
        """The open hour, None before the first message."""
        return None if self._open is None else _name(self._open)

    @property
    def held(self) -> int:
        """Bytes of memory of the waiting messages."""
        return self._cutter.held if self._cutter else 0

    @property
    def unfinished(self) -> bool:
        """Whether there are messages that are not yet in an object."""
        return self._last >= self.begin

    def hours_of(self, batch: pa.RecordBatch, now_ms: int) -> Longs:
        """Return the hour of each message of the next batch: hours since 1970, ascending."""
        now = now_ms // HOUR_MS
        stamps = batch.column("timestamp_ms")
        hours = np.minimum(pc.fill_null(stamps, -1).to_numpy() // HOUR_MS, now)
        first = self._open
        if first is None:
            known = np.flatnonzero(stamps.is_valid().to_numpy(zero_copy_only=False))
            first = int(hours[known[0]]) if len(known) else now
        return np.maximum.accumulate(np.maximum(hours, first))

    def add(self, batch: pa.RecordBatch, hours: Longs) -> Iterator[Draft]:
        """Add MESSAGE rows that follow the earlier ones, with their hours. Yields the objects that they complete."""
        starts = np.flatnonzero(np.diff(hours, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(hours)], strict=True):
            if (hour := int(hours[start])) != self._open:
                yield from self.rest(self._last + 1)
                self._open = hour
            part = batch.slice(start, end - start)
            self._cutter = self._cutter or self._begun(_name(hour))
            for done in self._cutter.add(part):
                yield self._covering(done, None)
            self._last = part.column("offset")[-1].as_py()

    def rest(self, position: int) -> Iterator[Draft]:
        """Yield the object of the remaining messages, if any. position: before it, the log holds no message that was not added."""
        if self._cutter:
            (done,) = self._cutter.rest()  # a cutter has at least one message, and the waiting ones always fit into the object
            self._cutter = None
            yield self._covering(done, position - 1)

    def spill(self) -> None:
        """Write waiting messages to disk."""
        if self._cutter:
            self._cutter.spill()

    def _begun(self, hour: str) -> ObjectCutter:
        """Return a cutter with its own folder, because objects of the hour before may wait for their upload."""

        def new(path: Path) -> ObjectWriter:
            return ObjectWriter(path, self._feed, hour, *self._place)

        return ObjectCutter(Path(mkdtemp(dir=self._folder)), new)

    def _covering(self, done: Completed, last: int | None) -> Draft:
        draft = done(self.begin, last)
        assert draft.covers
        self.begin = draft.covers[1] + 1
        return draft


def _name(hour: int) -> str:
    return format_hour(datetime.fromtimestamp(hour * HOUR_MS // 1000, UTC))
