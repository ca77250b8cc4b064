"""Judge a landed hour: its findings, their severities and remedies.

Most findings follow from a manifest's facts, the feed's settings and the hours before. They are judged again at every landing, so that an
hour whose neighbour was repaired is no longer blocked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tidelake.archives import KEYED_PROTOCOLS, Layout, Lost, all_have_keys
from tidelake.config.feed import Feed
from tidelake.config.finding_kinds import KINDS, Severity
from tidelake.errors import Coordinates, OrderError
from tidelake.io.storage import ObjectInfo
from tidelake.io.texts import plural
from tidelake.land.ahead import Elsewhere, OffsetsAhead
from tidelake.land.store.manifest import Finding, Landed, Manifest, PartitionFacts
from tidelake.land.store.ranges import Range, Ranges, common, count, holes, minus, numbers, show, union
from tidelake.land.waits import Waits

REMEDIES = {code: kind.remedy for code, kind in KINDS.items()}
CODES = tuple(KINDS)  # most serious first
_OF_A_GENERATION = ("CHANGED_AFTER_LANDING", "LATE_FILE", "LAYOUT_CHANGED")  # findings that only the landing of the generation can make
_SHOWN = 3
_ORDER = {"critical": 0, "warning": 1, "info": 2}


def judge(
    feed: Feed,
    layout: Layout | None,
    manifest: Manifest,
    earlier: Sequence[Manifest],
    unknown: Sequence[ObjectInfo],
    waits: Sequence[Waits] = (),
    *,
    complete: bool,
    doubts: Sequence[str] = (),
    lost: Sequence[Lost] = (),
    damaged: Sequence[Landed] = (),
    ahead: OffsetsAhead | None = None,
) -> tuple[Finding, ...]:
    """Return all findings of an hour, most serious first.

    Args:
        feed: The feed's settings.
        layout: The archive's layout, None for live topics.
        manifest: The hour's manifest.
        earlier: The landed hours before the hour without a gap, ascending.
        unknown: Objects of the hour's folder that the layout does not know.
        waits: What keeps the hour open.
        complete: Whether `earlier` reaches the first landed hour.
        doubts: The listing's doubts.
        lost: The listing's lost files.
        damaged: Landed objects that were damaged and are landed again.
        ahead: The hours after the hour, None if they cannot have what it lacks.
    """
    found = [
        *_of_partitions(feed, layout, manifest, earlier, complete, ahead),
        *(() if layout and layout.file_bits else _missing_partitions(feed, layout, manifest, earlier, ahead)),
        *_of_the_archive(feed, layout, manifest, unknown),
        *_not_closed(feed, waits),
        *(finding("SINK_INDEX", "warning", doubt) for doubt in doubts),
        *(_lost(feed, layout, each) for each in lost),
        *_mended(damaged),
        *(finding(f.code, KINDS[f.code].severity, f.detail) for f in manifest.findings if f.code in _OF_A_GENERATION),
    ]
    found = [f.model_copy(update={"severity": feed.policy.severity(f.code, f.severity)}) for f in found]
    return tuple(sorted(found, key=lambda f: (_ORDER[f.severity], CODES.index(f.code), f.topic or "", f.partition or 0, f.detail)))


def finding(
    code: str, severity: Severity, detail: str, topic: str | None = None, partition: int | None = None, offset: int | None = None
) -> Finding:
    """Return a finding with the remedy of its code."""
    return Finding(code=code, severity=severity, topic=topic, partition=partition, offset=offset, detail=detail, remedy=REMEDIES[code])


def named(keys: Sequence[str]) -> str:
    """List the first few keys and the number of further ones, for messages."""
    return ", ".join(keys[:_SHOWN]) + (f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else "")


def blocking(hour: str, findings: Sequence[Finding]) -> OrderError | None:
    """Return the error for the first critical finding, None without one."""
    critical = [f for f in findings if f.severity == "critical"]
    if not critical:
        return None
    first = critical[0]
    at = Coordinates(first.topic, first.partition, first.offset) if first.topic is not None and first.partition is not None else None
    others = [f"{f.code} {place(f)}".strip() for f in critical[1:]]
    more = f" (and {plural(len(others), 'more critical finding')}: {named(others)})" if others else ""
    return OrderError(f"hour {hour}: {first.detail}{more}", code=first.code, at=at, remedy=first.remedy)


def place(f: Finding) -> str:
    """Return where a finding is, `topic[partition]@offset`; empty if it concerns the hour."""
    if f.topic is None or f.partition is None:
        return f.topic or ""
    return str(Coordinates(f.topic, f.partition, f.offset))


def _of_partitions(
    feed: Feed, layout: Layout | None, manifest: Manifest, earlier: Sequence[Manifest], complete: bool, ahead: OffsetsAhead | None
) -> Iterator[Finding]:
    for topic, partitions in manifest.partitions.items():
        for number, partition in partitions.items():
            before = _before(earlier, topic, number)
            yield from _of_partition(feed, layout, topic, number, partition, before, complete)
            yield from _of_gaps(feed, layout.file_bits if layout else 0, topic, number, partition, before, ahead)


def _of_partition(
    feed: Feed, layout: Layout | None, topic: str, number: int, partition: PartitionFacts, before: Ranges, complete: bool
) -> Iterator[Finding]:
    at, file_bits = (topic, number), layout.file_bits if layout else 0
    if not file_bits and number >= feed.partitions_of(topic):
        detail = f"feed.toml sets {plural(feed.partitions_of(topic), 'partition')}, counted from 0"
        yield finding("UNEXPECTED_PARTITION", "critical", detail, *at)
    if partition.conflicts:
        objects = ", ".join(partition.conflict_sources)
        detail = f"offsets {show(partition.conflicts)} have different contents in {objects}; none of them is landed"
        yield finding("OVERLAP_CONFLICT", "critical", detail, *at, partition.conflicts[0][0])
    if partition.duplicates:
        yield finding("OVERLAP_SAME", "info", f"{plural(partition.duplicates, 'message')} came again with the same content", *at)
    if partition.expired:
        gone = f"{show(partition.expired)} ({plural(count(partition.expired), 'message')})"
        detail = f"the topic's retention deleted offsets {gone} before they were landed"
        yield finding("EXPIRED", feed.policy.gap_severity, detail, *at, partition.expired[0][0])
    if partition.legal_gaps:
        detail = f"the topic holds no messages at offsets {show(partition.legal_gaps)} ({count(partition.legal_gaps)})"
        yield finding("LEGAL_GAPS", "info", detail, *at, partition.legal_gaps[0][0])
    if again := common(partition.ranges, before):
        detail = f"offsets {show(again)} were already landed with an earlier hour"
        yield finding("OVERLAP_HOURS", "critical" if layout and layout.number_is_first_offset else "warning", detail, *at, again[0][0])
    if complete and not before and partition.ranges and partition.ranges[0][0] >> file_bits > bool(file_bits):
        yield finding("LATE_START", "warning", f"offsets before {partition.ranges[0][0]} were never landed", *at, partition.ranges[0][0])


def _before(earlier: Sequence[Manifest], topic: str, number: int) -> Ranges:
    return union(m.partitions[topic][number].covered for m in earlier if number in m.partitions.get(topic, {}))


def _of_gaps(
    feed: Feed, file_bits: int, topic: str, number: int, partition: PartitionFacts, before: Ranges, ahead: OffsetsAhead | None
) -> Iterator[Finding]:
    missing = _missing(file_bits, partition, before)
    for there in ahead.find((topic, number), missing) if ahead else ():
        lacks = f"the hour lacks offsets {show(there.ranges)} ({plural(count(there.ranges), 'message')})"
        yield _elsewhere(there, lacks, "hold them", topic, number)
        missing = minus(missing, there.ranges)
    if missing:
        what, each = ("files", "file") if file_bits else ("offsets", "message")
        detail = f"{what} {show(missing)} are missing ({plural(count(missing), each)})"
        yield finding("GAP", feed.policy.gap_severity, detail, topic, number, missing[0][0] << file_bits)


def _elsewhere(there: Elsewhere, lacks: str, do: str, topic: str, number: int) -> Finding:
    """Return the finding for offsets that a later hour has, by its manifest or by the names of its objects. do: what these objects do."""
    if not there.keys:
        return finding("GAP_CLOSED", "info", f"{lacks}: closed by hour {there.hour}, which is landed", topic, number, there.ranges[0][0])
    detail = f"{lacks}: by their names, objects of hour {there.hour} {do}: {named(there.keys)}"
    return finding("GAP_AHEAD", "warning", detail, topic, number, there.ranges[0][0])


def _missing(file_bits: int, partition: PartitionFacts, before: Ranges) -> Ranges:
    """Return the missing offsets, or numbers of files."""
    if not file_bits:
        return _gaps(partition, before)
    return holes(union([numbers(partition.ranges, file_bits), numbers(before, file_bits)]))


def _gaps(partition: PartitionFacts, before: Ranges) -> Ranges:
    """Return the offsets that neither this hour nor an earlier one has. They begin after the last of the earlier hours and end at the last
    of this hour; if this hour has offsets that earlier hours lack, they begin there.
    """
    there = union([partition.covered, partition.expired])
    if not there:
        return ()
    first, last = there[0][0], there[-1][1]
    end = before[-1][1] if before else first - 1
    span: Range = (min(first, end + 1), max(last, end))
    return minus(minus([span], union([there, before])), partition.conflicts)


def _missing_partitions(
    feed: Feed, layout: Layout | None, manifest: Manifest, earlier: Sequence[Manifest], ahead: OffsetsAhead | None
) -> Iterator[Finding]:
    """Yield the expected partitions without a message in the hour. A topic found by a pattern is expected from its first hour on."""
    topics = feed.topics if feed.topic_pattern is None else sorted({topic for m in (*earlier, manifest) for topic in m.partitions})
    severity = feed.policy.gap_severity if feed.watermark.source == "messages" else "info"
    for topic in topics:
        for number in range(feed.partitions_of(topic)):
            facts = manifest.partitions.get(topic, {}).get(number)
            if facts is None or not (facts.count or facts.conflicts):
                live = layout is None and facts is not None and facts.next is not None  # the topic itself has no message
                before, lacks = _before(earlier, topic, number), "there is no message in the hour"
                there = ahead.goes_on((topic, number), before[-1][1] + 1) if ahead and before and severity != "info" else None
                if there is None:
                    yield finding("MISSING_PARTITION", "info" if live else severity, lacks, topic, number)
                else:
                    yield _elsewhere(there, lacks, f"go on at offset {before[-1][1] + 1}, so none is lost", topic, number)


def _not_closed(feed: Feed, waits: Sequence[Waits]) -> Iterator[Finding]:
    """Yield the findings of an open hour. They are critical unless messages carry the resolved ts, which cannot pass missing messages; a
    recorded one can.
    """
    severity: Severity = "warning" if feed.watermark.source == "messages" else "critical"
    for wait in waits:
        yield finding("HOUR_NOT_CLOSED", severity, f"the hour may not be complete: {wait.what}", wait.topic, wait.partition)


def _lost(feed: Feed, layout: Layout | None, lost: Lost) -> Finding:
    offset = lost.first << (layout.file_bits if layout else 0)
    return finding("GAP", feed.policy.gap_severity, lost.said, lost.topic, lost.partition, offset)


def _mended(damaged: Sequence[Landed]) -> Iterator[Finding]:
    if damaged:
        names = named([each.key for each in damaged])
        yield finding("LANDED_DAMAGED", "warning", f"landed objects were missing or had other bytes, and are landed again: {names}")


def _of_the_archive(feed: Feed, layout: Layout | None, manifest: Manifest, unknown: Sequence[ObjectInfo]) -> Iterator[Finding]:
    if unknown:
        names = named([info.key for info in unknown])
        yield finding("UNKNOWN_OBJECT", "warning", f"not read, because the name does not match layout {manifest.layout}: {names}")
    if not manifest.sources:
        yield finding("EMPTY", "info", f"{'the archive has' if layout else 'the topics have'} nothing for the hour")
    if layout is None or not manifest.sources:
        return
    if layout.number_is_first_offset and not feed.source.tags:
        yield finding("NO_OFFSETS", "info", "offsets are counted from the number in each object's name")
    for code, lost in layout.losses.items():
        if code != "KEYS_LOST" or not all_have_keys([source.key for source in manifest.sources]):
            yield finding(code, "info", f"layout {manifest.layout} loses information: {lost}")
    yield from _lacking(feed, manifest)


def _lacking(feed: Feed, manifest: Manifest) -> Iterator[Finding]:
    """Yield findings for record parts that the connector does not write."""
    lacking: Counter[str] = Counter()
    for partitions in manifest.partitions.values():
        for partition in partitions.values():
            lacking.update(partition.lacking)
    for what, objects in sorted(lacking.items()):
        detail = f"{objects} of {len(manifest.sources)} objects have no {what}"
        if what != "keys":
            yield finding("LOSSY_LAYOUT", "info", detail)
        elif feed.protocol in KEYED_PROTOCOLS:
            yield finding("KEYS_LOST", "warning", f"{detail}, and messages of {feed.protocol} cannot be read without them")
