r"""Read records of Confluent's ByteArrayFormat: raw bytes, each followed by a newline (docs/reference/archives.md 1, 3).

A newline inside a record looks like the one after it. Lines of JSON have none inside. Open Protocol contains its own lengths:

    value := { length:uint64 be  payload }*  \n        key := 1:uint64 be  { length:uint64 be  payload }*  \n

The next byte after a part is 00, because no length reaches 2^56, or the newline.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidelake.archives.readers.codecs import decompressed, naming
from tidelake.archives.readers.layout import BATCH_BYTES, SourceObject, damaged, refused, unreadable
from tidelake.archives.readers.lines import MAX_LINE, blocks
from tidelake.archives.scan.open_units import record_ends
from tidelake.wire.kernels.spans import column, frozen

_NEWLINE = ord("\n")


def lines(path: Path, source: SourceObject) -> Iterator[pa.Array]:
    r"""Yield every line as a record, without the \r of a line end \r\n."""
    for block in blocks(path, source):
        data = frozen(block.data)
        ends = np.append(np.flatnonzero(data == _NEWLINE), len(data))
        starts = np.append(0, ends[:-1] + 1)
        returns = (ends > starts) & (data[np.maximum(ends, 1) - 1] == ord("\r"))
        yield column(data, starts, ends - starts - returns)


def open_keys(layout: str, path: Path, source: SourceObject) -> Iterator[pa.Array]:
    """Yield keys of Open Protocol."""
    return _units(layout, path, source, 8)


def open_values(layout: str, path: Path, source: SourceObject) -> Iterator[pa.Array]:
    """Yield values of Open Protocol."""
    return _units(layout, path, source, 0)


def _units(layout: str, path: Path, source: SourceObject, head: int) -> Iterator[pa.Array]:
    """Yield records of parts with lengths, after `head` bytes that are not checked.

    Raises ConfigError (ARCHIVE_LAYOUT) if the object begins with something else, OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    rest, done = b"", 0
    with naming(source), decompressed(path, source) as stream:
        while more := stream.read(BATCH_BYTES):
            data = rest + more
            ends = np.empty(data.count(b"\n"), np.int64)
            found, wrong = record_ends(frozen(data), head, ends)
            if wrong and not (done or found):
                raise refused(source, layout, "it does not hold Open Protocol", "set the layout that the connector writes")
            if wrong:
                raise damaged(
                    source, f"record {done + found + 1}", "not Open Protocol, or a part whose length differs from its length field"
                )
            if found:
                ends = ends[:found]
                starts = np.append(0, ends[:-1] + 1)
                yield column(frozen(data), starts, ends - starts)
                done += found
                rest = data[int(ends[-1]) + 1 :]
            else:
                rest = data
            if len(rest) > MAX_LINE:
                raise damaged(source, f"record {done + 1}", f"longer than {MAX_LINE} bytes")
    if rest:
        raise unreadable(source, f"cut short after record {done}")
