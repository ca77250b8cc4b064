"""Writes archived objects of every layout from plain messages, as the connectors do, and reads them back."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tidelake.archives import Sibling, SourceObject, beside, layout_of
from tidelake.history.event import MESSAGE

Headers = list[tuple[str, bytes | None]]


class Message(NamedTuple):
    """A Kafka record of the partition that an object belongs to."""

    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int | None = 1_767_607_200_000
    headers: Headers | None = []  # noqa: RUF012  # never changed


def jsonl(messages: Sequence[Message]) -> bytes:
    """Aiven jsonl; there is no newline after the last record."""
    return b"\n".join(json.dumps(_json_record(m), separators=(",", ":")).encode() for m in messages)


def csv(messages: Sequence[Message]) -> bytes:
    """Aiven csv with the fields key,value,offset,timestamp,headers."""
    return "\n".join(",".join(_csv_fields(m)) for m in messages).encode()


def avro(messages: Sequence[Message], *, codec: str = "deflate", fields: Sequence[str] = ("key", "value", "offset", "timestamp")) -> bytes:
    """Aiven Avro container."""
    schema = {"type": "record", "name": "connector_records", "fields": [{"name": name, "type": _AVRO_TYPES[name]} for name in fields]}
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), [_plain_record(m) for m in messages], codec=codec, sync_interval=2000)
    return out.getvalue()


def parquet(messages: Sequence[Message], *, fields: Sequence[str] = ("key", "value", "offset", "timestamp"), group: int = 100) -> bytes:
    """Aiven Parquet."""
    schema = pa.schema([_PARQUET_FIELDS[name] for name in fields])
    rows = [{k: v for k, v in _plain_record(m).items() if k in fields} for m in messages]
    for row in rows:
        if "headers" in row:
            row["headers"] = list(row["headers"].items())
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), out, row_group_size=group)
    return out.getvalue()


def confluent(messages: Sequence[Message]) -> bytes:
    """Confluent JsonFormat with ByteArrayConverter: a newline after every record."""
    return b"".join(b'"' + b64encode(m.value or b"") + b'"\n' for m in messages)


def confluent_string(messages: Sequence[Message]) -> bytes:
    """Confluent JsonFormat with StringConverter."""
    return b"".join(json.dumps((m.value or b"").decode("latin-1")).encode() + b"\n" for m in messages)


def confluent_nested(messages: Sequence[Message]) -> bytes:
    """Confluent JsonFormat with JsonConverter, for values that are JSON objects."""
    return b"".join((m.value or b"{}") + b"\n" for m in messages)


def confluent_avro(messages: Sequence[Message], *, codec: str = "deflate") -> bytes:
    """Confluent AvroFormat with ByteArrayConverter."""
    out = io.BytesIO()
    fastavro.writer(out, ["null", "bytes"], [m.value for m in messages], codec=codec, sync_interval=2000)
    return out.getvalue()


def confluent_parquet(messages: Sequence[Message]) -> bytes:
    """Confluent ParquetFormat behind HoistField and InsertField."""
    rows = [{"value": m.value, "offset": m.offset, "timestamp": m.timestamp_ms} for m in messages]
    return table(rows, pa.schema([("value", pa.binary()), ("offset", pa.int64()), ("timestamp", pa.timestamp("ms", "UTC"))]))


def canonical(messages: Sequence[Message], topic: str = "t") -> bytes:
    """What `land` writes."""
    rows = [dict(zip(MESSAGE.names, (topic, 0, m.offset, m.timestamp_ms, m.key, m.value, _pairs(m)), strict=True)) for m in messages]
    return table(rows, MESSAGE)


def lenses_parquet(messages: Sequence[Message], topic: str = "t") -> bytes:
    """Lenses' envelope; headers are a record with a member for every name."""
    names = sorted({name for m in messages for name, _ in m.headers or []})
    place = pa.struct([("timestamp", pa.int64()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
    fields = [("key", pa.binary()), ("value", pa.binary()), ("metadata", place)]
    if names:
        fields.append(("headers", pa.struct([(name, pa.binary()) for name in names])))
    return table([_envelope(m, topic) for m in messages], pa.schema(fields))


def lenses_avro(messages: Sequence[Message], topic: str = "t", codec: str = "deflate") -> bytes:
    """Lenses' envelope."""
    place = [{"name": "timestamp", "type": ["null", "long"]}, {"name": "topic", "type": "string"}]
    place += [{"name": "partition", "type": "int"}, {"name": "offset", "type": "long"}]
    metadata = {"name": "metadata", "type": {"type": "record", "name": "Metadata", "fields": place}}
    fields = [*({"name": name, "type": _AVRO_TYPES[name]} for name in ("key", "value", "headers")), metadata]
    out = io.BytesIO()
    schema = fastavro.parse_schema({"type": "record", "name": "Envelope", "fields": fields})
    fastavro.writer(out, schema, [_envelope(m, topic) for m in messages], codec=codec)
    return out.getvalue()


def lenses_json(messages: Sequence[Message], topic: str = "t") -> bytes:
    """Lenses' envelope, one a line."""
    records = [_envelope(m, topic) | {"key": _b64(m.key), "value": _b64(m.value), "headers": {}} for m in messages]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def table(rows: list[dict[str, Any]], schema: pa.Schema) -> bytes:
    """A Parquet file."""
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), out, row_group_size=1_000)
    return out.getvalue()


def _envelope(m: Message, topic: str) -> dict[str, Any]:
    metadata = {"timestamp": m.timestamp_ms, "topic": topic, "partition": 0, "offset": m.offset}
    return {"key": m.key, "value": m.value, "headers": dict(m.headers or []), "metadata": metadata}


def _pairs(m: Message) -> list[dict[str, Any]] | None:
    return None if m.headers is None else [{"key": k, "value": v} for k, v in m.headers]


def json_array(messages: Sequence[Message]) -> bytes:
    """Aiven json."""
    return b"[\n" + jsonl(messages).replace(b"\n", b",\n") + b"\n]"


def jsonl_string(messages: Sequence[Message]) -> bytes:
    """Aiven jsonl with StringConverter."""
    return b"\n".join(json.dumps(_json_record(m) | {"key": _text(m.key), "value": _text(m.value)}).encode() for m in messages)


def jsonl_nested(messages: Sequence[Message]) -> bytes:
    """Aiven jsonl with JsonConverter, for values that are JSON objects."""
    return b"\n".join(
        json.dumps(_json_record(m) | {"key": _text(m.key), "value": 0}).encode().replace(b'"value": 0', b'"value": ' + (m.value or b"null"))
        for m in messages
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def confluent_bin(messages: Sequence[Message]) -> bytes:
    """Confluent ByteArrayFormat."""
    return b"".join((m.value or b"") + b"\n" for m in messages)


def open_value(*parts: bytes) -> bytes:
    """A value of Open Protocol."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def kcat(messages: Sequence[Message], topic: str = "t") -> bytes:
    """kcat -J."""
    return b"".join(json.dumps(_kcat_record(m, topic)).encode() + b"\n" for m in messages)


def _kcat_record(m: Message, topic: str) -> dict[str, Any]:
    place = {"topic": topic, "partition": 0, "offset": m.offset, "tstype": "create", "ts": m.timestamp_ms, "broker": 1}
    headers = [text for name, value in m.headers or [] for text in (name, _text(value))]
    return place | ({"headers": headers} if headers else {}) | {"key": _text(m.key), "payload": _text(m.value)}


SYNC = bytes(range(100, 116))


def secor(messages: Sequence[Message], *, codec: str = "", metadata: Sequence[tuple[str, str]] = ()) -> bytes:
    """A SequenceFile of LongWritable and BytesWritable, a sync marker before every tenth record."""
    out = b"SEQ\x06" + b"".join(map(_hadoop_text, ("org.apache.hadoop.io.LongWritable", "org.apache.hadoop.io.BytesWritable")))
    out += (b"\x01\x00" + _hadoop_text(f"org.apache.hadoop.io.compress.{codec}")) if codec else b"\x00\x00"
    out += len(metadata).to_bytes(4, "big") + b"".join(_hadoop_text(text) for pair in metadata for text in pair) + SYNC
    parts = [out]
    for i, m in enumerate(messages):
        value = len(m.value or b"").to_bytes(4, "big") + (m.value or b"")
        value = {"": bytes, "DefaultCodec": zlib.compress, "GzipCodec": gzip.compress}[codec](value)
        mark = b"\xff" * 4 + SYNC if i % 10 == 9 else b""
        parts.append(mark + (8 + len(value)).to_bytes(4, "big") + (8).to_bytes(4, "big") + m.offset.to_bytes(8, "big", signed=True) + value)
    return b"".join(parts)


def _hadoop_text(text: str) -> bytes:
    data = text.encode()
    return (bytes([len(data)]) if len(data) < 128 else b"\x8f" + bytes([len(data)])) + data


WRITERS: dict[str, tuple[Callable[[Sequence[Message]], bytes], str]] = {
    "aiven-jsonl": (jsonl, "jsonl"),
    "aiven-jsonl-string": (jsonl_string, "jsonl"),
    "aiven-jsonl-nested": (jsonl_nested, "jsonl"),
    "aiven-json": (json_array, "json"),
    "aiven-csv": (csv, "csv"),
    "aiven-avro": (avro, "avro"),
    "aiven-parquet": (parquet, "parquet"),
    "confluent-json": (confluent, "json"),
    "confluent-json-string": (confluent_string, "json"),
    "confluent-json-nested": (confluent_nested, "json"),
    "confluent-avro": (confluent_avro, "avro"),
    "confluent-parquet": (confluent_parquet, "parquet"),
    "confluent-bin": (confluent_bin, "bin"),
    "confluent-bin-open": (confluent_bin, "bin"),
    "lenses-json": (lenses_json, "json"),
    "lenses-avro": (lenses_avro, "avro"),
    "lenses-parquet": (lenses_parquet, "parquet"),
    "kcat": (kcat, "jsonl"),
    "secor": (secor, "seq"),
    "canonical": (canonical, "parquet"),
}


def suited(layout: str, messages: Sequence[Message]) -> list[Message]:
    """The messages with values that the layout can carry: JSON objects around the text of those given, or parts with lengths."""
    if layout == "confluent-bin-open":
        return [m._replace(value=open_value(m.value or b"", b"")) for m in messages]
    return [m._replace(value=b'{"v":"%s"}' % (m.value or b"")) for m in messages]


def protocol(layout: str) -> str:
    """A protocol that a feed with this layout may have."""
    return "craft" if layout_of(layout).protocols is None else min(layout_of(layout).protocols or ())


def read(layout: str, folder: Path, content: bytes, name: str = "", number: int = 0, **siblings: tuple[str, bytes]) -> list[Message]:
    """Store the content as an object and read it with a layout. siblings: extension and content of keys and headers."""
    path = folder / "object"
    path.write_bytes(content)
    for view, (_, data) in siblings.items():
        beside(path, view).write_bytes(data)
    name = name or f"t+0+{number:020d}.{WRITERS[layout][1]}"
    parts = [Sibling(view, f"t+0+{number:020d}.{view}.{extension}", len(data), "") for view, (extension, data) in siblings.items()]
    return read_file(layout, path, SourceObject("t", 0, name, number, len(content), "etag", tuple(parts)))


def read_file(layout: str, path: Path, source: SourceObject) -> list[Message]:
    """All messages of a local file, their coordinates checked against the object's."""
    out = []
    for batch in layout_of(layout).read(path, source):
        batch.validate(full=True)
        for row in batch.to_pylist():
            assert (row["topic"], row["partition"]) == (source.topic, source.partition)
            headers = None if row["headers"] is None else [(h["key"], h["value"]) for h in row["headers"]]
            out.append(Message(row["offset"], row["value"], row["key"], row["timestamp_ms"], headers))
    return out


def gzipped(content: bytes) -> bytes:
    """The same bytes for the same content."""
    return gzip.compress(content, mtime=0)


def _b64(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()


def _json_record(m: Message) -> dict[str, Any]:
    stamp = None if m.timestamp_ms is None else _iso(m.timestamp_ms)
    headers = [{"key": k, "value": _b64(v)} for k, v in m.headers or []]
    return {"headers": headers, "offset": m.offset, "value": _b64(m.value), "key": _b64(m.key), "timestamp": stamp}


def _iso(ms: int) -> str:
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}" + (f".{ms % 1000:03d}Z" if ms % 1000 else "Z")


def _csv_fields(m: Message) -> list[str]:
    headers = "".join(f"{_b64(k.encode())}:{_b64(v) or ''};" for k, v in m.headers or [])
    return [_b64(m.key) or "", _b64(m.value) or "", str(m.offset), "" if m.timestamp_ms is None else str(m.timestamp_ms), headers]


def _plain_record(m: Message) -> dict[str, Any]:
    return {"key": m.key, "value": m.value, "offset": m.offset, "timestamp": m.timestamp_ms or 0, "headers": dict(m.headers or [])}


_AVRO_TYPES: dict[str, Any] = {
    "key": ["null", "bytes"],
    "value": ["null", "bytes"],
    "offset": "long",
    "timestamp": "long",
    "headers": {"type": "map", "values": ["null", "bytes"]},
}
_PARQUET_FIELDS = {
    "key": pa.field("key", pa.binary()),
    "value": pa.field("value", pa.binary()),
    "offset": pa.field("offset", pa.int64(), nullable=False),
    "timestamp": pa.field("timestamp", pa.int64(), nullable=False),
    "headers": pa.field("headers", pa.map_(pa.string(), pa.binary()), nullable=False),
}


def compressed(codec: str, content: bytes) -> bytes:
    """As Arrow compresses a stream."""
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, codec) as stream:
        stream.write(content)
    return bytes(out.getvalue().to_pybytes())
