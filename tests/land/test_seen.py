"""What the manifest says of watermarks and statements, which landing finds without the decoders."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.archives.objects import Message
from tests.land.archive import HOUR, make_feed, manifest, put
from tests.protocols import vectors
from tests.protocols.json_messages import column, open_key, open_message
from tidelake.config.policy import ColumnPolicy, Policy
from tidelake.demo.messages.encode_avro import AvroEncoder
from tidelake.demo.messages.encode_canal_json import CanalJsonEncoder
from tidelake.demo.messages.encode_craft import CraftEncoder
from tidelake.demo.messages.encode_debezium import DebeziumEncoder
from tidelake.demo.messages.encode_open import OpenEncoder
from tidelake.demo.messages.encode_simple import SimpleEncoder
from tidelake.demo.messages.varints import zigzag
from tidelake.errors import DecodeError
from tidelake.history.event import MESSAGE
from tidelake.land import land_hour, partition
from tidelake.land.store.manifest import LandedWatermarks
from tidelake.protocols import decoder
from tidelake.wire.resolved_ts import resolved

TS = (1 << 63) + 5  # TSO are unsigned
BATCH_OF_RESOLVED = "java-fixture-rts_1"  # three in one message, as no encoder of TiCDC writes them
SIMPLE_AVRO = b"\x16\x00\x00" + b"".join(map(zigzag, (1, 455000684494848001, 2)))
ENCODED = [
    ("open", OpenEncoder().resolved(TS)),
    ("craft", CraftEncoder().resolved(TS)),
    ("avro", AvroEncoder().resolved(TS)),
    ("canal-json", CanalJsonEncoder().resolved(TS, 1)),
    ("debezium", DebeziumEncoder(schema=True).resolved(TS, 1)),
    ("debezium", DebeziumEncoder(schema=False).resolved(TS, 1)),
    ("simple-json", SimpleEncoder().resolved(TS, 1)),
]


def batch(*records: tuple[bytes | None, bytes | None]) -> pa.RecordBatch:
    rows = [{"topic": "t", "partition": 0, "offset": 10 + i, "key": key, "value": value} for i, (key, value) in enumerate(records)]
    return pa.RecordBatch.from_pylist(rows, schema=MESSAGE)


def found(protocol: str, *records: tuple[bytes | None, bytes | None]) -> list[tuple[int, int]]:
    rows, stamps = resolved(protocol, batch(*records))
    return list(zip(rows.tolist(), stamps, strict=True))


@pytest.mark.parametrize(("protocol", "record"), ENCODED)
def test_a_resolved_event_is_seen_among_others(protocol: str, record: tuple[bytes | None, bytes]) -> None:
    others = [(None, None), (None, b""), (b"", b"\x01"), (b"k", b"x" * len(record[1])), (b"", b"{" * 200), (b"", bytes(8)), (b"", bytes(9))]
    assert found(protocol, *others, record, *others, record) == [(7, TS), (15, TS)]


def test_what_is_cut_or_not_quite_one_is_none() -> None:
    for protocol, (key, value) in ENCODED:
        cut = [(key, value[:n]) for n in range(len(value))]
        assert found(protocol, *cut) == [], protocol
        assert found(protocol, (key, value + b"\x00")) == [], protocol
    key, value = ENCODED[0][1]
    assert found("open", (key.replace(b'"t":3', b'"t":1'), value), (key[:-1], value), (key + key, value), (None, value)) == []
    assert found("avro", (b"k", ENCODED[2][1][1])) == []
    assert found("simple-avro", (None, SIMPLE_AVRO), (None, SIMPLE_AVRO[:3] + b"\x04" + SIMPLE_AVRO[4:])) == [(0, 455000684494848001)]
    assert found("maxwell", *(record for _, record in ENCODED)) == []


@pytest.mark.parametrize("protocol", vectors.PROTOCOLS)
def test_the_decoders_find_the_same(protocol: str) -> None:
    every = [v for v in vectors.load(protocol) if v["name"] != BATCH_OF_RESOLVED]
    want = list[tuple[int, int]]()
    for row, vector in enumerate(every):
        try:
            events = decoder(protocol).read(*vectors.record(vector), vectors.context(vector))
        except DecodeError:
            continue
        want += [(row, e.commit_ts) for e in events if e.kind == "resolved" and e.commit_ts is not None]
    assert found(protocol, *map(vectors.record, every)) == want


@pytest.mark.parametrize("in_order", [True, False])
def test_the_manifest_says_how_many_there_are_and_the_largest(in_order: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_order:
        monkeypatch.setattr(partition, "_may_be_in_order", lambda *_: False)
    feed = make_feed(tmp_path, protocol="open", partitions=2)
    key, value = open_message((open_key(7), {"u": {"id": column(3, 1, key=True)}}))
    marks = {3: 500, 5: 900, 6: 900, 8: 700}  # one goes back
    records = {i: open_message(({"ts": marks[i], "t": 3}, None)) if i in marks else (key, value) for i in range(10)}
    put(feed, 0, [Message(i, v, k) for i, (k, v) in records.items()])
    put(feed, 1, [Message(i, value, key) for i in range(4)])
    land_hour(feed, HOUR)
    facts = manifest(feed).partitions["shop"]
    assert facts[0].watermarks == LandedWatermarks(count=4, resolved_ts=900, offset=5)
    assert facts[1].watermarks is None


@pytest.mark.parametrize("in_order", [True, False])
def test_statements_are_counted_for_decode_where_it_masks_columns(in_order: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_order:
        monkeypatch.setattr(partition, "_may_be_in_order", lambda *_: False)
    columns, key = {"db.t": {"v": ColumnPolicy(mask="hash")}}, "a key of these tests, long enough"
    at_decode: dict[str, object] = {"columns": columns, "policy": Policy(mask_key=key)}
    row = open_message((open_key(7), {"u": {"id": column(3, 1, key=True)}}))
    ddl = open_message(({"ts": 8, "scm": "db", "tbl": "t", "t": 2}, {"q": "ALTER TABLE t ADD w INT", "t": 1}))
    for name, protocol, settings, counted in [
        ("none", "open", {}, None),
        ("order", "open", {"columns": columns, "policy": Policy(mask_key=key, mask_at="order")}, None),
        ("decode", "open", at_decode, 2),
        ("craft", "craft", at_decode, 2),
        ("without", "avro", at_decode | {"avro": {"schemas": "a.json"}, "watermark": {"from": "checkpoints", "uri": "c.json"}}, None),
    ]:
        feed = make_feed(tmp_path / name, protocol=protocol, **settings)
        for number, records in enumerate(([row, ddl, row, ddl], [row])):
            put(feed, number, [Message(i, v, k) for i, (k, v) in enumerate(records)])
        land_hour(feed, HOUR)
        facts = manifest(feed).partitions["shop"]
        assert (name, facts[0].statements, facts[1].statements) == (name, counted, counted and 0)
