"""Find where an archive resumes: after the last offset that the names of a partition's objects cover, in the hour of the newest of them.

Hours of a partition only go forward, so its newest hour is enough. Hours are listed from the newest back until every partition is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidelake.io.storage import Store
from tidelake.land.store.ranges import Range

_HOUR = re.compile(r"hour=(\d{4}-\d{2}-\d{2}T\d{2})")
_OBJECT = re.compile(r".*/partition=(\d+)/(\d+)-(\d+)-[0-9a-f]+\.parquet")


@dataclass(frozen=True, slots=True)
class Reached:
    """The archived extent of a partition: the offset where it resumes, and the open hour."""

    next: int
    hour: str


def reached(archive: Store, topic: str, partitions: Iterable[int]) -> dict[int, Reached]:
    """Return how far these partitions of a topic are archived; partitions without objects are absent. Raises StorageError."""
    found, wanted = dict[int, Reached](), set(partitions)
    hours = sorted((match[1] for name in archive.folders(f"{topic}/") if (match := _HOUR.fullmatch(name))), reverse=True)
    for hour in hours:
        if not wanted:
            break
        ends = dict[int, int]()
        for _, partition, (_, last) in objects(archive, f"{topic}/hour={hour}/"):
            ends[partition] = max(last, ends.get(partition, 0))
        found |= {partition: Reached(ends[partition] + 1, hour) for partition in wanted & ends.keys()}
        wanted -= ends.keys()
    return found


def objects(archive: Store, folder: str) -> Iterator[tuple[str, int, Range]]:
    """Yield key, partition, and first and last covered offset of every object in a folder, from their names."""
    for info in archive.objects(folder):
        if found := _OBJECT.fullmatch(info.key):
            yield info.key, int(found[1]), (int(found[2]), int(found[3]))
