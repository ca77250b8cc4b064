"""Cut the ordered messages of one partition into drafts of canonical objects, and collect the facts for the manifest.

Ordered messages need no sorting and no spool: a row group is written as soon as the message after it is there, so that memory does not grow
with the number of readers. Objects and row groups end where `objects.cuts` would end them over all messages at once, whatever the batch
sizes are.
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
from tidelake.land.store.seen import PartitionSeen
from tidelake.land.store.spool import CONTENT, payload

Completed = Callable[..., Draft]  # completes an object; takes the offsets that it covers


class ObjectCutter:
    """Cuts one partition of an hour into objects. `add` and finally `rest` return functions that complete the finished objects.

    new: creates an object's writer (ObjectWriter) for a path; folder: on local disk, for the files; seen: finds what the facts say
    of the messages' content, None for nothing.
    """

    def __init__(self, folder: Path, new: Callable[[Path], ObjectWriter], seen: PartitionSeen | None = None) -> None:
        self._folder, self._new, self._seen = folder, new, seen
        self._objects = 0
        self._writer: ObjectWriter | None = None
        self._waiting = list[pa.RecordBatch]()  # not yet in a row group
        self._waiting_sizes = np.zeros(0, np.int64)
        self._ranges = list[Range]()
        self._count = self._total = 0
        self._times: tuple[int, int] | None = None

    def add(self, batch: pa.RecordBatch) -> Iterator[Completed]:
        """Add MESSAGE rows that follow the earlier ones, or none. Yields the objects that they complete."""
        if not len(batch):
            return
        sizes = payload(batch).to_numpy(zero_copy_only=False).astype(np.int64)
        self._note(batch, int(sizes.sum()))
        self._waiting.append(batch.select(CONTENT.names))
        self._waiting_sizes = np.concatenate([self._waiting_sizes, sizes])
        yield from self._cut(last=False)

    @property
    def held(self) -> int:
        """Bytes of memory of messages that are not yet in a row group."""
        return sum(batch.get_total_buffer_size() for batch in self._waiting)

    @property
    def last(self) -> int:
        """The last offset that was added, -1 before the first."""
        return self._ranges[-1][1] if self._ranges else -1

    def spill(self) -> None:
        """Write the waiting messages as a row group, smaller than usual, to free their memory."""
        if len(self._waiting_sizes):
            self._group(len(self._waiting_sizes))

    def rest(self) -> Iterator[Completed]:
        """Yield the objects of the remaining messages, when no more come."""
        yield from self._cut(last=True)
        if self._writer:
            yield self._object(self._writer)

    def live_facts(self, start: int, begin: int, end: int) -> PartitionFacts:
        """Return the facts of a live hour with offsets from start up to, not including, end; offsets before begin are expired."""
        legal = minus([(begin, end - 1)], tuple(self._ranges)) if begin < end else ()
        expired = ((start, begin - 1),) if start < begin else ()
        return self._facts(()).model_copy(update={"start": start, "next": end, "legal_gaps": legal, "expired": expired})

    def archived_facts(self, covers: Sequence[Range]) -> PartitionFacts:
        """Return the facts of an archived hour. covers: the offsets that the archive declares complete."""
        legal = minus(union([covers]), tuple(self._ranges))
        return self._facts(minus(holes(tuple(self._ranges)), legal)).model_copy(update={"legal_gaps": legal})

    def _facts(self, gaps: tuple[Range, ...]) -> PartitionFacts:
        ranges = tuple(self._ranges)
        facts = PartitionFacts(
            first=ranges[0][0] if ranges else None,
            last=ranges[-1][1] if ranges else None,
            count=self._count,
            bytes=self._total,
            ranges=ranges,
            gaps=gaps,
            min_timestamp_ms=self._times[0] if self._times else None,
            max_timestamp_ms=self._times[1] if self._times else None,
        )
        return self._seen.facts(facts) if self._seen else facts

    def _note(self, batch: pa.RecordBatch, size: int) -> None:
        (first, last), *more = runs(batch.column("offset").to_numpy())
        if self._ranges and self._ranges[-1][1] + 1 == first:
            first = self._ranges.pop()[0]
        self._ranges += [(first, last), *more]
        self._count += len(batch)
        if self._seen:
            self._seen.add(batch)
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
        """Take the first waiting messages, as CONTENT in one chunk."""
        table = pa.Table.from_batches(self._waiting, CONTENT)
        self._waiting = table.slice(count).to_batches()
        (taken,) = table.slice(0, count).combine_chunks().to_batches()
        return taken

    def _object(self, writer: ObjectWriter) -> Completed:
        self._writer = None
        return writer.done
