"""Decode Kafka messages to events, for every protocol. The only registry of protocols, and the only place that handles a DecodeError.

Every protocol is a module of one schema:
    read(key, value, context) -> list[Event]            one message of any form, in plain Python; raises DecodeError
    scan(messages, wanted, context) -> Scanned          a batch of messages in the usual forms, compiled; leaves the rest to read
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Protocol as Interface
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config.options import SinkOptions
from tidelake.errors import ConfigError, Coordinates, DecodeError, WaitingError
from tidelake.history.event import CHECKSUMS, EVENT, Event, EventRows, SchemaColumn, schema_rows
from tidelake.protocols.claims import completed
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.columnar import Scanned
from tidelake.wire.simple.simple_schema import Shelf

MAX_MESSAGE_BYTES = 64 << 20
ALONE = 2 << 20  # bytes from which a message goes to the general reader, whose memory use follows the message's size

_MODULES = {
    "open": "open",
    "craft": "craft",
    "avro": "avro",
    "canal-json": "canal_json",
    "canal": "canal",
    "debezium": "debezium",
    "maxwell": "maxwell",
    "csv": "csv_rows",
    "simple-json": "simple_json",
    "simple-avro": "simple_avro",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Context of a decoder besides the message.

    avro_schema: schema id (Confluent: int, Glue: UUID text) → schema text, raises DecodeError (UNKNOWN_SCHEMA).
    max_bytes: limit of a message, before and after decompression.
    memory: state that decoders keep between batches (known schemas, compiled schemas).
    columns: (database, table) → its columns in order, for protocols whose messages lack them; None for an unknown table.
    types_later: return values whose type the message lacks as they were sent, because the table may have changed since `columns`.
    time_zone: zone in which TIMESTAMP columns are printed (feed.toml's `time_zone`) if a message holds the instant; the zone of Avro's
    texts. refuse_mismatches: a row that does not match its checksum is an error (CHECKSUM), and not only marked.
    shelf: store of Simple's table schemas; without one, rows with an unknown schema have names only.
    claim_file: (location, most bytes) → content of a claim-check file, raises DecodeError (CLAIM_CHECK, TOO_LARGE); without it the rows of
    such messages are returned as they are, with their handle and `claim_check`.
    """

    options: SinkOptions = field(default_factory=SinkOptions)
    avro_schema: Callable[[int | str], str] | None = None
    max_bytes: int = MAX_MESSAGE_BYTES
    memory: dict[str, object] = field(default_factory=dict)
    columns: Callable[[str, str], tuple[SchemaColumn, ...] | None] | None = None
    types_later: bool = False
    time_zone: str = "UTC"
    shelf: Shelf | None = None
    refuse_mismatches: bool = False
    claim_file: Callable[[str, int], bytes] | None = None

    def columns_of(self, database: str, table: str) -> tuple[SchemaColumn, ...] | None:
        """Return the table's columns if they are known from outside the message, else None."""
        return self.columns(database, table) if self.columns else None


class _Decoder(Interface):
    def read(self, key: bytes | None, value: bytes | None, context: Context) -> list[Event]: ...

    def scan(self, messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned: ...


def protocol_names() -> list[str]:
    """Return the protocols that this version decodes."""
    return list(_MODULES)


def decoder(protocol: str) -> _Decoder:
    """Return the protocol's module. Raises ConfigError for a protocol that this version does not decode."""
    if protocol not in _MODULES:
        raise ConfigError(f"protocol {protocol!r} is not supported", remedy=f"supported: {', '.join(_MODULES)}")
    return cast(_Decoder, import_module(f"tidelake.protocols.{_MODULES[protocol]}"))


def decode(protocol: str, messages: pa.RecordBatch, context: Context) -> pa.RecordBatch:
    """Return the EVENT rows of a MESSAGE batch in message order, followed by the schemas that they use (kind `row_schema`).

    A message yields all its events, or one `rejected` event with code, reason and raw bytes. Raises ConfigError for an unknown protocol.
    """
    module = decoder(protocol)
    sizes = _sizes(messages)
    large = sizes > context.max_bytes
    alone = large | (sizes > ALONE)
    scanned = module.scan(messages, np.flatnonzero(~alone).astype(np.int32), context)
    refused = _mismatches(scanned) if context.refuse_mismatches else np.zeros(0, np.int32)
    left = np.union1d(np.union1d(scanned.left, refused), np.flatnonzero(alone)).astype(np.int32)
    rows, message_of_event = _read(module, messages, left, large, context)
    if not len(scanned.message):
        return rows.batch(row_schemas=True)
    events, row_schemas = scanned.batch(messages), rows.row_schemas
    if rows.rows:
        found, message = events, scanned.message
        if len(refused):
            kept = ~np.isin(message, refused)
            found, message = found.filter(pa.array(kept)), message[kept]
        order = np.argsort(np.concatenate([message, message_of_event]), kind="stable")
        events = pc.take(pa.concat_batches([found, rows.batch()]), pa.array(order))
    row_schemas = {s.id: s for s in scanned.used_schemas()} | row_schemas
    return pa.concat_batches([events, schema_rows(row_schemas.values())])


def _mismatches(scanned: Scanned) -> Ints:
    """Return the messages with rows that do not match their checksums. The general reader reports the expected and the found checksum."""
    if scanned.checksum is None:
        return np.zeros(0, np.int32)
    return np.unique(scanned.message[scanned.checksum == CHECKSUMS.index("mismatch")])


def _read(
    module: _Decoder, messages: pa.RecordBatch, wanted: Ints, large: np.ndarray[tuple[int], np.dtype[np.bool_]], context: Context
) -> tuple[EventRows, Ints]:
    """Read the wanted messages with the general reader. Returns their events and the message index of every event."""
    rows, owners = EventRows(), list[int]()
    columns = [messages.column(name) for name in ("topic", "partition", "offset", "timestamp_ms", "key", "value")]
    for i in wanted.tolist():  # one at a time, because all of them together may be large
        topic, partition, offset, timestamp_ms, key, value = (column[i].as_py() for column in columns)
        at = Coordinates(topic, partition, offset)
        before = len(rows.rows)
        try:
            if large[i]:
                raise DecodeError(f"the message is larger than {context.max_bytes} bytes", code="TOO_LARGE")
            rows.add(at, timestamp_ms, completed(module.read(key, value, context), key, module.read, context))
        except DecodeError as e:
            rows.add(at, timestamp_ms, [rejected(e, key, value)])
        owners += [i] * (len(rows.rows) - before)
    return rows, np.array(owners, np.int32)


def rejected(error: DecodeError, key: bytes | None, value: bytes | None) -> Event:
    """Return the event that represents a message that could not be decoded."""
    event = Event(kind="rejected", error_code=error.code, error=error.message, raw_key=key, raw_value=value)
    if not isinstance(error, WaitingError):
        return event
    return replace(event, commit_ts=error.commit_ts, database=error.database, table=error.table, schema_version=error.version)


def _sizes(messages: pa.RecordBatch) -> Ints:
    key, value = (pc.fill_null(pc.binary_length(messages.column(c)), 0) for c in ("key", "value"))
    return cast(Ints, pc.add(key, value).to_numpy(zero_copy_only=False))


__all__ = ["EVENT", "MAX_MESSAGE_BYTES", "Context", "decode", "decoder", "protocol_names", "rejected"]
