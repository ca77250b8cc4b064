"""Messages of one partition that come in the order of their offsets → drafts of canonical objects, and the facts for the manifest.

What comes in order needs no sorting and no spool: a row group is written as soon as the message behind it is there, so that memory does
not grow with readers. Objects and row groups end where `objects.cuts` would end them over all messages at once, however few or many come
at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.land.store import objects
from tidelake.land.store.manifest import PartitionFacts
from tidelake.land.store.objects import Draft, ObjectWriter
from tidelake.land.store.ranges import Range, holes, minus, runs, union
from tidelake.land.store.spool import CONTENT, payload
from tidelake.land.store.watermarks import WatermarksSeen

Completed = Callable[..., Draft]  # completes an object; takes what it covers


class ObjectCutter:
    """Cuts one partition of an hour into objects: `add` and at last `rest` give those that are complete, to be completed.

    new: begins an object's file, ObjectWriter without its path; folder: on local disk, where the files are; protocol: whose watermarks
    the facts tell, None where nobody asks.
    """

    def __init__(self, folder: Path, new: Callable[[Path], ObjectWriter], protocol: str | None = None) -> None:
        self._folder, self._new = folder, new
        self._watermarks = WatermarksSeen(protocol) if protocol else None
        self._objects = 0
        self._writer: ObjectWriter | None = None
        self._waiting = list[pa.RecordBatch]()  # in no row group yet
        self._waiting_sizes = np.zeros(0, np.int64)
        self._ranges = list[Range]()
        self._count = self._total = 0
        self._times: tuple[int, int] | None = None

    def add(self, batch: pa.RecordBatch) -> Iterator[Completed]:
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

    @property
    def last(self) -> int:
        """The last offset that was added, -1 before there was one."""
        return self._ranges[-1][1] if self._ranges else -1

    def spill(self) -> None:
        """Write what is in no row group yet as one that is smaller than it could be, so that it takes no memory."""
        if len(self._waiting_sizes):
            self._group(len(self._waiting_sizes))

    def rest(self) -> Iterator[Completed]:
        """The objects of what is left, when no more messages come."""
        yield from self._cut(last=True)
        if self._writer:
            yield self._object(self._writer)

    def live_facts(self, start: int, begin: int, end: int) -> PartitionFacts:
        """What was added, of the hour's offsets from start up to end, of which those from begin on were there."""
        legal = minus([(begin, end - 1)], tuple(self._ranges)) if begin < end else ()
        expired = ((start, begin - 1),) if start < begin else ()
        return self._facts(()).model_copy(update={"start": start, "next": end, "legal_gaps": legal, "expired": expired})

    def archived_facts(self, covers: Sequence[Range]) -> PartitionFacts:
        """What was added of an archive. covers: of which offsets it says that it has all that there were."""
        legal = minus(union([covers]), tuple(self._ranges))
        return self._facts(minus(holes(tuple(self._ranges)), legal)).model_copy(update={"legal_gaps": legal})

    def _facts(self, gaps: tuple[Range, ...]) -> PartitionFacts:
        ranges = tuple(self._ranges)
        return PartitionFacts(
            first=ranges[0][0] if ranges else None,
            last=ranges[-1][1] if ranges else None,
            count=self._count,
            bytes=self._total,
            ranges=ranges,
            gaps=gaps,
            min_timestamp_ms=self._times[0] if self._times else None,
            max_timestamp_ms=self._times[1] if self._times else None,
            watermarks=self._watermarks.found if self._watermarks else None,
        )

    def _note(self, batch: pa.RecordBatch, size: int) -> None:
        (first, last), *more = runs(batch.column("offset").to_numpy())
        if self._ranges and self._ranges[-1][1] + 1 == first:
            first = self._ranges.pop()[0]
        self._ranges += [(first, last), *more]
        self._count += len(batch)
        if self._watermarks:
            self._watermarks.add(batch)
        self._total += size
        times = pc.min_max(batch.column("timestamp_ms")).as_py()
        known = [*(self._times or ()), *(ms for ms in times.values() if ms is not None)]
        self._times = (min(known), max(known)) if known else None

    def _cut(self, *, last: bool) -> Iterator[Completed]:
        while len(sizes := self._waiting_sizes):
            ends = np.cumsum(sizes)
            left = int(np.searchsorted(ends, objects.OBJECT_BYTES - (self._writer.bytes if self._writer else 0), side="right"))
            if not left and self._writer:
                yield self._object(self._writer)
                continue
            group = min(max(int(np.searchsorted(ends, objects.GROUP_BYTES, side="right")), 1), objects.GROUP_MESSAGES, max(left, 1))
            if group == len(sizes) and not last:
                return  # the next message may belong to it
            self._group(group)

    def _group(self, count: int) -> None:
        if self._writer is None:
            self._objects += 1
            self._writer = self._new(self._folder / f"{self._objects}.parquet")
        self._writer.add(self._taken(count), int(self._waiting_sizes[:count].sum()))
        self._waiting_sizes = self._waiting_sizes[count:]

    def _taken(self, count: int) -> pa.RecordBatch:
        """The first messages that wait, as CONTENT in one piece."""
        table = pa.Table.from_batches(self._waiting, CONTENT)
        self._waiting = table.slice(count).to_batches()
        (taken,) = table.slice(0, count).combine_chunks().to_batches()
        return taken

    def _object(self, writer: ObjectWriter) -> Completed:
        self._writer = None
        return writer.done
