"""Number of buckets of a table that has no changelog yet."""

from __future__ import annotations

from tidelake.history.incarnations import Incarnation
from tidelake.order.planning import PlannedWindow
from tidelake.order.table_rows import sent_names

_ROWS = 1_000_000  # of a bucket
_MOST = 256


def first_buckets(plan: PlannedWindow, i: Incarnation) -> int:
    """Return what feed.toml says, else one bucket for each million rows, as a power of two.

    The rows are the row events of the window and, if a new key made the table, the rows of its former life.
    """
    own = plan.lake.feed.tables.get(i.name)
    return own.buckets if own and own.buckets else min(_MOST, 1 << max(0, (_rows(plan, i) // _ROWS).bit_length()))


def _rows(plan: PlannedWindow, i: Incarnation) -> int:
    """The approximate number of rows."""
    sent = plan.seen.rows_of(sent_names(i, plan.seen.sent))
    stood = plan.cut.snapshots.get(i.id) if plan.cut else None
    former = _rows(plan, plan.tables.incarnations[i.former]) if i.rekey is not None else 0
    return sent + former + (stood.rows if stood is not None else 0)
