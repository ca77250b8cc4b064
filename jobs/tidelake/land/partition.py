"""Read one partition of one hour: source objects become drafts of canonical objects, in order, with the facts for the manifest.

Records of all objects are sorted by offset. An offset that occurs again with the same key, value and timestamp is dropped. One with another
content is a conflict, and none of its records is landed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.archives import Layout
from tidelake.io.storage import Store
from tidelake.land.sources import SourceReader, Task
from tidelake.land.store import objects
from tidelake.land.store.manifest import PartitionFacts, SourceFile
from tidelake.land.store.objects import ObjectWriter, Outlet, cuts
from tidelake.land.store.ranges import Range, holes, minus, runs, union
from tidelake.land.store.spool import Spool, payload, spooled
from tidelake.land.store.stream import ObjectCutter
from tidelake.land.timed import OffsetSpan
from tidelake.wire.kernels.arrays import Flags, Longs

_IDENTITY = ("key", "value", "timestamp_ms")
_NO_TIME, _NO_OFFSET = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRead:
    """Result of reading one partition. Its objects are in the folder."""

    topic: str
    number: int
    sources: tuple[SourceFile, ...]
    facts: PartitionFacts
    folder: Path


@dataclass(frozen=True, slots=True)
class _Kept:
    """The spooled messages to land, in order. rows, offsets: theirs; conflicts: offsets; owners: objects that hold conflicting offsets."""

    rows: Longs
    offsets: Longs
    duplicates: int
    conflicts: Longs
    owners: tuple[str, ...]


def read_partition(task: Task, layout: Layout, archive: Store, outlet: Outlet, read: Callable[[int], None]) -> PartitionRead:
    """Read one partition and put its objects.

    Messages in order are cut as they come. If a message is out of order, everything is read again into a spool and sorted. The objects put
    before are then the first ones put again, unless an object holds offsets below the number in its name.

    read: called with the size in bytes of every source object after it was read. Raises what reading the layout raises.
    """
    reader = SourceReader(task, layout, archive, read)
    return (_may_be_in_order(task, layout) and _read_in_order(reader, outlet)) or _read_spooled(reader, outlet)


def _may_be_in_order(task: Task, layout: Layout) -> bool:
    """Whether every object's offsets may lie between the number in its name and the next one's, and all belong to the hour."""
    ascend = all(a.number < b.number for a, b in pairwise(task.sources))
    return ascend and task.span is None and not layout.number_is_last_offset


def _read_in_order(reader: SourceReader, outlet: Outlet) -> PartitionRead | None:
    """Read a partition whose messages come in order; None if one does not."""
    task, folder = reader.task, Path(mkdtemp(dir=outlet.folder))
    cutter = ObjectCutter(folder, partial(_writer, task, outlet), task.seen())
    ends = {one.key: after.number for one, after in pairwise(task.sources)}
    with closing(reader.messages()) as batches:
        for source, batch in batches:
            end = ends.get(source.key)
            if not _continues(batch.column("offset").to_numpy(), max(source.number, cutter.last + 1), end):
                return None
            for done in cutter.add(batch):
                outlet.put(done())
    for done in cutter.rest():
        outlet.put(done())
    return _result(reader, cutter.archived_facts(reader.covers), folder)


def _continues(offsets: Longs, begin: int, end: int | None) -> bool:
    """Whether offsets ascend from `begin` on and end before `end`."""
    if not len(offsets):
        return True
    return bool(offsets[0] >= begin and (end is None or offsets[-1] < end) and (np.diff(offsets) > 0).all())


def _read_spooled(reader: SourceReader, outlet: Outlet) -> PartitionRead:
    task, folder = reader.task, Path(mkdtemp(dir=outlet.folder))
    with TemporaryDirectory(prefix="tidelake-land-") as name, spooled(Path(name), (batch for _, batch in reader.messages())) as spool:
        kept = _keep(spool, reader.sources, reader.counts, task.span)
        sizes = spool.longs(payload)[kept.rows]
        facts, seen = _facts(spool, kept, sizes, reader.covers, task.span), task.seen()
        for number, (begin, end) in enumerate(cuts(sizes, objects.OBJECT_BYTES)):
            writer = _writer(task, outlet, folder / f"{number}.parquet")
            rows, of_rows = kept.rows[begin:end], sizes[begin:end]
            for first, last in cuts(of_rows, objects.GROUP_BYTES, objects.GROUP_MESSAGES):
                (group,) = spool.take(rows[first:last]).combine_chunks().to_batches()
                writer.add(group, int(of_rows[first:last].sum()))
                seen.add(group)
                spool.release()
            outlet.put(writer.done())
    return _result(reader, seen.facts(facts), folder)


def _result(reader: SourceReader, facts: PartitionFacts, folder: Path) -> PartitionRead:
    facts = facts.model_copy(update={"lacking": dict(sorted(reader.lacking.items()))})
    return PartitionRead(topic=reader.task.topic, number=reader.task.number, sources=tuple(reader.sources), facts=facts, folder=folder)


def _writer(task: Task, outlet: Outlet, path: Path) -> ObjectWriter:
    return ObjectWriter(path, task.feed, task.hour, task.topic, task.number, outlet.encoders)


def _keep(spool: Spool, sources: Sequence[SourceFile], counts: Sequence[int], span: OffsetSpan | None) -> _Kept:
    offsets = spool.longs(lambda batch: batch.column("offset"))
    order = np.argsort(offsets, kind="stable").astype(np.int64, copy=False)
    offsets = offsets[order]
    if span is not None:
        inside = slice(*np.searchsorted(offsets, [span.begin, span.end]))
        order, offsets = order[inside], offsets[inside]
    again = np.flatnonzero(offsets[1:] == offsets[:-1]) + 1
    if not len(again):
        return _Kept(order, offsets, 0, again, ())
    conflicts = np.unique(offsets[again[_differ(spool, order[again], order[again - 1])]])
    in_conflict = np.isin(offsets, conflicts)
    owners = np.searchsorted(np.cumsum(counts), order[in_conflict], side="right")
    keep = ~in_conflict
    keep[again] = False
    return _Kept(
        order[keep],
        offsets[keep],
        int(np.count_nonzero(~in_conflict[again])),
        conflicts,
        tuple(sources[i].key for i in np.unique(owners).tolist()),
    )


def _differ(spool: Spool, rows: Longs, others: Longs) -> Flags:
    """Whether the contents of rows[i] and others[i] differ."""
    sizes = spool.longs(payload)
    differ = np.zeros(len(rows), np.bool_)
    for begin, end in cuts(sizes[rows] + sizes[others], objects.GROUP_BYTES, objects.GROUP_MESSAGES):
        one, other = spool.take(rows[begin:end]), spool.take(others[begin:end])
        for name in _IDENTITY:
            differ[begin:end] |= ~_same(one.column(name), other.column(name))
        spool.release()
    return differ


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Flags:
    equal = pc.fill_null(pc.equal(one, other), False)
    flags: Flags = pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other))).to_numpy()
    return flags


def _facts(spool: Spool, kept: _Kept, sizes: Longs, covers: Sequence[Range], span: OffsetSpan | None) -> PartitionFacts:
    ranges, conflicts = runs(kept.offsets), runs(kept.conflicts)
    legal = minus(union([covers]), union([ranges, conflicts]))
    if span is not None:
        legal = minus(legal, ((0, span.begin - 1),))
        legal = legal if span.next is None else minus(legal, ((span.next, _NO_OFFSET),))
    stamps = spool.longs(lambda batch: pc.fill_null(batch.column("timestamp_ms"), _NO_TIME))[kept.rows]
    stamps = stamps[stamps != _NO_TIME]
    return PartitionFacts(
        first=ranges[0][0] if ranges else None,
        last=ranges[-1][1] if ranges else None,
        count=len(kept.rows),
        bytes=int(sizes.sum()),
        ranges=ranges,
        gaps=minus(holes(ranges), legal),
        duplicates=kept.duplicates,
        conflicts=conflicts,
        conflict_sources=kept.owners,
        min_timestamp_ms=int(stamps.min()) if len(stamps) else None,
        max_timestamp_ms=int(stamps.max()) if len(stamps) else None,
        start=span.begin if span else None,
        next=span.next if span else None,
        legal_gaps=legal,
    )
