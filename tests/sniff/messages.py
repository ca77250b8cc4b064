"""Messages of every protocol, and what `judge` says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tests.protocols import avro_messages, canal_messages, simple_messages, untyped_messages
from tidelake.demo.messages.encode_avro import AvroEncoder
from tidelake.demo.messages.encode_canal_json import CanalJsonEncoder
from tidelake.demo.messages.encode_craft import CraftEncoder
from tidelake.demo.messages.encode_open import OpenEncoder
from tidelake.demo.messages.model import Ddl, Encoder, SourceChange, SourceColumn, SourceTable
from tidelake.history.event import MESSAGE
from tidelake.protocols import Context
from tidelake.sniff import Guess, SniffVerdict, judge

Message = tuple[bytes | None, bytes | None]

TS = 454930016746434001
ORDERS = SourceTable("shop", "orders", (SourceColumn("id", "int(11)", 3, 0x0B), SourceColumn("name", "varchar(16)", 15, 0x40)))
CHANGES = [
    SourceChange(ORDERS, TS, "insert", None, (1, "a"), 1),
    SourceChange(ORDERS, TS + 1, "update", (1, "a"), (1, "b"), 1),
    SourceChange(ORDERS, TS + 2, "delete", (1, "b"), None, 1),
]
STATEMENT = Ddl(TS + 3, "shop", "orders", "TRUNCATE TABLE `orders`", 11)
ENCODERS: dict[str, type[Encoder]] = {"open": OpenEncoder, "craft": CraftEncoder, "canal-json": CanalJsonEncoder}


def encoded(encoder: Encoder) -> list[Message]:
    """Three row messages, a statement and a resolved ts."""
    return [*(encoder.rows([change], 0) for change in CHANGES), encoder.ddl(STATEMENT, 0), encoder.resolved(TS + 4, 0)]


def avro() -> tuple[list[Message], dict[int | str, Any]]:
    """Two rows and a tombstone in Confluent's framing, and their schemas."""
    encoder = AvroEncoder()
    return [encoder.rows([change]) for change in CHANGES], dict(encoder.schemas)


def simple(protocol: str) -> list[Message]:
    """A bootstrap message and a row of it."""
    schema = simple_messages.table_schema([simple_messages.column("id")], [simple_messages.index("id", primary=True)])
    row = simple_messages.json_row(data={"id": "1"}) if protocol == "simple-json" else simple_messages.avro_row(data={"id": (1, 1)})
    return [simple_messages.bootstrap(protocol, schema), row]


def of_every_protocol() -> dict[str, list[Message]]:
    """Some messages of each protocol."""
    known = {name: encoded(encoder()) for name, encoder in ENCODERS.items()} | {"avro": avro()[0]}
    known |= {name: simple(name) for name in ("simple-json", "simple-avro")}
    known["canal"] = [
        (None, canal_messages.packet(entry)) for entry in (canal_messages.insert(canal_messages.ID), canal_messages.ddl("DROP TABLE t"))
    ]
    known["debezium"] = [untyped_messages.debezium("c", after={"id": 1})]
    known["maxwell"] = [untyped_messages.maxwell_rows(untyped_messages.maxwell("insert", data={"id": 1})), untyped_messages.maxwell_ddl()]
    known["csv"] = [(None, b'"I","t","db",454930016746434001,1,"x"\r\n')]
    return known


def batch(messages: Iterable[Message]) -> pa.RecordBatch:
    rows = [{"topic": "t", "partition": 3, "offset": 100 + i, "key": k, "value": v} for i, (k, v) in enumerate(messages)]
    return pa.RecordBatch.from_pylist(rows, schema=MESSAGE)


def verdict(messages: Sequence[Message], schemas: Mapping[int | str, Any] | None = None) -> SniffVerdict:
    return judge([batch(messages)], Context() if schemas is None else avro_messages.context(schemas))


def best(messages: Sequence[Message], schemas: Mapping[int | str, Any] | None = None) -> Guess:
    """The best guess; there must be one."""
    return verdict(messages, schemas).guesses[0]


def texts(guess: Guess) -> str:
    """The evidence as one text."""
    return "\n".join(e.text for e in guess.evidence)
