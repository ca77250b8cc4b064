"""From the flat arrays that a compiled scan fills to an EVENT batch, without a Python loop over rows.

A scan works on one MESSAGE batch and describes the events of the messages that it understood; the rest it leaves to the
general reader. Arrays are indexed by event (n of them) or by cell (m of them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.history.event import CHECKSUMS, EVENT, KINDS, OPS, RowSchema
from tidelake.wire.kernels.arrays import Bytes, Flags, Ints, Longs

NONE = -1  # in index arrays: no such thing


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """One side (after or before) of all events: event i has cells starts[i] to starts[i+1], cell j the bytes offsets[j] to offsets[j+1]."""

    starts: Ints  # n + 1
    offsets: Ints  # m + 1
    present: Flags  # m; False = NULL
    data: Bytes

    @classmethod
    def none(cls, events: int) -> Cells:
        """No cells for any event."""
        return cls(
            starts=np.zeros(events + 1, np.int32), offsets=np.zeros(1, np.int32), present=np.zeros(0, np.bool_), data=np.zeros(0, np.uint8)
        )

    def array(self, there: Flags) -> pa.Array:
        """The cells as list<binary>; null where the event has no such side."""
        offsets, data = pa.py_buffer(self.offsets), pa.py_buffer(self.data)
        cells = pa.Array.from_buffers(pa.binary(), len(self.present), [_bitmap(self.present), offsets, data])
        return pa.Array.from_buffers(EVENT.field("after").type, len(there), [_bitmap(there), pa.py_buffer(self.starts)], children=[cells])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What a scan found. `left` holds the indices of the messages that it hands to the general reader, ascending."""

    message: Ints  # index of the message in its batch, ascending
    ordinal: Ints  # position in the message
    kind: Bytes  # index into KINDS
    op: npt.NDArray[np.int8]  # index into OPS, or NONE
    commit_ts: Longs  # wrapped TSO
    has_commit_ts: Flags
    name: Ints  # index into names, or NONE
    names: Sequence[tuple[str | None, str | None]]  # (database, table)
    physical_table_id: Longs
    has_physical_table_id: Flags
    row_schema: Ints  # index into schemas, or NONE = there is no after
    before_schema: Ints
    row_schemas: Sequence[RowSchema]
    after: Cells
    before: Cells
    left: Ints
    handle_only: Flags | None = None
    claim_check: pa.Array | None = None  # string, n long
    checksum: npt.NDArray[np.int8] | None = None  # index into CHECKSUMS, or NONE
    source: pa.Array | None = None  # string, n long
    whole: Flags | None = None  # by schema: whether it has all columns of its table, where that is known

    @classmethod
    def nothing(cls, left: Ints) -> Scanned:
        """No events: every message is left to the general reader."""
        none, wide, flags = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return cls(
            message=none,
            ordinal=none,
            kind=np.zeros(0, np.uint8),
            op=np.zeros(0, np.int8),
            commit_ts=wide,
            has_commit_ts=flags,
            name=none,
            names=(),
            physical_table_id=wide,
            has_physical_table_id=flags,
            row_schema=none,
            before_schema=none,
            row_schemas=(),
            after=Cells.none(0),
            before=Cells.none(0),
            left=left,
        )

    def batch(self, messages: pa.RecordBatch) -> pa.RecordBatch:
        """The EVENT batch, coordinates taken from the messages."""
        n = len(self.message)
        coordinates = messages.select(["topic", "partition", "offset", "timestamp_ms"])  # not a copy of the value for each of its rows
        taken = pc.take(coordinates, pa.array(self.message)) if n else coordinates.slice(0, 0)
        columns = {name: pa.nulls(n, EVENT.field(name).type) for name in EVENT.names}
        columns |= {name: taken.column(name) for name in coordinates.schema.names}
        columns |= {
            "ordinal": pa.array(self.ordinal),
            "kind": _words(KINDS, self.kind),
            "op": _words(OPS, self.op),
            "commit_ts": pa.array(self.commit_ts, mask=~self.has_commit_ts),
            "database": _words([d for d, _ in self.names], self.name),
            "table": _words([t for _, t in self.names], self.name),
            "physical_table_id": pa.array(self.physical_table_id, mask=~self.has_physical_table_id),
            "row_schema": self._ids(self.row_schema),
            "before_schema": self._ids(self.before_schema),
            "after": self.after.array(self.row_schema != NONE),
            "before": self.before.array(self.before_schema != NONE),
            "handle_only": pa.array(np.zeros(n, np.bool_) if self.handle_only is None else self.handle_only),
        }
        if self.claim_check is not None:
            columns["claim_check"] = self.claim_check
        if self.source is not None:
            columns["source"] = self.source
        if self.checksum is not None:
            columns["checksum"] = _words(CHECKSUMS, self.checksum)
        return pa.RecordBatch.from_arrays([columns[name] for name in EVENT.names], schema=EVENT)

    def used_schemas(self) -> list[RowSchema]:
        """The schemas that events refer to."""
        row_schemas = list(self.row_schemas)  # threads that share a context may add to it meanwhile
        used = np.zeros(len(row_schemas) + 1, np.bool_)  # the last place is NONE's
        used[self.row_schema] = used[self.before_schema] = True
        return [s for s, there in zip(row_schemas, used[:-1].tolist(), strict=True) if there]

    def _ids(self, index: Ints) -> pa.Array:
        ids = np.array([s.id for s in self.row_schemas] or [0], np.int64)
        return pa.array(ids[index], mask=index == NONE)


def _words(words: Sequence[str | None], index: npt.NDArray[Any]) -> pa.Array:
    values = pa.array(list(words), pa.string())
    return pc.take(values, pa.array(index.astype(np.int32), mask=np.asarray(index == NONE)))


def _bitmap(flags: Flags) -> pa.Buffer | None:
    return None if flags.all() else pa.py_buffer(np.packbits(flags, bitorder="little"))
