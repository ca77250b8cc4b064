"""Replay epochs: how often the resolved ts of a partition went back before a message (docs/reference/protocols.md 11.14).

Tables without a key need them: equal row events of one replay epoch are different rows, those of a later replay epoch are repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.lake.catalog import LakeTable
from tidelake.lake.events import control_batches
from tidelake.tso import format_hour, parse_hour

Steps = dict[tuple[str, int], list[int]]


def steps_back(events: LakeTable, hours: Sequence[str]) -> Steps:
    """Return the offsets at which the resolved ts went back, per topic and partition, ascending.

    hours: Hours with rows. Those between them are read, too, because the resolved ts may go back in an hour without rows.
    """
    if not hours:
        return {}
    columns = ["topic", "partition", "offset", "ordinal", "commit_ts"]
    batches = list(control_batches(events, "resolved", _between(min(hours), max(hours)), columns))
    if not batches:
        return {}
    marks = pa.Table.from_batches(batches).sort_by([(c, "ascending") for c in columns[:4]])
    same = [pc.equal(marks.column(c)[1:], marks.column(c)[:-1]) for c in ("topic", "partition")]
    back = pc.and_(pc.and_(*same), pc.less(marks.column("commit_ts")[1:], marks.column("commit_ts")[:-1]))
    out: Steps = {}
    for row in marks.slice(1).filter(back).select(columns[:3]).to_pylist():
        out.setdefault((row["topic"], row["partition"]), []).append(row["offset"])
    return out


def _between(first: str, last: str) -> list[str]:
    """All hours from the first to the last one."""
    begin, end = parse_hour(first), parse_hour(last)
    return [format_hour(begin + timedelta(hours=n)) for n in range((end - begin) // timedelta(hours=1) + 1)]
