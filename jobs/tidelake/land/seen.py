"""Notes of what was read of messages after an hour, to find a resolved ts after its end. They are kept, so that nothing is read twice.

Only resolved events count. Rows are decoded as far as possible without schemas and files from elsewhere, and ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import closing_key
from tidelake.io.documents import Document, find_document
from tidelake.io.storage import Store
from tidelake.land.store.ranges import Ranges, runs, union
from tidelake.tso import format_hour


class SeenMessages(BaseModel):
    """Note on what was read of an object, or of a live topic's partition: up to a message with a resolved ts after the hour, else
    everything.

    ranges: its offsets; resolved_ts: the one after the hour (TSO), else the largest, None without one; offset: the first that has it.
    """

    etag: str = ""
    ranges: Ranges = ()
    resolved_ts: int | None = None
    offset: int | None = None

    def add(self, batch: pa.RecordBatch, events: pa.RecordBatch, end_ts: int) -> None:
        """Add a MESSAGE batch and its resolved events."""
        self.ranges = union([self.ranges, runs(np.unique(batch.column("offset").to_numpy()))])
        beyond = events.filter(pc.greater(events.column("commit_ts"), end_ts))
        best = beyond if len(beyond) else events.filter(pc.equal(events.column("commit_ts"), pc.max(events.column("commit_ts"))))
        if not len(best):
            return
        first = best.column("offset").index(pc.min(best.column("offset"))).as_py()
        ts, offset = (best.column(name)[first].as_py() for name in ("commit_ts", "offset"))
        if self.resolved_ts is None or ts > self.resolved_ts:
            self.resolved_ts, self.offset = ts, offset

    def is_beyond(self, end_ts: int) -> bool:
        """Return whether a resolved ts after the hour was found. end_ts: the hour's last TSO."""
        return self.resolved_ts is not None and self.resolved_ts > end_ts


class _Notes(Document, BaseModel):
    objects: dict[str, SeenMessages] = {}


class Notes:
    """Notes on what was read after an hour, by object. `keep` writes them to the lake if something was added."""

    def __init__(self, feed: Feed, lake: Store, hour: datetime) -> None:
        self._lake, self._key = lake, closing_key(feed.name, format_hour(hour))
        found = find_document(lake, self._key, _Notes)
        self._seen = found.objects if found else {}
        self._new = False

    def of(self, key: str, etag: str = "") -> SeenMessages | None:
        """Return the note on an object, None if there is none or the object has changed."""
        found = self._seen.get(key)
        return found if found is not None and found.etag == etag else None

    def add(self, key: str, seen: SeenMessages) -> None:
        """Add the note on an object."""
        self._seen[key], self._new = seen, True

    def keep(self) -> None:
        """Write the notes. If another run writes them at the same time, some objects will be read again."""
        if self._new:
            self._lake.write(self._key, _Notes(objects=self._seen).model_dump_json().encode())


def read_on(seen: SeenMessages, feed: Feed, batches: Iterable[pa.RecordBatch], end_ts: int) -> bool:
    """Add MESSAGE batches up to the first one with a resolved ts after the hour. Returns whether there is one."""
    from tidelake.protocols import Context, decode  # imports compiled code, which the other rules do not need

    context = Context(options=feed.options, time_zone=feed.time_zone)
    for batch in batches:
        events = decode(feed.protocol, _candidates(feed, batch), context)
        seen.add(batch, events.filter(pc.equal(events.column("kind"), "resolved")), end_ts)
        if seen.is_beyond(end_ts):
            return True
    return False


def _candidates(feed: Feed, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the messages that may be resolved events. Avro's have no key (docs/reference/protocols.md 4.1), and its rows would need
    schemas.
    """
    if feed.protocol != "avro":
        return batch
    return batch.filter(pc.equal(pc.fill_null(pc.binary_length(batch.column("key")), 0), 0))
