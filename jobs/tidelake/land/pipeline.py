"""Land the partitions of one hour with reader threads, an event store and an uploader (docs/landing.md).

The store holds whole objects. An object is confirmed when it is durable under its key, which contains topic, hour, partition, offsets and
content hash. The next run finds objects that a failed run has uploaded under their keys.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TypeVar

from tidelake.archives import Layout
from tidelake.errors import EventStoreError, StorageError
from tidelake.io.storage import Store
from tidelake.land.partition import PartitionRead, read_partition
from tidelake.land.sources import Task
from tidelake.land.store.event_store import EventStore
from tidelake.land.store.landed import is_whole
from tidelake.land.store.manifest import Landed, PartitionFacts, SourceFile
from tidelake.land.store.memory import return_large_buffers
from tidelake.land.store.objects import Draft, Outlet, described

READERS = 2
ENCODERS = 2  # threads that compress row groups for readers
SLOTS = 1024
ATTEMPTS = 5
BACK_OFF_SECONDS = 0.5  # after the first failed upload; doubled after each further one

T = TypeVar("T")
ReadPartition = Callable[[Outlet], PartitionRead]


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedPartition:
    """Result of landing one partition. written: number of its objects that the lake lacked or held damaged."""

    topic: str
    number: int
    sources: tuple[SourceFile, ...]
    objects: tuple[Landed, ...]
    written: int
    facts: PartitionFacts


@dataclass(frozen=True, slots=True)
class _Uploaded:
    """An object that is durable. folder: of the local file; written: the lake lacked it or held it damaged; new: the key was free."""

    folder: Path
    landed: Landed
    written: bool
    new: bool


def land_partitions(
    tasks: Sequence[Task], layout: Layout, archive: Store, lake: Store, in_flight: int, read: Callable[[int], None]
) -> list[LandedPartition]:
    """Land all partitions of an archive with `land_all`.

    read: called with the size in bytes of every source object after it was read, from several threads.
    """
    return land_all([partial(_read_archived, task, layout, archive, read) for task in tasks], lake, in_flight)


def _read_archived(task: Task, layout: Layout, archive: Store, read: Callable[[int], None], outlet: Outlet) -> PartitionRead:
    return read_partition(task, layout, archive, outlet, read)


def land_all(reads: Sequence[ReadPartition], lake: Store, in_flight: int) -> list[LandedPartition]:
    """Land partitions, each read by a function that puts its objects. At most in_flight bytes and one object more are put and not yet
    durable.

    Raises what reading raises, and StorageError for an object that cannot be uploaded. The lake may then hold objects that no manifest
    names.
    """
    return_large_buffers()
    store: EventStore[Draft] = EventStore(slots=SLOTS, budget=in_flight)
    store.start()
    with TemporaryDirectory(prefix="tidelake-land-") as folder, ThreadPoolExecutor(ENCODERS, thread_name_prefix="encoder") as encoders:
        outlet = Outlet(folder=Path(folder), encoders=encoders, put=lambda draft: store.put([draft]))
        with _readers(store, reads, outlet) as futures:
            try:
                uploaded = _upload_all(store, lake)
            except EventStoreError as e:
                raise e.__cause__ or e from None
            partitions = [future.result() for future in futures]
    return [_landed(lake, partition, uploaded[partition.topic, partition.number]) for partition in partitions]


@contextmanager
def _readers(store: EventStore[Draft], reads: Sequence[ReadPartition], outlet: Outlet) -> Iterator[list[Future[PartitionRead]]]:
    """Run the reads. The store is closed when all are done and fails with the first that fails. No read continues after the block."""
    left, lock = len(reads), Lock()

    def done(future: Future[PartitionRead]) -> None:
        nonlocal left
        if not future.cancelled() and (error := future.exception()):
            store.fail(error)
        with lock:
            left -= 1
            last = left == 0
        if last:
            store.close()

    with ThreadPoolExecutor(READERS, thread_name_prefix="reader") as pool:
        futures = [pool.submit(read, outlet) for read in reads]
        try:
            for future in futures:
                future.add_done_callback(done)
            if not reads:
                store.close()
            yield futures
        except BaseException as e:
            store.fail(e)
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _upload_all(store: EventStore[Draft], lake: Store) -> dict[tuple[str, int], list[_Uploaded]]:
    """Upload objects until the store is closed, and return them by topic and partition."""
    uploaded = defaultdict[tuple[str, int], list[_Uploaded]](list)
    for done in upload_all(store, partial(_upload, lake)):
        uploaded[done.landed.topic, done.landed.partition].append(done)
    return uploaded


def upload_all(store: EventStore[Draft], upload: Callable[[Draft], T]) -> Iterator[T]:
    """Upload objects until the store is closed. Yields the result of `upload` for each confirmed object, in the order of the puts.

    upload: makes an object durable; retried with back-off after a StorageError, ATTEMPTS times in all. The object's file is then removed.
    Raises the last StorageError, EventStoreError.
    """
    failures = 0
    while batch := store.get(0):  # one object
        (draft,) = batch.items
        try:
            done = upload(draft)
        except StorageError:
            failures += 1
            if failures == ATTEMPTS:
                raise
            store.rollback()
            time.sleep(BACK_OFF_SECONDS * 2 ** (failures - 1))
            continue
        store.ack(batch.handle)
        draft.path.unlink()
        failures = 0
        yield done


def _upload(lake: Store, draft: Draft) -> _Uploaded:
    landed = described(draft)
    new = lake.head(landed.key) is None
    written = new or not is_whole(lake, landed)
    if written:
        lake.upload(landed.key, draft.path)
    return _Uploaded(draft.path.parent, landed, written, new)


def _landed(lake: Store, read: PartitionRead, uploaded: Sequence[_Uploaded]) -> LandedPartition:
    """Return the landed partition. A reader that started over may have put other objects before; these are deleted."""
    new, wrote = {done.landed.key for done in uploaded if done.new}, {done.landed.key for done in uploaded if done.written}
    objects = tuple(done.landed for done in uploaded if done.folder == read.folder)
    for stray in sorted(new - {landed.key for landed in objects}):
        lake.delete(stray)
    written = sum(landed.key in wrote for landed in objects)
    return LandedPartition(topic=read.topic, number=read.number, sources=read.sources, objects=objects, written=written, facts=read.facts)
