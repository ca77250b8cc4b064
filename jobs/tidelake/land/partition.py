"""One partition of one hour: its source objects → drafts of canonical objects, in order, and the facts for the manifest.

Records of all objects are put in the order of their offsets. An offset that is there again with the same key, value and timestamp
is dropped; one with another content is a conflict, and none of its records is landed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.archives import Layout, Sibling, SourceObject, beside
from tidelake.errors import StorageError
from tidelake.land.manifest import Partition, Source
from tidelake.land.objects import GROUP_BYTES, GROUP_MESSAGES, OBJECT_BYTES, Draft, cuts, drafted
from tidelake.land.ranges import Range, holes, minus, runs, union
from tidelake.land.spool import Longs, Spool, payload, spooled
from tidelake.land.tags import check_tags
from tidelake.land.timed import Span
from tidelake.storage import Store

Flags = npt.NDArray[np.bool_]

_IDENTITY = ("key", "value", "timestamp_ms")
_NO_TIME, _NO_OFFSET = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRead:
    """What reading one partition gave, its objects apart."""

    topic: str
    number: int
    sources: tuple[Source, ...]
    facts: Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One partition to land. sources: its objects of the hour, in the order of their keys; tagged: their tags must prove their offsets;
    span: finds the hour's offsets in them, in the order of their numbers; None where all that they hold is of the hour.
    """

    feed: str
    hour: str
    topic: str
    number: int
    sources: Sequence[SourceObject]
    tagged: bool = False
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    """Which spooled messages are landed, in which order. rows, offsets: of those; conflicts: offsets; owners: objects that hold them."""

    rows: Longs
    offsets: Longs
    duplicates: int
    conflicts: Longs
    owners: tuple[str, ...]


def read_partition(
    task: Task, layout: Layout, archive: Store, put: Callable[[Callable[[], Draft]], None], read: Callable[[int], None]
) -> PartitionRead:
    """Read one partition and put its objects, each made when it is its turn.

    read: told the size of every source object once it was read, in bytes. Raises what reading the layout raises.
    """
    with TemporaryDirectory(prefix="tidelake-land-") as name:
        folder = Path(name)
        sources, counts, covers = list[Source](), list[int](), list[Range]()
        with spooled(folder, _messages(task, layout, archive, folder, sources, counts, covers, read)) as spool:
            kept = _keep(spool, sources, counts, task.span)
            sizes = spool.longs(payload)[kept.rows]
            facts = _facts(spool, kept, sizes, covers, task.span)
            for begin, end in cuts(sizes, OBJECT_BYTES):
                rows, offsets = kept.rows[begin:end], kept.offsets[begin:end]
                put(partial(drafted, task.feed, task.hour, task.topic, task.number, spool, rows, offsets, sizes[begin:end]))
    return PartitionRead(topic=task.topic, number=task.number, sources=tuple(sources), facts=facts)


def _messages(
    task: Task,
    layout: Layout,
    archive: Store,
    folder: Path,
    sources: list[Source],
    counts: list[int],
    covers: list[Range],
    read: Callable[[int], None],
) -> Iterator[pa.RecordBatch]:
    """The messages of all source objects; fills in what the sources were, how many messages each has, and what they say they cover."""
    path = folder / "source"
    span = task.span
    for source in task.sources:
        if span is not None and not span.wants(source, layout):
            continue
        with local_copies(archive, path, source) as copied:
            count = kept = 0
            for whole in layout.read(path, source):
                batch = whole if span is None else span.take(whole, source)
                count, kept = count + len(whole), kept + len(batch)
                yield batch
            if layout.covers and (covered := layout.covers(path)):
                covers.append(covered)
            if task.tagged:
                check_tags(archive.tags(source.key), source, count)
            sources += copied
            counts += [kept, *(0 for _ in source.siblings)]
        read(sum(part.size for part in copied))


@contextmanager
def local_copies(archive: Store, path: Path, source: SourceObject) -> Iterator[list[Source]]:
    """Copies of an object at a path and of its siblings beside it, gone afterwards. Raises StorageError (SOURCE_CHANGED)."""
    yield [_copied(archive, path, source), *(_copied(archive, beside(path, sibling.view), sibling) for sibling in source.siblings)]
    for local in (path, *(beside(path, sibling.view) for sibling in source.siblings)):
        local.unlink()


def _copied(archive: Store, path: Path, part: SourceObject | Sibling) -> Source:
    """Copy an object, which must still be there and as large as it was listed."""
    try:
        digest = archive.download(part.key, path)
    except StorageError as e:
        if e.code in ("CHANGED", "NOT_FOUND"):
            raise changed(part.key) from e
        raise
    if path.stat().st_size != part.size:
        raise changed(part.key)
    return Source(key=part.key, size=part.size, etag=part.etag, sha256=digest)


def changed(key: str) -> StorageError:
    """The archive changed while it was read."""
    return StorageError(
        f"{key} changed while the hour was landed", code="SOURCE_CHANGED", remedy="the archiver was still writing: land the hour again"
    )


def _keep(spool: Spool, sources: Sequence[Source], counts: Sequence[int], span: Span | None) -> _Kept:
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
    for begin, end in cuts(sizes[rows] + sizes[others], GROUP_BYTES, GROUP_MESSAGES):
        one, other = spool.take(rows[begin:end]), spool.take(others[begin:end])
        for name in _IDENTITY:
            differ[begin:end] |= ~_same(one.column(name), other.column(name))
        spool.release()
    return differ


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Flags:
    equal = pc.fill_null(pc.equal(one, other), False)
    flags: Flags = pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other))).to_numpy()
    return flags


def _facts(spool: Spool, kept: _Kept, sizes: Longs, covers: Sequence[Range], span: Span | None) -> Partition:
    ranges, conflicts = runs(kept.offsets), runs(kept.conflicts)
    legal = minus(union([covers]), union([ranges, conflicts]))
    if span is not None:
        legal = minus(legal, ((0, span.begin - 1),))
        legal = legal if span.next is None else minus(legal, ((span.next, _NO_OFFSET),))
    stamps = spool.longs(lambda batch: pc.fill_null(batch.column("timestamp_ms"), _NO_TIME))[kept.rows]
    stamps = stamps[stamps != _NO_TIME]
    return Partition(
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
