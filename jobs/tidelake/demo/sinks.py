"""The changefeeds of the bazaar: topics, limits and encoder by protocol (docs/reference/protocols.md 1.7, 2 to 5)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from tidelake.demo.bazaar import tables
from tidelake.demo.messages.encode_avro import AvroEncoder
from tidelake.demo.messages.encode_canal_json import CanalJsonEncoder
from tidelake.demo.messages.encode_craft import CraftEncoder
from tidelake.demo.messages.encode_debezium import DebeziumEncoder
from tidelake.demo.messages.encode_open import OpenEncoder
from tidelake.demo.messages.encode_simple import SimpleEncoder
from tidelake.demo.messages.model import Encoder, SourceChange, SourceTable


@dataclass(frozen=True)
class ProtocolSink:
    """How one changefeed delivers.

    Attributes:
        topic: Name, possibly with {database} and {table}.
        batch: Maximum events per message.
        ddl_partitions: Number of partitions that get DDL messages.
        marks: DDL and resolved ts are sent. Without them (Avro) tables without a key are left out and checkpoints are recorded.
        bootstraps: Number of partitions that get a table's schema, before the first row that names it (Simple).
    """

    protocol: str
    topic: str
    partitions: int
    batch: int
    ddl_partitions: int
    encoder: Callable[[int, Iterable[SourceTable]], Encoder]  # (seed, all definitions of the tables that it replicates)
    marks: bool = True
    bootstraps: int = 0

    def wants(self, table: SourceTable) -> bool:
        """Whether the table is replicated."""
        return self.marks or bool(table.key)

    def route(self, change: SourceChange) -> tuple[str, int]:
        """Return (topic, partition) by table name and key, so that a row stays in its partition until one of them changes."""
        table = change.table
        topic = self.topic.format(database=table.database, table=table.name) if "{" in self.topic else self.topic
        return topic, zlib.crc32(f"{table.database}.{table.name}{change.key!r}".encode()) % self.partitions

    @property
    def topics(self) -> list[str]:
        """Return the topics known beforehand, which get every resolved ts."""
        return [] if "{" in self.topic else [self.topic]


def _led_to(definitions: Iterable[SourceTable]) -> Iterable[SourceTable]:
    """The definitions after the initial ones."""
    return islice(definitions, len(tables()), None)


SINKS = {
    s.protocol: s
    for s in (
        ProtocolSink("open", "bazaar.open", 3, 16, 3, lambda seed, definitions: OpenEncoder()),
        ProtocolSink("craft", "bazaar.craft", 3, 64, 3, lambda seed, definitions: CraftEncoder()),
        ProtocolSink("canal-json", "bazaar.canal", 3, 1, 1, lambda seed, definitions: CanalJsonEncoder(seed=seed)),
        ProtocolSink(
            "canal-json-cc", "bazaar.canal-cc", 3, 1, 1, lambda seed, definitions: CanalJsonEncoder(seed=seed, content_compatible=True)
        ),
        ProtocolSink("simple-json", "bazaar.simple", 3, 1, 3, lambda seed, definitions: SimpleEncoder(_led_to(definitions)), bootstraps=1),
        ProtocolSink("debezium", "bazaar.debezium", 3, 1, 3, lambda seed, definitions: DebeziumEncoder(_led_to(definitions))),
        ProtocolSink(
            "debezium-bare", "bazaar.debezium-bare", 3, 1, 3, lambda seed, definitions: DebeziumEncoder(_led_to(definitions), schema=False)
        ),
        ProtocolSink("avro", "cdc_{database}_{table}", 2, 1, 0, lambda seed, definitions: AvroEncoder(definitions), marks=False),
    )
}
PROTOCOLS = tuple(SINKS)
