"""What the decoders are measured on: the messages of tests/data/bench.

A file is 20,000 rows of one table as [u32le length][key][u32le length][value]; length 0xFFFFFFFF is null. Those of a protocol are packed
into one archive, as those with 16 and with 64 rows a message hold the same rows.
"""

from __future__ import annotations

import json
import struct
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.data_files import data_bytes, data_path
from tests.protocols import simple_messages
from tidelake.config.options import SinkOptions
from tidelake.history.event import MESSAGE
from tidelake.protocols import Context, decode

BATCH_MESSAGES = 10_000
YARDSTICK = "canal-json_1"

_NULL = 0xFFFFFFFF
_SIMPLE_COLUMNS = (  # of the files' table, for Simple, whose rows name a schema that came before them
    ("id", "bigint"),
    ("name", "varchar"),
    ("body", "text"),
    ("qty", "int"),
    ("price", "decimal"),
    ("created", "datetime"),
    ("score", "double"),
    ("ref", "bigint unsigned"),
)


@dataclass(frozen=True, slots=True)
class Messages:
    """One file's messages. avro_schemas: id → text."""

    protocol: str
    keys: pa.Array
    values: pa.Array
    avro_schemas: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def bytes(self) -> int:
        """Of all keys and values."""
        return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in (self.keys, self.values))

    def context(self) -> Context:
        """A decoder's context that has seen nothing yet but, for Simple, the table's schema."""
        options = SinkOptions(enable_tidb_extension=True)
        context = Context(options=options, avro_schema=lambda number: self.avro_schemas[str(number)])
        if self.protocol.startswith("simple-"):
            columns = [simple_messages.column(name, kind) for name, kind in _SIMPLE_COLUMNS]
            schema = simple_messages.table_schema(columns, [simple_messages.index("id", primary=True)], "test", "bench")
            key, value = simple_messages.bootstrap(self.protocol, schema)
            decode(self.protocol, _batch(pa.array([key], pa.binary()), pa.array([value], pa.binary()), 0), context)
        return context

    def batches(self, times: int) -> Iterator[pa.RecordBatch]:
        """The messages repeated so often, with offsets of their own, in batches of BATCH_MESSAGES."""
        total = len(self) * times
        for first in range(0, total, BATCH_MESSAGES):
            numbers = pa.array(np.arange(first, min(first + BATCH_MESSAGES, total)) % len(self))
            yield _batch(self.keys.take(numbers), self.values.take(numbers), first)


def load(name: str, protocol: str) -> Messages:
    """The file's messages."""
    pairs = list(records(name, protocol))
    keys, values = (pa.array([pair[side] for pair in pairs], pa.binary()) for side in (0, 1))
    return Messages(protocol, keys, values, avro_schemas() if protocol == "avro" else {})


def avro_schemas() -> dict[str, str]:
    """The schemas that the Avro messages name: id → text."""
    found: dict[str, str] = json.loads(data_bytes("bench/avro_schemas.json"))
    return found


def records(name: str, protocol: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Key and value of every message of a file."""
    with tarfile.open(data_path(f"bench/{protocol}.tar.xz")) as archive:
        file = archive.extractfile(f"{name}.bin")
        assert file is not None
        data = file.read()
    at, sides = 0, list[bytes | None]()
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        at += 4
        sides.append(None if length == _NULL else data[at : at + length])
        at += 0 if length == _NULL else length
        if len(sides) == 2:
            yield sides[0], sides[1]
            sides.clear()


def with_value(batch: pa.RecordBatch, at: int, value: bytes) -> pa.RecordBatch:
    """The batch with another value in one message."""
    column = batch.column("value")
    changed = pa.concat_arrays([column.slice(0, at), pa.array([value], pa.binary()), column.slice(at + 1)])
    return batch.set_column(MESSAGE.get_field_index("value"), MESSAGE.field("value"), changed)


def _batch(keys: pa.Array, values: pa.Array, first: int) -> pa.RecordBatch:
    count = len(values)
    columns = {
        "topic": pa.repeat(pa.scalar("bench"), count),
        "partition": pa.repeat(pa.scalar(0, pa.int32()), count),
        "offset": pa.array(np.arange(first, first + count)),
        "timestamp_ms": pa.repeat(pa.scalar(1_700_000_000_000), count),
        "key": keys,
        "value": values,
        "headers": pa.nulls(count, MESSAGE.field("headers").type),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=MESSAGE)
