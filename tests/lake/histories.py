"""A feed's hours as decode would leave them, written by hand: events, manifest, decode record. Then order, validate, compact for real."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.lake import lakes
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import decoded_key, manifest_key
from tidelake.decode.record import record_of
from tidelake.errors import Coordinates
from tidelake.history.event import Event, EventRows, RowSchema, SchemaColumn, schema_rows
from tidelake.io.duckdb_door import write_jsonl
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut
from tidelake.lake.events import ensure_events
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Manifest, PartitionFacts
from tidelake.query.asof import table_asof
from tidelake.query.render import expressions, local
from tidelake.run import compact, order, validate
from tidelake.tso import parse_hour

TOPIC = "t"
Row = tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of one event. ts: commit ts, or the resolved ts."""

    partition: int
    event: Event


@dataclass
class Feeder:
    """Writes hour after hour of messages into a feed's lake."""

    folder: Path
    feed: Feed
    tables_sql: str
    offsets: Counter[int] = field(default_factory=Counter)
    begin: dict[int, int] = field(default_factory=dict)  # of the newest hour
    begins: dict[str, Counter[int]] = field(default_factory=dict)  # of every hour
    day: str = "2026-01-05"
    hour: int = 9
    stamp: int = 1  # Kafka timestamp of every message, epoch ms

    def __post_init__(self) -> None:
        self.feed.folder.mkdir(parents=True, exist_ok=True)
        (self.feed.folder / "tables.sql").write_text(self.tables_sql)

    def add(self, lake: Lake, messages: Sequence[Message]) -> str:
        """The next hour holds these messages; its name."""
        self.hour += 1
        self.begin = dict(self.offsets)
        name = f"{self.day}T{self.hour:02d}"
        self.begins[name] = Counter(self.offsets)
        self._write(lake, name, messages, 1)
        return name

    def scattered(self, lake: Lake, runs: Mapping[int, Sequence[Message]]) -> str:
        """The next hour holds messages of partition 0 with holes between them: runs of messages by their first offset. Its name."""
        self.hour += 1
        name, rows = f"{self.day}T{self.hour:02d}", EventRows()
        for first, messages in runs.items():
            for n, m in enumerate(messages):
                rows.add(Coordinates(TOPIC, 0, first + n), 1, [m.event])
        ranges = tuple((first, first + len(messages) - 1) for first, messages in runs.items())
        facts = partition_of(ranges[0][0], ranges[-1][1]).model_copy(update={"ranges": ranges})
        manifest = self._landed(lake, name, 1, {0: facts})
        self._decoded(lake, manifest, pa.Table.from_batches([pa.concat_batches([rows.batch(), schema_rows(rows.row_schemas.values())])]))
        return name

    def again(self, lake: Lake, name: str, messages: Sequence[Message]) -> None:
        """A second generation of the newest hour holds these instead of what it had, and is decoded."""
        lake.catalog.remove(ensure_events(lake.catalog, self.feed).identifier, {"hour": name})
        self.offsets = Counter(self.begin)
        self._write(lake, name, messages, 2)

    def redecoded(self, lake: Lake, name: str, messages: Sequence[Message], generation: int = 1) -> None:
        """Another decoder made these of the hour's messages, or they were landed again; as many in every partition."""
        lake.catalog.remove(ensure_events(lake.catalog, self.feed).identifier, {"hour": name})
        ends, self.offsets = self.offsets, Counter(self.begins[name])
        self._write(lake, name, messages, generation)
        self.offsets = ends

    def more(self, lake: Lake, name: str, messages: Sequence[Message]) -> None:
        """A second generation of an hour holds these beside what it has, and is decoded."""
        self._write(lake, name, messages, 2)

    def _write(self, lake: Lake, name: str, messages: Sequence[Message], generation: int) -> None:
        rows, first = EventRows(), dict(self.offsets)
        for m in messages:
            rows.add(Coordinates(TOPIC, m.partition, self.offsets[m.partition]), self.stamp, [m.event])
            self.offsets[m.partition] += 1
        parts = range(int(str(self.feed.partitions)))
        spans = {p: (first.get(p, 0), self.offsets[p] - 1) for p in parts if self.offsets[p] > first.get(p, 0)}
        batch = pa.concat_batches([rows.batch(), schema_rows(rows.row_schemas.values())])
        facts = {p: partition_of(*span) for p, span in spans.items()}
        self._decoded(lake, self._landed(lake, name, generation, facts), pa.Table.from_batches([batch]))

    def _landed(self, lake: Lake, name: str, generation: int, facts: Mapping[int, PartitionFacts]) -> Manifest:
        """The manifest of an hour that holds these partitions."""
        manifest = Manifest(
            feed=self.feed.name,
            hour=name,
            generation=generation,
            protocol=self.feed.protocol,
            layout="aiven-jsonl",
            sources=(),
            objects=(),
            partitions={TOPIC: dict(facts)},
            findings=(),
        )
        lake.store.write(manifest_key(self.feed.name, name, generation), manifest.to_json())
        return manifest

    def _decoded(self, lake: Lake, manifest: Manifest, table: pa.Table) -> None:
        """The hour's events are in the lake, with the record that says so."""
        identifier, name = ensure_events(lake.catalog, self.feed).identifier, manifest.hour
        lake.catalog.append(identifier, table.add_column(0, "hour", pa.array([name] * table.num_rows)), {"tidelake.hour": name})
        record = record_of(lake.catalog.load(identifier), manifest, name, "test")
        lake.store.write(decoded_key(self.feed.name, name), record.model_dump_json().encode())


def partition_of(first: int, last: int) -> PartitionFacts:
    """What a manifest says of a partition whose offsets first to last are landed."""
    return PartitionFacts(
        first=first, last=last, count=last - first + 1, bytes=0, ranges=((first, last),), gaps=(), min_timestamp_ms=1, max_timestamp_ms=1
    )


def feeder(folder: Path, tables_sql: str, partitions: int = 1, **changes: Any) -> Feeder:
    """A feed on a local folder with these tables before the first message."""
    return Feeder(folder=folder, feed=lakes.feed(folder, partitions=partitions, topics=(TOPIC,), **changes), tables_sql=tables_sql)


def publish(lake: Lake, hour: str) -> Cut | None:
    """order, validate, compact."""
    at = parse_hour(hour)
    if order(lake, at).staged is None:
        return None
    validate(lake, at)
    return compact(lake, at).cut


def publish_again(lake: Lake, hour: str, since: str, meanwhile: Callable[[], None] = lambda: None) -> tuple[Cut, dict[str, dict[str, int]]]:
    """order, validate, compact anew from an hour on, as a redo does once it has decoded; the cut and what differs."""
    at = parse_hour(hour)
    order(lake, at, since)
    validate(lake, at, since)
    meanwhile()
    report = compact(lake, at, since)
    assert report.cut is not None
    return report.cut, report.certificate["redo"]["tables"]


def rows_of(lake: Lake, table: str, ts: int | None = None) -> Counter[tuple[tuple[str, Any], ...]]:
    """A table's rows as printed, with their multiplicity. No columns of bytes, which are printed as objects: `printed`."""
    return Counter(tuple(row.items()) for row in printed(lake, table, ts))


def printed(lake: Lake, table: str, ts: int | None = None) -> list[dict[str, Any]]:
    """A table's rows as printed, in any order."""
    with table_asof(lake, table, ts) as found, tempfile.NamedTemporaryFile() as file:
        write_jsonl(local(found.rows, lake.feed.time_zone), expressions(found.columns), file.name)
        return [json.loads(line) for line in Path(file.name).read_text().split("\n") if line]


def row_schema(*columns: str, key: Sequence[str] = ("id",)) -> RowSchema:
    """`id bigint` … texts → a schema."""
    return RowSchema(tuple(SchemaColumn(name=n, type=t, key=n in key) for n, t in (c.split(" ", 1) for c in columns)))


def cells(*values: str | None) -> list[bytes | None]:
    """Texts as cells."""
    return [None if v is None else v.encode() for v in values]


def row(
    partition: int,
    op: str,
    ts: int,
    s: RowSchema,
    after: Row | None = None,
    before: Row | None = None,
    table: str = "k",
    database: str = "d",
) -> Message:
    """A row event."""
    event = Event(
        kind="row",
        op=op,
        commit_ts=ts,
        database=database,
        table=table,
        row_schema=s if after is not None else None,
        after=cells(*after) if after is not None else None,
        before_schema=s if before is not None else None,
        before=cells(*before) if before is not None else None,
    )
    return Message(partition=partition, event=event)


def resolved(ts: int, *partitions: int) -> list[Message]:
    """A resolved event for each partition."""
    return [Message(partition=p, event=Event(kind="resolved", commit_ts=ts)) for p in partitions or (0,)]


def ddl(ts: int, query: str, *partitions: int, table: str = "k") -> list[Message]:
    """A statement on each partition."""
    event = Event(kind="ddl", commit_ts=ts, database="d", table=table, ddl=query, ddl_type="5")
    return [Message(partition=p, event=event) for p in partitions or (0,)]


def catalog_of(folder: Path) -> LakeCatalog:
    """The catalog of the feed's lake."""
    return lakes.catalog(folder)
