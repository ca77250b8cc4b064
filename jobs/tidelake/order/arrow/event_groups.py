"""Row groups of the events table's files, read in workers, and their columns as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.io.storage import open_store
from tidelake.land.store.ranges import Ranges
from tidelake.order.arrow.table_models import CellPosition, SentName
from tidelake.order.repeated_offsets import Again
from tidelake.wire.kernels.arrays import Flags, Longs

HOUR = "hour"  # read if some offsets do not count
REPEATED = (HOUR, "topic", "op", "database", "table", "checksum")  # columns to read as dictionaries
JOINED_BYTES = 48 << 20  # of groups that are worked as one


def event_groups(
    location: str, keys: Iterable[str], columns: Sequence[str], wanted: Callable[[int, int], bool] = lambda low, high: True
) -> Iterator[pa.Table]:
    """Yield the row groups of files, one in memory and one file on disk at a time.

    Args:
        location: Of the events table.
        keys: The files.
        columns: Columns to read.
        wanted: Told the lowest and highest commit ts (TSO) of a group in which every row has one, says whether to read it.
    """
    store = open_store(location)
    with TemporaryDirectory(prefix="tidelake-order-") as folder:
        for key in keys:
            yield from _groups(store.fetch(key, Path(folder) / "events.parquet"), columns, wanted)


def _groups(path: Path, columns: Sequence[str], wanted: Callable[[int, int], bool]) -> Iterator[pa.Table]:
    with pq.ParquetFile(path, memory_map=True, read_dictionary=list(REPEATED)) as file:
        leaf = next(n for n in range(len(file.schema)) if file.schema.column(n).path == "commit_ts")
        for group in range(file.num_row_groups):
            known = file.metadata.row_group(group).column(leaf).statistics
            certain = known is not None and known.has_min_max and known.has_null_count and not known.null_count
            if not certain or wanted(known.min, known.max):
                found = file.read_row_group(group, columns=list(columns), use_threads=False)
                yield found.unify_dictionaries().combine_chunks()


def joined(groups: Iterable[pa.Table], nbytes: int = JOINED_BYTES) -> Iterator[pa.Table]:
    """Yield consecutive groups as one table, up to so many bytes. Work that is done once for each table of the feed gets less by that.

    Files of other writers may name or type a column differently; their groups are not joined.
    """
    held, size = list[pa.Table](), 0
    for group in groups:
        if held and (size + group.nbytes > nbytes or group.schema != held[0].schema):
            yield _one(held)
            held, size = [], 0
        held.append(group)
        size += group.nbytes
    if held:
        yield _one(held)


def _one(groups: Sequence[pa.Table]) -> pa.Table:
    return groups[0] if len(groups) == 1 else pa.concat_tables(groups).combine_chunks()


def numbers(column: pa.Array, null: int) -> Longs:
    """Return a column of numbers, with a number for NULL."""
    return np.asarray(column.cast(pa.int64()).fill_null(null))


def coded(events: pa.Table, name: str) -> tuple[Longs, list[str]]:
    """Return codes of a dictionary column (-1 for NULL, which no row event has) and its words."""
    column = events.column(name).combine_chunks()
    return numbers(column.indices, -1), column.dictionary.to_pylist()


def inside(ts: Longs, span: SentName | CellPosition) -> Flags:
    """Return which commit ts are in (after_ts, until_ts]."""
    held = ts > span.after_ts
    return held if span.until_ts is None else held & (ts <= span.until_ts)


def any_of(again: Sequence[Again], events: pa.Table) -> Flags:
    """Return which events are among these."""
    found = np.zeros(events.num_rows, np.bool_)
    if not again:
        return found
    partition, offset = (numbers(events.column(c).combine_chunks(), -1) for c in ("partition", "offset"))
    ordinal = numbers(events.column("ordinal").combine_chunks(), -1) if any(a.ordinals for a in again) else offset
    (hour, hours), (topic, topics) = coded(events, HOUR), coded(events, "topic")
    for a in again:
        if a.hour in hours and a.topic in topics:
            mine = (hour == hours.index(a.hour)) & (topic == topics.index(a.topic)) & (partition == a.partition) & among(offset, a.offsets)
            found |= mine & among(ordinal, a.ordinals) if a.ordinals else mine
    return found


def among(values: Longs, ranges: Ranges) -> Flags:
    """Return which values lie in one of these ranges, which ascend and do not overlap."""
    first, last = np.array(ranges, np.int64).T
    at = np.searchsorted(first, values, side="right") - 1
    found: Flags = (at >= 0) & (values <= last[at])
    return found
