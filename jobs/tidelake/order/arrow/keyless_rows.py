"""Which events of a table without key are equal: the n-th of a replay epoch equals the n-th of every other one (order.replay_epochs).

Oracle: history.ordering.deduplicated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.wire.kernels.arrays import Longs
from tidelake.wire.row_hashes import row_hashes

Steps = Sequence[tuple[str, int, list[int]]]
_ODD = 0x9E3779B97F4A7C15 - (1 << 64)
HASH = ("h0", "h1")  # columns with the two words of `event_hashes`


def event_hashes(events: pa.Table, kind: Longs, key: tuple[int, int]) -> dict[str, pa.Array]:
    """Return the columns HASH: hashes of kind and cells as they were sent.

    Args:
        events: Rows of the events table.
        kind: Kind of each row.
        key: Key of the hash.
    """
    images = (events.column(side).combine_chunks().cast(pa.list_(pa.binary())) for side in ("after", "before"))
    hashes = row_hashes([pa.array(kind), *images], key).view(np.int64)
    return {name: pa.array(np.ascontiguousarray(hashes[:, n])) for n, name in enumerate(HASH)}


def equal_rows(rows: pa.Table, steps: Steps) -> dict[str, Any]:
    """Return the columns that equal events share, the commit ts first.

    Args:
        rows: Rows in the form of rows_reading.Typed, with HASH.
        steps: Topic and partition → offsets at which the resolved ts went back.
    """
    ts, first = (np.asarray(rows.column(c)) for c in ("commit_ts", HASH[0]))
    mixed = ts * _ODD ^ first  # equal for equal events, and hardly for others
    ordered = np.sort(mixed)
    several = np.flatnonzero(np.isin(mixed, ordered[1:][ordered[1:] == ordered[:-1]]))
    nth = np.zeros(len(ts), np.int64)
    if len(several):
        nth[several] = _nth(rows.take(pa.array(several)), steps)
    return {"ts": rows.column("commit_ts")} | {c: rows.column(c) for c in HASH} | {"nth": pa.array(nth)}


def _nth(rows: pa.Table, steps: Steps) -> Longs:
    """Number equal events in each replay epoch."""
    ts, one, two, offset, ordinal = (np.asarray(rows.column(c)).astype(np.int64) for c in ("commit_ts", *HASH, "offset", "ordinal"))
    source, epoch = _sources(rows), _epochs(rows, offset, steps)
    order = np.lexsort((ordinal, offset, epoch, source, two, one, ts))
    group = np.stack([ts, one, two, source, epoch])[:, order]
    at = np.stack([offset, ordinal])[:, order]
    begins = np.append(True, (group[:, 1:] != group[:, :-1]).any(axis=0))
    same = np.append(False, (at[:, 1:] == at[:, :-1]).all(axis=0)) & ~begins  # an archive may have a message in two hours
    counted = np.cumsum(~same)
    nth = np.empty(len(ts), np.int64)
    nth[order] = counted - counted[begins][np.cumsum(begins) - 1]
    return nth


def _sources(rows: pa.Table) -> Longs:
    """Number the partitions of the topics."""
    topics = pc.dictionary_encode(rows.column("topic").cast(pa.string()).combine_chunks())
    partition = np.asarray(rows.column("partition")).astype(np.int64)
    source: Longs = np.asarray(topics.indices).astype(np.int64) * (partition.max() + 1) + partition
    return source


def _epochs(rows: pa.Table, offset: Longs, steps: Steps) -> Longs:
    """How often the resolved ts of its partition went back up to each row."""
    epoch = np.zeros(len(offset), np.int64)
    topics, partition = rows.column("topic").cast(pa.string()), np.asarray(rows.column("partition"))
    for topic, number, offsets in steps:
        mine = np.asarray(pc.equal(topics, topic)) & (partition == number)
        epoch[mine] = np.searchsorted(np.array(offsets), offset[mine], side="right")
    return epoch
