"""Land one hour of one feed, from the listing of the archive to the manifest.

Objects are written first and the manifest last, only if it does not exist yet. A run that is killed leaves objects that no manifest names;
the next run finds them by their content hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from threading import Lock

from tidelake.archives import KEYED_PROTOCOLS, Layout, Listing, SourceObject, layout_of
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import manifest_key
from tidelake.errors import ConfigError, Coordinates, LeaseError, OrderError, TopicPartition
from tidelake.io.storage import Store, open_store, probe_conditional_puts
from tidelake.land.ahead import ahead_of
from tidelake.land.closing import Held, covered_of, ends_of, waits_for
from tidelake.land.findings import blocking, judge
from tidelake.land.generation import new_offsets, since
from tidelake.land.listing import lister
from tidelake.land.pipeline import LandedPartition, land_partitions
from tidelake.land.sources import Task, changed
from tidelake.land.store.landed import cannot_mend, damaged
from tidelake.land.store.manifest import Finding, Landed, Manifest, PartitionFacts, all_newest, generations
from tidelake.land.store.ranges import Range, minus, show
from tidelake.land.store.seen import seen_in
from tidelake.land.timed import OffsetSpan
from tidelake.land.unusable import refuse_early, refuse_unusable
from tidelake.tso import format_hour, parse_hour

LOOK_BACK = 24  # number of hours before the landed one whose offsets it is compared with
_WITH_KEYS = "archive with one of the aiven layouts and the field `key`"

OnBytesLanded = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LandReport:
    """Result of landing an hour. new: a generation was written. bytes: of the messages' keys and values.

    objects_kept: canonical objects that the lake held already.
    """

    hour: str
    generation: int
    new: bool
    messages: int
    bytes: int
    sources: int
    objects_written: int
    objects_kept: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The lake's data before the run.

    damaged: landed objects of the hour that are gone or have other bytes; earlier: the hours before it without a gap, ascending; complete:
    there are no other earlier hours.
    """

    this: Manifest | None
    damaged: Sequence[Landed]
    earlier: Sequence[Manifest]
    complete: bool


def land_hour(feed: Feed, hour: datetime, progress: OnBytesLanded | None = None) -> LandReport:
    """Land one hour. If neither the archive nor the landed objects changed, only judge the hour again; land lost or damaged objects again.

    Args:
        feed: The feed's settings.
        hour: First instant of the hour, UTC.
        progress: Called with (archive bytes read, archive bytes to read), from several threads, one at a time.

    Raises:
        OrderError: The code of a critical finding, after the manifest is written. With nothing written: DAMAGED_OBJECT, VANISHED,
            LANDED_LOST, HOUR_NOT_OVER, ARCHIVE_EMPTY.
        ConfigError: Settings that cannot work.
        StorageError: The archive or the lake cannot be read or written.
    """
    check_layout(feed)
    archive, lake = open_store(feed.source.uri), open_store(feed.lake.uri)
    layout, name = layout_of(feed.source.layout or ""), format_hour(hour)
    past = past_of(lake, feed, name)
    list_now = lister(feed, archive, lake, hour, layout)
    listing = list_now()
    if past.this is None:
        refuse_unusable(feed, archive, layout, listing)
        refuse_early(feed, archive, hour, datetime.now(UTC))

    ahead = ahead_of(feed, archive, lake, layout, hour, datetime.now(UTC))

    def judged(manifest: Manifest) -> tuple[Finding, ...]:
        known = [*past.earlier, manifest]
        held = Held(covered=covered_of(known), hour=manifest)
        waits = waits_for(feed, archive, lake, layout, hour, listing, ends_of(known), datetime.now(UTC), held)
        return judge(
            feed,
            layout,
            manifest,
            past.earlier,
            listing.unknown,
            waits,
            complete=past.complete,
            doubts=listing.doubts,
            lost=listing.lost,
            damaged=past.damaged,
            ahead=ahead,
        )

    if past.this is not None and not past.damaged and list_now.settled and _same_listing(past.this, feed, listing):
        return report(past.this, judged(past.this), new=False, written=0)
    _check_keys(feed, layout, listing)
    spans = list_now.spans({(source.topic, source.partition) for source in listing.objects})
    landed = _land(feed, name, layout, archive, lake, listing, spans, progress)
    facts, read = {(p.topic, p.number): p.facts for p in landed}, {key for span in spans.values() for key in span.owners}
    of_hour = list_now.narrowed(listing, facts, read)
    if list_now.narrowed(list_now(), facts, read) != of_hour:
        raise changed(f"the listing of {archive.uri}")
    landed = _with_sources(landed, of_hour)
    manifest = manifest_of(feed, feed.source.layout or "", name, landed, past)
    written = sum(partition.written for partition in landed)
    if past.this is not None and _same_content(past.this, manifest) and is_mended(past, manifest):
        return report(past.this, judged(past.this), new=False, written=written)
    manifest = manifest.model_copy(update={"findings": judged(manifest)})
    list_now.record()
    record(lake, manifest)
    return report(manifest, manifest.findings, new=True, written=written)


def check_layout(feed: Feed) -> None:
    """Raise ConfigError for a layout that cannot hold the feed's protocol, before anything is read."""
    path, layout = feed.folder / "feed.toml", layout_of(feed.source.layout or "")
    if layout.protocols is not None and feed.protocol not in layout.protocols:
        raise ConfigError(
            f"{path}: layout {feed.source.layout!r} does not keep messages of protocol {feed.protocol!r} whole",
            remedy=f"the layout is for {', '.join(sorted(layout.protocols))}; archive the original bytes, preferably as aiven-parquet",
        )
    if feed.protocol == "avro" and "TOMBSTONES_LOST" in layout.losses:
        raise ConfigError(
            f"{path}: protocol 'avro' writes deletes as null values, which layout {feed.source.layout!r} loses", remedy=_WITH_KEYS
        )
    if feed.protocol in KEYED_PROTOCOLS and not (layout.has_keys or layout.has_siblings):
        raise ConfigError(
            f"{path}: protocol {feed.protocol!r} needs Kafka keys, and layout {feed.source.layout!r} holds values only", remedy=_WITH_KEYS
        )


def _check_keys(feed: Feed, layout: Layout, listing: Listing) -> None:
    """Raise ConfigError (KEYS_LOST) if the protocol needs keys, the layout keeps them in sibling objects and one is missing."""
    if feed.protocol in KEYED_PROTOCOLS and not layout.has_keys:
        for source in listing.objects:
            if not any(sibling.view == "keys" for sibling in source.siblings):
                raise ConfigError(
                    f"protocol {feed.protocol!r} needs Kafka keys, and {source.key} has no .keys object beside it",
                    code="KEYS_LOST",
                    remedy=f"set store.kafka.keys = true in the connector, or {_WITH_KEYS}",
                )


def past_of(lake: Store, feed: Feed, hour: str) -> Past:
    """Return what the lake holds before this run; reads the hour's landed objects.

    Raises StorageError for a feed's first hour if the store has no conditional puts.
    """
    landed = generations(lake, feed.name)
    if not landed:
        probe_conditional_puts(lake)
    before = [h for h in landed if h < hour]
    first, at = hour, parse_hour(hour)
    for back in range(1, LOOK_BACK + 1):
        previous = format_hour(at - timedelta(hours=back))
        if previous not in landed:
            break
        first = previous
    near = all_newest(lake, feed.name, since=first, until=hour)
    this = near.pop(hour, None)
    broken = damaged(lake, this.objects) if this else ()
    return Past(this=this, damaged=broken, earlier=tuple(near.values()), complete=len(before) == len(near))


def is_mended(past: Past, now: Manifest) -> bool:
    """Return whether the damaged objects are landed again under the same names. A release with other compression yields other names."""
    return set(past.damaged) <= set(now.objects)


def _land(
    feed: Feed,
    hour: str,
    layout: Layout,
    archive: Store,
    lake: Store,
    listing: Listing,
    spans: Mapping[TopicPartition, OffsetSpan],
    progress: OnBytesLanded | None,
) -> list[LandedPartition]:
    """Land all partitions of the hour, sorted by topic and partition."""
    total = sum(part.size for source in listing.objects for part in source.parts)
    done, lock = 0, Lock()

    def read(size: int) -> None:
        nonlocal done
        with lock:
            done += size
            if progress:
                progress(done, total)

    def where(source: SourceObject) -> tuple[str, int]:
        return source.topic, source.partition

    found = {place: tuple(sources) for place, sources in groupby(listing.objects, where)}
    tasks = [
        Task(
            feed=feed.name,
            hour=hour,
            topic=place[0],
            number=place[1],
            sources=tuple(sorted(found.get(place, ()), key=lambda s: (s.number, s.key))) if place in spans else found[place],
            seen=partial(seen_in, feed),
            tagged=feed.source.tags,
            span=spans.get(place),
        )
        for place in sorted({*found, *spans})
    ]
    return land_partitions(tasks, layout, archive, lake, feed.source.in_flight, read)


def _with_sources(landed: list[LandedPartition], listing: Listing) -> list[LandedPartition]:
    """Restrict the partitions' sources to those of a listing; other objects that were read hold nothing of the hour."""
    keys = {part.key for source in listing.objects for part in source.parts}
    return [replace(p, sources=tuple(source for source in p.sources if source.key in keys)) for p in landed]


def manifest_of(feed: Feed, layout: str, hour: str, landed: Sequence[LandedPartition], past: Past) -> Manifest:
    """Return the manifest of the landed partitions, with the findings that only this landing can make.

    Raises OrderError: VANISHED, LANDED_LOST.
    """
    partitions: dict[str, dict[int, PartitionFacts]] = {}
    for partition in landed:
        partitions.setdefault(partition.topic, {})[partition.number] = partition.facts
    manifest = Manifest(
        feed=feed.name,
        hour=hour,
        generation=past.this.generation + 1 if past.this else 1,
        protocol=feed.protocol,
        layout=layout,
        sources=tuple(source for partition in landed for source in partition.sources),
        objects=tuple(landed_object for partition in landed for landed_object in partition.objects),
        partitions=partitions,
        findings=(),
    )
    if past.this is None:
        return manifest
    _check_nothing_vanished(past.this, manifest, past.damaged)
    digests = {source.key: source.sha256 or "" for source in manifest.sources}
    found = since(past.this, digests, manifest.layout, new_offsets(past.this, manifest))
    return manifest.model_copy(update={"findings": found})


def _check_nothing_vanished(before: Manifest, now: Manifest, broken: Sequence[Landed]) -> None:
    """Raise if the new generation holds less than the one before; otherwise an archive that expires would remove the lake's history.

    broken: landed objects of the generation before that are gone or have other bytes.
    """
    for topic, partitions in before.partitions.items():
        for number, partition in partitions.items():
            held = now.partitions.get(topic, {}).get(number)
            lost: Sequence[Range] = minus(partition.ranges, held.ranges) if held else partition.ranges
            lost = minus(lost, held.conflicts) if held else lost
            if lost and broken:
                raise cannot_mend(before, broken, f"the source no longer has offsets {show(lost)} of {topic}[{number}]")
            if lost:
                raise OrderError(
                    f"hour {now.hour}: offsets {show(lost)} are in generation {before.generation} and no longer in the archive",
                    code="VANISHED",
                    at=Coordinates(topic, number, lost[0][0]),
                    remedy=f"restore the archive's objects; generation {before.generation} stays valid",
                )


def _same_listing(manifest: Manifest, feed: Feed, listing: Listing) -> bool:
    known = {(source.key, source.size, source.etag) for source in manifest.sources}
    return manifest.layout == feed.source.layout and known == {
        (part.key, part.size, part.etag) for source in listing.objects for part in source.parts
    }


def _same_content(one: Manifest, other: Manifest) -> bool:
    contents = ({(source.key, source.size, source.sha256) for source in manifest.sources} for manifest in (one, other))
    return one.layout == other.layout and _ends(one) == _ends(other) and next(contents) == next(contents)


def _ends(manifest: Manifest) -> dict[tuple[str, int], int]:
    """Return where the next hour continues, for the partitions that record it."""
    facts = ((topic, number, facts) for topic, numbers in manifest.partitions.items() for number, facts in numbers.items())
    return {(topic, number): facts.next for topic, number, facts in facts if facts.next is not None}


def record(lake: Store, manifest: Manifest) -> None:
    """Write the manifest, which makes the hour landed. Raises LeaseError (LANDED_MEANWHILE) if another run wrote a different one."""
    key, content = manifest_key(manifest.feed, manifest.hour, manifest.generation), manifest.to_json()
    if not lake.put_if_absent(key, content) and lake.read(key) != content:
        raise LeaseError(
            f"{lake.uri_of(key)}: another run landed hour {manifest.hour} at the same time",
            code="LANDED_MEANWHILE",
            remedy="land the hour again: it compares the archive with what the other run saw",
        )


def report(manifest: Manifest, findings: tuple[Finding, ...], *, new: bool, written: int) -> LandReport:
    """Return the report of an hour whose manifest is written. Raises OrderError for the first critical finding."""
    if error := blocking(manifest.hour, findings):
        raise error
    facts = [partition for partitions in manifest.partitions.values() for partition in partitions.values()]
    return LandReport(
        hour=manifest.hour,
        generation=manifest.generation,
        new=new,
        messages=sum(partition.count for partition in facts),
        bytes=sum(partition.bytes for partition in facts),
        sources=len(manifest.sources),
        objects_written=written,
        objects_kept=len(manifest.objects) - written,
        findings=findings,
    )
