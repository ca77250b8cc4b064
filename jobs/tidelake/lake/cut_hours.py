"""The cut that counts for an hour: the newest one that ends with it and that no rollback undid, replaced by a redo or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cuts import KnownCut, known_cuts, parent_of


class HourCut(NamedTuple):
    """The newest cut that ends with an hour. superseded_by: number and hour of the redo's cut that replaced it; None if none did."""

    seq: int
    superseded_by: tuple[int, str] | None = None


def cuts_by_hour(catalog: LakeCatalog, feed: str) -> dict[str, HourCut]:
    """Return the newest cut of every hour with which a cut ends. Cuts that a rollback undid are left out."""
    every = known_cuts(catalog, feed)
    return _by_hour(every, max(every, default=0))


def changed_hours(catalog: LakeCatalog, feed: str) -> list[str]:
    """Return the hours for which the newest publication changed what `cuts_by_hour` returns, sorted."""
    every = known_cuts(catalog, feed)
    newest = max(every, default=0)
    before, after = _by_hour(every, max((seq for seq in every if seq < newest), default=0)), _by_hour(every, newest)
    return sorted(hour for hour in before.keys() | after.keys() if before.get(hour) != after.get(hour))


def _by_hour(every: Mapping[int, KnownCut], newest: int) -> dict[str, HourCut]:
    """Return the cuts by hour as they were when `newest` was the newest cut."""
    numbers = sorted(every)
    below = dict(zip(numbers[1:], numbers, strict=False))
    found: dict[str, HourCut] = {}

    def walk(seq: int, until: int, superseded_by: tuple[int, str] | None) -> None:
        while seq > until:
            found.setdefault(every[seq].hour, HourCut(seq, superseded_by))
            parent, before = parent_of(every, seq), below.get(seq, 0)
            if before > parent and _is_redo(every, seq, parent):
                walk(before, parent, superseded_by or (seq, every[seq].hour))
            seq = parent

    walk(newest, 0, None)
    return found


def _is_redo(every: Mapping[int, KnownCut], seq: int, parent: int) -> bool:
    """Whether a cut that does not continue the cut before it is a redo. A rollback ends with the hour of the cut that it continues."""
    return not parent or every[seq].hour > every[parent].hour
