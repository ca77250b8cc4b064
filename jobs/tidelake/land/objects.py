"""Canonical objects: Parquet files of the MESSAGE schema, sorted by offset, the same bytes for the same messages (design section 7).

Where an object or a row group ends depends on the messages alone. Spark reads them row group by row group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.event import MESSAGE
from tidelake.land.manifest import Landed
from tidelake.land.spool import Longs, Spool
from tidelake.layout import landed_key

OBJECT_BYTES = 64 << 20  # keys and values before compression
GROUP_BYTES = 8 << 20
GROUP_MESSAGES = 10_000

_PLAIN_TEXT = ("topic", "partition")
_COUNTED = {"offset": "DELTA_BINARY_PACKED", "timestamp_ms": "DELTA_BINARY_PACKED"}


def cuts(sizes: Longs, most_bytes: int, most: int | None = None) -> Iterator[tuple[int, int]]:
    """Begin and end of each piece: as many messages as fit into most_bytes and most, at least one. sizes: bytes of each message."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + most_bytes, side="right")), begin + 1)
        end = end if most is None else min(end, begin + most)
        yield begin, end
        begin = end


def write_object(path: Path, topic: str, partition: int, spool: Spool, rows: Longs, sizes: Longs) -> None:
    """Write the messages `rows` of the spool, ascending by offset, to a Parquet file."""
    with pq.ParquetWriter(
        path,
        MESSAGE,
        version="2.6",
        compression="zstd",
        compression_level=3,
        use_dictionary=list(_PLAIN_TEXT),
        column_encoding=_COUNTED,
        write_statistics=["partition", *_COUNTED],
        data_page_size=1 << 20,
    ) as writer:
        first = last = 0
        for begin, end in cuts(sizes, GROUP_BYTES, GROUP_MESSAGES):
            content = spool.take(rows[begin:end])
            offsets = content.column("offset")
            first, last = first if begin else offsets[0].as_py(), offsets[-1].as_py()
            names = pa.repeat(pa.scalar(topic, pa.string()), len(content))
            numbers = pa.repeat(pa.scalar(partition, pa.int32()), len(content))
            table = pa.Table.from_arrays([names, numbers, *content.columns], schema=MESSAGE)
            writer.write_table(table, row_group_size=len(table))
            spool.release()
        writer.add_key_value_metadata({"tidelake.first": str(first), "tidelake.last": str(last), "tidelake.count": str(len(rows))})


def described(path: Path, feed: str, hour: str, topic: str, partition: int, offsets: Longs, sizes: Longs) -> Landed:
    """What the manifest says of a written file; its key holds the hash of its bytes."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    first, last = int(offsets[0]), int(offsets[-1])
    return Landed(
        key=landed_key(feed, topic, hour, partition, first, last, digest),
        topic=topic,
        partition=partition,
        first=first,
        last=last,
        count=len(offsets),
        bytes=int(sizes.sum()),
        size=path.stat().st_size,
        sha256=digest,
    )
