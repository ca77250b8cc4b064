"""Which events of a partition are copies of earlier ones, from the hashes of what they say. Pure.

Oracle: history.ordering.without_repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidelake.land.store.ranges import Ranges, union
from tidelake.order.arrow.event_groups import among
from tidelake.order.repeated_offsets import Again
from tidelake.order.repeats.copies_reader import Wanted
from tidelake.order.repeats.names_seen import Suspect
from tidelake.wire.kernels.arrays import Flags, Longs


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCopies:
    """Result for a partition.

    Attributes:
        again: The copies.
        rows: Number of copies.
        first: Offset of the first copy.
        kept: Number of events that are no copies although their names may have come before.
        first_kept: Offset of the first of them.
    """

    again: tuple[Again, ...] = ()
    rows: int = 0
    first: int | None = None
    kept: int = 0
    first_kept: int | None = None


def wanted_names(topic: str, partition: int, found: Sequence[Suspect]) -> list[Wanted]:
    """Return the names that may have come twice, of the suspects of a partition."""
    return [Wanted(topic=topic, partition=partition, low=s.low, high=s.high, offsets=((s.run.first, s.run.last),)) for s in found if s.low]


def copies(events: pa.Table) -> Flags:
    """Return which events of a partition are copies: `ours`, and an equal one is at a lower offset or in an earlier hour.

    events: as copies_reader.PLACES, with `hour`: the number of its hour, ascending.
    """
    hour, offset, h0, h1 = (np.asarray(events.column(c)) for c in ("hour", "offset", "h0", "h1"))
    named, ours = (np.asarray(events.column(c)) for c in ("named", "ours"))
    order = np.lexsort((offset, hour, h1, h0, ~named))[: int(named.sum())]
    found = np.zeros(events.num_rows, np.bool_)
    if not len(order):
        return found
    other = np.append(True, (h0[order][1:] != h0[order][:-1]) | (h1[order][1:] != h1[order][:-1]))
    first = order[other][np.cumsum(other) - 1]  # of each event, the first one that is equal
    found[order] = (hour[order] != hour[first]) | (offset[order] != offset[first])
    result: Flags = found & ours
    return result


def compared(events: pa.Table, hours: Sequence[str], topic: str, partition: int, found: Sequence[Suspect]) -> FoundCopies:
    """Return what came of a partition.

    Args:
        events: All `ours`, as in `copies`, with `copied`: whether they are copies.
        hours: The hours by their numbers.
        topic: The topic.
        partition: The partition.
        found: The partition's suspects.
    """
    offset, copied = np.asarray(events.column("offset")), np.asarray(events.column("copied"))
    told = union([((s.run.first, s.run.last),) for s in found if s.low and not s.may_go_on and not s.run.mixed])
    kept = np.asarray(events.column("back")) & ~copied
    kept &= among(offset, told) if told else False
    return FoundCopies(
        again=tuple(_as_again(events, hours, topic, partition, union([((s.run.first, s.run.last),) for s in found if s.low]))),
        rows=int(copied.sum()),
        first=int(offset[copied].min()) if copied.any() else None,
        kept=int(kept.sum()),
        first_kept=int(offset[kept].min()) if kept.any() else None,
    )


def _as_again(events: pa.Table, hours: Sequence[str], topic: str, partition: int, spans: Ranges) -> Iterable[Again]:
    """Copies by their offsets, and by their place in messages of which not all events are copies.

    spans: Offsets whose events are all here. Between two spans there may be others.
    """
    hour, offset, ordinal = (np.asarray(events.column(c)).astype(np.int64) for c in ("hour", "offset", "ordinal"))
    copied = np.asarray(events.column("copied"))
    for h in np.unique(hour[copied]).tolist():
        mine = np.flatnonzero(hour == h)
        mine = mine[np.lexsort((ordinal[mine], offset[mine]))]
        begins = np.append(0, np.flatnonzero(np.diff(offset[mine])) + 1)  # of each message
        whole = np.logical_and.reduceat(copied[mine], begins)
        some = np.logical_or.reduceat(copied[mine], begins) & ~whole
        if whole.any():
            here = offset[mine][begins]
            span = np.searchsorted([first for first, _ in spans], here, side="right")
            yield Again(hour=hours[h], topic=topic, partition=partition, offsets=_stretches(here, whole, span))
        for at in np.flatnonzero(some).tolist():
            rows = mine[begins[at] : begins[at + 1] if at + 1 < len(begins) else len(mine)]
            ordinals, at_offset = _stretches(ordinal[rows], copied[rows], np.zeros(len(rows), np.int64)), int(offset[rows[0]])
            yield Again(hour=hours[h], topic=topic, partition=partition, offsets=((at_offset, at_offset),), ordinals=ordinals)


def _stretches(values: Longs, chosen: Flags, span: Longs) -> Ranges:
    """The ranges from the first to the last value of chosen ones that follow one another in a span. values: ascending."""
    goes_on = chosen[1:] & chosen[:-1] & (span[1:] == span[:-1])
    first, last = chosen & ~np.append(False, goes_on), chosen & ~np.append(goes_on, False)
    return tuple(zip(values[first].tolist(), values[last].tolist(), strict=True))
