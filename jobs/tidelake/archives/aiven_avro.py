"""Aiven's S3 connector, `format.output.type=avro`: Avro containers (archives.md 2, 9). The codec is inside, whatever the name says.

    connector_records { key: bytes, value: bytes, offset: long, timestamp: long (epoch ms), headers: map<bytes> }

each possibly a union with null. `offset` and `value` must be there; key, timestamp, headers may be left out.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from tidelake.archives.shape import BATCH_BYTES, Layout, SourceObject, damaged, message_batch, refused, unreadable
from tidelake.event import HEADERS

_NAME = "aiven-avro"
_REMEDY = (
    'the connector needs format.output.fields = "key,value,offset,timestamp,headers" and ByteArrayConverter for keys, values and headers'
)
_TYPES = {
    "key": {"bytes", "string"},
    "value": {"bytes", "string"},
    "offset": {"long", "int"},
    "timestamp": {"long", "int"},
    "headers": {"map"},
}
_MISSING_CODEC = "you need to install"  # fastavro, of a codec whose library is not there
_DAMAGE = (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError, zlib.error, struct.error)


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """MESSAGE batches. Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT)."""
    done, records, size = 0, list[dict[str, Any]](), 0
    for block in _blocks(path, source):
        records += block
        size += sum(len(record["value"] or b"") + len(record.get("key") or b"") for record in block)
        if size >= BATCH_BYTES:
            yield _batch(records, done, source)
            done, records, size = done + len(records), [], 0
    if records:
        yield _batch(records, done, source)


def _blocks(path: Path, source: SourceObject) -> Iterator[list[dict[str, Any]]]:
    """The records of one container block after another."""
    done = 0
    with path.open("rb") as file:
        try:
            container = fastavro.block_reader(file)
        except (EOFError, *_DAMAGE) as e:
            raise unreadable(source, f"not readable as an Avro container: {e}") from e
        _check_schema(container.writer_schema, source)
        try:
            for block in container:
                records: list[Any] = list(block)
                yield records
                done += len(records)
        except (EOFError, *_DAMAGE) as e:
            if _MISSING_CODEC in str(e):
                raise refused(source, _NAME, str(e), "set avro.codec = deflate, or install that library where landing runs") from e
            if not file.read(1):
                raise unreadable(source, f"cut short after record {done}: {e}") from e
            raise damaged(source, f"after record {done}", f"not readable as Avro: {e}") from e


def _check_schema(schema: Any, source: SourceObject) -> None:
    """Refuse containers of other records than Aiven's."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise refused(source, _NAME, "it holds no records", _REMEDY)
    fields = {field["name"]: _types(field["type"]) for field in schema["fields"]}
    missing = [name for name in ("offset", "value") if name not in fields]
    if missing:
        raise refused(source, _NAME, f"its records have no {' and no '.join(missing)}", _REMEDY)
    for name, allowed in _TYPES.items():
        if not fields.get(name, set()) <= allowed | {"null"}:
            raise refused(source, _NAME, f"{name} is {' or '.join(sorted(fields[name]))}, not {' or '.join(sorted(allowed))}", _REMEDY)


def _types(declared: Any) -> set[str]:
    """The names of a type's branches."""
    branches = declared if isinstance(declared, list) else [declared]
    return {branch["type"] if isinstance(branch, dict) else branch for branch in branches}


def _batch(records: list[dict[str, Any]], before: int, source: SourceObject) -> pa.RecordBatch:
    offset = [record["offset"] for record in records]
    for i, value in enumerate(offset, before + 1):
        if value is None or value < 0:
            raise damaged(source, f"record {i}", f"offset is {value}")
    try:
        return message_batch(
            source,
            pa.array(offset, pa.int64()),
            pa.array([record["value"] for record in records], pa.binary()),
            timestamp_ms=pa.array([record.get("timestamp") for record in records], pa.int64()),
            key=pa.array([record.get("key") for record in records], pa.binary()),
            headers=pa.array([_headers(record.get("headers")) for record in records], HEADERS),
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
        raise damaged(source, f"records {before + 1} to {before + len(records)}", str(e)) from e


def _headers(found: dict[str, bytes | None] | None) -> list[dict[str, Any]] | None:
    return None if found is None else [{"key": key, "value": value} for key, value in found.items()]


LAYOUT = Layout(read=read, extensions=frozenset({"avro"}))
