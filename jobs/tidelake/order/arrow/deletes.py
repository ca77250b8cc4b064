"""Places Avro deletes, which have no commit ts, in commit order (docs/architecture.md 8.2, docs/reference/protocols.md 4.1). Pure.

In a partition, the first delivery of a table's rows never goes back in commit ts. So a delete lies between the ts of the row before it and
the ts of the row after it. Replay epochs separate deliveries: a row whose ts steps back, or that repeats a row of the same ts, begins a new
replay epoch. A delete between two replay epochs is a repeat, or is sent again at its place: it is skipped.

A delete gets the ts of the row before it (or the first ts of the window). It belongs to the first window whose cut is at or after both that
ts and the message's time, because a checkpoint guarantees that all rows up to it were sent before it was recorded.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.order.arrow.table_models import SentName
from tidelake.wire.kernels.arrays import Flags, Longs

# What is needed of every row of a partition. born: `births`; content: a hash of the row after the change.
MARKS = pa.schema(
    [
        ("offset", pa.int64()),
        ("ordinal", pa.int64()),
        ("commit_ts", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("born", pa.int64()),
        ("content", pa.int64()),
        ("deletes", pa.bool_()),
    ]
)
PLACED = pa.schema([("offset", pa.int64()), ("ordinal", pa.int64()), ("commit_ts", pa.int64()), ("unsettled", pa.bool_())])


class DeleteRules(BaseModel, frozen=True):
    """The window.

    Attributes:
        after_ts: Its start (TSO), exclusive.
        until_ts: Its end (TSO), inclusive.
        applied_at_ms: When the checkpoint at its start was recorded (epoch milliseconds); None if there is none.
        resolved_at_ms: When the checkpoint at its end was recorded (epoch milliseconds).
        born: Names that statements gave, each with the interval in which a table has it. Earlier rows under it are another table's.
    """

    after_ts: int
    until_ts: int
    applied_at_ms: int | None
    resolved_at_ms: int
    born: tuple[SentName, ...]

    @property
    def hash_key(self) -> tuple[int, int]:
        """Key of the hashes of rows. Nobody knows until_ts before the rows are written."""
        return self.until_ts, self.after_ts


def place(rows: pa.Table, rules: DeleteRules) -> pa.Table:
    """Return the window's deletes among the rows of one partition.

    Args:
        rows: All rows of the hours to scan, as MARKS, in any order.
        rules: The window.

    Returns:
        Rows of PLACED: the coordinates and the commit ts of each delete, and whether it may be after the cut.
    """
    rows = rows.sort_by([("offset", "ascending"), ("ordinal", "ascending")])
    ts, sent_ms = (np.asarray(rows.column(c).fill_null(0)) for c in ("commit_ts", "timestamp_ms"))
    dated = np.asarray(rows.column("commit_ts").is_valid())
    known = ts[dated]
    epoch = _epochs(known, np.asarray(rows.column("content"))[dated])
    before, after = np.cumsum(dated) - dated, np.cumsum(dated)  # dated rows before each row; those up to it
    has_lower, has_upper = before > 0, after < len(known)
    lower, upper = (_at(known, at) for at in (before - 1, after))
    same_epoch = ~(has_lower & has_upper) | (_at(epoch, before - 1) == _at(epoch, after))
    lower = np.where(has_lower, lower, 0)
    taken = np.zeros(len(ts), np.bool_)
    if rules.applied_at_ms is not None:
        taken = (sent_ms <= rules.applied_at_ms) & (lower <= rules.after_ts)
    mine = np.asarray(rows.column("deletes")) & ~dated & same_epoch & (~has_upper | (upper > rules.after_ts)) & ~taken
    mine &= (sent_ms <= rules.resolved_at_ms) & (lower <= rules.until_ts)
    begin = np.where(has_lower, lower, np.asarray(rows.column("born")))
    unsettled = (~has_upper | (upper > rules.until_ts)) & (sent_ms > rules.until_ts >> 18)
    at = np.flatnonzero(mine)
    columns = [rows.column(c).take(pa.array(at)).combine_chunks() for c in ("offset", "ordinal")]
    return pa.table([*columns, pa.array(np.maximum(begin, rules.after_ts + 1)[at]), pa.array(unsettled[at])], schema=PLACED)


def _epochs(ts: Longs, content: Longs) -> Longs:
    """The replay epoch of each dated row. Within one delivery the commit ts never decreases, so equal ones are adjacent."""
    if not len(ts):
        return ts
    back = np.append(False, ts[1:] < ts[:-1])
    group = np.cumsum(np.append(False, ts[1:] != ts[:-1]))
    several = np.flatnonzero((np.bincount(group) > 1)[group])  # most ts are those of one row
    order = several[np.lexsort((content[several], group[several]))]
    repeat = np.zeros(len(ts), np.bool_)
    repeat[order[1:]] = (content[order[1:]] == content[order[:-1]]) & (group[order[1:]] == group[order[:-1]])
    epochs: Longs = np.cumsum(back | repeat)
    return epochs


def _at(values: Longs, at: Longs) -> Longs:
    """Values at these places; any value for a place outside."""
    if not len(values):
        return np.zeros(len(at), np.int64)
    found: Longs = values[np.clip(at, 0, len(values) - 1)]
    return found


def births(rows: pa.Table, rules: DeleteRules) -> Longs:
    """Return for each row, of `database` and `table`, the first TSO at which its table has the name; 0 if it always had it."""
    out = np.zeros(rows.num_rows, np.int64)
    young = sorted((n for n in rules.born if 0 <= n.after_ts < rules.until_ts), key=lambda n: n.after_ts)
    for n in young:  # the latest interval is written last
        out[_named(rows, n)] = n.after_ts + 1
    return out


def _named(rows: pa.Table, n: SentName) -> Flags:
    return np.asarray(pc.and_(pc.equal(rows.column("database"), n.database), pc.equal(rows.column("table"), n.table)))
