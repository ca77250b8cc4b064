"""What landing finds out about an hour, how serious it is, and what to do about it.

Most findings follow from a manifest's facts, the feed's settings and the hours before, so they are judged anew at every landing:
an hour whose neighbour was repaired is no longer blocked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidelake.archives import Layout, all_have_keys
from tidelake.errors import Coordinates, OrderError
from tidelake.feed import Feed
from tidelake.land.manifest import Finding, Manifest, Partition, Severity
from tidelake.land.ranges import Range, Ranges, common, count, minus, show, union
from tidelake.storage import ObjectInfo

_PREFIX = "then the resolved ts counts up to the gap only"
REMEDIES = {
    "OVERLAP_CONFLICT": "find out which of the objects is wrong, move it out of the archive and land the hour again",
    "GAP": f'bring back the missing file and land the hour again, or set [policy] on_gap = "warn": {_PREFIX}',
    "EXPIRED": "give the topic a longer retention and land in time; bring the messages back through an archive of them, or set [policy] "
    f'on_gap = "warn": {_PREFIX}',
    "MISSING_PARTITION": "find out why the archiver wrote nothing for it (an idle partition still receives resolved events), bring back "
    f'its files and land the hour again, or set [policy] on_gap = "warn": {_PREFIX}',
    "UNEXPECTED_PARTITION": "set `partitions` in feed.toml to the number of partitions that the topic has",
    "OVERLAP_HOURS": "nothing, if the archiver delivered twice; where offsets come from names, check its partitioner and "
    "what it does with nulls",
    "LATE_START": "if the feed should begin earlier, bring back the missing files, and land from the first hour on",
    "UNKNOWN_OBJECT": "check source.layout and source.template, or move the file out of the hour's folder",
    "LATE": "nothing: decode and order take the new generation, what is at or below the applied ts goes to the late ledger",
    "OVERLAP_SAME": "nothing: one copy was kept",
    "NO_OFFSETS": "prefer a layout that holds offsets, set s3.object.tagging in the connector and `tags` here, or keep the connector from "
    "dropping and re-sorting records",
    "TOMBSTONES_LOST": "nothing, as the protocol has no null values; prefer a layout that keeps them",
    "KEYS_LOST": "nothing, as the protocol does not need them; prefer a layout that keeps them",
    "REORDERED_JSON": "set value.converter = ByteArrayConverter in the connector, and the layout for it here",
    "NOT_BINARY_SAFE": "set value.converter = ByteArrayConverter in the connector, and the layout for it here",
    "LOSSY_LAYOUT": "prefer aiven-parquet or aiven-jsonl with all five fields",
    "LEGAL_GAPS": "nothing, if producers use transactions (markers, aborted messages); a topic that is compacted loses changes: set its "
    "cleanup.policy to delete",
    "EMPTY": "nothing, if the feed was idle",
}
CODES = tuple(REMEDIES)  # the most serious first
_ORDER = {"critical": 0, "warning": 1, "info": 2}


def judge(
    feed: Feed, layout: Layout | None, manifest: Manifest, earlier: Sequence[Manifest], unknown: Sequence[ObjectInfo], *, complete: bool
) -> tuple[Finding, ...]:
    """Everything there is to say about an hour, the most serious first.

    layout: the archive's, None where the hour is one of live topics. earlier: the landed hours before it without a hole between them and
    the hour, ascending; complete: they reach the first landed hour.
    """
    found = [
        *_of_partitions(feed, layout, manifest, earlier, complete),
        *_missing_partitions(feed, manifest, earlier),
        *_of_the_archive(feed, layout, manifest, unknown),
        *(f for f in manifest.findings if f.code == "LATE"),
    ]
    return tuple(sorted(found, key=lambda f: (_ORDER[f.severity], CODES.index(f.code), f.topic or "", f.partition or 0, f.detail)))


def finding(
    code: str, severity: Severity, detail: str, topic: str | None = None, partition: int | None = None, offset: int | None = None
) -> Finding:
    """A finding with its remedy."""
    return Finding(code=code, severity=severity, topic=topic, partition=partition, offset=offset, detail=detail, remedy=REMEDIES[code])


def blocking(hour: str, findings: Sequence[Finding]) -> OrderError | None:
    """The error of the first critical finding, None if there is none."""
    critical = [f for f in findings if f.severity == "critical"]
    if not critical:
        return None
    first = critical[0]
    at = Coordinates(first.topic, first.partition, first.offset) if first.topic is not None and first.partition is not None else None
    more = f" (and {len(critical) - 1} more critical findings)" if len(critical) > 1 else ""
    return OrderError(f"hour {hour}: {first.detail}{more}", code=first.code, at=at, remedy=first.remedy)


def _of_partitions(feed: Feed, layout: Layout | None, manifest: Manifest, earlier: Sequence[Manifest], complete: bool) -> Iterator[Finding]:
    for topic, partitions in manifest.partitions.items():
        for number, partition in partitions.items():
            before = union(m.partitions[topic][number].covered for m in earlier if number in m.partitions.get(topic, {}))
            yield from _of_partition(feed, layout, topic, number, partition, before, complete)


def _of_partition(
    feed: Feed, layout: Layout | None, topic: str, number: int, partition: Partition, before: Ranges, complete: bool
) -> Iterator[Finding]:
    at = (topic, number)
    if number >= feed.partitions_of(topic):
        yield finding("UNEXPECTED_PARTITION", "critical", f"feed.toml says {feed.partitions_of(topic)} partitions, counted from 0", *at)
    if partition.conflicts:
        objects = ", ".join(partition.conflict_sources)
        detail = f"offsets {show(partition.conflicts)} have different contents in {objects}; none of them is landed"
        yield finding("OVERLAP_CONFLICT", "critical", detail, *at, partition.conflicts[0][0])
    if partition.duplicates:
        yield finding("OVERLAP_SAME", "info", f"{partition.duplicates} messages were there again with the same content", *at)
    severity: Severity = "critical" if feed.policy.on_gap == "block" else "warning"
    if missing := _gaps(partition, before):
        detail = f"offsets {show(missing)} are missing ({count(missing)} messages)"
        yield finding("GAP", severity, detail, *at, missing[0][0])
    if partition.expired:
        gone = f"{show(partition.expired)} ({count(partition.expired)} messages)"
        detail = f"the topic's retention deleted offsets {gone} before they were landed"
        yield finding("EXPIRED", severity, detail, *at, partition.expired[0][0])
    if partition.legal_gaps:
        detail = f"the topic holds no messages at offsets {show(partition.legal_gaps)} ({count(partition.legal_gaps)})"
        yield finding("LEGAL_GAPS", "info", detail, *at, partition.legal_gaps[0][0])
    if again := common(partition.ranges, before):
        detail = f"offsets {show(again)} were landed with an earlier hour already"
        yield finding("OVERLAP_HOURS", "critical" if layout and layout.number_is_first_offset else "warning", detail, *at, again[0][0])
    if complete and not before and partition.ranges and partition.ranges[0][0] > 0:
        yield finding("LATE_START", "warning", f"offsets before {partition.ranges[0][0]} were never landed", *at, partition.ranges[0][0])


def _gaps(partition: Partition, before: Ranges) -> Ranges:
    """Offsets that neither this hour nor one before has, up to the last of this hour and from the last of the hours before."""
    there = union([partition.covered, partition.expired])
    if not there:
        return ()
    first, last = there[0][0], there[-1][1]
    span: Range = (min(first, before[-1][1] + 1) if before else first, last)
    return minus(minus([span], union([there, before])), partition.conflicts)


def _missing_partitions(feed: Feed, manifest: Manifest, earlier: Sequence[Manifest]) -> Iterator[Finding]:
    """Expected partitions of which the hour has nothing. A topic found by a pattern is expected from the first hour it appears."""
    topics = feed.topics if feed.topic_pattern is None else sorted({topic for m in (*earlier, manifest) for topic in m.partitions})
    severity: Severity = "info"
    if feed.watermark.source == "messages":
        severity = "critical" if feed.policy.on_gap == "block" else "warning"
    for topic in topics:
        for number in range(feed.partitions_of(topic)):
            facts = manifest.partitions.get(topic, {}).get(number)
            if facts is None or not (facts.count or facts.conflicts):
                live = facts is not None and facts.next is not None  # the topic itself has none
                yield finding("MISSING_PARTITION", "info" if live else severity, "there is no message in the hour", topic, number)


def _of_the_archive(feed: Feed, layout: Layout | None, manifest: Manifest, unknown: Sequence[ObjectInfo]) -> Iterator[Finding]:
    if unknown:
        names = ", ".join(info.key for info in unknown[:3]) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
        yield finding("UNKNOWN_OBJECT", "warning", f"not read, as its name is none of layout {manifest.layout}: {names}")
    if not manifest.sources:
        yield finding("EMPTY", "info", f"{'the archive has' if layout else 'the topics have'} nothing for the hour")
    if layout is None or not manifest.sources:
        return
    if layout.number_is_first_offset and not feed.source.tags:
        yield finding("NO_OFFSETS", "info", "offsets are counted from the number in each object's name")
    for code, lost in layout.losses.items():
        if code != "KEYS_LOST" or not all_have_keys([source.key for source in manifest.sources]):
            yield finding(code, "info", f"layout {manifest.layout} loses something: {lost}")
