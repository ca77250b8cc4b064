"""Simple in Avro by hand-made messages (docs/reference/protocols.md 9.1): the general reader and the compiled scan say the same."""

from __future__ import annotations

import base64
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.protocols import both_paths
from tests.protocols.both_paths import Message, left
from tests.protocols.craft_messages import varint
from tests.protocols.simple_messages import (
    BYTES,
    DOUBLE,
    FLOAT,
    LONG,
    NULL,
    STRING,
    TABLE_ID,
    TIME,
    TS,
    UNSIGNED,
    VERSION,
    AvroValue,
    avro_bootstrap,
    avro_ddl,
    avro_map,
    avro_message,
    avro_row,
    column,
    compact,
    index,
    some,
    table_schema,
    text,
)
from tidelake.config.options import SinkOptions
from tidelake.errors import DECODE_CODES
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.protocols import Context
from tidelake.wire.simple.simple_schema import schemas

COLUMNS = [
    column("u", "bigint unsigned"),
    column("name", "varchar", length=20),
    column("blob", "blob"),
    column("at", "timestamp", length=26),
    column("f", "float"),
    column("d", "double"),
    column("bits", "bit", length=64),
    column("kind", "set", elements=["a", "b"]),
    column("n", "int"),
    column("gone", "int") | {"default": "5"},
]
SCHEMA = table_schema(COLUMNS, [index("name", "u", primary=True)])
DATA: dict[str, AvroValue] = {
    "n": (LONG, -(1 << 63)),
    "f": (FLOAT, 3.1414999961853027),
    "bits": (LONG, -1),
    "blob": (BYTES, b"\0\xff"),
    "kind": (LONG, 3),
    "u": (UNSIGNED, (1 << 64) - 1),
    "at": (TIME, "2024-01-01 00:00:00.123456"),
    "d": (DOUBLE, -2.5e-300),
    "name": (STRING, "nä" * 50),
}
CELLS: list[bytes | None] = [
    b"18446744073709551615",
    ("nä" * 50).encode(),
    b"\0\xff",
    b"2024-01-01 00:00:00.123456",
    b"3.1415",
    b"-2.5e-300",
    b"18446744073709551615",
    b"3",
    b"-9223372036854775808",
]
BOOTSTRAP = avro_bootstrap(SCHEMA)
HEAD = text("db") + text("t") + varint(TABLE_ID)
TIMES = varint(TS) + varint(5) + varint(VERSION)
CHECKSUM = varint(2) + b"\0" + varint(1260808327) + varint(0)


def both(*messages: Message, context: Context | None = None) -> list[list[Event]]:
    return both_paths.both("simple-avro", messages, context or Context())


def code(message: Message) -> str | None:
    """Of the error of a message after its schema and a row that the scan has learned from, the same by both ways."""
    events = both(BOOTSTRAP, avro_row("INSERT", DATA), message)[2]
    assert len(events) == 1
    assert events[0].error_code in DECODE_CODES
    return events[0].error_code


def test_a_row_has_the_columns_and_types_of_its_schema_in_its_order() -> None:
    bootstrap, (row,) = both(BOOTSTRAP, avro_row("INSERT", DATA))
    assert bootstrap == [Event(kind="bootstrap", database="db", table="t")]
    assert row.row_schema is not None
    assert [(c.name, c.type, c.key) for c in row.row_schema.columns[:3]] == [
        ("u", "bigint unsigned", True),
        ("name", "varchar", True),
        ("blob", "blob", False),
    ]
    assert [c.full_type for c in row.row_schema.columns[3:]] == ["timestamp(6)", None, None, "bit(64)", "set('a','b')", None]
    assert row.after == CELLS
    assert (row.op, row.commit_ts, row.physical_table_id, row.before) == ("insert", TS, TABLE_ID, None)


def test_updates_have_both_images_and_deletes_the_old_one() -> None:
    whole: dict[str, AvroValue] = {"gone": (NULL, None)} | DATA
    update, delete = (e[0] for e in both(BOOTSTRAP, avro_row("UPDATE", whole, DATA), avro_row("DELETE", None, {"n": (LONG, 1)}))[1:])
    assert (update.op, update.after, update.before) == ("update", [*CELLS, None], CELLS)
    assert (delete.op, delete.row_schema, delete.before) == ("delete", None, [b"1"])


def test_the_scan_takes_rows_and_watermarks_and_leaves_the_rest() -> None:
    mark = avro_message(0, varint(9), varint(5))
    rows = [avro_row("INSERT", DATA), avro_row("UPDATE", DATA, DATA), avro_row("DELETE", None, DATA, checksum=CHECKSUM), mark]
    context = Context()
    assert left("simple-avro", [BOOTSTRAP, *rows, avro_row("INSERT", DATA, handle_only=True)], context) == [0, 5]
    assert both(*rows, context=context)[3] == [Event(kind="resolved", commit_ts=9)]


def test_a_row_of_an_unknown_schema_has_its_columns_by_name_without_types() -> None:
    (event,) = both(avro_row("INSERT", DATA))[0]
    assert event.row_schema == RowSchema(tuple(SchemaColumn(name) for name in sorted(DATA)))
    assert event.after is not None
    assert list(event.after)[1] == b"-1"
    assert left("simple-avro", [avro_row("INSERT", DATA)], Context()) == []


def test_a_schema_serves_rows_before_it_in_its_batch() -> None:
    rows = both_paths.decoded("simple-avro", [avro_row("INSERT", DATA), BOOTSTRAP], Context())
    assert rows[0][0].after == CELLS


def test_statements_bring_schemas_and_name_their_table() -> None:
    context = Context()
    former = table_schema(COLUMNS[:1], table="old")
    (event,) = both(avro_ddl("RENAME", "RENAME TABLE `old` TO `t`", SCHEMA, former), context=context)[0]
    assert event == Event(kind="ddl", commit_ts=TS, database="db", table="t", ddl="RENAME TABLE `old` TO `t`", ddl_type="RENAME")
    assert set(schemas(context.memory).known) == {("db", "t", VERSION), ("db", "old", VERSION)}
    assert both(avro_ddl("QUERY", "CREATE DATABASE `d`"))[0][0].database == "d"
    assert both(avro_ddl("ERASE", "DROP TABLE `old`", None, former))[0][0].table == "old"


def test_marks_of_large_messages() -> None:
    handle, claim = (e[0] for e in both(avro_row("INSERT", DATA, handle_only=True), avro_row("INSERT", DATA, claim="x.json")))
    assert (handle.handle_only, handle.claim_check, claim.handle_only, claim.claim_check) == (True, None, False, "x.json")
    file = compact({"key": None, "value": base64.b64encode(avro_row("INSERT", DATA)[1] or b"").decode()})
    context = Context(options=SinkOptions(large_message_handle_option="claim-check"))
    assert both(BOOTSTRAP, (b"", file), context=context)[1][0].after == CELLS
    packed = [(b"", pa.compress(value, "snappy", asbytes=True)) for _, value in (BOOTSTRAP, avro_row("INSERT", DATA))]
    context = Context(options=SinkOptions(large_message_handle_compression="snappy"))
    assert both(*packed, context=context)[1][0].after == CELLS


def test_maps_may_come_in_blocks_and_blocks_may_say_their_size() -> None:
    entries = [text(name) + some(varint(i)) for i, name in enumerate(("n", "u", "kind"))]
    several = b"".join(varint(1) + e for e in entries) + b"\0"
    sized = varint(-3) + varint(len(b"".join(entries))) + b"".join(entries) + b"\0"
    for blocks in (several, sized):
        message = avro_message(3, HEAD, b"\0", TIMES, b"\0\0\0", b"\2" + blocks, b"\0")
        assert both(BOOTSTRAP, message)[1][0].after == [b"1", b"2", b"0"]


def row(image: bytes, rest: bytes = b"\0", marks: bytes = b"\0\0\0", op: bytes = b"\0") -> Message:
    return avro_message(3, HEAD, op, TIMES, marks, b"\2" + image, rest)


ONE = avro_map({"n": (LONG, 1)})
ERRORS: list[tuple[Message, str]] = [
    ((b"", None), "NULL_VALUE"),
    ((b"", b""), "TRUNCATED"),
    ((b"", b"{}"), "UNKNOWN_VERSION"),
    ((b"", b"\x16\x06\x04\2"), "BAD_STRUCTURE"),
    ((b"", b"\x16\x08\x08\2"), "UNKNOWN_TYPE"),
    ((b"", b"\x16\0\0\4" + varint(9) + varint(5)), "UNKNOWN_VERSION"),
    ((b"", (avro_row("INSERT", DATA)[1] or b"") + b"\0"), "TRAILING_BYTES"),
    (row(varint(1 << 62)), "BAD_LENGTH"),
    (row(varint(-(1 << 63)) + b"\0"), "BAD_LENGTH"),
    (row(varint(1) + varint(1 << 31)), "BAD_LENGTH"),
    (row(varint(1) + varint(-1)), "BAD_LENGTH"),
    (row(varint(1) + text("n") + varint(8)), "UNKNOWN_TYPE"),
    (row(varint(1) + text("n") + varint(-1)), "UNKNOWN_TYPE"),
    (row(varint(2) + (text("n") + b"\0") * 2 + b"\0"), "BAD_STRUCTURE"),
    (row(varint(1) + text(b"\xff") + b"\0\0"), "BAD_UTF8"),
    (row(avro_map({"other": (LONG, 1)})), "BAD_STRUCTURE"),
    (row(b"\0"), "BAD_STRUCTURE"),
    (row(ONE, b"\4"), "BAD_VALUE"),
    (row(ONE, b"\2" + ONE), "BAD_STRUCTURE"),
    (row(ONE, op=b"\2"), "BAD_STRUCTURE"),
    (row(ONE, op=b"\6"), "UNKNOWN_TYPE"),
    (row(ONE, marks=b"\0\2\2\0"), "BAD_VALUE"),
    (avro_row("INSERT", DATA, checksum=b"\2\2\0\0"), "BAD_VALUE"),
    (avro_row("INSERT", DATA, database=""), "BAD_STRUCTURE"),
    (avro_message(2, varint(8)), "UNKNOWN_TYPE"),
    (avro_bootstrap(table_schema(COLUMNS[:1])), "BAD_STRUCTURE"),
    (avro_bootstrap(table_schema([column("a", "x(")], version=3)), "UNKNOWN_TYPE"),
]


@pytest.mark.parametrize(("message", "expected"), ERRORS)
def test_what_is_wrong_has_a_code(message: Message, expected: str) -> None:
    assert code(message) == expected


def test_a_bad_row_costs_its_neighbours_nothing() -> None:
    good = avro_row("INSERT", DATA)
    assert [e[0].kind for e in both(BOOTSTRAP, good, row(b"\0"), good)] == ["bootstrap", "row", "rejected", "row"]


def test_columns_come_in_any_order_and_many_at_once() -> None:
    chance = np.random.default_rng(1)
    wide = [f"c{i}" for i in range(300)]
    schema = avro_bootstrap(table_schema([column(c, "int") for c in wide], table="wide"))
    messages = [BOOTSTRAP, schema]
    for _ in range(20):
        some_columns = chance.permutation(wide).tolist()
        messages += [avro_row("INSERT", {c: (LONG, int(c[1:])) for c in some_columns}, table="wide"), avro_row("INSERT", DATA)]
    context = Context()
    assert both(*messages, context=context)[-2][0].after == [c[1:].encode() for c in wide]
    assert left("simple-avro", messages, context) == [0, 1]


@pytest.mark.parametrize("number", [0.0, -0.0, 1e300, float("nan"), float("inf"), 5e-324])
def test_any_double_is_read_alike(number: float) -> None:
    both(BOOTSTRAP, avro_row("INSERT", {"d": (DOUBLE, number), "f": (FLOAT, struct.unpack("<f", b"\1\2\3\4")[0])}))


def test_rows_without_room_for_their_text_are_left_to_the_general_reader() -> None:
    names: Any = [f"{i}" for i in range(500)]
    both(*[avro_row("INSERT", dict.fromkeys(names, (FLOAT, 1.17549435e-38)))] * 3)
