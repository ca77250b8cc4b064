"""Feeds that archive topics of a broker, and what their archives hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.archives.objects import Message
from tests.io.kafka_broker import KafkaBroker
from tests.land.archive import archive as store_of
from tests.land.archive import make_feed
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import SYSTEM
from tidelake.history.event import MESSAGE
from tidelake.land.archiver.archiver_progress import ArchiveTotals
from tidelake.land.archiver.follow import Goal, archive
from tidelake.land.archiver.hours import HOUR_MS

ONCE = Goal(once=True)


def archiving(
    root: Path | str, broker: KafkaBroker, *topics: str, partitions: int = 1, source: dict[str, Any] | None = None, **more: Any
) -> Feed:
    """A feed whose archive lies below root, written from topics of the broker."""
    ours = {"uri": f"{root}/archive", "layout": "canonical", "archiver": {"servers": broker.servers}}
    return make_feed(root, topics=topics, partitions=partitions, source=ours | (source or {}), **more)


def run(feed: Feed, goal: Goal = ONCE, **more: Any) -> ArchiveTotals:
    """Archive until the goal is reached; a lease is not waited for."""
    return archive(feed, goal, Event(), **({"wait_seconds": 0.0} | more))


class Follower:
    """An archiver in a thread. done: what it did, when it ended."""

    done: ArchiveTotals

    def __init__(self, feed: Feed) -> None:
        self.stop = Event()
        self._pool = ThreadPoolExecutor(1)
        self.running = self._pool.submit(archive, feed, Goal(), self.stop, wait_seconds=0.0)

    def until(self, reached: Callable[[], bool]) -> None:
        """Wait for what it does; what it fails with is raised."""
        while not reached():
            if self.running.done():
                self.running.result()
                raise AssertionError("it ended before")
            wait([self.running], timeout=0.05)

    def end(self) -> None:
        """Stop it as SIGTERM does."""
        self.stop.set()
        self._pool.shutdown()


@contextmanager
def following(feed: Feed) -> Iterator[Follower]:
    """An archiver that follows inside the block and is stopped behind it. Objects are closed after every round."""
    archiver = feed.source.archiver
    assert archiver is not None
    source = feed.source.model_copy(update={"archiver": archiver.model_copy(update={"roll": 0})})
    follower = Follower(feed.model_copy(update={"source": source}))
    try:
        yield follower
    finally:
        follower.end()
    follower.done = follower.running.result()


def keys(feed: Feed) -> list[str]:
    """The archive's objects, without what the archiver keeps for itself."""
    return [info.key for info in store_of(feed).objects() if not info.key.startswith(f"{SYSTEM}/")]


def spans(feed: Feed) -> dict[str, list[tuple[int, int]]]:
    """The offsets that the names of the objects say, by folder (`hour=…/partition=…`)."""
    out: dict[str, list[tuple[int, int]]] = {}
    for key in keys(feed):
        _, hour, partition, name = key.rsplit("/", 3)
        first, last, _ = name.split("-")
        out.setdefault(f"{hour.removeprefix('hour=')}/{partition.removeprefix('partition=')}", []).append((int(first), int(last)))
    return out


def archived(feed: Feed, folder: Path) -> dict[tuple[str, int], list[Message]]:
    """The messages of all objects, in the order of their keys."""
    out: dict[tuple[str, int], list[Message]] = {}
    for key in keys(feed):
        store_of(feed).download(key, folder / "read")
        for row in pq.read_table(folder / "read").to_pylist():
            headers = None if row["headers"] is None else [(h["key"], h["value"]) for h in row["headers"]]
            message = Message(row["offset"], row["value"], row["key"], row["timestamp_ms"], headers)
            out.setdefault((row["topic"], row["partition"]), []).append(message)
    return out


def batch(offsets: Sequence[int], hours: Sequence[int | None]) -> pa.RecordBatch:
    """Messages of ten bytes, some minutes into hours."""
    rows = [
        {
            "topic": "shop",
            "partition": 0,
            "offset": offset,
            "timestamp_ms": None if hour is None else hour * HOUR_MS + offset % HOUR_MS,
            "key": None,
            "value": b"%010d" % offset,
            "headers": [],
        }
        for offset, hour in zip(offsets, hours, strict=True)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=MESSAGE)
