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

Steps = Sequence[tuple[str, int, list[int]]]


def contents(events: pa.Table) -> pa.Array:
    """Return the cells of events as one text each: for every cell its length and its bytes."""
    return pc.binary_join_element_wise(*(image_texts(events.column(side).combine_chunks()) for side in ("after", "before")), b"/")


def image_texts(images: pa.ListArray) -> pa.Array:
    """Return the cells of row images as one text each; equal images have equal texts, and no others."""
    cells = images.flatten().cast(pa.binary())
    lengths = pc.binary_length(cells).cast(pa.string()).cast(pa.binary())
    written = pc.coalesce(pc.binary_join_element_wise(lengths, cells, b":"), pa.scalar(b"-"))
    sizes = np.asarray(pc.fill_null(pc.list_value_length(images), 0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, written), b"")
    return pc.if_else(images.is_valid(), joined, pa.scalar(b"none"))


def equal_rows(rows: pa.Table, kind: Longs, steps: Steps) -> dict[str, Any]:
    """Return the columns that equal events share, the commit ts first.

    Args:
        rows: Rows in the form of arrow_rows.Typed, with `content` as `contents` returns it.
        kind: Kind of each row.
        steps: Topic and partition → offsets at which the resolved ts went back.
    """
    ts, offset, ordinal = (np.asarray(rows.column(c)).astype(np.int64) for c in ("commit_ts", "offset", "ordinal"))
    content = _codes([kind, rows.column("content")])
    source = _codes([rows.column("topic").cast(pa.string()), rows.column("partition")])
    epoch = _epochs(rows, offset, steps)
    order = np.lexsort((ordinal, offset, epoch, source, content, ts))
    group = np.stack([ts, content, source, epoch])[:, order]
    at = np.stack([offset, ordinal])[:, order]
    begins = np.append(True, (group[:, 1:] != group[:, :-1]).any(axis=0))
    same = np.append(False, (at[:, 1:] == at[:, :-1]).all(axis=0)) & ~begins  # an archive may have a message in two hours
    counted = np.cumsum(~same)
    nth = np.empty(len(ts), np.int64)
    nth[order] = counted - counted[begins][np.cumsum(begins) - 1]
    return {"ts": pa.array(ts), "content": pa.array(content), "nth": pa.array(nth)}


def _codes(parts: Sequence[Any]) -> Longs:
    """Number the combinations of several columns."""
    both = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        column = pa.chunked_array([pa.array(part)]) if isinstance(part, np.ndarray) else part
        coded = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
        both = both * max(len(coded.dictionary), 1) + np.asarray(coded.indices).astype(np.int64)
        both = np.asarray(pc.dictionary_encode(pa.array(both)).indices).astype(np.int64)
    return both


def _epochs(rows: pa.Table, offset: Longs, steps: Steps) -> Longs:
    """How often the resolved ts of its partition went back up to each row."""
    epoch = np.zeros(len(offset), np.int64)
    topics, partition = rows.column("topic").cast(pa.string()), np.asarray(rows.column("partition"))
    for topic, number, offsets in steps:
        mine = np.asarray(pc.equal(topics, topic)) & (partition == number)
        epoch[mine] = np.searchsorted(np.array(offsets), offset[mine], side="right")
    return epoch
