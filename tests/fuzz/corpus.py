"""Good messages to break: the vectors of tests/data/vectors and our hand-made ones.

Messages that are decoded with one and the same context form a group: what a decoder remembers of one may harm another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any

import pyarrow as pa

from tests.fuzz import own_binary, own_json
from tests.protocols import untyped, untyped_messages, vectors
from tests.protocols.both_paths import Message
from tests.protocols.json_messages import frames, open_raw
from tidelake.config.options import SinkOptions
from tidelake.errors import DecodeError
from tidelake.history.event import SchemaColumn
from tidelake.protocols import Context, decoder, protocol_names

OWN: dict[str, list[Message]] = own_binary.OWN | own_json.OWN
PACKED = ("open", "canal-json", "simple-json", "simple-avro", "debezium")  # protocols with a compression option
METHODS = ("snappy", "lz4")

Columns = Callable[[str, str], tuple[SchemaColumn, ...] | None]


@dataclass(frozen=True, eq=False)
class Group:
    """Messages of one protocol under one set of sink options. before: messages that teach the decoder what the others need."""

    protocol: str
    options: dict[str, Any]
    messages: list[Message]
    schemas: dict[int | str, str] = field(default_factory=dict)  # Avro's, by id
    before: list[Message] = field(default_factory=list)

    def context(self) -> Context:
        """A fresh one, that knows all there is to know of the good messages."""
        found = Context(options=SinkOptions(**self.options), avro_schema=self._schema, columns=_columns(self.protocol))
        plain = Context(memory=found.memory)
        for message in self.before:
            decoder(self.protocol).read(*message, plain)
        return found

    def _schema(self, wanted: int | str) -> str:
        if wanted not in self.schemas:
            raise DecodeError(f"no schema {wanted!r}", code="UNKNOWN_SCHEMA")
        return self.schemas[wanted]


@cache
def groups(protocol: str) -> tuple[Group, ...]:
    """All groups of a protocol."""
    own = {number: json.dumps(schema) for number, schema in own_binary.SCHEMAS.items()}
    found = [Group(protocol, {}, OWN[protocol], own if protocol == "avro" else {})]
    for method in METHODS if protocol in PACKED else ():
        options = {"large_message_handle_compression": method, "large_message_handle_option": "claim-check"}
        found.append(Group(protocol, options, [packed(protocol, m, method) for m in OWN[protocol]]))
    if protocol == "craft":
        found.append(Group(protocol, {}, own_binary.craft_traps()))
    return *found, *_of_vectors(protocol)


def packed(protocol: str, message: Message, method: str) -> Message:
    """The message as a feed with this compression carries it (docs/reference/protocols.md 1.5)."""

    def compress(data: bytes | None) -> bytes | None:
        return data if data is None else pa.Codec(method).compress(data, asbytes=True)

    key, value = message
    match protocol:
        case "open":
            events = zip(frames(key or b"", 8), frames(value or b"", 0), strict=True)
            return open_raw(*((k, compress(v) or b"" if v else v) for k, v in events))
        case "debezium":
            return compress(key), compress(value)
        case _:
            return key, compress(value)


def _of_vectors(protocol: str) -> list[Group]:
    by_options: dict[str, Group] = {}
    for number, vector in enumerate(vectors.load(protocol)):
        options = vectors.options(vector)
        group = by_options.setdefault(json.dumps(options, sort_keys=True), Group(protocol, options, []))
        key, value = vectors.record(vector)
        if protocol == "avro":
            key, value = _renumbered(group, vector, (key, value), 2 * number + 1000)
        group.before.extend(m for m in vectors.before(vector) if m not in group.before)
        group.messages.extend((key, part) for part in vectors.parts(vector, value))
    return list(by_options.values())


def _renumbered(group: Group, vector: dict[str, Any], message: Message, first: int) -> Message:
    """Schema ids of their own: every vector counts its schemas from one."""
    sides = list(message)
    for i, side in enumerate(("key", "value")):
        payload, schema = sides[i], vector.get(f"{side}_schema")
        if payload and schema is not None:
            if payload[0] == 0 and len(payload) >= 5:
                payload = sides[i] = b"\0" + (first + i).to_bytes(4, "big") + payload[5:]
            group.schemas[vectors.schema_id(payload)] = json.dumps(schema)
    return sides[0], sides[1]


@cache
def _columns(protocol: str) -> Columns | None:
    """Of the vectors' tables and of our own, for protocols that do not say them."""
    if protocol not in untyped.PROTOCOLS:
        return None
    of_vectors = untyped.columns(protocol)

    def find(database: str, table: str) -> tuple[SchemaColumn, ...] | None:
        return untyped_messages.COLUMNS if (database, table) == ("db", "t") else of_vectors(database, table) if of_vectors else None

    return find


def size(message: Message) -> int:
    """Bytes of key and value."""
    return len(message[0] or b"") + len(message[1] or b"")


def wholes(protocol: str) -> Iterator[tuple[int, Message]]:
    """Every good message, with the number of its group."""
    yield from chain.from_iterable(((i, m) for m in group.messages) for i, group in enumerate(groups(protocol)))


def names(chosen: list[str] | None) -> list[str]:
    """The protocols to try: all, or those chosen. Raises ConfigError for an unknown one."""
    for name in chosen or ():
        decoder(name)
    return [p for p in protocol_names() if not chosen or p in chosen]
