"""Commit ts for events that carry none, computed from their offsets: `[watermark] from = "offsets"` (docs/architecture.md 8.1,
docs/offsets.md).

commit ts = first TSO of the hour + 1 + (offset - base) * 256 + statements before the event in its message

It ascends with the offset, lies within the hour, and is the same for the same input. base is a multiple of 2^31, so that it does not depend
on the first offset of the hour: offsets keep their ts when the hour is landed again with more of them. Rows of one message between two
statements have one ts and are ordered by their place. A row before a statement has the statement's ts, like rows at a statement's ts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.errors import OrderError
from tidelake.land.store.manifest import Manifest
from tidelake.tso import begin_ts, end_ts, parse_hour
from tidelake.wire.kernels.arrays import Longs

STATEMENT_BITS = 8  # bits for the number of statements in one message
BLOCK_BITS = 31

Origins = list[tuple[str, int, int]]  # topic, partition, commit ts of offset 0


def origins(manifest: Manifest) -> Origins:
    """Return the commit ts at which the offsets of an hour's partitions start. Raises OrderError (HOUR_TOO_LARGE)."""
    hour = parse_hour(manifest.hour)
    out: Origins = []
    for topic, partitions in manifest.partitions.items():
        for number, partition in partitions.items():
            if partition.first is None or partition.last is None:
                continue
            base = partition.first >> BLOCK_BITS << BLOCK_BITS
            origin = begin_ts(hour) + 1 - (base << STATEMENT_BITS)
            if origin + ((partition.last + 1) << STATEMENT_BITS) > end_ts(hour):
                raise OrderError(
                    f"{topic}[{number}] has offsets {partition.first} to {partition.last} in hour {manifest.hour}, too many to be ordered",
                    code="HOUR_TOO_LARGE",
                    remedy="an hour of one partition may span 1.5 billion offsets; are the names of the archive's objects wrong?",
                )
            out.append((topic, number, origin))
    return out


def placed(events: pa.RecordBatch, known: Origins) -> pa.RecordBatch:
    """Add the commit ts of their offsets to rows and statements. events: of one topic and partition, in message order.

    Raises OrderError (TOO_MANY_STATEMENTS).
    """
    kind = events.column("kind")
    mine = pc.is_in(kind, pa.array(["row", "ddl"]))
    if not pc.any(mine).as_py():
        return events
    first = pc.index(mine, True).as_py()
    at = events.column("topic")[first].as_py(), events.column("partition")[first].as_py()
    origin = next(ts for topic, number, ts in known if (topic, number) == at)
    offsets = pc.fill_null(events.column("offset"), 0).to_numpy(zero_copy_only=False)
    ts = origin + (offsets << STATEMENT_BITS) + _statements_before(pc.equal(kind, "ddl"), offsets)
    index = events.schema.get_field_index("commit_ts")
    return events.set_column(index, events.schema.field(index), pc.if_else(mine, pa.array(ts), events.column(index)))


def _statements_before(statement: pa.BooleanArray, offsets: Longs) -> Longs:
    """Return for every event the number of statements before it in its message."""
    is_one = statement.to_numpy(zero_copy_only=False).astype(np.int64)
    before = np.cumsum(is_one) - is_one
    begins = np.append(True, offsets[1:] != offsets[:-1])
    start = np.maximum.accumulate(np.where(begins, np.arange(len(offsets)), 0))
    found: Longs = before - before[start]
    if found.max(initial=0) >= 1 << STATEMENT_BITS:
        worst = int(offsets[found.argmax()])
        raise OrderError(
            f"the message at offset {worst} holds more than {(1 << STATEMENT_BITS) - 1} statements", code="TOO_MANY_STATEMENTS"
        )
    return found
