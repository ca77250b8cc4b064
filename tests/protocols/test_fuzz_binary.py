"""Craft, Avro and Canal under fire: messages cut short, and generated ones with an oracle. tests/fuzz breaks them in every other way."""

from __future__ import annotations

import io
import os
import random
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import mutate, own_binary
from tests.protocols import avro_messages as avro
from tests.protocols import craft_messages as craft
from tests.protocols import vectors
from tests.protocols.both_paths import Message, batch, both, decoded, left
from tests.protocols.craft_messages import Column, Ddl, Resolved, Row, message, uvarint, varint
from tests.searches import examples
from tidelake.errors import DecodeError
from tidelake.history.event import Event
from tidelake.protocols import Context, decode
from tidelake.wire.binary import avro_scan, canal_scan, craft_scan
from tidelake.wire.binary.avro_schema import parse

SEED = int(os.environ.get("TIDELAKE_FUZZ_SEED", "20260101"))


def seed() -> int:
    print(f"TIDELAKE_FUZZ_SEED={SEED}")  # noqa: T201  shown when the test fails
    return SEED


def context(protocol: str) -> Context:
    return avro.context(own_binary.SCHEMAS) if protocol == "avro" else Context()


WHOLE = [pytest.param(p, m, id=f"{p}-{i}") for p, messages in own_binary.OWN.items() for i, m in enumerate(messages)]


@pytest.mark.parametrize(("protocol", "whole"), WHOLE)
def test_a_message_cut_at_any_byte_is_refused_and_the_whole_one_is_not(protocol: str, whole: Message) -> None:
    cuts = [*mutate.cuts(whole), whole]
    *cut, last = both(protocol, cuts, context(protocol))
    needless = [m for m in cuts[:-1] if m == (b"", whole[1]) and whole[1]] if protocol == "avro" else []  # a value needs no key
    assert [m for m, events in zip(cuts, cut, strict=False) if {e.kind for e in events} != {"rejected"}] == needless
    assert "rejected" not in {e.kind for e in last}


def test_canal_vectors_cut_at_any_byte_are_refused() -> None:
    for vector in vectors.load("canal"):
        cuts = list(mutate.cuts(vectors.record(vector)))
        assert {e.kind for events in both("canal", cuts, vectors.context(vector)) for e in events} == {"rejected"}


@pytest.mark.parametrize("trap", own_binary.craft_traps())
def test_sizes_that_agree_with_each_other_do_not_lead_out_of_a_message(trap: Message) -> None:
    ((found,),) = both("craft", [trap], Context())
    assert found.error_code == "BAD_LENGTH"


def test_rows_whose_text_outgrows_its_room_are_left_and_still_right() -> None:
    messages, context = own_binary.avro_flood()
    assert 0 < len(left("avro", messages, context)) < 50
    assert [e.after for (e,) in both("avro", messages, context)] == [[b"0." + b"0" * 30] * 20] * 50


@pytest.mark.parametrize("protocol", ["craft", "avro", "canal"])
def test_a_batch_may_be_empty_or_a_part_of_another(protocol: str) -> None:
    messages = own_binary.OWN[protocol]
    context = avro.context(own_binary.SCHEMAS)
    whole = batch([*messages, (None, None)])
    assert decode(protocol, whole.slice(0, 0), context).num_rows == 0
    assert decode(protocol, batch([]), context).num_rows == 0
    parts = [decode(protocol, whole.slice(i, 1), context).to_pylist() for i in range(len(whole))]
    rows = [row for part in parts for row in part if row["kind"] != "row_schema"]
    assert rows == [row for row in decode(protocol, whole, context).to_pylist() if row["kind"] != "row_schema"]


def test_a_scan_is_compiled_once_whatever_the_batch() -> None:
    for protocol, good in own_binary.OWN.items():
        whole = batch([*good, (None, None)])
        stored = io.BytesIO()
        pq.write_table(pa.table(whole), stored)
        for messages in (whole, whole.slice(1, 2), whole.slice(0, 0), batch([(None, b"")]), *pq.read_table(stored).to_batches()):
            decode(protocol, messages, avro.context(own_binary.SCHEMAS))
    kernels: list[Any] = [craft_scan.scan_messages, craft_scan.count_events, avro_scan.scan_messages, canal_scan.scan_messages]
    assert [len(kernel.signatures) for kernel in kernels] == [1, 1, 1, 1]


@pytest.mark.parametrize("protocol", ["craft", "avro", "canal"])
def test_threads_may_share_a_context(protocol: str) -> None:
    chance = random.Random(seed())
    good = own_binary.OWN[protocol]
    batches = [[*good, *(mutate.broken(*chance.choices(good, k=2), chance) for _ in range(50))] for _ in range(12)]
    context = avro.context(own_binary.SCHEMAS)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda messages: decoded(protocol, messages, context), batches))
    assert together == [decoded(protocol, messages, avro.context(own_binary.SCHEMAS)) for messages in batches]


SIGNED, UNSIGNED = st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, (1 << 64) - 1)
DOUBLES = st.floats() | st.floats(width=32)
TEXTS = st.binary(max_size=30)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def double_text(x: float) -> bytes:
    return b"NaN" if x != x else repr(x).encode()


def float_text(x: float) -> bytes:
    with np.errstate(over="ignore"):
        narrow = np.float32(x)
    return double_text(float(str(narrow)) if float(narrow) == x else x)


@st.composite
def craft_values(draw: st.DrawFn) -> tuple[int, int, st.SearchStrategy[tuple[bytes | None, bytes | None]]]:
    """Type code, flag, and values as bytes on the wire with their text."""
    flag = draw(st.sampled_from([0, 1, 0x40, 0x80, 0x81, 11, (1 << 64) - 1]))
    code = draw(st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 225, 245, 246, 247, 248, 249, 252, 254]))
    values: st.SearchStrategy[tuple[bytes | None, bytes | None]]
    if code in (16, 247, 248) or (code in (1, 2, 3, 8, 9) and flag & 0x80):
        values = UNSIGNED.map(lambda n: (uvarint(n), b"%d" % n))
    elif code in (1, 2, 3, 8, 9, 13):
        values = SIGNED.map(lambda n: (varint(n), b"%d" % n))
    elif code in (4, 5):
        values = DOUBLES.map(lambda x: (craft.double(x), float_text(x) if code == 4 else double_text(x)))
    else:
        values = TEXTS.map(lambda raw: (raw, raw))
    return code, flag, values | st.just((None, None))


CraftBatch = list[list[tuple[craft.Any, Any]]]


@st.composite
def craft_batches(draw: st.DrawFn) -> CraftBatch:
    """Messages of rows of a few tables, with the texts of their cells, and of other events."""
    tables = [
        (draw(st.none() | NAMES), draw(NAMES), [(name, *draw(craft_values())) for name in draw(st.lists(NAMES, max_size=6, unique=True))])
        for _ in range(draw(st.integers(1, 3)))
    ]

    def row() -> tuple[Row, Any]:
        schema, table, columns = draw(st.sampled_from(tables))
        cells: dict[str, list[tuple[bytes | None, bytes | None]]] = {
            side: [draw(values) for _, _, _, values in columns] for side in draw(st.sampled_from([["new"], ["old"], ["new", "old"]]))
        }
        sides: dict[str, list[Column]] = {
            side: [(name, code, flag, raw) for (name, code, flag, _), (raw, _) in zip(columns, found, strict=True)]
            for side, found in cells.items()
        }
        event = Row(schema=schema, table=table, ts=draw(UNSIGNED), partition=draw(st.integers(-1, (1 << 63) - 1)), **sides)
        return event, {side: [text for _, text in found] for side, found in cells.items()}

    def event() -> tuple[craft.Any, Any]:
        match draw(st.integers(0, 9)):
            case 0:
                return Resolved(ts=draw(UNSIGNED)), {}
            case 1:
                return Ddl(query=draw(NAMES), code=draw(st.integers(0, 99)), ts=draw(UNSIGNED)), {}
            case _:
                return row()

    return [[event() for _ in range(draw(st.integers(1, 4)))] for _ in range(draw(st.integers(1, 4)))]


def craft_event(written: craft.Any, texts: Any, found: Event) -> None:
    """What was found is what was written."""
    assert (found.commit_ts, found.database, found.table) == (written.ts, written.schema, written.table)
    assert found.physical_table_id == (None if written.partition == -1 else written.partition)
    if isinstance(written, Row):
        assert (found.after, found.before) == (texts.get("new"), texts.get("old"))
        for columns, row_schema in ((written.new, found.row_schema), (written.old, found.before_schema)):
            want = None if columns is None else [(name, flag) for name, _, flag, _ in columns]
            assert (None if row_schema is None else [(c.name, c.flag) for c in row_schema.columns]) == want
    else:
        assert (found.kind, found.ddl) == (("ddl", written.query) if isinstance(written, Ddl) else ("resolved", None))


@given(craft_batches())
@settings(max_examples=examples(150))
def test_generated_craft_messages_come_back_by_both_paths(written: CraftBatch) -> None:
    found = both("craft", [(None, message(*(e for e, _ in events))) for events in written], Context())
    for ours, theirs in zip(written, found, strict=True):
        for (event, texts), got in zip(ours, theirs, strict=True):
            craft_event(event, texts, got)


@given(craft_batches())
@settings(max_examples=examples(30))
def test_messages_of_rows_alone_are_never_left_to_the_general_reader(written: CraftBatch) -> None:
    rows = [[e for e, _ in events if isinstance(e, Row)] for events in written]
    assert left("craft", [(None, message(*events)) for events in rows if events], Context()) == []


def decimals(precision: int, scale: int) -> st.SearchStrategy[tuple[Any, bytes]]:
    def pair(n: int) -> tuple[Any, bytes]:
        digits = str(abs(n)).zfill(scale + 1)
        text = f"{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}" if scale else digits
        return Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)), f"{'-' * (n < 0)}{text}".encode()

    return st.integers(1 - 10**precision, 10**precision - 1).map(pair)


@st.composite
def avro_columns(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[tuple[Any, bytes | None]]]:
    """A type, and values as fastavro wants them with their text."""
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(30, precision)))
    kinds: list[tuple[dict[str, Any], Any]] = [
        (avro.kind("int", "INT"), st.integers(-(1 << 31), (1 << 31) - 1).map(lambda n: (n, b"%d" % n))),
        (avro.kind("long", "BIGINT"), SIGNED.map(lambda n: (n, b"%d" % n))),
        (avro.kind("long", "BIGINT UNSIGNED"), SIGNED.map(lambda n: (n, b"%d" % (n % (1 << 64))))),
        (avro.kind("float", "FLOAT"), st.floats(width=32).map(lambda x: (x, float_text(x)))),
        (avro.kind("double", "DOUBLE"), st.floats().map(lambda x: (x, double_text(x)))),
        (avro.kind("bytes", "DECIMAL", decimal=(precision, scale)), decimals(precision, scale)),
        (avro.kind("bytes", "BIT", length="64"), st.binary(min_size=1, max_size=8).map(lambda b: (b, b"%d" % int.from_bytes(b, "big")))),
        (avro.kind("bytes", "BLOB"), TEXTS.map(lambda b: (b, b))),
        (avro.kind("string", "TEXT"), NAMES.map(lambda s: (s, s.encode()))),
    ]
    return draw(st.sampled_from(kinds))


AvroBatch = tuple[dict[str, Any], list[list[tuple[Any, bytes | None]]], bool]


@st.composite
def avro_batches(draw: st.DrawFn) -> AvroBatch:
    """A schema, rows, and whether it has the extension."""
    columns = [(f"c{i}", draw(st.sampled_from([None, 0, 1])), *draw(avro_columns())) for i in range(draw(st.integers(1, 8)))]
    extended = draw(st.booleans())
    fields = [avro.field(name, kind, null=null) for name, null, kind, _ in columns]
    rows = [
        [draw(values if null is None else values | st.just((None, None))) for _, null, _, values in columns]
        for _ in range(draw(st.integers(1, 6)))
    ]
    return avro.schema(*fields, *(avro.EXTENSION if extended else [])), rows, extended


@given(avro_batches(), SIGNED)
@settings(max_examples=examples(200))
def test_what_fastavro_writes_comes_back_by_both_paths(generated: AvroBatch, ts: int) -> None:
    schema, rows, extended = generated
    key_schema = avro.schema(schema["fields"][0])
    messages: list[Message] = []
    for row in rows:
        values = {f["name"]: value for f, (value, _) in zip(schema["fields"], row, strict=False)}
        values |= {"_tidb_op": "u", "_tidb_commit_ts": ts, "_tidb_commit_physical_time": 1} if extended else {}
        messages.append((avro.confluent(1, written(key_schema, {"c0": values["c0"]})), avro.confluent(2, written(schema, values))))
    schemas = {1: key_schema, 2: schema}
    found = both("avro", messages, avro.context(schemas))
    assert [e.after for (e,) in found] == [[text for _, text in row] for row in rows]
    assert {(e.op, e.commit_ts) for (e,) in found} == {("update", ts % (1 << 64)) if extended else ("upsert", None)}
    assert left("avro", messages, avro.context(schemas)) == []
    deletes: list[Message] = [(key, None) for key, _ in messages]
    assert [e.before for (e,) in decoded("avro", deletes, avro.context(schemas))] == [[row[0][1]] for row in rows]


def written(schema: dict[str, Any], values: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), values)
    return out.getvalue()


def test_whatever_is_accepted_fastavro_reads_as_the_same() -> None:
    plain = avro.schema(
        avro.field("a", avro.kind("long", "BIGINT")), avro.field("s", avro.kind("string", "TEXT"), null=0), avro.field("b", "bytes", null=1)
    )
    good = written(plain, {"a": 300, "s": "text", "b": b"\xff"})
    chance, parsed = random.Random(seed()), fastavro.parse_schema(plain)
    broken = [mutate.damaged(good, good, chance) for _ in range(2_000)]
    found = both("avro", [(None, avro.confluent(2, payload)) for payload in broken], avro.context({2: plain}))
    accepted = [(payload, e.after) for payload, (e,) in zip(broken, found, strict=True) if e.after is not None]
    assert len(accepted) > 100
    for payload, cells in accepted:
        stream = io.BytesIO(payload)
        record: Any = fastavro.schemaless_reader(stream, parsed, None, handle_unicode_errors="surrogateescape")
        text = None if record["s"] is None else record["s"].encode(errors="surrogateescape")
        assert cells == [b"%d" % record["a"], text, record["b"]]
        assert stream.read() == b""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["record", "null", "int", "bytes", "decimal", "t", "", "BIT"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "name", "namespace", "fields", "logicalType", "precision", "scale", "connect.parameters", "tidb_type"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON.map(lambda fields: {"type": "record", "name": "t", "fields": [fields, {"name": "x", "type": fields}]}) | JSON)
@settings(max_examples=examples(300))
def test_any_json_is_a_schema_or_refused(schema: Any) -> None:
    found = avro.context({1: schema}).avro_schema
    assert found is not None
    try:
        assert parse(found(1)).fields
    except DecodeError as e:
        code = e.code
    else:
        code = "BAD_STRUCTURE"
    assert code == "BAD_STRUCTURE"
