"""What lies below a prefix, or a sample of it: an archive may hold millions of objects, and looking must not cost a listing of them all.

A prefix with more than `most` objects is looked at folder by folder: of dates, hours and numbers the first and the last one, of other
folders (topics) up to MOST_FOLDERS, evenly spread; so first and last hours are right, and nothing can be said of what lies between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tidelake.io.storage import ObjectInfo, Store

MOST_OBJECTS = 20_000
MOST_FOLDERS = 24  # at one level
MOST_REQUESTS = 600  # listings of folders; a page of 1,000 names each, more only where a folder has more folders than that
_COUNTED = re.compile(r"(\w+=)?\d[\dT:-]*")  # dates, hours, partitions, table versions

OnLooked = Callable[[str, int, int], None]  # what, done, in all (0: not known)


@dataclass(slots=True)
class Sample:
    """Listed objects by key. whole: they are all there are. left_out: folders that were not looked into."""

    objects: dict[str, ObjectInfo] = field(default_factory=dict)
    whole: bool = True
    left_out: int = 0
    requests: int = 0


def sample(store: Store, most: int = MOST_OBJECTS, progress: OnLooked | None = None) -> Sample:
    """At most about `most` objects of a store, spread over its folders. Raises StorageError."""
    first = store.some("", most + 1)
    if len(first) <= most:
        return Sample({info.key: info for info in sorted(first)})
    found = Sample({info.key: info for info in first[: most // 8]}, whole=False)
    _spread(store, "", most - len(found.objects), MOST_REQUESTS, found, progress)
    found.objects = dict(sorted(found.objects.items()))
    return found


def _spread(store: Store, prefix: str, most: int, requests: int, found: Sample, progress: OnLooked | None) -> None:
    """Look into the folders below a prefix, each with its share of objects and requests."""
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
    """At most about so many folders that are looked into, in their order."""
    counted = [name for name in folders if _COUNTED.fullmatch(name)]
    others = [name for name in folders if not _COUNTED.fullmatch(name)]
    step = max(1, -(-len(others) // max(1, most - 2)))
    by_number = sorted(counted, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    return sorted({*by_number[:1], *by_number[-1:], *others[::step]})[:most]
