"""Reader threads → event store → uploader, for the partitions of one hour (docs/landing.md).

The store holds whole objects. One is confirmed when it is durable under its key, which says what it is: topic, hour, partition, offsets,
content. What a run that fails has uploaded is found there by the next one.
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
from tidelake.land.manifest import Landed, Partition, Source
from tidelake.land.memory import return_large_buffers
from tidelake.land.objects import Draft, described, write_object
from tidelake.land.partition import PartitionRead, Task, read_partition
from tidelake.land.store import EventStore
from tidelake.storage import Store

READERS = 2
SLOTS = 1024
ATTEMPTS = 5
BACK_OFF_SECONDS = 0.5  # after the first failed upload; doubled after each further one

T = TypeVar("T")
Put = Callable[[Callable[[], Draft]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedPartition:
    """What landing one partition gave. written: how many of its objects the lake did not have yet."""

    topic: str
    number: int
    sources: tuple[Source, ...]
    objects: tuple[Landed, ...]
    written: int
    facts: Partition


def land_partitions(
    tasks: Sequence[Task], layout: Layout, archive: Store, lake: Store, in_flight: int, read: Callable[[int], None]
) -> list[LandedPartition]:
    """Land all partitions of an archive, as land_all does.

    read: told the size of every source object once it was read, in bytes, by several threads.
    """
    return land_all([partial(_read_archived, task, layout, archive, read) for task in tasks], lake, in_flight)


def _read_archived(task: Task, layout: Layout, archive: Store, read: Callable[[int], None], put: Put) -> PartitionRead:
    return read_partition(task, layout, archive, put, read)


def land_all(reads: Sequence[Callable[[Put], PartitionRead]], lake: Store, in_flight: int) -> list[LandedPartition]:
    """Land partitions, each read by a function that puts its objects; at most in_flight bytes and one object more are put
    and not yet durable.

    Raises what reading raises, and StorageError for an object that cannot be uploaded; then the lake may hold objects that no manifest
    names.
    """
    return_large_buffers()
    store: EventStore[Draft] = EventStore(slots=SLOTS, budget=in_flight)
    store.start()
    turn = Lock()

    def put(draft: Callable[[], Draft]) -> None:
        with turn:  # one object at a time is made and waits for room
            store.put([draft()])

    with _readers(store, reads, put) as futures:
        try:
            uploaded = _upload_all(store, lake)
        except EventStoreError as e:
            raise e.__cause__ or e from None
        partitions = [future.result() for future in futures]
        return [_landed(partition, uploaded[partition.topic, partition.number]) for partition in partitions]


@contextmanager
def _readers(store: EventStore[Draft], reads: Sequence[Callable[[Put], PartitionRead]], put: Put) -> Iterator[list[Future[PartitionRead]]]:
    """Runs the reads; the store is closed when all are done and fails with the first that does. None runs on after the block."""
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
        futures = [pool.submit(read, put) for read in reads]
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


def _upload_all(store: EventStore[Draft], lake: Store) -> dict[tuple[str, int], list[tuple[Landed, bool]]]:
    """Upload what comes until the store is closed: of each topic and partition the objects, and whether the lake did not have them."""
    uploaded = defaultdict[tuple[str, int], list[tuple[Landed, bool]]](list)
    for landed, new in upload_all(store, partial(_upload, lake)):
        uploaded[landed.topic, landed.partition].append((landed, new))
    return uploaded


def upload_all(store: EventStore[Draft], upload: Callable[[Draft, Path], T]) -> Iterator[T]:
    """Upload what comes until the store is closed; what `upload` gave for each object, once it is confirmed, in the order of the puts.

    upload: makes an object durable, by way of a file at the path, which it removes; what fails with StorageError is tried again, with
    back-off, ATTEMPTS times in all. Raises the last StorageError, EventStoreError.
    """
    failures = 0
    with TemporaryDirectory(prefix="tidelake-land-") as folder:
        while batch := store.get(0):  # one object
            (draft,) = batch.items
            try:
                done = upload(draft, Path(folder) / "object.parquet")
            except StorageError:
                failures += 1
                if failures == ATTEMPTS:
                    raise
                store.rollback()
                time.sleep(BACK_OFF_SECONDS * 2 ** (failures - 1))
                continue
            store.ack(batch.handle)
            failures = 0
            yield done


def _upload(lake: Store, draft: Draft, path: Path) -> tuple[Landed, bool]:
    write_object(path, draft)
    landed = described(path, draft)
    there = lake.head(landed.key)
    new = there is None or there.size != landed.size
    if new:
        lake.upload(landed.key, path)
    path.unlink()
    return landed, new


def _landed(read: PartitionRead, uploaded: Sequence[tuple[Landed, bool]]) -> LandedPartition:
    return LandedPartition(
        topic=read.topic,
        number=read.number,
        sources=read.sources,
        objects=tuple(landed for landed, _ in uploaded),
        written=sum(new for _, new in uploaded),
        facts=read.facts,
    )
