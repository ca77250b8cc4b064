"""Facts about one topic in a sample of an archive: partitions, hours and gaps between them, offsets, and what its hour folders mean."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np

from tidelake.io.storage import ObjectInfo
from tidelake.sniff.keys import Named
from tidelake.sniff.objects import ReadObject
from tidelake.tso import format_hour

MOST_SHOWN = 5  # maximum missing hours or other items that are listed
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A listed object and the parts of its key. below: its key below the archive's base; siblings: by view."""

    key: str
    info: ObjectInfo
    said: Named
    below: str
    siblings: dict[str, ObjectInfo] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """Offsets of the objects that were read.

    Attributes:
        from_names: They are counted from the number in each name.
        records: Number of records.
        covered: All objects state the range in which they have everything that the log had, like those of `tidelake archive`.
        gaps: Offsets that are missing between a partition's first and last one.
        legal: Missing offsets at which, as the objects state, the log has no message.
        again: Offsets that occur more than once.
        joints: Pairs of adjacent objects of a partition.
        unproven: Pairs whose counted offsets do not join.
        first: First offset by partition.
        last: Last offset by partition.
    """

    from_names: bool
    records: int
    covered: bool
    gaps: int
    legal: int
    again: int
    joints: int
    unproven: int
    first: dict[int, int]
    last: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Facts about a topic's objects in the sample.

    Attributes:
        hours: Hours, ascending, with the number of objects.
        missing: Hours between the first and the last without an object; None if the listing is incomplete.
        of_hours: Number of read records with timestamps.
        in_hour: Number of those that are in the hour of their folder.
        lacking: Number of read objects without `headers`, `timestamps` or `keys`.
    """

    name: str
    objects: int
    bytes: int
    partitions: tuple[int, ...]
    hours: dict[datetime, int]
    missing: tuple[datetime, ...] | None
    with_keys: int
    with_headers: int
    read: int
    records: int
    in_hour: int
    of_hours: int
    offsets: Offsets | None
    damaged: tuple[tuple[str, str], ...]
    lacking: dict[str, int]

    @property
    def holes(self) -> str:
        """Partitions below the highest one that have no object."""
        absent = sorted(set(range(max(self.partitions, default=-1) + 1)) - set(self.partitions))
        return ", ".join(map(str, absent))


def topic_of(
    name: str, entries: Sequence[Entry], reads: Sequence[ReadObject], joined: Sequence[ReadObject], from_names: bool, whole: bool
) -> Topic:
    """Return the facts about a topic.

    Args:
        name: The topic.
        entries: All listed objects of the topic.
        reads: Those of them that were read.
        joined: Those with no other object between them, whose offsets should join.
        from_names: Offsets are counted from names.
        whole: The listing is complete.
    """
    hours: dict[datetime, int] = defaultdict(int)
    for entry in entries:
        if entry.said.hour is not None:
            hours[entry.said.hour] += 1
    hour_of = {entry.key: entry.said.hour.timestamp() // 3600 for entry in entries if entry.said.hour is not None}
    stamps = [(hour_of[r.source.key], r.timestamps // _HOUR_MS) for r in reads if r.source.key in hour_of]
    return Topic(
        name=name,
        objects=len(entries),
        bytes=sum(entry.info.size for entry in entries),
        partitions=tuple(sorted({entry.said.partition for entry in entries})),
        hours=dict(sorted(hours.items())),
        missing=_missing(sorted(hours)) if whole else None,
        with_keys=sum("keys" in entry.siblings for entry in entries),
        with_headers=sum("headers" in entry.siblings for entry in entries),
        read=len(reads),
        records=sum(len(r.offsets) for r in reads),
        in_hour=sum(int((at == hour).sum()) for hour, at in stamps),
        of_hours=sum(len(at) for _, at in stamps),
        offsets=_offsets(joined, from_names),
        damaged=tuple((r.source.key, r.problem) for r in reads if r.problem),
        lacking=dict(sorted(Counter(what for r in reads for what in r.lacks).items())),
    )


def _missing(hours: Sequence[datetime]) -> tuple[datetime, ...]:
    if not hours:
        return ()
    span = int((hours[-1] - hours[0]).total_seconds()) // 3600
    there = set(hours)
    return tuple(at for i in range(span) if (at := hours[0] + timedelta(hours=i)) not in there)


def _offsets(reads: Sequence[ReadObject], from_names: bool) -> Offsets | None:
    """Facts about the offsets; None if nothing was read."""
    by_partition: dict[int, list[ReadObject]] = defaultdict(list)
    for r in reads:
        if len(r.offsets):
            by_partition[r.source.partition].append(r)
    if not by_partition:
        return None
    several = {p: np.concatenate([r.offsets for r in rs]) for p, rs in sorted(by_partition.items())}
    single = {p: np.unique(found) for p, found in several.items()}
    covers = {p: [r.covers for r in rs if r.covers] for p, rs in by_partition.items()}
    holes = [_holes(found, covers[p]) for p, found in single.items()]
    joints = unproven = 0
    if from_names:
        for rs in by_partition.values():
            ends = sorted((int(r.offsets[0]), int(r.offsets[-1]) + 1, r.whole) for r in rs)
            joints += len(ends) - 1
            unproven += sum(a[1] != b[0] for a, b in pairwise(ends))
    return Offsets(
        from_names=from_names,
        records=sum(map(len, several.values())),
        covered=all(r.covers for rs in by_partition.values() for r in rs),
        gaps=sum(gaps for gaps, _ in holes),
        legal=sum(legal for _, legal in holes),
        again=sum(len(several[p]) - len(single[p]) for p in several),
        joints=joints,
        unproven=unproven,
        first={p: int(found[0]) for p, found in single.items()},
        last={p: int(found[-1]) for p, found in single.items()},
    )


def _holes(offsets: np.ndarray, covers: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return (number of missing offsets, number of covered offsets without a message). offsets: ascending, distinct."""
    spans = np.array(covers, np.int64).reshape(-1, 2)
    breaks = np.flatnonzero(np.diff(offsets) > 1)
    first = np.concatenate([offsets[:1], offsets[breaks + 1], spans[:, 0]])
    last = np.concatenate([offsets[breaks], offsets[-1:], spans[:, 1]])
    order = np.argsort(first)
    first, reached = first[order], np.maximum.accumulate(last[order])
    gaps = int(np.maximum(first[1:] - reached[:-1] - 1, 0).sum())
    return gaps, int(reached[-1] - first[0]) + 1 - gaps - len(offsets)


def spelled(hours: Iterable[datetime], most: int = MOST_SHOWN) -> str:
    """List hours for people, the first few of many."""
    names = [format_hour(hour) for hour in hours]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
