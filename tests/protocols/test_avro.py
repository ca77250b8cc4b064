"""Avro: framing, schemas and values of TiCDC's kind, by hand-made messages, through both paths."""

from __future__ import annotations

import json
import pickle
import struct
from typing import Any

import numpy as np
import pytest

from tests.protocols.avro_messages import (
    CHECKSUM,
    EXTENSION,
    ID,
    INT,
    KEY,
    UUIDS,
    cell,
    confluent,
    context,
    event,
    extension,
    field,
    glue,
    kind,
    schema,
    some,
    text,
    unscaled,
)
from tests.protocols.both_paths import Message, batch, both, decoded, left
from tests.protocols.craft_messages import varint
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.protocols import Context
from tidelake.protocols.avro import scan
from tidelake.wire.kernels import binary_known


def test_a_row_without_the_extension_is_an_upsert_without_commit_ts() -> None:
    found = event(confluent(2, varint(7), text("bob")), schema(*ID, field("name", kind("string", "TEXT"))))
    assert (found.op, found.commit_ts, found.database, found.table) == ("upsert", None, "test", "t")
    assert found.row_schema == RowSchema((SchemaColumn("id", "int", key=True), SchemaColumn("name", "text")))
    assert (found.after, found.before, found.before_schema) == ([b"7", b"bob"], None, None)


@pytest.mark.parametrize(("word", "op"), [("c", "insert"), ("u", "update")])
def test_the_extension_says_operation_and_commit_ts_and_is_no_column(word: str, op: str) -> None:
    value = confluent(2, varint(7), extension(word, 446266400629063682), text("1430956736"), b"\0", varint(0))
    found = event(value, schema(*ID, *EXTENSION, *CHECKSUM))
    assert (found.op, found.commit_ts, found.after, found.before) == (op, 446266400629063682, [b"7"], None)
    assert found.row_schema is not None
    assert [c.name for c in found.row_schema.columns] == ["id"]


def test_a_commit_ts_is_unsigned() -> None:
    assert event(confluent(2, varint(7), extension("c", -1)), schema(*ID, *EXTENSION)).commit_ts == (1 << 64) - 1


def test_a_null_value_is_a_delete_of_the_key() -> None:
    key_schema = schema(field("b", kind("string", "TEXT")), field("a", kind("long", "BIGINT UNSIGNED")), name="o", namespace="ns.shop")
    found = event(None, key=confluent(1, text("x"), varint(-1)), key_schema=key_schema)
    assert (found.op, found.commit_ts, found.database, found.table, found.row_schema, found.after) == (
        "delete",
        None,
        "shop",
        "o",
        None,
        None,
    )
    assert found.before_schema == RowSchema((SchemaColumn("b", "text", key=True), SchemaColumn("a", "bigint unsigned", key=True)))
    assert found.before == [b"x", b"18446744073709551615"]


@pytest.mark.parametrize("key", [None, b""])
def test_without_a_key_the_value_gives_the_names_and_no_column_is_key(key: bytes | None) -> None:
    found = event(confluent(2, varint(7)), schema(*ID, name="loose"), key=key)
    assert (found.op, found.database, found.table) == ("upsert", "test", "loose")
    assert found.row_schema == RowSchema((SchemaColumn("id", "int"),))


@pytest.mark.parametrize(
    ("namespace", "name", "database", "table"),
    [
        ("default.shop", "t", "shop", "t"),
        ("shop", "t", "shop", "t"),
        (None, "t", None, "t"),
        ("", "t", None, "t"),
        ("a.b.c", "t", "c", "t"),
        (None, "default.shop.t", "shop", "t"),
        ("default.__", "___q__t", "__", "___q__t"),
    ],
)
def test_names_come_from_the_key_schema(namespace: str | None, name: str, database: str | None, table: str) -> None:
    found = event(confluent(2, varint(7)), schema(*ID, name="other"), key_schema=schema(*ID, name=name, namespace=namespace))
    assert (found.database, found.table) == (database, table)


def test_glue_frames_schemas_by_uuid() -> None:
    schemas = {UUIDS[0]: schema(*ID), UUIDS[1]: schema(*ID, *EXTENSION)}
    messages: list[Message] = [
        (glue(UUIDS[0], varint(7)), glue(UUIDS[1], varint(7), extension("c", 5))),
        (glue(UUIDS[0], varint(8)), None),
    ]
    found = both("avro", messages, context(schemas))
    assert [(e.op, e.commit_ts, e.after or e.before) for (e,) in found] == [("insert", 5, [b"7"]), ("delete", None, [b"8"])]
    assert left("avro", messages, context(schemas)) == []


def test_messages_of_several_schemas_stand_side_by_side_and_only_the_unusual_is_left() -> None:
    schemas: dict[int | str, Any] = {i: schema(field(f"c{i}", INT), name=f"t{i}") for i in range(1, 20)}
    messages: list[Message] = [(confluent(i, varint(i)), confluent(j, varint(j))) for i in range(1, 20) for j in (i, 1)]
    messages += [(None, b"\2" + bytes(8)), (confluent(99, varint(1)), None), (None, None), (KEY, b"")]
    found = both("avro", messages, context(schemas))
    assert [e.after for (e,) in found[:4]] == [[b"1"], [b"1"], [b"2"], [b"1"]]
    assert [e.table for (e,) in found[:4]] == ["t1", "t1", "t2", "t2"]
    assert [e.error_code for (e,) in found[-4:]] == [None, "UNKNOWN_SCHEMA", "NULL_VALUE", "TRUNCATED"]
    assert left("avro", messages, context(schemas)) == [38, 39, 40, 41]


def test_a_watermark_is_a_resolved_event() -> None:
    for key in (None, b""):
        assert event(b"\2\x06\x50\x7c\xb6\x3b\xe0\x00\x01", key=key) == Event(kind="resolved", commit_ts=455000684494848001)


def test_a_ddl_message_carries_the_original_names() -> None:
    ddl = {"query": "CREATE TABLE `库`.`t` (`id` INT)", "type": 3, "schema": "库", "table": "t", "commitTs": (1 << 64) - 1, "new": 1}
    found = event(b"\1" + json.dumps(ddl).encode(), key=None)
    assert (found.kind, found.ddl, found.ddl_type, found.database, found.table) == ("ddl", ddl["query"], "3", "库", "t")
    assert found.commit_ts == (1 << 64) - 1


@pytest.mark.parametrize(
    ("avro", "value", "found", "word"),
    [
        (INT, varint(-128), b"-128", "int"),
        (INT, varint(-(1 << 31)), b"-2147483648", "int"),
        (INT, varint((1 << 31) - 1), b"2147483647", "int"),
        (kind("int", "INT UNSIGNED"), varint(255), b"255", "int unsigned"),
        (kind("long", "INT UNSIGNED"), varint(4294967295), b"4294967295", "int unsigned"),
        (kind("long", "BIGINT"), varint(-(1 << 63)), b"-9223372036854775808", "bigint"),
        (kind("long", "BIGINT UNSIGNED"), varint((1 << 63) - 1), b"9223372036854775807", "bigint unsigned"),
        (kind("long", "BIGINT UNSIGNED"), varint(-(1 << 63)), b"9223372036854775808", "bigint unsigned"),
        (kind("long", "BIGINT UNSIGNED"), varint(-1), b"18446744073709551615", "bigint unsigned"),
        (kind("string", "BIGINT UNSIGNED"), text("18446744073709551615"), b"18446744073709551615", "bigint unsigned"),
        (kind("float", "FLOAT"), struct.pack("<f", 3.14), b"3.14", "float"),
        (kind("float", "FLOAT"), b"\1\0\0\0", b"1e-45", "float"),
        (kind("float", "FLOAT"), struct.pack("<f", -3.4028234663852886e38), b"-3.4028235e+38", "float"),
        (kind("float", "FLOAT"), struct.pack("<f", float("nan")), b"NaN", "float"),
        (kind("float", "FLOAT"), struct.pack("<f", float("-inf")), b"-inf", "float"),
        (kind("float", "FLOAT"), struct.pack("<f", -0.0), b"-0.0", "float"),
        (kind("double", "FLOAT"), struct.pack("<d", 3.140000104904175), b"3.14", "float"),  # before v7.0
        (kind("double", "DOUBLE"), struct.pack("<d", 3.140000104904175), b"3.140000104904175", "double"),
        (kind("double", "DOUBLE"), struct.pack("<d", 1e22), b"1e+22", "double"),
        (kind("bytes", "BIT", length="10"), text(b"\2\xff"), b"767", "bit"),
        (kind("bytes", "BIT", length="64"), text(b"\xff" * 8), b"18446744073709551615", "bit"),
        (kind("bytes", "BIT", length="1"), text(b"\0"), b"0", "bit"),
        (kind("string", "TEXT"), text("naïve 北京"), "naïve 北京".encode(), "text"),
        (kind("string", "TEXT"), text(b"\xff"), b"\xff", "text"),
        (kind("string", "TEXT"), text("x" * 70_000), b"x" * 70_000, "text"),
        (kind("bytes", "BLOB"), text(b"\x00\xff"), b"\x00\xff", "blob"),
        (kind("string", "JSON"), text('{"a": 1}'), b'{"a": 1}', "json"),
        (kind("string", "DATE"), text("0000-00-00"), b"0000-00-00", "date"),
        (kind("string", "TIMESTAMP"), text("1973-12-30 15:30:00"), b"1973-12-30 15:30:00", "timestamp"),
        (kind("int", "YEAR"), varint(2002), b"2002", "year"),
        (kind("string", "TiDBVECTORFloat32"), text("[1,2.5,-3]"), b"[1,2.5,-3]", "vector"),
        (kind("string", "DECIMAL"), text("-123.4500"), b"-123.4500", "decimal"),
        ("string", text("x"), b"x", None),
        ("boolean", b"\1", b"1", None),
    ],
)
def test_a_value_becomes_canonical_text(avro: object, value: bytes, found: bytes, word: str | None) -> None:
    for null, wire in ((None, value), (0, some(1, value)), (1, some(0, value))):
        content, column = cell(avro, wire, null=null)
        assert (content, column.name, column.type, column.key) == (found, "v", word, False)


@pytest.mark.parametrize(
    ("number", "precision", "scale", "found"),
    [
        (0, 10, 0, b"0"),
        (0, 5, 4, b"0.0000"),
        (1, 1, 1, b"0.1"),
        (-1, 10, 4, b"-0.0001"),
        (-1234500, 10, 4, b"-123.4500"),
        (12, 12, 2, b"0.12"),
        (128, 3, 0, b"128"),
        (-128, 3, 2, b"-1.28"),
        ((1 << 63) - 1, 20, 2, b"92233720368547758.07"),
        (-(1 << 63), 20, 19, b"-0.9223372036854775808"),
        (1 << 63, 20, 19, b"0.9223372036854775808"),
        (-(1 << 64), 65, 30, b"-0.000000000018446744073709551616"),
        (10**64, 65, 30, b"1" + b"0" * 34 + b"." + b"0" * 30),
        (10**65 - 1, 65, 0, b"9" * 65),
        (-(10**65) + 1, 65, 65, b"-0." + b"9" * 65),
    ],
)
def test_a_decimal_has_exactly_its_scale(number: int, precision: int, scale: int, found: bytes) -> None:
    avro = kind("bytes", "DECIMAL", decimal=(precision, scale))
    for size in {number.bit_length() // 8 + 1, 9 if -(1 << 71) < number < 1 << 71 else 32, 32}:  # also with more bytes than needed
        content, column = cell(avro, unscaled(number, size))
        assert (content, column.type, column.full_type) == (found, "decimal", f"decimal({precision},{scale})")


def test_null_stands_at_the_branch_where_the_union_has_it() -> None:
    for null in (0, 1):
        assert cell(kind("string", "TEXT"), some(null), null=null)[0] is None
        assert cell(kind("string", "TEXT"), some(1 - null, text("")), null=null)[0] == b""


def test_the_column_of_a_bit_has_its_length() -> None:
    assert cell(kind("bytes", "BIT", length="10"), text(b"\1"))[1].full_type == "bit(10)"
    assert cell(kind("bytes", "BIT"), text(b"\1"))[1].full_type is None


@pytest.mark.parametrize(
    ("allowed", "elements"),
    [
        ("a,b,c", ("a", "b", "c")),
        (r"a,b,c\,d,q'uote,ü", ("a", "b", "c,d", "q'uote", "ü")),
        ("", ("",)),
        (",", ("", "")),
        (r"\,,x", (",", "x")),
        (r"a\b", (r"a\b",)),
    ],
)
def test_members_of_enum_and_set_are_split_at_commas_that_are_not_escaped(allowed: str, elements: tuple[str, ...]) -> None:
    for word in ("ENUM", "SET"):
        content, column = cell(kind("string", word, allowed=allowed), text("b"))
        assert (content, column.type, column.elements) == (b"b", word.lower(), elements)


def test_defaults_that_strict_parsers_refuse_do_not_matter() -> None:
    fields = [
        {"name": "a", "type": [kind("long", "BIGINT UNSIGNED"), "null"], "default": -1},
        {"name": "b", "type": [kind("bytes", "BLOB"), "null"], "default": "not base64 \u00ff"},
        {"name": "c", "type": kind("int", "INT"), "default": "x"},
    ]
    found = event(confluent(2, some(0, varint(-1)), some(1), varint(3)), schema(*fields))
    assert found.after == [b"18446744073709551615", None, b"3"]


def test_a_key_column_keeps_its_mark_in_the_value() -> None:
    fields = [field("a", INT), field("id", INT), field("b", INT)]
    found = event(confluent(2, varint(1), varint(7), varint(2)), schema(*fields))
    assert found.row_schema is not None
    assert [c.key for c in found.row_schema.columns] == [False, True, False]


def test_the_key_is_checked_but_kept_for_deletes_only() -> None:
    scanned = scan(batch([(KEY, confluent(2, varint(7)))] * 3), np.arange(3, dtype=np.int32), context({1: schema(*ID), 2: schema(*ID)}))
    assert (len(scanned.after.present), len(scanned.before.present), len(scanned.before.data)) == (3, 0, 0)


def test_schemas_are_asked_for_once() -> None:
    asked = list[int | str]()
    inner = context({1: schema(*ID), 2: schema(*ID)}).avro_schema
    assert inner is not None

    def find(schema_id: int | str) -> str:
        asked.append(schema_id)
        return inner(schema_id)

    counted = Context(avro_schema=find)
    for _ in range(3):
        both("avro", [(KEY, confluent(2, varint(7)))] * 5, counted)
    assert sorted(asked, key=str) == [1, 2]


def test_the_memory_of_plans_is_bounded_and_what_does_not_fit_is_still_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_known, "_MAX_ENTRIES", 4)
    schemas: dict[int | str, Any] = {i: schema(field(f"c{i}", INT)) for i in range(1, 10)}
    ours = context(schemas)
    messages: list[Message] = [(confluent(i, varint(i)), None) for i in schemas if isinstance(i, int)]
    assert [e.before for (e,) in both("avro", messages, ours)] == [[b"%d" % i] for i in range(1, 10)]
    assert left("avro", messages[:2], ours) == []
    memory: Any = ours.memory["avro"]
    assert len(memory.plans.values) == 2


def test_the_memory_can_be_sent_to_workers() -> None:
    ours = context({1: schema(*ID)})
    decoded("avro", [(KEY, None)], ours)
    theirs = Context(avro_schema=ours.avro_schema, memory=pickle.loads(pickle.dumps(ours.memory)))
    assert both("avro", [(KEY, None)], theirs)[0][0].before == [b"7"]
