"""Copy the source objects of one partition of one hour from the archive and read them one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from tidelake.archives import Layout, Sibling, SourceObject, absent, beside
from tidelake.errors import StorageError
from tidelake.io.storage import Store
from tidelake.land.store.manifest import SourceFile
from tidelake.land.store.ranges import Range
from tidelake.land.store.seen import PartitionSeen
from tidelake.land.tags import check_tags
from tidelake.land.timed import OffsetSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One partition to land. sources: its objects of the hour, in the order of their keys; seen: begins what is found in the
    messages; tagged: their tags must prove their offsets;
    span: finds the hour's offsets, with sources in the order of their numbers; None if everything in them belongs to the hour.
    """

    feed: str
    hour: str
    topic: str
    number: int
    sources: Sequence[SourceObject]
    seen: Callable[[], PartitionSeen]
    tagged: bool = False
    span: OffsetSpan | None = None


class SourceReader:
    """Reads a task's source objects one by one, in one pass or several.

    sources, counts, covers: of this pass, the objects read, the number of messages of each, and the offsets that they declare complete;
    lacking: number of objects without each optional part of the layout.
    """

    def __init__(self, task: Task, layout: Layout, archive: Store, read: Callable[[int], None]) -> None:
        self.task, self._layout, self._archive, self._read = task, layout, archive, read
        self._announced = set[str]()
        self._begin()

    def _begin(self) -> None:
        self.sources, self.counts, self.covers, self.lacking = list[SourceFile](), list[int](), list[Range](), Counter[str]()

    def messages(self) -> Generator[tuple[SourceObject, pa.RecordBatch], None, None]:
        """Yield the messages of all source objects, each batch with its object. Raises what reading the layout raises."""
        self._begin()
        with TemporaryDirectory(prefix="tidelake-land-") as folder:
            for source in self.task.sources:
                if self.task.span is None or self.task.span.wants(source, self._layout):
                    yield from self._of(source, Path(folder) / "source")

    def _of(self, source: SourceObject, path: Path) -> Iterator[tuple[SourceObject, pa.RecordBatch]]:
        with local_copies(self._archive, path, source) as copied:
            count, kept, lacks = 0, 0, self._layout.optional
            for whole in self._layout.read(path, source):
                batch = whole if self.task.span is None else self.task.span.take(whole, source)
                count, kept, lacks = count + len(whole), kept + len(batch), lacks & absent(whole) if lacks else lacks
                yield source, batch
            if self._layout.covers and (covered := self._layout.covers(path)):
                self.covers.append(covered)
            if self.task.tagged:
                check_tags(self._archive.tags(source.key), source, count)
            self.lacking.update(lacks if count else ())
            self.sources += copied
            self.counts += [kept, *(0 for _ in source.siblings)]
        if source.key not in self._announced:
            self._announced.add(source.key)
            self._read(sum(part.size for part in copied))


@contextmanager
def local_copies(archive: Store, path: Path, source: SourceObject) -> Iterator[list[SourceFile]]:
    """Copy an object to a path and its siblings beside it, for the block. Raises StorageError (SOURCE_CHANGED)."""
    paths = [path, *(beside(path, sibling.view) for sibling in source.siblings)]
    yield [_copied(archive, local, part) for local, part in zip(paths, source.parts, strict=True)]
    for local in paths:
        local.unlink()


def _copied(archive: Store, path: Path, part: SourceObject | Sibling) -> SourceFile:
    """Copy an object, which must still exist with the listed size."""
    try:
        digest = archive.download(part.key, path)
    except StorageError as e:
        if e.code in ("CHANGED", "NOT_FOUND"):
            raise changed(part.key) from e
        raise
    if path.stat().st_size != part.size:
        raise changed(part.key)
    return SourceFile(key=part.key, size=part.size, etag=part.etag, sha256=digest)


def changed(key: str) -> StorageError:
    """Return the error for an archive that changed while it was read."""
    return StorageError(
        f"{key} changed while the hour was landed", code="SOURCE_CHANGED", remedy="the archiver was still writing: land the hour again"
    )
