"""Feeds whose messages say no commit ts: what happened upstream, the messages of each protocol that say so, and the truth by plain Python.

The truth applies one step after the other, per partition in the order of offsets; it knows nothing of commit ts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.lake import lakes
from tests.lake.histories import TOPIC, Feeder, partition_of
from tests.protocols import canal_messages as packets
from tests.protocols.json_messages import canal as canal_json
from tests.protocols.simple_messages import compact
from tests.protocols.untyped_messages import debezium, maxwell, maxwell_ddl, maxwell_rows
from tidelake.config.feed import Watermark
from tidelake.config.policy import Policy
from tidelake.config.source import Source
from tidelake.decode.landed_hour import decode_job
from tidelake.decode.landed_source import context_of, decoded
from tidelake.decode.positions import origins
from tidelake.history.event import MESSAGE
from tidelake.lake.events import ensure_events
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Manifest

Row = dict[str, str | None]
Sent = tuple[bytes | None, bytes | None]
Bag = Counter[tuple[tuple[str, Any], ...]]
TYPES = {"id": "bigint", "v": "varchar(20)", "n": "int"}
KINDS = {"insert": packets.INSERT, "update": packets.UPDATE, "delete": packets.DELETE}
SQL = "CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE d.m (v VARCHAR(20));"
A, B, C = {"id": "1", "v": "a"}, {"id": "1", "v": "b"}, {"id": "1", "v": "c"}


@dataclass(frozen=True)
class Step:
    """One row changed, or a statement (op `ddl`)."""

    op: str
    table: str
    before: Row | None = None
    after: Row | None = None
    sql: str = ""


def put(table: str, after: Row, before: Row | None = None) -> Step:
    """An insert, or an update of what was before."""
    return Step("insert" if before is None else "update", table, before, after)


def drop(table: str, before: Row) -> Step:
    """A delete."""
    return Step("delete", table, before)


def ddl(table: str, sql: str) -> Step:
    """A statement."""
    return Step("ddl", table, sql=sql)


def encoded(protocol: str, steps: Sequence[Step]) -> list[Sent]:
    """Messages for these steps, as many rows in one as the protocol can say. For Canal's packets all is in one, statements too."""
    if protocol == "canal":
        return [(None, packets.packet(*map(_entry, steps)))]
    if protocol == "debezium":
        return [_debezium(s) for s in steps]
    out: list[Sent] = []
    for kind, some in groupby(steps, key=_together if protocol == "canal-json" else lambda s: s.op == "ddl"):
        of_kind = list(some)
        if kind is True or of_kind[0].op == "ddl":
            out += [_statement(protocol, s) for s in of_kind]
        else:
            out.append((b"", compact(_flat(of_kind))) if protocol == "canal-json" else maxwell_rows(*map(_maxwell, of_kind)))
    return out


def _together(s: Step) -> tuple[str, str, tuple[str, ...]]:
    return s.op, s.table, tuple(s.after or s.before or ())


def _flat(steps: Sequence[Step]) -> dict[str, Any]:
    """As Alibaba Canal writes it: old values of changed columns only."""
    types = {name: TYPES[name] for name in steps[0].after or steps[0].before or {}}
    rows = [s.after or s.before for s in steps]
    old = [_changed(s) for s in steps] if steps[0].op == "update" else None
    keys = ["id"] if "id" in types else None
    return canal_json(steps[0].op.upper(), rows, old, types, id=7, database="d", table=steps[0].table, pkNames=keys)


def _changed(s: Step) -> Row:
    assert s.before is not None
    assert s.after is not None
    return {name: v for name, v in s.before.items() if s.after.get(name) != v}


def _statement(protocol: str, s: Step) -> Sent:
    if protocol == "maxwell":
        return maxwell_ddl(s.sql, database="d", table=s.table)
    nothing = {"isDdl": True, "sql": s.sql, "pkNames": None, "sqlType": None, "mysqlType": None, "old": None, "data": None}
    return None, compact(canal_json("ALTER", **{"types": {}}) | nothing | {"database": "d", "table": s.table})


def _maxwell(s: Step) -> dict[str, Any]:
    said: dict[str, Any] = {"data": s.after} if s.after else {"old": s.before}
    said |= {"old": _changed(s)} if s.op == "update" else {}
    return maxwell(s.op, database="d", table=s.table, **said)


def _debezium(s: Step) -> Sent:
    """Without schema and extension."""
    if s.op == "ddl":
        told = {"ddl": s.sql, "databaseName": "d", "tableChanges": [{"type": "ALTER", "id": f'"d"."{s.table}"'}]}
        return debezium(None, None, {"databaseName": "d"}, commit_ts=None, db="d", table=s.table, **told)
    row = s.after or s.before or {}
    handle = {"id": row["id"]} if "id" in row else {}
    images = {side: image for side, image in (("before", s.before), ("after", s.after)) if image is not None}
    return debezium(s.op[0].replace("i", "c"), None, handle, commit_ts=None, db="d", table=s.table, **images)


def _entry(s: Step) -> bytes:
    if s.op == "ddl":
        return packets.ddl(s.sql, schema="d", table=s.table)
    image = packets.row_data(_columns(s.after), _columns(s.before))
    return packets.entry(packets.header("d", s.table, KINDS[s.op]), packets.change(KINDS[s.op], image))


def _columns(row: Row | None) -> list[packets.Column]:
    return [packets.Column(name, TYPES[name], value, key=name == "id") for name, value in (row or {}).items()]


@dataclass
class Truth:
    """Tables as plain lists of rows, changed step by step."""

    tables: dict[str, list[Row]] = field(default_factory=lambda: {"k": [], "m": []})

    def apply(self, s: Step) -> None:
        """One step; raises ValueError for a row that is not there."""
        rows = self.tables.setdefault(s.table, [])
        if s.op == "ddl":
            _executed(rows, s.sql)
        if s.before is not None:
            rows.remove(s.before)
        if s.after is not None:
            rows.append(dict(s.after))

    def of(self, table: str) -> Bag:
        """As `rows_of` gives a table."""
        return Counter(tuple(r.items()) for r in self.tables[table])


def _executed(rows: list[Row], sql: str) -> None:
    words = sql.split()
    if words[0] == "TRUNCATE":
        rows.clear()
    for row in rows if words[3:5] == ["ADD", "COLUMN"] else ():
        row[words[5]] = words[-1] if "DEFAULT" in words else None


class OffsetFeeder(Feeder):
    """Hours of messages, landed and decoded as the stages would, without Spark."""

    def put(self, lake: Lake, sent: Mapping[int, Sequence[Sent]], hour: str | None = None, first: Mapping[int, int] | None = None) -> str:
        """The next hour (or a first generation of this one) holds these messages by partition; first: other offsets to begin with."""
        self.hour += 1
        name = hour or f"2026-01-05T{self.hour:02d}"
        for p, offset in (first or {}).items():
            self.offsets[p] = offset
        spans = {p: (self.offsets[p], self.offsets[p] + len(messages) - 1) for p, messages in sent.items() if messages}
        manifest = self._landed(lake, name, 1, {p: partition_of(*span) for p, span in spans.items()})
        self._decode(lake, manifest, {p: list(zip(range(spans[p][0], spans[p][1] + 1), sent[p], strict=True)) for p in spans})
        self.offsets.update({p: len(messages) for p, messages in sent.items()})
        return name

    def again_with(self, lake: Lake, name: str, sent: Mapping[int, Sequence[tuple[int, Sent]]]) -> None:
        """A second generation of an hour, with all its messages by partition and offset."""
        lake.catalog.remove(ensure_events(lake.catalog, self.feed).identifier, {"hour": name})
        manifest = self._landed(lake, name, 2, {p: partition_of(min(o for o, _ in m), max(o for o, _ in m)) for p, m in sent.items()})
        self._decode(lake, manifest, sent)

    def _decode(self, lake: Lake, manifest: Manifest, sent: Mapping[int, Sequence[tuple[int, Sent]]]) -> None:
        context, begins = context_of(decode_job(self.feed, [])), origins(manifest)
        batches = [decoded(self.feed.protocol, _batch(p, m), context, begins) for p, m in sent.items()]
        table = pa.Table.from_batches(batches)
        assert "rejected" not in table.column("kind").to_pylist(), table.column("error").to_pylist()
        self._decoded(lake, manifest, table)


def _batch(partition: int, messages: Sequence[tuple[int, Sent]]) -> pa.RecordBatch:
    rows = ({"topic": TOPIC, "partition": partition, "offset": o, "timestamp_ms": 1, "key": k, "value": v} for o, (k, v) in messages)
    return pa.RecordBatch.from_pylist(list(rows), schema=MESSAGE)


@contextmanager
def opened(folder: Path, protocol: str, partitions: int = 2, **watermark: Any) -> Iterator[tuple[OffsetFeeder, Lake]]:
    """A fresh feed ordered by offsets and its lake."""
    rule = Watermark.model_validate({"from": "offsets"} | watermark)
    source = Source(uri=str(folder / "archive"), layout="aiven-jsonl", closed_by="quiet", quiet_minutes=0)
    policy = Policy(before_images="all", on_before_image="block")  # repeats make no old value look lost
    feed = lakes.feed(folder, protocol=protocol, partitions=partitions, watermark=rule, source=source, policy=policy)
    made = OffsetFeeder(folder=folder, feed=feed, tables_sql=SQL)
    (folder / "lake").mkdir(parents=True, exist_ok=True)
    with Lake.of(made.feed) as lake:
        yield made, lake


def sent(protocol: str, messages: Sequence[Sequence[Step]]) -> list[Sent]:
    """The messages as the protocol says them."""
    return [m for steps in messages for m in encoded(protocol, steps)]
