"""Judges the late events of a window."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from tidelake.config.feed import Feed
from tidelake.config.table_name import written
from tidelake.errors import OrderError
from tidelake.history.event import RowSchema
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut, LateCounts
from tidelake.lake.cuts import Base
from tidelake.lake.data_files import WrittenFile, columns_of_files
from tidelake.lake.events import control_rows
from tidelake.lake.opened import Lake
from tidelake.lake.scans import After, FileFacts
from tidelake.order.event_keys import event_files
from tidelake.order.late.compare import COMPARED, Comparer, FactsReader, LateJob
from tidelake.order.late.ledger import enter, forget, ledger
from tidelake.order.observed_tables import WindowRows
from tidelake.order.replay_epochs import steps_back
from tidelake.spark.run_parts import Workers
from tidelake.spark.spread import in_parts

_SHARE_ROWS = 1_000_000  # facts that are compared at once
_COUNTED = {"replay": "replays", "conflict": "conflicts", "late": "late"}  # verdict → its counter


def judge_late(lake: Lake, events: LakeTable, base: Base, seen: WindowRows) -> dict[str, LateCounts]:
    """Judge the late rows. Return counts by table as sent.

    The ledger then has the conflicts and truly late rows under the number of the next cut, and nothing else of that number.

    Raises:
        OrderError: LATE_ROWS: there are some and the feed's policy is to block.
        StorageError: TABLE_MOVED: a file of the events table is not in its folder.
    """
    counts, files = _compared(lake, events, base.cut, base.seq, seen) if seen.late and base.cut is not None else ({}, [])
    if files:
        enter(lake.catalog, lake.feed.name, base.seq, files)
    else:
        forget(lake.catalog, lake.feed.name, base.seq)
    if files and lake.feed.policy.on_late == "block":
        raise _blocked(lake.feed, counts)
    return counts


def _compared(lake: Lake, events: LakeTable, cut: Cut, seq: int, seen: WindowRows) -> tuple[dict[str, LateCounts], list[WrittenFile]]:
    """The late events by verdict, and files for the ledger."""
    late, published = _files(events, cut, seen)
    every = {key: f.size for key, f in (late | published).items()}
    workers = lake.workers(every.values())
    hours = sorted({f.partition[0] for f in (*late.values(), *published.values())})
    book = ledger(lake.catalog, lake.feed.name)
    shares = max(workers.tasks, -(-sum(f.rows for f in (*late.values(), *published.values())) // _SHARE_ROWS))
    job = LateJob(
        events=events.table.location(),
        parts=in_parts(workers.tasks, every),
        late=set(late),
        published=set(published),
        rules=seen.rules,
        from_ts=seen.late_from,
        names=seen.late_names,
        keys=_keys(events, hours),
        steps=[(topic, partition, offsets) for (topic, partition), offsets in steps_back(events, hours).items()],
        shares=shares,
        tasks=workers.tasks,
        ledger=book.table.location(),
        schema_hex=columns_of_files(book).serialize().to_pybytes().hex(),
        seq=seq,
    )
    return _run(workers, job)


def _files(events: LakeTable, cut: Cut, seen: WindowRows) -> tuple[dict[str, FileFacts], dict[str, FileFacts]]:
    """Files that may hold late events, and those that hold what was published."""
    span = After(seen.late_from - 1, seen.rules.applied_ts)
    late = event_files(events, {"hour": seen.rules.new, "commit_ts": span}, [], events.main)
    published = event_files(events, {"commit_ts": span}, [], cut.events_snapshot_id or events.main)
    return late, {key: f for key, f in published.items() if f.partition[0] <= cut.hour}


def _keys(events: LakeTable, hours: Sequence[str]) -> dict[int, list[int]]:
    rows = control_rows(events, "row_schema", hours, ["row_schema", "columns"])
    found = {r["row_schema"]: [n for n, c in enumerate(RowSchema.from_json(r["columns"]).columns) if c.key] for r in rows}
    return {schema: key for schema, key in found.items() if key}


def _run(workers: Workers, job: LateJob) -> tuple[dict[str, LateCounts], list[WrittenFile]]:
    files, counts = list[WrittenFile](), dict[str, Counter[str]]()
    for r in workers.exchanged(FactsReader(job), job.tasks, partial(Comparer, job), COMPARED):
        for name, found in json.loads(r["counts"]).items():
            counts.setdefault(written(*json.loads(name)), Counter()).update({_COUNTED[verdict]: n for verdict, n in found.items()})
        if r["path"] is not None:
            files.append(WrittenFile(path=r["path"], partition=(job.seq,), size=r["size"], footer=bytes(r["footer"])))
    return {name: LateCounts.model_validate(counts[name]) for name in sorted(counts)}, files


def _blocked(feed: Feed, counts: Mapping[str, LateCounts]) -> OrderError:
    said = (f"{name}: {c.late} truly late, {c.conflicts} in conflict" for name, c in counts.items() if c.late or c.conflicts)
    return OrderError(
        f"feed {feed.name}: rows arrived after the cut that should contain them: {'; '.join(said)}",
        code="LATE_ROWS",
        remedy=f"list them with `tidelake late --feed {feed.name}`; to continue without them, as incomplete cuts, "
        'set [policy] on_late = "publish_incomplete"',
    )
