"""Canonical objects: Parquet files of the MESSAGE schema, sorted by offset, the same bytes for the same messages (docs/architecture.md 7).

The ends of objects and row groups depend only on the messages. Spark reads objects row group by row group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.archives.canonical import COVERS
from tidelake.config.lake_paths import landed_key
from tidelake.history.event import MESSAGE
from tidelake.land.store.item import ItemPosition
from tidelake.land.store.manifest import Landed
from tidelake.land.store.ranges import Range
from tidelake.wire.kernels.arrays import Longs

OBJECT_BYTES = 64 << 20  # keys and values before compression
GROUP_BYTES = 8 << 20
GROUP_MESSAGES = 10_000

_PLAIN_TEXT = ("topic", "partition")
_COUNTED = {"offset": "DELTA_BINARY_PACKED", "timestamp_ms": "DELTA_BINARY_PACKED"}


def cuts(sizes: Longs, most_bytes: int, most: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each piece: as many messages as fit into most_bytes and most, at least one. sizes: bytes of each message."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + most_bytes, side="right")), begin + 1)
        end = end if most is None else min(end, begin + most)
        yield begin, end
        begin = end


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A canonical object that is written to a file and not yet durable. It is an item of the event store.

    first, last: offsets; events: number of messages; bytes: of their keys and values; nbytes: their weight as columns; timestamp_ms: of the
    first message; covers: first and last of the offsets of which it has all messages of the log, None if unknown. The code that makes it
    durable removes the file.
    """

    feed: str
    hour: str
    topic: str
    partition: int
    path: Path
    first: int
    last: int
    events: int
    bytes: int
    nbytes: int
    timestamp_ms: int
    rows: int = 0
    is_boundary: bool = True
    is_ddl: bool = False
    covers: Range | None = None

    @property
    def position(self) -> ItemPosition:
        return ItemPosition(timestamp_ms=self.timestamp_ms, journal=f"{self.topic}[{self.partition}]", offset=self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """Destination of readers' objects. folder: for the objects' files, which outlive their reader; encoders: for ObjectWriter."""

    folder: Path
    encoders: Executor
    put: Callable[[Draft], object]


class ObjectWriter:
    """Writes a canonical object, row group by row group, to a file at the path. At least one group must be added.

    encoders: compresses its groups one by one while the caller prepares the next; None: the caller compresses.
    """

    def __init__(self, path: Path, feed: str, hour: str, topic: str, partition: int, encoders: Executor | None = None) -> None:
        self._path, self._feed, self._hour, self._topic, self._partition = path, feed, hour, topic, partition
        self._encoders = encoders
        self._writing: Future[None] | None = None
        self._first = self._last = self._timestamp_ms = -1
        self._events = self._weight = 0
        self.bytes = 0
        self._file = pq.ParquetWriter(
            path,
            MESSAGE,
            version="2.6",
            compression="zstd",
            compression_level=1,  # level 3 takes a third more time, for objects of the same size (JSON) or a tenth smaller (Craft)
            use_dictionary=list(_PLAIN_TEXT),
            column_encoding=_COUNTED,
            write_statistics=["partition", *_COUNTED],
            data_page_size=1 << 20,
        )

    def add(self, group: pa.RecordBatch, size: int) -> None:
        """Append a row group. group: CONTENT in one chunk, as chunk ends would change the bytes; size: bytes of its keys and values."""
        if not self._events:
            self._first, self._timestamp_ms = group.column("offset")[0].as_py(), group.column("timestamp_ms")[0].as_py() or 0
        self._last = group.column("offset")[-1].as_py()
        self._events += len(group)
        self._weight += group.nbytes
        self.bytes += size
        self._settle()
        if self._encoders is None:
            self._write(group)
        else:
            self._writing = self._encoders.submit(self._write, group)

    def done(self, begin: int | None = None, last: int | None = None) -> Draft:
        """Complete the file. begin, last: of the offsets that it covers, if known; without last, up to its last message."""
        covers = None if begin is None else (begin, self._last if last is None else last)
        self._settle()
        said = {"tidelake.first": str(self._first), "tidelake.last": str(self._last), "tidelake.count": str(self._events)}
        if covers is not None:
            said[COVERS] = "{}-{}".format(*covers)
        self._file.add_key_value_metadata(said)
        self._file.close()
        return Draft(
            feed=self._feed,
            hour=self._hour,
            topic=self._topic,
            partition=self._partition,
            path=self._path,
            first=self._first,
            last=self._last,
            events=self._events,
            bytes=self.bytes,
            nbytes=self._weight,
            timestamp_ms=self._timestamp_ms,
            covers=covers,
        )

    def _settle(self) -> None:
        """Wait for the previous group, and raise its error."""
        if self._writing:
            self._writing.result()

    def _write(self, group: pa.RecordBatch) -> None:
        names = pa.repeat(pa.scalar(self._topic, pa.string()), len(group))
        numbers = pa.repeat(pa.scalar(self._partition, pa.int32()), len(group))
        table = pa.Table.from_arrays([names, numbers, *group.columns], schema=MESSAGE)
        self._file.write_table(table, row_group_size=len(table))


def described(draft: Draft) -> Landed:
    """Return the manifest's entry for a written object. Its key contains the hash of its bytes."""
    with draft.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Landed(
        key=landed_key(draft.feed, draft.topic, draft.hour, draft.partition, draft.first, draft.last, digest),
        topic=draft.topic,
        partition=draft.partition,
        first=draft.first,
        last=draft.last,
        count=draft.events,
        bytes=draft.bytes,
        size=draft.path.stat().st_size,
        sha256=digest,
    )
