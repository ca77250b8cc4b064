"""Replay epochs: how often the resolved ts of a partition went back before a message (docs/reference/protocols.md 11.14).

Tables without a key need them: equal row events of one replay epoch are different rows, those of a later replay epoch are repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.history.event import EVENT
from tidelake.lake.catalog import LakeTable
from tidelake.lake.events import control_batches
from tidelake.tso import format_hour, parse_hour

Steps = dict[tuple[str, int], list[int]]

_PLACE = ["topic", "partition", "offset", "ordinal"]
_BEFORE = (range(1, 2), range(2, 25))  # hours before the first one: most partitions have a resolved ts in the last


def steps_back(events: LakeTable, hours: Sequence[str]) -> Steps:
    """Return the offsets at which the resolved ts went back, per topic and partition, ascending.

    hours: Hours with rows. Those between them are read, too, because the resolved ts may go back in an hour without rows. A partition's
    first resolved ts is compared with the last one before these hours.
    """
    if not hours:
        return {}
    first = parse_hour(min(hours))
    found = [_marks(events, _between(first, parse_hour(max(hours))))]
    wanted = _partitions(found)
    for back in _BEFORE:
        if not wanted <= _partitions(found[1:]):
            found.append(_marks(events, [format_hour(first - timedelta(hours=n)) for n in back]))
    marks = pa.concat_tables(found, promote_options="permissive").sort_by([(c, "ascending") for c in _PLACE])
    same = [pc.equal(marks.column(c)[1:], marks.column(c)[:-1]) for c in ("topic", "partition")]
    back = pc.and_(pc.and_(*same), pc.less(marks.column("commit_ts")[1:], marks.column("commit_ts")[:-1]))
    out: Steps = {}
    for row in marks.slice(1).filter(back).select(_PLACE[:3]).to_pylist():
        out.setdefault((row["topic"], row["partition"]), []).append(row["offset"])
    return out


def _marks(events: LakeTable, hours: Sequence[str]) -> pa.Table:
    """The resolved ts of these hours, and where each is."""
    columns = [*_PLACE, "commit_ts"]
    batches = list(control_batches(events, "resolved", hours, columns))
    return pa.Table.from_batches(batches) if batches else pa.schema([EVENT.field(c) for c in columns]).empty_table()


def _partitions(marks: Sequence[pa.Table]) -> set[tuple[str, int]]:
    """The (topic, partition) that have resolved ts."""
    rows = (t.group_by(_PLACE[:2]).aggregate([]).to_pylist() for t in marks)
    return {(r["topic"], r["partition"]) for of_table in rows for r in of_table}


def _between(first: datetime, last: datetime) -> list[str]:
    """All hours from the first to the last one."""
    return [format_hour(first + timedelta(hours=n)) for n in range((last - first) // timedelta(hours=1) + 1)]
