"""Canonical objects: Parquet files of the MESSAGE schema, sorted by offset, the same bytes for the same messages (design section 7).

Where an object or a row group ends depends on the messages alone. Spark reads them row group by row group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.archives.canonical import COVERS
from tidelake.event import MESSAGE
from tidelake.land.item import Position
from tidelake.land.manifest import Landed
from tidelake.land.ranges import Range
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A canonical object that is read and not yet written: an item of the event store, one object each.

    covers: the first and last of the offsets of which it has all messages that the log holds, None where nobody can tell;
    groups: its row groups, CONTENT; offsets, sizes: of its messages, ascending, and the bytes of their keys and values; nbytes: what the
    groups weigh; timestamp_ms: of its first message; release: gives mapped memory back that reading the groups took.
    """

    feed: str
    hour: str
    topic: str
    partition: int
    groups: tuple[pa.Table, ...]
    offsets: Longs
    sizes: Longs
    nbytes: int
    timestamp_ms: int
    release: Callable[[], None]
    rows: int = 0
    is_boundary: bool = True
    is_ddl: bool = False
    covers: Range | None = None

    @property
    def events(self) -> int:
        return len(self.offsets)

    @property
    def position(self) -> Position:
        return Position(timestamp_ms=self.timestamp_ms, journal=f"{self.topic}[{self.partition}]", offset=int(self.offsets[-1]))


def drafted(feed: str, hour: str, topic: str, partition: int, spool: Spool, rows: Longs, offsets: Longs, sizes: Longs) -> Draft:
    """The messages `rows` of the spool, ascending by offset, as one object."""
    groups = tuple(spool.take(rows[begin:end]) for begin, end in cuts(sizes, GROUP_BYTES, GROUP_MESSAGES))
    first = groups[0].column("timestamp_ms")[0].as_py()
    return Draft(
        feed=feed,
        hour=hour,
        topic=topic,
        partition=partition,
        groups=groups,
        offsets=offsets,
        sizes=sizes,
        nbytes=sum(group.nbytes for group in groups),
        timestamp_ms=first or 0,
        release=spool.release,
    )


def write_object(path: Path, draft: Draft) -> None:
    """Write the object to a Parquet file."""
    with pq.ParquetWriter(
        path,
        MESSAGE,
        version="2.6",
        compression="zstd",
        compression_level=1,  # 3 takes a third more time, for objects that are as large (JSON) or a tenth smaller (Craft)
        use_dictionary=list(_PLAIN_TEXT),
        column_encoding=_COUNTED,
        write_statistics=["partition", *_COUNTED],
        data_page_size=1 << 20,
    ) as writer:
        for content in draft.groups:
            names = pa.repeat(pa.scalar(draft.topic, pa.string()), len(content))
            numbers = pa.repeat(pa.scalar(draft.partition, pa.int32()), len(content))
            table = pa.Table.from_arrays([names, numbers, *content.columns], schema=MESSAGE)
            writer.write_table(table, row_group_size=len(table))
            draft.release()
        first, last = draft.offsets[0], draft.offsets[-1]
        said = {"tidelake.first": str(first), "tidelake.last": str(last), "tidelake.count": str(draft.events)}
        if draft.covers is not None:
            said[COVERS] = "{}-{}".format(*draft.covers)
        writer.add_key_value_metadata(said)


def described(path: Path, draft: Draft) -> Landed:
    """What the manifest says of a written file; its key holds the hash of its bytes."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    first, last = int(draft.offsets[0]), int(draft.offsets[-1])
    return Landed(
        key=landed_key(draft.feed, draft.topic, draft.hour, draft.partition, first, last, digest),
        topic=draft.topic,
        partition=draft.partition,
        first=first,
        last=last,
        count=draft.events,
        bytes=int(draft.sizes.sum()),
        size=path.stat().st_size,
        sha256=digest,
    )
