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
from tidelake.land.ranges import Range, Ranges, common, count, holes, minus, numbers, show, union
from tidelake.storage import ObjectInfo

_PREFIX = "then the resolved ts counts up to the gap only"
REMEDIES = {
    "OVERLAP_CONFLICT": "find out which of the objects is wrong, move it out of the archive and land the hour again",
    "GAP": f'bring back the missing file and land the hour again, or set [policy] on_gap = "warn": {_PREFIX}',
    "MISSING_PARTITION": "find out why the archiver wrote nothing for it (an idle partition still receives resolved events), bring back "
    f'its files and land the hour again, or set [policy] on_gap = "warn": {_PREFIX}',
    "UNEXPECTED_PARTITION": "set `partitions` in feed.toml to the number of partitions that the topic has",
    "OVERLAP_HOURS": "nothing, if the archiver delivered twice; where offsets come from names, check its partitioner and "
    "what it does with nulls",
    "SINK_INDEX": "nothing, if the sink writes the file now or was restarted before it could; else look for the file",
    "LATE_START": "if the archive should begin earlier, bring back the missing files and land from the first hour again",
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
    "EMPTY": "nothing, if the feed was idle",
}
CODES = tuple(REMEDIES)  # the most serious first
_ORDER = {"critical": 0, "warning": 1, "info": 2}


def judge(
    feed: Feed,
    layout: Layout,
    manifest: Manifest,
    earlier: Sequence[Manifest],
    unknown: Sequence[ObjectInfo],
    *,
    complete: bool,
    doubts: Sequence[str] = (),
) -> tuple[Finding, ...]:
    """Everything there is to say about an hour, the most serious first.

    earlier: the landed hours before it without a hole between them and the hour, ascending; complete: they reach the first landed hour.
    doubts: of the listing.
    """
    found = [
        *_of_partitions(feed, layout, manifest, earlier, complete),
        *(() if layout.file_bits else _missing_partitions(feed, manifest, earlier)),
        *_of_the_archive(feed, layout, manifest, unknown),
        *(finding("SINK_INDEX", "warning", doubt) for doubt in doubts),
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


def _of_partitions(feed: Feed, layout: Layout, manifest: Manifest, earlier: Sequence[Manifest], complete: bool) -> Iterator[Finding]:
    for topic, partitions in manifest.partitions.items():
        for number, partition in partitions.items():
            before = union(m.partitions[topic][number].ranges for m in earlier if number in m.partitions.get(topic, {}))
            yield from _of_partition(feed, layout, topic, number, partition, before, complete)


def _of_partition(
    feed: Feed, layout: Layout, topic: str, number: int, partition: Partition, before: Ranges, complete: bool
) -> Iterator[Finding]:
    at = (topic, number)
    if not layout.file_bits and number >= feed.partitions_of(topic):
        yield finding("UNEXPECTED_PARTITION", "critical", f"feed.toml says {feed.partitions_of(topic)} partitions, counted from 0", *at)
    if partition.conflicts:
        objects = ", ".join(partition.conflict_sources)
        detail = f"offsets {show(partition.conflicts)} have different contents in {objects}; none of them is landed"
        yield finding("OVERLAP_CONFLICT", "critical", detail, *at, partition.conflicts[0][0])
    if partition.duplicates:
        yield finding("OVERLAP_SAME", "info", f"{partition.duplicates} messages were there again with the same content", *at)
    if missing := _missing(layout, partition, before):
        what, each = ("files", "files") if layout.file_bits else ("offsets", "messages")
        detail = f"{what} {show(missing)} are missing ({count(missing)} {each})"
        yield finding("GAP", "critical" if feed.policy.on_gap == "block" else "warning", detail, *at, missing[0][0] << layout.file_bits)
    if again := common(partition.ranges, before):
        detail = f"offsets {show(again)} were landed with an earlier hour already"
        yield finding("OVERLAP_HOURS", "critical" if layout.number_is_first_offset else "warning", detail, *at, again[0][0])
    if complete and not before and partition.ranges and partition.ranges[0][0] >> layout.file_bits > bool(layout.file_bits):
        yield finding("LATE_START", "warning", f"offsets before {partition.ranges[0][0]} were never landed", *at, partition.ranges[0][0])


def _missing(layout: Layout, partition: Partition, before: Ranges) -> Ranges:
    """Offsets that are missing, or numbers of files."""
    if not layout.file_bits:
        return _gaps(partition, before)
    return holes(union([numbers(partition.ranges, layout.file_bits), numbers(before, layout.file_bits)]))


def _gaps(partition: Partition, before: Ranges) -> Ranges:
    """Offsets that neither this hour nor one before has, up to the last of this hour and from the last of the hours before."""
    if not partition.ranges:
        return ()
    first, last = partition.ranges[0][0], partition.ranges[-1][1]
    span: Range = (min(first, before[-1][1] + 1) if before else first, last)
    return minus(minus([span], union([partition.ranges, before])), partition.conflicts)


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
                yield finding("MISSING_PARTITION", severity, "there is no message in the hour", topic, number)


def _of_the_archive(feed: Feed, layout: Layout, manifest: Manifest, unknown: Sequence[ObjectInfo]) -> Iterator[Finding]:
    if unknown:
        names = ", ".join(info.key for info in unknown[:3]) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
        yield finding("UNKNOWN_OBJECT", "warning", f"not read, as its name is none of layout {manifest.layout}: {names}")
    if not manifest.sources:
        yield finding("EMPTY", "info", "the archive has nothing for the hour")
    elif layout.number_is_first_offset and not feed.source.tags:
        yield finding("NO_OFFSETS", "info", "offsets are counted from the number in each object's name")
    for code, lost in layout.losses.items() if manifest.sources else ():
        if code != "KEYS_LOST" or not all_have_keys([source.key for source in manifest.sources]):
            yield finding(code, "info", f"layout {manifest.layout} loses something: {lost}")
