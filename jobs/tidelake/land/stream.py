"""Messages of one partition that come in the order of their offsets → drafts of canonical objects, and the facts for the manifest.

What comes in order needs no sorting: an object is cut as soon as the message behind it is there, and only its row groups lie in a spool, so
that memory does not grow with readers. Objects and row groups end where `objects.cuts` would end them over all messages at once, however
few or many come at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.land.manifest import Partition
from tidelake.land.objects import GROUP_BYTES, GROUP_MESSAGES, OBJECT_BYTES, Draft
from tidelake.land.ranges import Range, minus, runs
from tidelake.land.spool import CONTENT, Longs, mapped, payload


class ObjectCutter:
    """Cuts one partition of an hour into objects: `add` and at last `rest` give those that are complete.

    folder: on local disk, for one file that is gone when the object is complete.
    """

    def __init__(self, folder: Path, feed: str, hour: str, topic: str, partition: int) -> None:
        self._path = folder / "object.arrow"
        self._writer: pa.RecordBatchFileWriter | None = None  # of the row groups that the next object has
        self._feed, self._hour, self._topic, self._partition = feed, hour, topic, partition
        self._waiting = list[pa.RecordBatch]()  # in no row group yet
        self._waiting_sizes = np.zeros(0, np.int64)
        self._sizes = list[Longs]()  # of the messages of these row groups
        self._bytes = 0
        self._ranges = list[Range]()
        self._count = self._total = 0
        self._times: tuple[int, int] | None = None

    def add(self, batch: pa.RecordBatch) -> Iterator[Callable[[], Draft]]:
        """Take MESSAGE rows, which follow those before, or none; the objects that they complete."""
        if not len(batch):
            return
        sizes = payload(batch).to_numpy(zero_copy_only=False).astype(np.int64)
        self._note(batch, int(sizes.sum()))
        self._waiting.append(batch.select(CONTENT.names))
        self._waiting_sizes = np.concatenate([self._waiting_sizes, sizes])
        yield from self._cut(last=False)

    @property
    def held(self) -> int:
        """The bytes of memory that messages take which are in no row group yet."""
        return sum(batch.get_total_buffer_size() for batch in self._waiting)

    def spill(self) -> None:
        """Write what is in no row group yet as one that is smaller than it could be, so that it takes no memory."""
        if len(self._waiting_sizes):
            self._group(len(self._waiting_sizes))

    def rest(self) -> Iterator[Callable[[], Draft]]:
        """The objects of what is left, when no more messages come."""
        yield from self._cut(last=True)
        if self._writer:
            yield self._object(self._writer)

    def facts(self, start: int, begin: int, end: int) -> Partition:
        """What was added, of the hour's offsets from start up to end, of which those from begin on were there."""
        ranges = tuple(self._ranges)
        return Partition(
            first=ranges[0][0] if ranges else None,
            last=ranges[-1][1] if ranges else None,
            count=self._count,
            bytes=self._total,
            ranges=ranges,
            gaps=(),
            min_timestamp_ms=self._times[0] if self._times else None,
            max_timestamp_ms=self._times[1] if self._times else None,
            start=start,
            next=end,
            legal_gaps=minus([(begin, end - 1)], ranges) if begin < end else (),
            expired=((start, begin - 1),) if start < begin else (),
        )

    def _note(self, batch: pa.RecordBatch, size: int) -> None:
        (first, last), *more = runs(batch.column("offset").to_numpy())
        if self._ranges and self._ranges[-1][1] + 1 == first:
            first = self._ranges.pop()[0]
        self._ranges += [(first, last), *more]
        self._count += len(batch)
        self._total += size
        times = pc.min_max(batch.column("timestamp_ms")).as_py()
        known = [*(self._times or ()), *(ms for ms in times.values() if ms is not None)]
        self._times = (min(known), max(known)) if known else None

    def _cut(self, *, last: bool) -> Iterator[Callable[[], Draft]]:
        while len(sizes := self._waiting_sizes):
            ends = np.cumsum(sizes)
            left = int(np.searchsorted(ends, OBJECT_BYTES - self._bytes, side="right"))
            if not left and self._writer:
                yield self._object(self._writer)
                continue
            group = min(max(int(np.searchsorted(ends, GROUP_BYTES, side="right")), 1), GROUP_MESSAGES, max(left, 1))
            if group == len(sizes) and not last:
                return  # the next message may belong to it
            self._group(group)

    def _group(self, count: int) -> None:
        sizes = self._waiting_sizes[:count]
        self._bytes += int(sizes.sum())
        self._sizes.append(sizes)
        self._writer = self._writer or pa.ipc.new_file(str(self._path), CONTENT)
        self._writer.write_batch(self._taken(count))
        self._waiting_sizes = self._waiting_sizes[count:]

    def _taken(self, count: int) -> pa.RecordBatch:
        """The first messages that wait, as CONTENT in one piece: where pieces end would show in the bytes of the object."""
        table = pa.Table.from_batches(self._waiting, CONTENT)
        self._waiting = table.slice(count).to_batches()
        (taken,) = table.slice(0, count).combine_chunks().to_batches()
        return taken

    def _object(self, writer: pa.RecordBatchFileWriter) -> Callable[[], Draft]:
        writer.close()
        spool, sizes = mapped(self._path), np.concatenate(self._sizes)
        self._writer, self._sizes, self._bytes = None, [], 0
        groups = tuple(pa.Table.from_batches([batch], CONTENT) for batch in spool.batches)
        return partial(
            Draft,
            feed=self._feed,
            hour=self._hour,
            topic=self._topic,
            partition=self._partition,
            groups=groups,
            offsets=np.concatenate([group.column("offset").to_numpy() for group in groups]),
            sizes=sizes,
            nbytes=sum(group.nbytes for group in groups),
            timestamp_ms=groups[0].column("timestamp_ms")[0].as_py() or 0,
            release=spool.release,
        )
