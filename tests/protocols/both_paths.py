"""A message through the general reader and through the columnar path; they must agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tests.protocols import vectors
from tidelake.errors import DECODE_CODES, DecodeError
from tidelake.history.event import MESSAGE, Event, RowSchema
from tidelake.protocols import Context, decode, decoder, rejected

Message = tuple[bytes | None, bytes | None]  # key, value


def batch(messages: Sequence[Message]) -> pa.RecordBatch:
    """A MESSAGE batch, offsets from 0."""
    rows = [
        {"topic": "t", "partition": 0, "offset": i, "timestamp_ms": 1, "key": key, "value": value, "headers": []}
        for i, (key, value) in enumerate(messages)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=MESSAGE)


def read(protocol: str, message: Message, context: Context) -> list[Event]:
    """By the general reader, a DecodeError as the event that stands for it."""
    try:
        return decoder(protocol).read(*message, context)
    except DecodeError as e:
        error = e
    assert error.code in DECODE_CODES
    assert len(error.message) < 2000
    return [rejected(error, *message)]


def decoded(protocol: str, messages: Sequence[Message], context: Context) -> list[list[Event]]:
    """By the columnar path: the events of each message."""
    rows = decode(protocol, batch(messages), context).to_pylist()
    row_schemas = {r["row_schema"]: RowSchema.from_json(r["columns"]) for r in rows if r["kind"] == "row_schema"}
    events: list[list[Event]] = [[] for _ in messages]
    for row in rows:
        if row["kind"] != "row_schema":
            assert row["ordinal"] == len(events[row["offset"]])
            events[row["offset"]].append(vectors.from_row(row, row_schemas))
    return events


def left(protocol: str, messages: Sequence[Message], context: Context) -> list[int]:
    """The messages that the columnar path hands to the general reader."""
    scanned = decoder(protocol).scan(batch(messages), np.arange(len(messages), dtype=np.int32), context)
    return [int(i) for i in scanned.left]


def both(protocol: str, messages: Sequence[Message], context: Context) -> list[list[Event]]:
    """The events of each message, equal by both paths."""
    events = [read(protocol, m, context) for m in messages]
    by_columns = decoded(protocol, messages, context)
    for message, one, other in zip(messages, events, by_columns, strict=True):
        assert one == other, f"{message!r}\nread   {one}\ndecode {other}"
    return events
