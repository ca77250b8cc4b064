"""Simple in JSON by hand-made messages (docs/reference/protocols.md 9.1): the general reader and the compiled scan say the same."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.protocols import both_paths
from tests.protocols.both_paths import Message, left
from tests.protocols.simple_messages import (
    TABLE_ID,
    TS,
    VERSION,
    avro_row,
    bootstrap,
    column,
    compact,
    index,
    json_message,
    json_row,
    json_schema_message,
    table_schema,
)
from tidelake.config.options import SinkOptions
from tidelake.errors import DECODE_CODES
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.protocols import Context, decode, decoder
from tidelake.wire.simple.simple_schema import database_of, schemas

COLUMNS = [
    column("z", "bigint unsigned"),
    column("name", "varchar", length=20),
    column("blob", "blob"),
    column("at", "timestamp", length=26, decimal=6),
    column("n", "decimal", length=10, decimal=2),
    column("kind", "enum", elements=["a", "it's"]),
    column("hidden", "int"),
]
SCHEMA = table_schema(COLUMNS, [index("n"), index("name", "z", primary=True)])
ROW_SCHEMA = (
    SchemaColumn("z", "bigint unsigned", key=True),
    SchemaColumn("name", "varchar", key=True, full_type="varchar(20)"),
    SchemaColumn("blob", "blob"),
    SchemaColumn("at", "timestamp", full_type="timestamp(6)"),
    SchemaColumn("n", "decimal", full_type="decimal(10,2)"),
    SchemaColumn("kind", "enum", full_type="enum('a','it''s')", elements=("a", "it's")),
    SchemaColumn("hidden", "int"),
)
DATA: dict[str, Any] = {
    "at": {"location": "Asia/Tokyo", "value": "2024-01-01 00:00:00.123456"},
    "blob": base64.b64encode(b"\0\xff").decode(),
    "kind": "2",
    "n": "-1.50",
    "name": 'nä"m<e',
    "z": "18446744073709551615",
}
CELLS = [b"18446744073709551615", 'nä"m<e'.encode(), b"\0\xff", b"2024-01-01 00:00:00.123456", b"-1.50", b"2"]
BOOTSTRAP = json_schema_message(SCHEMA)
ROW = Event(kind="row", op="insert", commit_ts=TS, database="db", table="t", physical_table_id=TABLE_ID)


def both(*messages: Message, context: Context | None = None) -> list[list[Event]]:
    return both_paths.both("simple-json", messages, context or Context())


def code(message: Message, context: Context | None = None) -> str | None:
    """Of the error of a message after its schema and a row that the scan has learned from, the same by both ways."""
    events = both(BOOTSTRAP, json_row("INSERT", DATA), message, context=context)[2]
    assert len(events) == 1
    assert events[0].error_code in DECODE_CODES
    return events[0].error_code


def test_a_row_has_the_columns_and_types_of_its_schema_in_its_order() -> None:
    events = both(BOOTSTRAP, json_row("INSERT", DATA))
    assert events[0] == [Event(kind="bootstrap", commit_ts=0, database="db", table="t")]
    (event,) = events[1]
    assert event.row_schema == RowSchema(ROW_SCHEMA[:-1])
    assert event.after == CELLS
    assert (event.op, event.commit_ts, event.physical_table_id, event.before) == ("insert", TS, TABLE_ID, None)


def test_updates_have_both_images_and_deletes_the_old_one() -> None:
    whole = DATA | {"hidden": None}
    update, delete = (e[0] for e in both(BOOTSTRAP, json_row("UPDATE", whole, DATA), json_row("DELETE", None, {"z": "1"}))[1:])
    assert (update.op, update.row_schema, update.after) == ("update", RowSchema(ROW_SCHEMA), [*CELLS, None])
    assert (update.before_schema, update.before) == (RowSchema(ROW_SCHEMA[:-1]), CELLS)
    assert (delete.op, delete.row_schema, delete.after, delete.before_schema, delete.before) == (
        "delete",
        None,
        None,
        RowSchema(ROW_SCHEMA[:1]),
        [b"1"],
    )


def test_the_scan_takes_rows_and_watermarks_and_leaves_the_rest() -> None:
    mark = json_message({"version": 1, "type": "WATERMARK", "commitTs": 9, "buildTs": 5})
    checked = json_row("INSERT", DATA, checksum={"version": 2, "corrupted": False, "current": 5, "previous": 0})
    rows = [json_row("INSERT", DATA), json_row("UPDATE", DATA, DATA), json_row("DELETE", None, DATA), checked, mark]
    context = Context()
    assert left("simple-json", [BOOTSTRAP, *rows, json_row("INSERT", DATA, handleKeyOnly=True)], context) == [0, 6]
    assert both(*rows, context=context)[4] == [Event(kind="resolved", commit_ts=9)]


def test_a_row_of_an_unknown_schema_has_its_columns_by_name_without_types() -> None:
    (event,) = both(json_row("INSERT", dict(reversed(DATA.items()))))[0]
    assert event.row_schema == RowSchema(tuple(SchemaColumn(name) for name in sorted(DATA)))
    assert event.after == [CELLS[3], b"AP8=", b"2", b"-1.50", CELLS[1], CELLS[0]]
    assert left("simple-json", [json_row("INSERT", DATA)], Context()) == []


@pytest.mark.parametrize("more", [{"schemaVersion": VERSION + 1}, {"table": "u"}, {"database": "du"}])
def test_a_schema_is_for_its_version_of_its_table_only(more: dict[str, Any]) -> None:
    (event,) = both(BOOTSTRAP, json_row("INSERT", DATA, **more))[1]
    assert event.row_schema is not None
    assert {c.type for c in event.row_schema.columns} == {None}


def test_a_schema_serves_rows_before_it_in_its_batch_and_after_it_in_all_batches() -> None:
    context, row = Context(), json_row("INSERT", DATA)
    untyped, _ = decode("simple-json", both_paths.batch([row]), context).to_pylist()
    assert untyped["after"][1] == b"AP8="
    for messages in ([row, BOOTSTRAP], [row]):
        typed = decode("simple-json", both_paths.batch(messages), context).to_pylist()[0]
        assert (typed["kind"], typed["after"]) == ("row", CELLS)


@pytest.mark.parametrize("method", ["snappy", "lz4"])
def test_compressed_messages_are_the_same(method: Any) -> None:
    messages = [BOOTSTRAP, json_row("INSERT", DATA)]
    packed = [(b"", pa.Codec(method).compress(value, asbytes=True)) for _, value in messages]
    if method == "lz4":
        packed = [(b"", frame(value or b"")) for _, value in messages]
    context = Context(options=SinkOptions(large_message_handle_compression=method))
    assert both(*packed, context=context) == both(*messages)


def frame(value: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "lz4") as stream:
        stream.write(value)
    return out.getvalue().to_pybytes()


def test_statements_bring_schemas_and_name_their_table() -> None:
    former = table_schema(COLUMNS[:1], table="old")
    ddl = json_schema_message(SCHEMA, "RENAME", sql="RENAME TABLE `old` TO `t`", preTableSchema=former)
    context = Context()
    (event,) = both(ddl, context=context)[0]
    assert event == Event(kind="ddl", commit_ts=0, database="db", table="t", ddl="RENAME TABLE `old` TO `t`", ddl_type="RENAME")
    assert set(schemas(context.memory).known) == {("db", "t", VERSION), ("db", "old", VERSION)}
    of_database = json_schema_message(None, "QUERY", sql="DROP DATABASE IF EXISTS `a``b`")
    assert [(e.database, e.table) for e in both(of_database)[0]] == [("a`b", None)]


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("CREATE DATABASE `d` CHARACTER SET = utf8mb4", "d"),
        ("create schema if not exists d2", "d2"),
        ("ALTER DATABASE CHARACTER SET = utf8mb4", None),
        ("DROP TABLE `d`.`t`", None),
    ],
)
def test_the_database_of_a_statement(sql: str, name: str | None) -> None:
    assert database_of(sql) == name


def test_marks_of_large_messages() -> None:
    handle, claim = (
        e[0]
        for e in both(
            json_row("INSERT", {"z": "1"}, handleKeyOnly=True), json_row("INSERT", {"z": "1"}, claimCheckLocation="s3://b/x.json")
        )
    )
    assert (handle.handle_only, handle.claim_check) == (True, None)
    assert (claim.handle_only, claim.claim_check) == (False, "s3://b/x.json")
    file = compact({"key": None, "value": base64.b64encode(json_row("INSERT", DATA)[1] or b"").decode()})
    context = Context(options=SinkOptions(large_message_handle_option="claim-check"))
    assert both(BOOTSTRAP, (b"", file), context=context)[1][0].after == CELLS


@pytest.mark.parametrize(
    ("indexes", "key"),
    [
        ([], set()),
        ([index("name", unique=False)], set()),
        ([index("name", nullable=True)], set()),
        ([index("name", "z"), index("n"), index("kind")], {"n"}),
        ([index("n"), index("name", "z", primary=True)], {"name", "z"}),
    ],
)
def test_the_key_is_the_primary_key_or_the_shortest_unique_index_without_nulls(indexes: Any, key: set[str]) -> None:
    (event,) = both(json_schema_message(table_schema(COLUMNS, indexes)), json_row("INSERT", DATA))[1]
    assert event.row_schema is not None
    assert {c.name for c in event.row_schema.columns if c.key} == key


def test_a_second_schema_of_a_version_may_not_say_other_columns() -> None:
    assert both(BOOTSTRAP, json_schema_message(SCHEMA | {"indexes": []}))[1][0].kind == "bootstrap"
    assert code(json_schema_message(table_schema(COLUMNS[:1]))) == "BAD_STRUCTURE"


ERRORS: list[tuple[Message, str]] = [
    ((b"", None), "NULL_VALUE"),
    ((b"", b""), "BAD_JSON"),
    ((b"", b"[" * 100_000), "BAD_JSON"),
    ((b"", b'{"version":1,"type":"\xff"}'), "BAD_UTF8"),
    ((b"", (json_row("INSERT", {"z": "1"})[1] or b"").replace(b'"1"', b"NaN")), "BAD_JSON"),
    (json_row("INSERT", {"z": "1"}, version=2), "UNKNOWN_VERSION"),
    (json_row("UPSERT", {"z": "1"}), "UNKNOWN_TYPE"),
    (json_row("INSERT", {}), "BAD_STRUCTURE"),
    (json_row("INSERT"), "BAD_STRUCTURE"),
    (json_row("INSERT", {"z": "1"}, {"z": "1"}), "BAD_STRUCTURE"),
    (json_row("UPDATE", {"z": "1"}), "BAD_STRUCTURE"),
    (json_row("DELETE", {"z": "1"}), "BAD_STRUCTURE"),
    (json_row("INSERT", {"other": "1"}), "BAD_STRUCTURE"),
    (json_row("INSERT", ["z"]), "BAD_STRUCTURE"),
    (json_row("INSERT", {"z": 1}), "BAD_VALUE"),
    (json_row("INSERT", {"z": {"location": "UTC", "value": "1"}}), "BAD_VALUE"),
    (json_row("INSERT", {"at": {"location": "UTC"}}), "BAD_VALUE"),
    (json_row("INSERT", {"at": {"location": 1, "value": "x"}}), "BAD_VALUE"),
    (json_row("INSERT", {"blob": "AP8"}), "BAD_VALUE"),
    (json_row("INSERT", {"z": "1"}, commitTs=1 << 64), "BAD_VALUE"),
    (json_row("INSERT", {"z": "1"}, tableID=-1), "BAD_VALUE"),
    (json_row("INSERT", {"z": "1"}, tableID=1 << 63), "BAD_VALUE"),
    (json_row("INSERT", {"z": "1"}, schemaVersion="1"), "BAD_VALUE"),
    (json_row("INSERT", {"z": "1"}, database=""), "BAD_STRUCTURE"),
    (json_row("INSERT", {"z": "1"}, handleKeyOnly="yes"), "BAD_VALUE"),
    (json_row("INSERT", {"z": "1"}, checksum={"version": 1, "corrupted": False, "current": 1 << 32, "previous": 0}), "BAD_VALUE"),
    (json_row("INSERT", {"z": "1"}, checksum=5), "BAD_STRUCTURE"),
    (json_schema_message(None), "BAD_STRUCTURE"),
    (json_schema_message(5), "BAD_STRUCTURE"),
    (json_schema_message(SCHEMA | {"columns": None}), "BAD_STRUCTURE"),
    (json_schema_message(SCHEMA | {"version": 2**64}), "BAD_VALUE"),
    (json_schema_message(table_schema([column("a", "geography(")], version=3)), "UNKNOWN_TYPE"),
    (json_schema_message(table_schema([column("a"), column("a")], version=3)), "BAD_STRUCTURE"),
    (json_schema_message(table_schema([column("a", length=[1])], version=3)), "BAD_VALUE"),
    (json_schema_message(table_schema([column("a", "enum", elements=[1])], version=3)), "BAD_STRUCTURE"),
]


@pytest.mark.parametrize(("message", "expected"), ERRORS)
def test_what_is_wrong_has_a_code(message: Message, expected: str) -> None:
    assert code(message) == expected


def test_of_duplicate_members_the_last_wins() -> None:
    value = (json_row("INSERT", {"z": "1"})[1] or b"").replace(b'"z":"1"', b'"z":"1","z":"2"')
    assert both(BOOTSTRAP, (b"", value))[1][0].after == [b"2"]


def test_a_bad_row_costs_its_neighbours_nothing() -> None:
    good = json_row("INSERT", DATA)
    kinds = [e[0].kind for e in both(BOOTSTRAP, good, json_row("INSERT", {"z": 1}), good)]
    assert kinds == ["bootstrap", "row", "rejected", "row"]


def test_columns_come_in_any_order_and_tables_side_by_side() -> None:
    chance = np.random.default_rng(1)
    wide = [f"c{i}" for i in range(300)]
    schema = json_schema_message(table_schema([column(c, "int") for c in wide], table="wide"))
    messages = [BOOTSTRAP, schema]
    for i in range(20):
        some = [c for c in chance.permutation(wide).tolist() if i % 2 or chance.random() < 0.9]
        messages += [json_row("INSERT", {c: c[1:] for c in some}, table="wide"), json_row("INSERT", DATA)]
    events = both(*messages)
    row_schema = events[4][0].row_schema
    assert row_schema is not None
    assert [c.name for c in row_schema.columns] == wide
    assert events[4][0].after == [c[1:].encode() for c in wide]


@pytest.mark.parametrize("protocol", ["simple-json", "simple-avro"])
def test_a_batch_may_be_empty_and_compiles_what_all_others_use(protocol: str) -> None:
    kernel = decoder(protocol).__dict__["scan_simple"]
    assert decode(protocol, both_paths.batch([]), Context()).num_rows == 0
    compiled = list(kernel.signatures)
    context = Context()
    decode(protocol, both_paths.batch([(b"", None), bootstrap(protocol, SCHEMA)]), context)
    decode(protocol, both_paths.batch([json_row("INSERT", DATA), avro_row("INSERT", {"z": (1, 5)})] * 3).slice(1, 4), context)
    assert kernel.signatures == compiled
