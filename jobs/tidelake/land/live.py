"""Land one hour of live topics: a range of offsets of every partition becomes canonical objects and a manifest (docs/landing.md).

An hour begins where the one before ended, and ends before the first message with a timestamp after the hour. The hours of a partition
therefore join without gap or overlap for any timestamps. A late message belongs to the hour that is landed next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.archives import Layout, layout_of
from tidelake.config.feed import Feed
from tidelake.errors import ConfigError, OrderError, TopicPartition
from tidelake.io.kafka import Topics
from tidelake.io.storage import Store, open_store
from tidelake.land.findings import judge
from tidelake.land.hour import LandReport, OnBytesLanded, Past, manifest_of, past_of, record, report
from tidelake.land.partition import PartitionRead
from tidelake.land.pipeline import ReadPartition, land_all
from tidelake.land.resolved_live import not_resolved_live
from tidelake.land.store.landed import cannot_mend
from tidelake.land.store.manifest import Finding, Landed, Manifest, PartitionFacts, SourceFile, generations, newest
from tidelake.land.store.objects import ObjectWriter, Outlet
from tidelake.land.store.seen import seen_in
from tidelake.land.store.stream import ObjectCutter
from tidelake.land.store.topic_identity import check_ids, ids_of, went_back
from tidelake.land.waits import Waits, time_of
from tidelake.tso import format_hour

LAYOUT = "kafka"  # layout name in manifests

_ONE_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpan:
    """The hour's offsets of one partition: from start up to, not including, end. Offsets before begin are expired.

    near: from this offset on, a message with timestamp until_ms or later ends the hour sooner; None where there is no such offset. near may
    lie a little before that message, because a transaction marker has the timestamp of its writing.
    """

    place: TopicPartition
    start: int
    begin: int
    end: int
    near: int | None
    until_ms: int

    @property
    def expected(self) -> int:
        """Approximate number of offsets to read."""
        return (self.end if self.near is None else self.near) - self.begin


def land_live_hour(feed: Feed, hour: datetime, progress: OnBytesLanded | None = None) -> LandReport:
    """Land one hour of live topics. Judge a landed hour again without reading it, unless landed objects are gone or damaged: then read
    its offsets again.

    Args:
        feed: The feed's settings.
        hour: First instant of the hour, UTC.
        progress: Called with (offsets read, offsets to read), from several threads, one at a time.

    Raises:
        OrderError: HOUR_NOT_CLOSED, OFFSETS_WENT_BACK, TOPIC_RECREATED, LANDED_LOST; after the manifest is written, the code of the
            first critical finding.
        ConfigError: A topic does not exist, or the client refuses a setting.
        StorageError: The brokers or the lake cannot be reached.
    """
    if _now() < hour + _ONE_HOUR:
        raise _not_closed(hour)
    lake, name = open_store(feed.lake.uri), format_hour(hour)
    past = past_of(lake, feed, name)
    with Topics(feed.source.uri, feed.source.kafka, f"tidelake-{feed.name}") as topics:
        if past.this is not None and not past.damaged:
            _commit(topics, lake, feed, past.this)
            return report(past.this, _judged(feed, topics, lake, hour, past, past.this), new=False, written=0)
        after = newest(lake, feed.name, format_hour(hour + _ONE_HOUR))
        places = places_of(feed, feed.source.uri, topics)
        ids = _ids(topics, places, _neighbours(lake, feed, past, after))
        spans = plan(topics, places, hour, past, after) if past.this is None else landed_spans(topics, past.this, past.damaged)
        landed = land_all(_reads(feed, name, topics, spans, progress), lake, feed.source.in_flight)
        check_ids(ids, topics.ids({topic for topic, _ in places}), "had")  # a topic recreated meanwhile has another id
        manifest = manifest_of(feed, LAYOUT, name, landed, past).model_copy(update={"topic_ids": ids})
        new = past.this is None or manifest.objects != past.this.objects
        manifest = past.this if past.this is not None and not new else manifest
        findings = _judged(feed, topics, lake, hour, past, manifest)
        if new:
            manifest = manifest.model_copy(update={"findings": findings})
            record(lake, manifest)
        _commit(topics, lake, feed, manifest)
    return report(manifest, findings, new=new, written=sum(partition.written for partition in landed))


def _judged(feed: Feed, topics: Topics, lake: Store, hour: datetime, past: Past, manifest: Manifest) -> tuple[Finding, ...]:
    waits, layout = _waits(feed, topics, lake, hour), _layout(manifest)
    return judge(feed, layout, manifest, past.earlier, (), waits, complete=past.complete, damaged=past.damaged)


def live_waits(feed: Feed, hour: datetime) -> tuple[Waits, ...]:
    """Return what an hour of live topics waits for: its end and, for closed_by "resolved", a resolved ts after it in every partition.

    Raises ConfigError, StorageError.
    """
    over = hour + _ONE_HOUR
    if _now() < over:
        return (Waits(what=f"the hour ends at {time_of(over)}"),)
    if feed.closed_by != "resolved":
        return ()
    with Topics(feed.source.uri, feed.source.kafka, f"tidelake-{feed.name}") as topics:
        return _waits(feed, topics, open_store(feed.lake.uri), hour)


def _waits(feed: Feed, topics: Topics, lake: Store, hour: datetime) -> tuple[Waits, ...]:
    if feed.closed_by != "resolved":
        return ()
    return not_resolved_live(feed, topics, lake, hour, places_of(feed, feed.source.uri, topics))


def plan(topics: Topics, places: Sequence[TopicPartition], hour: datetime, past: Past, after: Manifest | None) -> list[PartitionSpan]:
    """Return the offsets to read of every partition. after: manifest of the next hour. Raises what `land_live_hour` raises."""
    bounds = topics.bounds(places)
    begins, ends = (topics.first_since(places, _ms(moment)) for moment in (hour, hour + _ONE_HOUR))
    before = past.earlier[-1] if past.earlier else None
    spans = list[PartitionSpan]()
    for place in places:
        low, high = bounds[place]
        start = _next_of(before, place)
        if start is None:
            new = before is not None and not any(_facts(m, place) for m in past.earlier)
            first = low if new else begins[place]
            start = high if first is None else first
        found = _start_of(after, place)
        end, near = (high, ends[place]) if found is None else (max(start, found), None)
        if start > high or end > high:
            raise went_back(place, max(start, end), high, "the hours beside this one reach")
        begin = min(max(start, low), end)
        near = None if near is None else min(max(begin, near), end)
        spans.append(PartitionSpan(place=place, start=start, begin=begin, end=end, near=near, until_ms=_ms(hour + _ONE_HOUR)))
    return spans


def landed_spans(topics: Topics, manifest: Manifest, broken: Sequence[Landed]) -> list[PartitionSpan]:
    """Return the offsets to read to land the same offsets again. broken: the landed objects that make it necessary.

    Raises OrderError: LANDED_LOST, OFFSETS_WENT_BACK.
    """
    if manifest.layout != LAYOUT:
        raise cannot_mend(manifest, broken, f"the hour was landed from an archive of layout {manifest.layout}")
    facts = {(topic, number): facts for topic, numbers in manifest.partitions.items() for number, facts in numbers.items()}
    bounds = topics.bounds(list(facts))
    spans = list[PartitionSpan]()
    for place, partition in sorted(facts.items()):
        (low, high), start, end = bounds[place], partition.start or 0, partition.next or 0
        if end > high:
            raise went_back(place, end, high, "the landed hour reaches")
        begin = min(max(start, low), end)
        spans.append(PartitionSpan(place=place, start=start, begin=begin, end=end, near=None, until_ms=0))
    return spans


def places_of(feed: Feed, servers: str, topics: Topics) -> list[TopicPartition]:
    """Return every partition of the feed's topics, sorted. Raises ConfigError for a topic that does not exist or has no number."""
    there, pattern = topics.partitions(), feed.topic_pattern
    names = list(feed.topics) if pattern is None else [name for name in there if pattern.fullmatch(name)]
    for name in names:
        if name not in there:
            raise ConfigError(
                f"{feed.folder / 'feed.toml'}: topics: {servers} has no topic {name!r} that this client may read",
                code="UNKNOWN_TOPIC",
                remedy="check its name and the client's rights",
            )
        feed.partitions_of(name)
    return [(name, number) for name in sorted(names) for number in range(there[name])]


def _neighbours(lake: Store, feed: Feed, past: Past, after: Manifest | None) -> Iterator[Manifest]:
    """Yield the manifests of earlier hours (at least the newest) and of the hour after, ascending."""
    yield from past.earlier
    if after is not None:
        yield after
    elif not past.earlier and not past.complete:  # earlier hours exist, before a gap
        yield from filter(None, [newest(lake, feed.name, max(generations(lake, feed.name)))])


def _ids(topics: Topics, places: Sequence[TopicPartition], neighbours: Iterable[Manifest]) -> dict[str, str]:
    """Return the ids of the topics, merged with the known ids of landed topics. Raises OrderError (TOPIC_RECREATED)."""
    known, now = ids_of(neighbours), topics.ids({topic for topic, _ in places})
    check_ids(known, now, "the hours beside this one have")
    return dict(sorted((known | now).items()))


def _facts(manifest: Manifest | None, place: TopicPartition) -> PartitionFacts | None:
    return manifest.partitions.get(place[0], {}).get(place[1]) if manifest else None


def _next_of(before: Manifest | None, place: TopicPartition) -> int | None:
    """Return the offset where the hour before ended; that hour may have been landed from an archive."""
    facts = _facts(before, place)
    if facts is None:
        return None
    return facts.next if facts.next is not None else facts.last + 1 if facts.last is not None else None


def _start_of(after: Manifest | None, place: TopicPartition) -> int | None:
    facts = _facts(after, place)
    if facts is None:
        return None
    return facts.start if facts.start is not None else facts.first


def _reads(feed: Feed, hour: str, topics: Topics, spans: Sequence[PartitionSpan], progress: OnBytesLanded | None) -> list[ReadPartition]:
    total, done, lock = sum(s.expected for s in spans), 0, Lock()

    def read(offsets: int) -> None:
        nonlocal done
        with lock:
            done += offsets
            if progress:
                progress(min(done, total), total)

    return [partial(_read, feed, hour, topics, span, read) for span in spans]


def _read(feed: Feed, hour: str, topics: Topics, span: PartitionSpan, read: Callable[[int], None], outlet: Outlet) -> PartitionRead:
    (topic, number), at, end = span.place, span.begin, span.end
    folder = Path(mkdtemp(dir=outlet.folder))
    cutter = ObjectCutter(folder, lambda path: ObjectWriter(path, feed.name, hour, topic, number, outlet.encoders), seen_in(feed))
    for whole in topics.read(span.place, at, end):
        batch, beyond = _until(whole, span)
        for done in cutter.add(batch):
            outlet.put(done())
        if beyond is not None:
            end = beyond
            break
        passed = batch.column("offset")[-1].as_py() + 1
        read(passed - at)
        at = passed
    for done in cutter.rest():
        outlet.put(done())
    read(end - at)
    facts = cutter.live_facts(span.start, span.begin, end)
    key = f"kafka:{topic}/{number}/{span.begin}-{end - 1}"
    sources = (SourceFile(key=key, size=facts.bytes),) if span.begin < end else ()
    return PartitionRead(topic=topic, number=number, sources=sources, facts=facts, folder=folder)


def _until(batch: pa.RecordBatch, span: PartitionSpan) -> tuple[pa.RecordBatch, int | None]:
    """Return the messages of the hour, and the offset of the first message after it; None if the batch has no such message."""
    if span.near is None:
        return batch, None
    offsets = batch.column("offset").to_numpy()
    late = pc.fill_null(pc.greater_equal(batch.column("timestamp_ms"), span.until_ms), False).to_numpy(zero_copy_only=False)
    beyond = np.flatnonzero(late & (offsets >= span.near))
    return (batch.slice(0, beyond[0]), int(offsets[beyond[0]])) if len(beyond) else (batch, None)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _commit(topics: Topics, lake: Store, feed: Feed, manifest: Manifest) -> None:
    """Commit the offsets where the next hour continues to the consumer group, unless a later hour is landed."""
    if max(generations(lake, feed.name)) == manifest.hour:
        facts = {(topic, number): facts for topic, numbers in manifest.partitions.items() for number, facts in numbers.items()}
        topics.commit({place: partition.next for place, partition in facts.items() if partition.next is not None})


def _layout(manifest: Manifest) -> Layout | None:
    """Return the archive's layout if the hour was landed from an archive."""
    return None if manifest.layout == LAYOUT else layout_of(manifest.layout)


def _now() -> datetime:
    return datetime.now(UTC)


def _not_closed(hour: datetime) -> OrderError:
    return OrderError(
        f"hour {format_hour(hour)} is not over: more messages may arrive",
        code="HOUR_NOT_CLOSED",
        remedy=f"land it from {hour + _ONE_HOUR:%Y-%m-%dT%H:%M}Z on",
    )
