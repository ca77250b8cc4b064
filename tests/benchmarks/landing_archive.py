"""Archives to land: the decoders' messages in objects as Aiven's connector writes them, one format or the other."""

from __future__ import annotations

import gzip
import io
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import datetime

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks.messages import YARDSTICK, load
from tests.land.archive import TOPIC, make_feed
from tidelake.config.feed import Feed
from tidelake.io.storage import Store

PARTITIONS = 4
OBJECT_BYTES = 16 << 20  # of keys and values
PROTOCOL = "canal-json"
_STAMP = "2023-11-14T22:13:20Z"  # of all messages: messages.py
_AVRO = {
    "type": "record",
    "name": "connector_records",
    "fields": [
        {"name": "key", "type": ["null", "bytes"]},
        {"name": "value", "type": ["null", "bytes"]},
        {"name": "offset", "type": "long"},
        {"name": "timestamp", "type": "long"},
        {"name": "headers", "type": {"type": "map", "values": "bytes"}},
    ],
}


def feed_of(root: str, form: str, lake: str) -> Feed:
    """A feed that lands the archive below root into root/lake."""
    source = {"uri": f"{root}/archive", "layout": f"aiven-{form.partition('.')[0]}"}
    policy = {"on_gap": "warn"}  # a small archive has not all partitions
    return make_feed(root, protocol=PROTOCOL, partitions=PARTITIONS, source=source, lake={"uri": f"{root}/{lake}"}, policy=policy)


def folder_of(hour: datetime) -> str:
    """Where an hour's objects lie."""
    return f"{TOPIC}/dt={hour:%Y-%m-%d}/hr={hour:%H}/"


def fill(archive: Store, form: str, hour: datetime, megabytes: int) -> None:
    """Write about so many MB of keys and values, a partition after the other. Raises SystemExit where there are no messages."""
    messages = load(YARDSTICK, PROTOCOL)
    if messages is None:
        raise SystemExit(f"there are no messages of {PROTOCOL}")
    objects = max(1, megabytes * 1_000_000 // OBJECT_BYTES)
    rows = OBJECT_BYTES * len(messages) // messages.bytes
    batches = _of(messages.batches(1 + objects * rows // len(messages)), rows)
    firsts = [0] * PARTITIONS
    for number in range(objects):
        partition = number * PARTITIONS // objects
        table = next(batches)
        offsets = pa.array(range(firsts[partition], firsts[partition] + len(table)))
        key = f"{folder_of(hour)}{TOPIC}+{partition}+{firsts[partition]:020d}.{form}"
        archive.write(key, WRITERS[form](table.set_column(table.schema.get_field_index("offset"), "offset", offsets)))
        firsts[partition] += len(table)


def _of(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The messages again, so many at a time."""
    waiting, held = list[pa.RecordBatch](), 0
    for batch in batches:
        waiting.append(batch)
        held += len(batch)
        while held >= rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, rows)
            waiting, held = table.slice(rows).to_batches(), held - rows


def _jsonl(table: pa.Table) -> bytes:
    columns = [table.column(name).to_pylist() for name in ("key", "value", "offset")]
    return gzip.compress(b"\n".join(_line(*record) for record in zip(*columns, strict=True)), 6, mtime=0)


def _line(key: bytes | None, value: bytes | None, offset: int) -> bytes:
    members = b'{"headers":[],"offset":%d,"value":%b,"key":%b,"timestamp":"%b"}'
    return members % (offset, _text(value), _text(key), _STAMP.encode())


def _text(value: bytes | None) -> bytes:
    return b"null" if value is None else b'"%b"' % b64encode(value)


def _avro(table: pa.Table) -> bytes:
    out = io.BytesIO()
    records = table.select(["key", "value", "offset"]).append_column("timestamp", table.column("timestamp_ms")).to_pylist()
    fastavro.writer(out, fastavro.parse_schema(_AVRO), (record | {"headers": {}} for record in records), codec="deflate")
    return out.getvalue()


def _parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    found = table.select(["key", "value", "offset"]).append_column("timestamp", table.column("timestamp_ms"))
    pq.write_table(found, out, compression="gzip", row_group_size=len(found))
    return out.getvalue()


WRITERS: dict[str, Callable[[pa.Table], bytes]] = {"parquet": _parquet, "jsonl.gz": _jsonl, "avro": _avro}  # the connector's codec: gzip
