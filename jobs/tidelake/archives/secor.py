"""Secor's SequenceFiles (docs/reference/archives.md 5): offset → value, as Hadoop writes them.

    file   := 'SEQ' 06  key class  value class  compressed:bool  blocks:bool  codec class?  metadata  sync:16 bytes  record*
    record := length:int32 be  key length:int32 be  offset:int64 be  value
    value  := length:int32 be  bytes, compressed as a whole if the file's header sets it

Strings begin with their length as Hadoop's variable integer. The length -1 precedes a sync marker. Files that are compressed in blocks,
keys other than LongWritable and several partitions in one file are refused. The files contain no keys, timestamps and headers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from tidelake.archives.readers.codecs import decompressed, naming
from tidelake.archives.readers.layout import BATCH_BYTES, Layout, SourceObject, check_offsets, damaged, message_batch, refused, unreadable
from tidelake.archives.readers.lines import MAX_LINE
from tidelake.archives.scan.sequence_records import records
from tidelake.wire.kernels.arrays import Longs
from tidelake.wire.kernels.spans import column, frozen

_NAME = "secor"
_KEY, _VALUE = "org.apache.hadoop.io.LongWritable", "org.apache.hadoop.io.BytesWritable"
_REMEDY = "Secor needs SequenceFileReaderWriterFactory, and io.seqfile.compression.type NONE or RECORD with DefaultCodec or GzipCodec"
_CODECS = {  # zlib's window bits, which select its own frame or gzip's
    "org.apache.hadoop.io.compress.DefaultCodec": zlib.MAX_WBITS,
    "org.apache.hadoop.io.compress.GzipCodec": zlib.MAX_WBITS | 16,
}


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    rest, done = b"", 0
    with naming(source), decompressed(path, source) as stream:
        codec, sync = _head(stream, source)
        while more := stream.read(BATCH_BYTES):
            data = rest + more
            most = len(data) // 16 + 1
            keys, starts, sizes = (np.empty(most, np.int64) for _ in range(3))
            found, end, wrong = records(frozen(data), frozen(sync), keys, starts, sizes)
            if found:
                yield from _batches(data, keys[:found], starts[:found], sizes[:found], codec, source, done)
            done += found
            if wrong:
                raise damaged(source, f"after record {done}", "not a record of a SequenceFile with LongWritable keys")
            rest = data[end:]
            if len(rest) > MAX_LINE:
                raise damaged(source, f"record {done + 1}", f"longer than {MAX_LINE} bytes")
    if rest:
        raise unreadable(source, f"cut short after record {done}")


def _batches(
    data: bytes, keys: Longs, starts: Longs, sizes: Longs, codec: str, source: SourceObject, done: int
) -> Iterator[pa.RecordBatch]:
    """Yield the decompressed records in batches of about BATCH_BYTES. done: number of the object's records before these."""
    if not codec:
        yield _batch(data, keys, starts, sizes, source, done)
        return
    begin, parts, held = 0, list[bytes](), 0
    for end, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True), 1):
        parts.append(_unpacked(data[start : start + size], _CODECS[codec], source, done + end))
        held += len(parts[-1])
        if held >= BATCH_BYTES or end == len(keys):
            plain = np.fromiter(map(len, parts), np.int64, len(parts))
            yield _batch(b"".join(parts), keys[begin:end], np.cumsum(plain) - plain, plain, source, done + begin)
            begin, parts, held = end, [], 0


def _batch(data: bytes, keys: Longs, starts: Longs, sizes: Longs, source: SourceObject, done: int) -> pa.RecordBatch:
    offset = pa.array(keys)
    check_offsets(offset, source, done)
    buf = frozen(data)
    if (sizes < 4).any():
        raise damaged(source, f"record {done + 1 + int(np.argmax(sizes < 4))}", "its value has no length")
    wrong = buf[starts[:, np.newaxis] + np.arange(4)].view(">u4")[:, 0] != sizes - 4
    if wrong.any():
        raise damaged(source, f"record {done + 1 + int(np.argmax(wrong))}", "the length of its value differs from its length field")
    return message_batch(source, offset, column(buf, starts + 4, sizes - 4))


def _unpacked(value: bytes, window: int, source: SourceObject, number: int) -> bytes:
    """Decompress a value: each is a stream of its own, of at most MAX_LINE bytes. number: of the record, from 1."""
    stream = zlib.decompressobj(window)
    try:
        plain = stream.decompress(value, MAX_LINE + 1)
    except zlib.error as e:
        raise damaged(source, f"record {number}", f"cannot be decompressed: {e}") from e
    if len(plain) > MAX_LINE:
        raise damaged(source, f"record {number}", f"decompresses to more than {MAX_LINE} bytes")
    if not stream.eof:
        raise damaged(source, f"record {number}", "cannot be decompressed: it is cut short")
    return plain


def _head(stream: IO[bytes], source: SourceObject) -> tuple[str, bytes]:
    """Return the codec of the values, empty if there is none, and the sync marker."""
    if stream.read(4) != b"SEQ\x06":
        raise unreadable(source, "not readable as a SequenceFile: it does not begin with SEQ 06")
    kinds = _text(stream), _text(stream)
    if kinds != (_KEY, _VALUE):
        raise refused(source, _NAME, f"it holds {kinds[0]} → {kinds[1]}, not {_KEY} → {_VALUE}", _REMEDY)
    packed, in_blocks = stream.read(1) == b"\x01", stream.read(1) == b"\x01"
    codec = _text(stream) if packed else ""
    if in_blocks or (packed and codec not in _CODECS):
        raise refused(source, _NAME, f"it is compressed {'in blocks' if in_blocks else f'by {codec}'}", _REMEDY)
    for _ in range(2 * int.from_bytes(stream.read(4), "big")):
        _text(stream)
    sync = stream.read(16)
    if len(sync) < 16:
        raise EOFError("it ends inside its header")
    return codec, sync


def _text(stream: IO[bytes]) -> str:
    """Read Hadoop's Text: a variable integer and the text. The integer is one byte up to 127, else -112 minus the number of bytes that
    follow.
    """
    first = int.from_bytes(stream.read(1), "big", signed=True)
    size = first if first >= -112 else int.from_bytes(stream.read(min(-112 - first, 4)), "big")
    if first < -116 or size > 1 << 16:
        raise ValueError(f"a name of {size} bytes in its header")
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("it ends inside its header")
    return data.decode("utf-8", "replace")


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"seq"}),
    has_keys=False,
    templates=("{topic}/dt={yyyy}-{MM}-{dd}/hr={HH}/{any}_{partition}_{start_offset}",),
    losses={"KEYS_LOST": "the files hold no keys", "LOSSY_LAYOUT": "no timestamps and headers, and null is the same as empty"},
)
