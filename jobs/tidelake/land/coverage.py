"""What is certainly complete: the gap-free offset prefix of every partition over all landed hours (design section 7).

Pure: from the manifests alone. A resolved ts counts only if the offset of its message lies on its partition's prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from tidelake.land.manifest import Manifest
from tidelake.land.ranges import Range, union
from tidelake.tso import format_hour, parse_hour

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """first_hour: the first landed one, None if there is none. prefixes: first and last offset of the gap-free beginning.

    missing_hours: between first_hour and the asked one, not landed.
    """

    first_hour: str | None
    prefixes: Mapping[TopicPartition, Range]
    missing_hours: tuple[str, ...]

    def holds(self, topic: str, partition: int, offset: int) -> bool:
        """Whether an offset lies on its partition's gap-free prefix."""
        first, last = self.prefixes.get((topic, partition), (0, -1))
        return first <= offset <= last


def coverage(newest: Mapping[str, Manifest], until: str) -> Coverage:
    """The coverage by the newest generation of every hour up to and including `until` (as of `all_newest`)."""
    hours = sorted(hour for hour in newest if hour <= until)
    ranges: dict[TopicPartition, list[tuple[Range, ...]]] = {}
    for hour in hours:
        for topic, partitions in newest[hour].partitions.items():
            for number, partition in partitions.items():
                ranges.setdefault((topic, number), []).append(partition.ranges)
    prefixes = {where: merged[0] for where, several in sorted(ranges.items()) if (merged := union(several))}
    return Coverage(first_hour=hours[0] if hours else None, prefixes=prefixes, missing_hours=missing_hours(hours, until))


def missing_hours(landed: list[str], until: str) -> tuple[str, ...]:
    """The hours between the first landed one and `until` (included) that are not landed."""
    if not landed:
        return ()
    hour, end = parse_hour(landed[0]), parse_hour(until)
    known, out = set(landed), list[str]()
    while hour <= end:
        if format_hour(hour) not in known:
            out.append(format_hour(hour))
        hour += timedelta(hours=1)
    return tuple(out)
