"""Which names of changes a partition may have had before. Pure.

A producer sends the changes of a binlog in order, so their names ascend. Where they go back, it started again: it repeats changes, or its
binlog began anew. A name that lies in a span of names seen before may be a repeat; any other one cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelake.history.source_names import binlog_of, is_batch
from tidelake.lake.cut import BinlogNames

MOST_SPANS = 16  # of a binlog; of more, the first two become one

Span = tuple[str, str]


class Run(NamedTuple):
    """Row events of a partition and a binlog that follow one another, in one hour.

    Attributes:
        hour: Their hour.
        topic: Their topic.
        partition: Their partition.
        first: The first offset.
        first_ordinal: Of the first one in its message.
        last: The last offset.
        low: The lowest name.
        high: The highest name.
        newest: The name of the last one.
        rows: Their number.
        mixed: The names do not ascend.
    """

    hour: str
    topic: str
    partition: int
    first: int
    first_ordinal: int
    last: int
    low: str
    high: str
    newest: str
    rows: int
    mixed: bool


class Suspect(NamedTuple):
    """A run that may hold repeats.

    Attributes:
        run: The run.
        low: The lowest name that may be one.
        high: The highest name that may be one.
        before: The name of the event before the run; None if it is the first one of its binlog.
    """

    run: Run
    low: str
    high: str
    before: str | None

    @property
    def may_go_on(self) -> bool:
        """Whether this can be the next change all the same. An update that changes a key is sent as two events with one name."""
        return self.run.low == self.before


@dataclass(slots=True)
class NamesSeen:
    """The names that the events of one partition had, by binlog."""

    newest: dict[str, str] = field(default_factory=dict)
    spans: dict[str, list[Span]] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Iterable[BinlogNames]) -> NamesSeen:
        """Return what a cut knows."""
        every = list(known)
        return cls({binlog_of(k.newest): k.newest for k in every}, {binlog_of(k.newest): list(k.spans) for k in every})

    def known(self) -> list[BinlogNames]:
        """Return what the next cut must know."""
        return [BinlogNames(newest=self.newest[b], spans=self.spans[b]) for b in sorted(self.newest)]

    def may_have(self, name: str) -> bool:
        """Whether an event with this name may have been there."""
        return any(low <= name <= high for low, high in self.spans.get(binlog_of(name), ()))

    def take(self, run: Run) -> Suspect | None:
        """Add the next run in the order of offsets. Return it if it may hold repeats, or if the names went back."""
        binlog = binlog_of(run.low)
        before, spans = self.newest.get(binlog), self.spans.setdefault(binlog, [])
        if is_batch(run.low):  # other changes have the same names after a start, so nothing is known by them
            self.newest[binlog] = run.newest
            return Suspect(run, "", "", before) if run.mixed or (before is not None and run.low < before) else None
        common = [(max(run.low, low), min(run.high, high)) for low, high in spans if run.low <= high and run.high >= low]
        common += [(run.low, run.high)] if run.mixed else []
        low, high = (min(a for a, _ in common), max(b for _, b in common)) if common else ("", "")
        self._add(binlog, before if before is not None and before < run.low else run.low, run.high)
        self.newest[binlog] = run.newest
        return Suspect(run, low, high, before) if common or (before is not None and run.low < before) else None

    def take_one(self, name: str) -> None:
        """Add an event that is in no run: a statement."""
        binlog = binlog_of(name)
        self._add(binlog, min(name, self.newest.get(binlog, name)), name)
        self.newest[binlog] = max(name, self.newest.get(binlog, name))

    def _add(self, binlog: str, low: str, high: str) -> None:
        merged = list[Span]()
        for one in sorted([*self.spans.get(binlog, ()), (low, high)]):
            if merged and one[0] <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(one[1], merged[-1][1])
            else:
                merged.append(one)
        while len(merged) > MOST_SPANS:
            merged[:2] = [(merged[0][0], merged[1][1])]
        self.spans[binlog] = merged


def suspects(seen: NamesSeen, runs: Sequence[Run]) -> list[Suspect]:
    """Return the runs that may hold repeats, or whose names went back. seen: is changed; runs: of one partition, in any order."""
    ordered = sorted(runs, key=lambda r: (r.hour, r.first, r.first_ordinal))
    return [s for s in map(seen.take, ordered) if s is not None]
