"""Messages of one partition that come in the order of their offsets → drafts of canonical objects, and the facts for the manifest.

What comes in order needs no spool: an object is cut as soon as the message behind it is there. Objects and row groups end where
`objects.cuts` would end them over all messages at once, however few or many come at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from tidelake.event import HEADERS
from tidelake.kafka import Headers, Messages
from tidelake.land.manifest import Partition
from tidelake.land.objects import GROUP_BYTES, GROUP_MESSAGES, OBJECT_BYTES, Draft
from tidelake.land.ranges import Range, minus, runs, union
from tidelake.land.spool import CONTENT, Longs


class ObjectCutter:
    """Cuts one partition of an hour into objects: `add` and at last `rest` give those that are complete."""

    def __init__(self, feed: str, hour: str, topic: str, partition: int) -> None:
        self._feed, self._hour, self._topic, self._partition = feed, hour, topic, partition
        self._waiting = _Waiting()
        self._groups = list[pa.Table]()
        self._sizes = list[Longs]()
        self._bytes = 0  # of the groups
        self._ranges: tuple[Range, ...] = ()
        self._count = self._total = 0
        self._times: tuple[int, int] | None = None

    def add(self, messages: Messages) -> Iterator[Callable[[], Draft]]:
        """Take messages, which follow those before; the objects that they complete."""
        self._note(messages)
        self._waiting.add(messages)
        yield from self._cut(last=False)

    def rest(self) -> Iterator[Callable[[], Draft]]:
        """The objects of what is left, when no more messages come."""
        yield from self._cut(last=True)
        if self._groups:
            yield self._object()

    def facts(self, start: int, begin: int, end: int) -> Partition:
        """What was added, of the hour's offsets from start up to end, of which those from begin on were there."""
        ranges = self._ranges
        expired = ((start, begin - 1),) if start < begin else ()
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
            expired=expired,
        )

    def _note(self, messages: Messages) -> None:
        self._ranges = union([self._ranges, runs(np.array(messages.offsets, np.int64))])
        self._count += len(messages)
        self._total += sum(messages.sizes)
        known = [*(self._times or ()), *(ms for ms in messages.timestamps if ms is not None)]
        self._times = (min(known), max(known)) if known else None

    def _cut(self, *, last: bool) -> Iterator[Callable[[], Draft]]:
        waiting = self._waiting
        while len(waiting):
            ends = np.cumsum(waiting.sizes)
            left = int(np.searchsorted(ends, OBJECT_BYTES - self._bytes, side="right"))
            if not left and self._groups:
                yield self._object()
                continue
            group = min(max(int(np.searchsorted(ends, GROUP_BYTES, side="right")), 1), GROUP_MESSAGES, max(left, 1))
            if group == len(waiting) and not last:
                return  # the next message may belong to it
            self._bytes += int(ends[group - 1])
            self._sizes.append(np.array(waiting.sizes[:group], np.int64))
            self._groups.append(waiting.take(group))

    def _object(self) -> Callable[[], Draft]:
        groups, sizes = tuple(self._groups), np.concatenate(self._sizes)
        self._groups, self._sizes, self._bytes = [], [], 0
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
            release=_nothing,
        )


class _Waiting:
    """Messages that are in no row group yet."""

    def __init__(self) -> None:
        self.offsets = list[int]()
        self.timestamps = list[int | None]()
        self.keys = list[bytes | None]()
        self.values = list[bytes | None]()
        self.headers = list[Headers | None]()
        self.sizes = list[int]()

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, messages: Messages) -> None:
        self.offsets += messages.offsets
        self.timestamps += messages.timestamps
        self.keys += messages.keys
        self.values += messages.values
        self.headers += messages.headers
        self.sizes += messages.sizes

    def take(self, count: int) -> pa.Table:
        """The first messages, as CONTENT."""
        columns = {
            "offset": pa.array(self.offsets[:count], pa.int64()),
            "timestamp_ms": pa.array(self.timestamps[:count], pa.int64()),
            "key": pa.array(self.keys[:count], pa.binary()),
            "value": pa.array(self.values[:count], pa.binary()),
            "headers": _headers(self.headers[:count]),
        }
        for column in (self.offsets, self.timestamps, self.keys, self.values, self.headers, self.sizes):
            del column[:count]
        return pa.Table.from_arrays([columns[name] for name in CONTENT.names], schema=CONTENT)


def _headers(several: list[Headers | None]) -> pa.Array:
    """A record without headers has an empty list of them: the log says so."""
    if any(several):
        return pa.array([headers or () for headers in several], HEADERS)
    return pa.ListArray.from_arrays(np.zeros(len(several) + 1, np.int32), pa.array([], HEADERS.value_type)).cast(HEADERS)


def _nothing() -> None:
    """No mapped memory was read."""
