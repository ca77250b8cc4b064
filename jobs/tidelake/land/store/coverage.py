"""The complete data: the gap-free offset prefix of every partition over all landed hours (docs/architecture.md 7).

Computed from the manifests alone. A resolved ts counts only if the offset of its message lies on its partition's prefix. For layouts with
numbered files (Layout.file_bits), prefixes and gaps are in file numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from tidelake.errors import Coordinates
from tidelake.land.store.manifest import Manifest
from tidelake.land.store.ranges import Range, numbers, union
from tidelake.tso import format_hour, parse_hour

Prefixes = dict[str, dict[int, Range]]  # topic → partition → first and last offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Coverage of some hours. prefixes: the gap-free beginning of every partition; holes: the first missing offsets after it, if later ones
    are landed.
    """

    prefixes: Prefixes
    holes: Mapping[Coordinates, Range]


def coverage(manifests: Iterable[Manifest], known: Mapping[str, Mapping[int, Range]] | None = None, file_bits: int = 0) -> Coverage:
    """Return what some hours' manifests cover, in addition to known prefixes. file_bits: of the layout."""
    ranges: dict[tuple[str, int], list[tuple[Range, ...]]] = {}
    for topic, prefixes in (known or {}).items():
        for number, prefix in prefixes.items():
            ranges[topic, number] = [(prefix,)]
    for manifest in manifests:
        for topic, partitions in manifest.partitions.items():
            for number, partition in partitions.items():
                ranges.setdefault((topic, number), []).append(numbers(partition.covered, file_bits))
    out: Prefixes = {}
    gaps: dict[Coordinates, Range] = {}
    for (topic, number), several in sorted(ranges.items()):
        merged = union(several)
        if merged:
            out.setdefault(topic, {})[number] = merged[0]
        if len(merged) > 1:
            gaps[Coordinates(topic, number)] = (merged[0][1] + 1, merged[1][0] - 1)
    return Coverage(prefixes=out, holes=gaps)


def beyond(manifests: Mapping[str, Manifest], prefixes: Mapping[str, Mapping[int, Range]], file_bits: int = 0) -> list[str]:
    """Return the hours that hold offsets after a gap, sorted. Later hours need them to know what is complete. file_bits: of the layout."""
    return sorted(
        hour
        for hour, manifest in manifests.items()
        if any(
            ranges[-1][1] > prefixes[topic][number][1]
            for topic, partitions in manifest.partitions.items()
            for number, partition in partitions.items()
            if (ranges := numbers(partition.covered, file_bits))
        )
    )


def missing_hours(landed: list[str], until: str) -> tuple[str, ...]:
    """Return the hours from the first landed one up to and including `until` that are not landed."""
    if not landed:
        return ()
    hour, end = parse_hour(landed[0]), parse_hour(until)
    known, out = set(landed), list[str]()
    while hour <= end:
        if format_hour(hour) not in known:
            out.append(format_hour(hour))
        hour += timedelta(hours=1)
    return tuple(out)
