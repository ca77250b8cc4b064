"""Writes messages to hourly objects like S3 sink connectors (docs/reference/archives.md 1, 2, 9).

Connectors flush by time, not by hour: an object has the messages of one flush window and one hour, so every hour has several objects per
partition. Aiven names have the partition's first offset of the window (9.1), Confluent names the object's own.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.demo.delivery import Message
from tidelake.demo.messages.varints import zigzag
from tidelake.io.storage import Store

WINDOW_MS = 23 * 60_000
MAX_WINDOW_MESSAGES = 50_000
_HOUR_MS = 3_600_000
_GZIP_LEVEL = 4


@dataclass(frozen=True)
class ArchiveLayout:
    """A layout: folder of the objects by hour, number of digits in their names, extension and content."""

    folder: str  # strftime
    digits: int
    extension: str
    content: Callable[[Sequence[Message]], bytes]
    names_window: bool = True


class ArchiveWriter:
    """Writes one changefeed's objects below a prefix: call `add` for each message in order, then `close`."""

    def __init__(self, store: Store, prefix: str, layout: ArchiveLayout) -> None:
        self.objects = 0
        self.bytes = 0
        self._store = store
        self._prefix = prefix
        self._layout = layout
        self._open: dict[tuple[str, int], _Buffer] = {}

    def add(self, message: Message) -> None:
        """Add the next message of its partition."""
        partition = message.topic, message.partition
        buffer = self._open.get(partition)
        if buffer is None or not buffer.takes(message):
            if buffer is not None:
                self._write(buffer)
            buffer = self._open[partition] = _Buffer(message, buffer)
        buffer.messages.append(message)

    def close(self) -> None:
        """Write the remaining messages."""
        for buffer in self._open.values():
            self._write(buffer)
        self._open.clear()

    def _write(self, buffer: _Buffer) -> None:
        first, layout = buffer.messages[0], self._layout
        number = buffer.window_offset if layout.names_window else first.offset
        folder = datetime.fromtimestamp(first.timestamp_ms // 1000, UTC).strftime(layout.folder)
        name = f"{first.topic}+{first.partition}+{number:0{layout.digits}d}.{layout.extension}"
        content = layout.content(buffer.messages)
        self._store.write(f"{self._prefix}/{first.topic}/{folder}/{name}", content)
        self.objects += 1
        self.bytes += len(content)


class _Buffer:
    """Messages of one partition, flush window and hour. The next buffer has the same window if only the hour changed."""

    def __init__(self, first: Message, before: _Buffer | None) -> None:
        self.messages: list[Message] = []
        self._window = first.timestamp_ms // WINDOW_MS
        self._hour = first.timestamp_ms // _HOUR_MS
        self.window_offset: int = first.offset
        if before is not None and before._window == self._window and not before.full:
            self.window_offset = before.window_offset

    @property
    def full(self) -> bool:
        """Whether the window must be flushed early."""
        return len(self.messages) >= MAX_WINDOW_MESSAGES

    def takes(self, message: Message) -> bool:
        """Whether the message belongs to the same object."""
        same = message.timestamp_ms // WINDOW_MS == self._window and message.timestamp_ms // _HOUR_MS == self._hour
        return same and not self.full


def _jsonl(messages: Sequence[Message]) -> bytes:
    lines = [
        f'{{"headers":[],"offset":{m.offset},"value":{_quoted(m.value)},"key":{_quoted(m.key)},"timestamp":"{_instant(m.timestamp_ms)}"}}'
        for m in messages
    ]
    return _gzipped("\n".join(lines))


def _csv(messages: Sequence[Message]) -> bytes:
    return _gzipped("\n".join([f"{_base64(m.key)},{_base64(m.value)},{m.offset},{m.timestamp_ms}" for m in messages]))


def _json(messages: Sequence[Message]) -> bytes:
    return _gzipped("".join([f"{_quoted(m.value)}\n" for m in messages]))


def _parquet(messages: Sequence[Message]) -> bytes:
    schema = pa.schema(
        [
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("timestamp", pa.int64(), nullable=False),
        ]
    )
    columns = zip(*((m.key, m.value, m.offset, m.timestamp_ms) for m in messages), strict=True)
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False, version="1.0", store_schema=False)
    return bytes(sink.getvalue().to_pybytes())


def _avro(messages: Sequence[Message]) -> bytes:
    """A container file: magic, metadata, sync marker; then blocks of deflated records, each followed by the sync marker."""
    header = {"avro.schema": json.dumps(_RECORD_SCHEMA).encode(), "avro.codec": b"deflate"}
    pairs = b"".join(zigzag(len(k)) + k.encode() + zigzag(len(v)) + v for k, v in header.items())
    blocks = [b"Obj\x01", zigzag(len(header)), pairs, zigzag(0), _SYNC]
    for at in range(0, len(messages), _BLOCK_RECORDS):
        block = messages[at : at + _BLOCK_RECORDS]
        records = b"".join([_nullable(m.key) + _nullable(m.value) + zigzag(m.offset) + zigzag(m.timestamp_ms) for m in block])
        packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, -15)
        deflated = packer.compress(records) + packer.flush()
        blocks += [zigzag(len(block)), zigzag(len(deflated)), deflated, _SYNC]
    return b"".join(blocks)


_SYNC = bytes(range(16))
_BLOCK_RECORDS = 1000
_RECORD_SCHEMA = {
    "type": "record",
    "name": "connector_records",
    "namespace": "io.aiven.avro.output.schema",
    "fields": [
        {"name": "key", "type": ["null", "bytes"]},
        {"name": "value", "type": ["null", "bytes"]},
        {"name": "offset", "type": "long"},
        {"name": "timestamp", "type": "long"},
    ],
}


def _nullable(raw: bytes | None) -> bytes:
    return b"\x00" if raw is None else b"\x02" + zigzag(len(raw)) + raw


def _base64(raw: bytes | None) -> str:
    return base64.b64encode(raw or b"").decode()


def _quoted(raw: bytes | None) -> str:
    return "null" if raw is None else f'"{_base64(raw)}"'


def _instant(epoch_ms: int) -> str:
    """ISO 8601 with as many fraction digits as Java's Instant prints: none or three."""
    fraction = f".{epoch_ms % 1000:03d}" if epoch_ms % 1000 else ""
    return f"{datetime.fromtimestamp(epoch_ms // 1000, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _gzipped(text: str) -> bytes:
    return gzip.compress(text.encode(), _GZIP_LEVEL, mtime=0)


_AIVEN = "dt=%Y-%m-%d/hr=%H"
LAYOUTS = {  # by protocol
    "open": ArchiveLayout(_AIVEN, 20, "jsonl.gz", _jsonl),
    "craft": ArchiveLayout(_AIVEN, 20, "parquet", _parquet),
    "canal-json": ArchiveLayout("year=%Y/month=%m/day=%d/hour=%H", 10, "json.gz", _json, names_window=False),
    "simple-json": ArchiveLayout(_AIVEN, 20, "jsonl.gz", _jsonl),
    "debezium": ArchiveLayout(_AIVEN, 20, "jsonl.gz", _jsonl),
    "debezium-bare": ArchiveLayout(_AIVEN, 20, "jsonl.gz", _jsonl),
    "canal-json-cc": ArchiveLayout(_AIVEN, 20, "csv.gz", _csv),
    "avro": ArchiveLayout(_AIVEN, 20, "avro", _avro),
}
