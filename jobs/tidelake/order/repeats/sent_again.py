"""Finds the changes of a window that the producer had sent before, under lower offsets (docs/offsets.md, Repeats).

An event is a repeat if an event of its partition at a lower offset says the same: name, table, operation and cells. Names ascend, so runs
of names are looked at first (`runs_reader`). Cells are read only where names came that may have been there before (`copies_reader`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tidelake.errors import TopicPartition
from tidelake.history.window import Window
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import BinlogNames, Cut
from tidelake.lake.cuts import lineage
from tidelake.lake.opened import Lake
from tidelake.lake.scans import FileFacts
from tidelake.order.arrow.row_streams import read_stream
from tidelake.order.event_keys import event_files, event_keys
from tidelake.order.late.ledger import late_rows
from tidelake.order.progress import WindowProgress
from tidelake.order.repeated_offsets import Again
from tidelake.order.repeats.copies import FoundCopies, compared, copies, wanted_names
from tidelake.order.repeats.copies_reader import CopiesJob, CopiesReader, Wanted
from tidelake.order.repeats.names_seen import NamesSeen, Run, Suspect, suspects
from tidelake.order.repeats.notes import notes
from tidelake.order.repeats.runs_reader import RunsJob, RunsReader
from tidelake.order.repeats.statements import StatementPlace, repeated_statements
from tidelake.spark.spread import in_parts

MOST = 4_000_000  # events that are compared at once
Names = dict[str, dict[int, list[BinlogNames]]]
Suspects = Mapping[TopicPartition, Sequence[Suspect]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentAgain:
    """What a producer sent again.

    Attributes:
        rows: The row events.
        statements: The statements.
        names: The names that the next window must know.
        findings: What the certificate says of it.
    """

    rows: tuple[Again, ...] = ()
    statements: frozenset[StatementPlace] = frozenset()
    names: Names = field(default_factory=dict)
    findings: tuple[dict[str, str], ...] = ()


def sent_again(lake: Lake, events: LakeTable, cut: Cut | None, window: Window, done: WindowProgress) -> SentAgain:
    """Return what the window repeats. No file is read for a feed whose events have no names.

    Args:
        lake: The feed's lake.
        events: The events table.
        cut: The cut that the window builds on.
        window: The window.
        done: The progress of the feed.

    Raises:
        StorageError: TABLE_MOVED: a file of the events table is not in its folder.
    """
    if not lake.feed.by_offsets:
        return SentAgain()
    search = _Search(lake, events, cut, window, done)
    known = {(t, p): names for t, ps in (cut.names if cut else {}).items() for p, names in ps.items()}
    seen, found = {at: NamesSeen.of(names) for at, names in known.items()}, dict[TopicPartition, list[Suspect]]()
    for at, runs in search.runs().items():
        if some := suspects(seen.setdefault(at, NamesSeen()), runs):
            found[at] = some
    rows = search.compared(found)
    statements, named = repeated_statements(events, cut, window, done, {at: NamesSeen.of(names) for at, names in known.items()})
    for at, name in named:
        seen.setdefault(at, NamesSeen()).take_one(name)
    names: Names = {}
    for (topic, partition), mine in sorted(seen.items()):
        names.setdefault(topic, {})[partition] = mine.known()
    return SentAgain(
        rows=tuple(again for of_partition in rows.values() for again in of_partition.again),
        statements=statements,
        names=names,
        findings=tuple(notes(found, rows, statements)),
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """Reads the events of a window; see `sent_again`."""

    lake: Lake
    events: LakeTable
    cut: Cut | None
    window: Window
    done: WindowProgress

    def runs(self) -> dict[TopicPartition, list[Run]]:
        """The window's runs by partition."""
        scan = event_files(self.events, {"hour": list(self.done.scan)}, ["source"], self.events.main) if self.done.scan else {}
        files, out = {key: f.size for key, f in scan.items() if "source" in f.upper}, defaultdict[TopicPartition, list[Run]](list)
        if files:
            workers = self.lake.workers(files.values())
            for row in workers.rows(RunsReader(RunsJob(parts=in_parts(workers.tasks, files), **self._shared()))):
                run = Run(**row)
                out[run.topic, run.partition].append(run)
        return out

    def compared(self, found: Suspects) -> dict[TopicPartition, FoundCopies]:
        """What came of these runs, by partition."""
        wanted = [w for at in sorted(found) for w in wanted_names(*at, found[at])]
        if not wanted:
            return {}
        earlier = self._earlier(wanted)
        files = event_keys(self.events, self.done.scan) | {key: f.size for key, f in earlier.items()}
        hours = sorted({*self.done.scan, *(f.partition[0] for f in earlier.values())})
        workers, ours = self.lake.workers(files.values()), defaultdict[TopicPartition, list[pa.Table]](list)
        passes = 1 + 2 * sum(s.run.rows for some in found.values() for s in some) // MOST
        for number in range(passes):
            job = CopiesJob(
                parts=in_parts(workers.tasks, files), wanted=wanted, late=self._late(), pass_of=(number, passes), **self._shared()
            )
            several = defaultdict[TopicPartition, list[pa.Table]](list)
            for r in workers.rows(CopiesReader(job)):
                rows = read_stream(r["rows"])
                hour = pa.repeat(pa.scalar(hours.index(r["hour"]), pa.int32()), rows.num_rows)
                several[r["topic"], r["partition"]].append(rows.append_column("hour", hour))
            for at, tables in several.items():
                every = pa.concat_tables(tables).combine_chunks()
                every = every.append_column("copied", pa.array(copies(every)))
                ours[at].append(every.filter(every.column("ours")).drop_columns(["h0", "h1"]))
        return {at: compared(pa.concat_tables(ours[at]).combine_chunks(), hours, *at, found[at]) for at in sorted(ours)}

    def _shared(self) -> dict[str, Any]:
        return {
            "events": self.events.table.location(),
            "after_ts": self.window.applied_ts,
            "until_ts": self.window.resolved_ts,
            "again": list(self.done.again),
            "objects": self.done.objects,
        }

    def _earlier(self, wanted: Sequence[Wanted]) -> dict[str, FileFacts]:
        """Files of earlier hours that may have these names."""
        if self.cut is None:
            return {}
        then = event_files(self.events, {}, ["source"], self.cut.events_snapshot_id or self.events.main)
        return {key: f for key, f in then.items() if f.partition[0] <= self.cut.hour and any(_may_have(f, w) for w in wanted)}

    def _late(self) -> list[tuple[str, str, int, list[tuple[int, int]]]]:
        """Events of earlier hours that no table has, because they came after their hour was published."""
        out = defaultdict[tuple[str, str, int], list[tuple[int, int]]](list)
        seqs = {seq for seq in lineage(self.lake.catalog, self.lake.feed.name) if self.cut is not None and seq <= self.cut.seq}
        for r in late_rows(self.lake.catalog, self.lake.feed.name):
            if r["seq"] in seqs:
                out[r["hour"], r["topic"], r["partition"]].append((r["offset"], r["ordinal"]))
        return [(*at, places) for at, places in sorted(out.items())]


def _may_have(file: FileFacts, wanted: Wanted) -> bool:
    return "source" in file.upper and bool(file.lower["source"] <= wanted.high and file.upper["source"] >= wanted.low)
