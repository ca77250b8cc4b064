"""Lists the objects below a prefix, or a sample of them: listing millions of objects would take too long.

A prefix with more than `most` objects is sampled folder by folder: of dates, hours and numbers the first and the last one, of other folders
(topics) up to MOST_FOLDERS, evenly spread. So first and last hours are right, but the hours between them are not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tidelake.io.storage import ObjectInfo, Store

MOST_OBJECTS = 20_000
MOST_FOLDERS = 24  # maximum folders at one level
MOST_REQUESTS = 600  # maximum folder listings, of one page of 1,000 names each unless a folder has more folders
_COUNTED = re.compile(r"(\w+=)?\d[\dT:-]*")  # dates, hours, partitions, table versions

OnLooked = Callable[[str, int, int], None]  # (what, done, total; 0: unknown)


@dataclass(slots=True)
class Sample:
    """Listed objects by key. whole: all objects are listed; left_out: number of folders that were not listed."""

    objects: dict[str, ObjectInfo] = field(default_factory=dict)
    whole: bool = True
    left_out: int = 0
    requests: int = 0


def sample(store: Store, most: int = MOST_OBJECTS, progress: OnLooked | None = None) -> Sample:
    """List at most about `most` objects of a store, spread over its folders. Raises StorageError."""
    first = store.some("", most + 1)
    if len(first) <= most:
        return Sample({info.key: info for info in sorted(first)})
    found = Sample({info.key: info for info in first[: most // 8]}, whole=False)
    _spread(store, "", most - len(found.objects), MOST_REQUESTS, found, progress)
    found.objects = dict(sorted(found.objects.items()))
    return found


def _spread(store: Store, prefix: str, most: int, requests: int, found: Sample, progress: OnLooked | None) -> None:
    """List the folders below a prefix, each with its share of objects and requests."""
    folders = store.folders(prefix) if requests > 2 else []
    chosen = _chosen(folders, min(MOST_FOLDERS, requests - 1, most))
    found.requests += 1
    found.left_out += len(folders) - len(chosen)
    if not chosen:
        _take(found, store.some(prefix, most))
        return
    share, left = max(1, most // len(chosen)), (requests - 1) // len(chosen)
    for folder in chosen:
        if progress:
            progress("objects listed", len(found.objects), 0)
        below = f"{prefix}{folder}/"
        some = store.some(below, share + 1)
        found.requests += 1
        if len(some) <= share or left < 2:
            _take(found, some[:share])
        else:
            _spread(store, below, share, left - 1, found, progress)


def _take(found: Sample, some: Iterable[ObjectInfo]) -> None:
    found.objects |= {info.key: info for info in some}


def _chosen(folders: Sequence[str], most: int) -> list[str]:
    """Select about this many folders, in order."""
    counted = [name for name in folders if _COUNTED.fullmatch(name)]
    others = [name for name in folders if not _COUNTED.fullmatch(name)]
    step = max(1, -(-len(others) // max(1, most - 2)))
    by_number = sorted(counted, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    return sorted({*by_number[:1], *by_number[-1:], *others[::step]})[:most]
