"""Follow topics in rounds: a few readers take turns at the partitions with new messages, while one thread uploads.

However a run ends, what was read is made durable first, except after a failed upload or a lost lease.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import numpy as np
import pyarrow as pa

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import SYSTEM
from tidelake.errors import ConfigError, Coordinates, EventStoreError, OrderError, StorageError, TopicPartition
from tidelake.io.kafka import ARCHIVER, Topics
from tidelake.io.lease import RENEW_EVERY, SECONDS, check, hold
from tidelake.io.storage import Store, open_store, probe_conditional_puts
from tidelake.land.archiver.archiver_progress import ArchiveProgress, ArchiveTotals
from tidelake.land.archiver.hours import HOUR_MS, HourCutter
from tidelake.land.archiver.kept import Kept
from tidelake.land.archiver.resume import reached
from tidelake.land.archiver.write import WrittenObject, archive_object
from tidelake.land.live import places_of
from tidelake.land.pipeline import ATTEMPTS, READERS, SLOTS, upload_all
from tidelake.land.store.event_store import EventStore
from tidelake.land.store.memory import return_large_buffers
from tidelake.land.store.objects import Draft
from tidelake.land.store.ranges import show
from tidelake.land.store.topic_identity import went_back
from tidelake.wire.kernels.arrays import Longs

log = logging.getLogger("tidelake.archive")

LEASE = "archiver"  # one lease for the whole archive, for all feeds that write there
WAIT_SECONDS = SECONDS + RENEW_EVERY  # a lease that is still held after this time has a live holder
TURN_BYTES = 64 << 20  # bytes of one partition per turn
DISCOVER_SECONDS = 30.0  # interval of looking for new topics and partitions
IDLE_SECONDS = 0.5  # between rounds that found nothing new
BACK_OFF_SECONDS = 1.0  # after a round that failed; doubled after each further one
HELD_SHARE = 4  # a quarter of the budget is for messages that are not yet in an object


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """When archiving ends. once: at the current ends of the partitions; until: after this hour; neither: never."""

    once: bool = False
    until: datetime | None = None

    @property
    def last_hour(self) -> int | None:
        """The last hour to archive, in hours since 1970, None without a limit."""
        return None if self.until is None else int(self.until.timestamp() * 1000) // HOUR_MS


@dataclass(slots=True)
class _Partition:
    """State of a partition. position: the next offset to read; high: end of its log at the last request; end: where archiving ends, None if
    it continues; since: when the oldest message that is not yet in an object was read, on the monotonic clock.
    """

    place: TopicPartition
    hours: HourCutter
    position: int
    high: int = 0
    end: int | None = None
    since: float = 0.0

    @property
    def until(self) -> int:
        """End of what can be read now."""
        return self.high if self.end is None else min(self.high, self.end)

    @property
    def done(self) -> bool:
        return self.end is not None and self.position >= self.end


def archive(
    feed: Feed,
    goal: Goal,
    stop: Event,
    *,
    accept_expired: bool = False,
    wait_seconds: float = WAIT_SECONDS,
) -> ArchiveTotals:
    """Archive the feed's topics until the goal is reached or `stop` is set. Everything written is then durable.

    Args:
        feed: A feed with [source.archiver], loaded for archiving.
        goal: When to end.
        stop: Ends the run when set.
        accept_expired: Continue after offsets that retention deleted.
        wait_seconds: Longest wait for the archive's lease.

    Raises:
        ConfigError: [source.archiver] is missing or cannot work.
        OrderError: EXPIRED, OFFSETS_WENT_BACK, TOPIC_RECREATED.
        LeaseError: LEASE, OVERLAP.
        StorageError: The brokers or the archive cannot be reached.
    """
    settings = feed.source.archiver
    if settings is None:
        raise ConfigError(
            f"{feed.folder / 'feed.toml'}: source.archiver: missing", remedy='add [source.archiver] with servers = "host:port,…"'
        )
    return_large_buffers()
    target = open_store(feed.source.uri)
    system = open_store(f"{feed.source.uri.rstrip('/')}/{SYSTEM}")
    probe_conditional_puts(system)
    group, what = f"tidelake-archive-{feed.name}", f"the archive {target.uri}"
    with (
        Topics(settings.servers, settings.kafka, group, ARCHIVER) as topics,
        hold(system, LEASE, f"archive of feed {feed.name}", wait_seconds, what, stop.is_set) as fence,
        TemporaryDirectory(prefix="tidelake-archive-") as folder,
    ):
        held = partial(check, system, LEASE, fence, what)
        write, kept = partial(archive_object, target, held), Kept(system, held)
        follower = _Follower(feed, goal, stop, topics, target, kept, Path(folder), accept_expired=accept_expired)
        return follower.run(write)


class _Follower:
    """One run of the archiver."""

    def __init__(
        self,
        feed: Feed,
        goal: Goal,
        stop: Event,
        topics: Topics,
        target: Store,
        kept: Kept,
        folder: Path,
        *,
        accept_expired: bool,
    ) -> None:
        assert feed.source.archiver is not None
        self._feed, self._settings, self._goal, self._stop = feed, feed.source.archiver, goal, stop
        self._topics, self._target, self._kept, self._folder, self._accept_expired = topics, target, kept, folder, accept_expired
        self._partitions = dict[TopicPartition, _Partition]()
        self._discovered = float("-inf")
        self._durable, self._committed = dict[TopicPartition, int](), dict[TopicPartition, int]()
        self._progress = ArchiveProgress()
        self._store: EventStore[Draft] = EventStore(slots=SLOTS, budget=max(feed.source.in_flight * (HELD_SHARE - 1) // HELD_SHARE, 1))

    def run(self, write: Callable[[Draft], WrittenObject]) -> ArchiveTotals:
        """Follow until the goal is reached or the run is stopped. Raises what `archive` raises."""
        with self._uploading(write) as uploads, ThreadPoolExecutor(READERS, thread_name_prefix="reader") as readers:
            try:
                self._follow(readers, uploads)
            finally:
                self._stop.set()  # stops remaining readers
        with suppress(StorageError):  # all objects are durable already
            self._note_empty()
            self._commit()
        return self._progress.archived

    @contextmanager
    def _uploading(self, write: Callable[[Draft], WrittenObject]) -> Iterator[Future[None]]:
        """Upload drafts in a thread. At the end of the block put the rest and wait. An error of the uploader is raised first."""
        self._store.start()
        with ThreadPoolExecutor(1, thread_name_prefix="uploader") as uploader:
            uploads = uploader.submit(self._upload, write)
            try:
                yield uploads
            finally:
                with suppress(EventStoreError):  # the uploader failed and raises its error below
                    for partition in self._partitions.values():
                        self._put(partition.hours.rest(partition.position))
                self._store.close()
                uploads.result()

    def _upload(self, write: Callable[[Draft], WrittenObject]) -> None:
        try:
            for written in upload_all(self._store, write):
                self._durable[written.topic, written.partition] = written.next
                self._progress.wrote(written)
        except BaseException as e:
            self._store.fail(e)
            raise

    def _follow(self, readers: ThreadPoolExecutor, uploads: Future[None]) -> None:
        """Run rounds until the goal is reached. Errors of Kafka or a listing are retried, ATTEMPTS times in a row."""
        self._discover()
        failures = 0
        while not self._stop.is_set():
            try:
                busy = self._round(readers)
            except (StorageError, ConfigError) as e:
                failures += 1
                if failures == ATTEMPTS:
                    raise
                log.info(f"{e}; trying again")
                self._stop.wait(BACK_OFF_SECONDS * 2 ** (failures - 1))
                continue
            failures = 0
            if uploads.done():
                uploads.result()
            if self._is_reached():
                return
            if not busy:
                self._stop.wait(IDLE_SECONDS)

    def _is_reached(self) -> bool:
        goal = self._goal.once or (self._goal.until is not None and bool(self._partitions))
        return goal and all(partition.done for partition in self._partitions.values())

    def _round(self, readers: ThreadPoolExecutor) -> bool:
        """Give every partition with new messages a turn. Returns whether there was one."""
        if not self._goal.once and time.monotonic() - self._discovered >= DISCOVER_SECONDS:
            self._discover()
            self._note_empty()
        self._look()
        behind = [p for p in self._partitions.values() if not p.done and p.position < p.until]
        most = self._feed.source.in_flight // HELD_SHARE // max(len(self._partitions), 1)
        turns = [readers.submit(self._turn, partition, most) for partition in behind]
        errors = [error for turn in turns if (error := turn.exception())]
        if errors:
            raise next((e for e in errors if not isinstance(e, StorageError)), errors[0])
        for partition in self._partitions.values():
            if partition.hours.unfinished and time.monotonic() - partition.since >= self._settings.roll:
                self._put(partition.hours.rest(partition.position))
        self._commit()
        self._progress.now_and_then((p.place[0], p.high - p.position) for p in self._partitions.values())
        return bool(behind)

    def _discover(self) -> None:
        """Add new topics and partitions. Each starts where the archive ends, or else at its first existing offset."""
        places = [place for place in places_of(self._feed, self._settings.servers, self._topics) if place not in self._partitions]
        self._discovered = time.monotonic()
        for topic in sorted({topic for topic, _ in places}):
            numbers = [number for name, number in places if name == topic]
            known, bounds = reached(self._target, topic, numbers), self._topics.bounds([(topic, number) for number in numbers])
            for number in numbers:
                low, high = bounds[topic, number]
                at = known.get(number)
                place, (begin, hour) = (topic, number), (at.next, at.hour) if at else (low, None)
                if at:
                    self._durable[place] = self._committed[place] = begin
                folder = self._folder / f"{topic}-{number}"
                folder.mkdir(exist_ok=True)
                hours = HourCutter(folder, self._feed.name, topic, number, begin, hour)
                end = high if self._goal.once else None
                position = self._kept.behind_empty(place, begin)
                self._partitions[place] = _Partition(place=place, hours=hours, position=position, end=end)

    def _look(self) -> None:
        """Update where the logs begin and end. Raises OrderError if unarchived messages are gone, or a topic was recreated."""
        self._kept.identify(self._topics.ids({topic for topic, _ in self._partitions}))
        over = self._goal.last_hour is not None and time.time() * 1000 >= (self._goal.last_hour + 1) * HOUR_MS
        for place, (low, high) in self._topics.bounds(list(self._partitions)).items():
            partition = self._partitions[place]
            partition.high = high
            if over and partition.end is None:
                partition.end = high
            if partition.position > high:
                raise went_back(place, partition.position, high, "the archive reaches")
            if partition.position < low and not partition.done:
                if not self._accept_expired:
                    raise _expired(partition, low)
                self._skip(partition, low)

    def _skip(self, partition: _Partition, low: int) -> None:
        """Continue after expired messages, which no object covers."""
        self._put(partition.hours.rest(partition.position))
        log.info(f"{Coordinates(*partition.place, partition.position)}: messages before offset {low} were deleted and are not archived")
        partition.position = partition.hours.begin = low

    def _turn(self, partition: _Partition, most: int) -> None:
        """Read a partition to its end, or TURN_BYTES of it. most: bytes of memory that it may hold afterwards."""
        end, left = partition.until, TURN_BYTES
        with closing(self._topics.read(partition.place, partition.position, end, self._stop.is_set)) as batches:
            for batch in batches:
                hours = partition.hours.hours_of(batch, int(time.time() * 1000))
                offsets, count = batch.column("offset"), len(batch)
                if self._goal.last_hour is not None:
                    count = int(np.searchsorted(hours, self._goal.last_hour, side="right"))
                if count:
                    self._add(partition, batch.slice(0, count), hours[:count])
                if count < len(batch):
                    partition.position = partition.end = offsets[count].as_py()
                    return
                partition.position = offsets[-1].as_py() + 1
                left -= batch.nbytes
                if left <= 0 or self._stop.is_set():
                    break
            else:
                partition.position = partition.position if self._stop.is_set() else end
        if partition.hours.held > most:
            partition.hours.spill()

    def _add(self, partition: _Partition, batch: pa.RecordBatch, hours: Longs) -> None:
        fresh = not partition.hours.unfinished
        for draft in partition.hours.add(batch, hours):
            self._store.put([draft])
            fresh = True
        if fresh:
            partition.since = time.monotonic()
        self._progress.read(batch)

    def _put(self, drafts: Iterable[Draft]) -> None:
        for draft in drafts:
            self._store.put([draft])

    def _note_empty(self) -> None:
        """Record where only markers follow the last object, so that they may expire."""
        durable, found = dict(self._durable), dict[TopicPartition, tuple[int, int]]()
        for place, partition in self._partitions.items():
            begin = partition.hours.begin
            if partition.position > begin == durable.get(place) and not partition.hours.unfinished:
                found[place] = (begin, partition.position)
        self._kept.note_empty(found)

    def _commit(self) -> None:
        """Commit the durable offsets of partitions to the consumer group, where they changed."""
        durable = dict(self._durable)
        news = {place: offset for place, offset in durable.items() if self._committed.get(place) != offset}
        self._topics.commit(news)
        self._committed |= news


def _expired(partition: _Partition, low: int) -> OrderError:
    gone = show([(partition.position, low - 1)])
    return OrderError(
        f"the topic's retention deleted offsets {gone} before they were archived",
        code="EXPIRED",
        at=Coordinates(*partition.place, partition.position),
        remedy="give the topic a longer retention; `--accept-expired` continues after them, and landing then reports the GAP",
    )
