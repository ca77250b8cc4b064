"""What the decoders are measured on: the files of ../shared/bench, and where that folder is absent the demo's own messages.

A file is 20,000 rows of one table as [u32le length][key][u32le length][value], gzip; length 0xFFFFFFFF is null.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.protocols import simple_messages
from tests.shared import SHARED
from tidelake.demo.encode_avro import AvroEncoder
from tidelake.demo.history import History
from tidelake.demo.replicator import Replicator
from tidelake.demo.sinks import SINKS
from tidelake.event import MESSAGE
from tidelake.options import SinkOptions
from tidelake.protocols import Context, decode

FOLDER = SHARED / "bench"
ROWS_OF_A_FILE = 20_000
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
    """One file's messages. shared: whether they are those of ../shared/bench. avro_schemas: id → text."""

    protocol: str
    keys: pa.Array
    values: pa.Array
    shared: bool
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


def load(name: str, protocol: str) -> Messages | None:
    """The file's messages, or the demo's in that protocol; None where neither is there."""
    path = FOLDER / f"{name}.bin.gz"
    if path.exists():
        pairs = list(_records(gzip.decompress(path.read_bytes())))
        schemas = json.loads((FOLDER / "avro_schemas.json").read_text()) if protocol == "avro" else {}
        return _messages(protocol, pairs, schemas, shared=True)
    if protocol not in SINKS:
        return None
    replicator = Replicator(History(hours=1, rows_per_hour=ROWS_OF_A_FILE, ddl=()), SINKS[protocol], crashes=())
    pairs = [(m.key, m.value) for m in replicator.messages()]
    schemas = {str(k): v for k, v in replicator.encoder.schemas.items()} if isinstance(replicator.encoder, AvroEncoder) else {}
    return _messages(protocol, pairs, schemas, shared=False)


def with_value(batch: pa.RecordBatch, at: int, value: bytes) -> pa.RecordBatch:
    """The batch with another value in one message."""
    column = batch.column("value")
    changed = pa.concat_arrays([column.slice(0, at), pa.array([value], pa.binary()), column.slice(at + 1)])
    return batch.set_column(MESSAGE.get_field_index("value"), MESSAGE.field("value"), changed)


def _messages(protocol: str, pairs: list[tuple[bytes | None, bytes | None]], schemas: dict[str, str], *, shared: bool) -> Messages:
    keys, values = (pa.array([pair[side] for pair in pairs], pa.binary()) for side in (0, 1))
    return Messages(protocol, keys, values, shared, schemas)


def _records(data: bytes) -> Iterator[tuple[bytes | None, bytes | None]]:
    at, sides = 0, list[bytes | None]()
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        at += 4
        sides.append(None if length == _NULL else data[at : at + length])
        at += 0 if length == _NULL else length
        if len(sides) == 2:
            yield sides[0], sides[1]
            sides.clear()


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
