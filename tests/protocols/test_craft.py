"""Craft: every rule of its layout, by hand-made messages, through both paths."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.protocols.both_paths import both, decoded, left, read
from tests.protocols.craft_messages import (
    Column,
    Ddl,
    Resolved,
    Row,
    Terms,
    assemble,
    deltas,
    dictionary,
    double,
    group,
    headers,
    message,
    uvarint,
    varint,
)
from tidelake.history.event import Event, SchemaColumn
from tidelake.protocols import Context
from tidelake.wire.kernels import binary_known

SMALLEST = bytes.fromhex("010501010002010104030b02020301010273746964020a06010e010e07")  # docs/reference/protocols.md 3.7 (a)
ID: Column = ("id", 3, 11, varint(1))


def events(*messages: bytes | None) -> list[Event]:
    return [e for found in both("craft", [(None, m) for m in messages], Context()) for e in found]


def row(*columns: Column) -> list[bytes | None]:
    (event,) = events(message(Row(new=columns)))
    assert event.kind == "row", event
    assert event.after is not None
    return list(event.after)


def error(value: bytes | None) -> tuple[str | None, str]:
    (event,) = events(value)
    assert (event.kind, event.raw_value) == ("rejected", value)
    return event.error_code, event.error or ""


def test_the_smallest_row_message() -> None:
    (event,) = events(SMALLEST)
    assert (event.kind, event.op, event.commit_ts, event.database, event.table) == ("row", "insert", 5, "s", "t")
    assert event.row_schema is not None
    assert event.row_schema.columns == (SchemaColumn("id", "int", key=True, flag=11),)
    assert (event.after, event.before, event.before_schema, event.physical_table_id) == ([b"1"], None, None, None)


def test_our_encoder_writes_the_smallest_row_message_too() -> None:
    assert message(Row(new=[ID])) == SMALLEST


def test_a_create_table_message_of_an_independent_encoder() -> None:
    query = "create table c(id int primary key);"
    value = bytes.fromhex("019d91d8e18ebba7c5160201000203") + bytes([len(query)]) + query.encode() + bytes.fromhex("0201016163021a0f014a05")
    (event,) = events(value)
    assert (event.kind, event.commit_ts, event.database, event.table) == ("ddl", 1624284170621946013, "a", "c")
    assert (event.ddl, event.ddl_type, event.row_schema) == (query, "3", None)
    assert value == message(Ddl(query=query, code=3, ts=1624284170621946013, schema="a", table="c"))


def test_a_resolved_message_of_an_independent_encoder() -> None:
    (event,) = events(bytes.fromhex("019091d8e18ebba7c51603010101021a19010005"))
    assert event == Event(kind="resolved", commit_ts=1624284170621946000)


def test_rows_and_resolved_events_take_the_columnar_path_and_ddl_does_not() -> None:
    messages = [SMALLEST, message(Resolved(ts=9)), message(Ddl(query="drop table t", code=4)), SMALLEST, b"", None]
    assert left("craft", [(None, m) for m in messages], Context()) == [2, 4, 5]


def test_new_values_are_an_insert_both_an_update_old_ones_a_delete() -> None:
    old = ("id", 3, 11, varint(-2))
    found = events(message(Row(new=[ID]), Row(new=[ID], old=[old]), Row(old=[old])))
    assert [(e.op, e.after, e.before) for e in found] == [("insert", [b"1"], None), ("update", [b"1"], [b"-2"]), ("delete", None, [b"-2"])]
    assert [(e.row_schema is None, e.before_schema is None) for e in found] == [(False, True), (False, False), (True, False)]


def test_old_values_may_stand_before_new_ones() -> None:
    terms = Terms()
    header = headers([Row()], terms)
    parts = [group(2, [ID], terms), group(1, [("id", 3, 11, varint(7))], terms)]
    (event,) = events(assemble(header, [b"".join(parts)], terms.encode(), [[len(p) for p in parts]]))
    assert (event.op, event.after, event.before) == ("update", [b"7"], [b"1"])


@pytest.mark.parametrize(
    ("code", "flag", "raw", "text", "word"),
    [
        (1, 0x40, varint(-128), b"-128", "tinyint"),
        (2, 0x80, uvarint(65535), b"65535", "smallint unsigned"),
        (9, 0, varint(8388607), b"8388607", "mediumint"),
        (3, 0x80, uvarint(4294967295), b"4294967295", "int unsigned"),
        (8, 0, varint(-(1 << 63)), b"-9223372036854775808", "bigint"),
        (8, 0, varint((1 << 63) - 1), b"9223372036854775807", "bigint"),
        (8, 0x80, uvarint((1 << 64) - 1), b"18446744073709551615", "bigint unsigned"),
        (3, 0, b"\x82\x00", b"1", "int"),  # longer than need be
        (13, 0x81, varint(2024), b"2024", "year"),
        (13, 0x81, varint(0), b"0", "year"),
        (16, 0x80, uvarint((1 << 64) - 1), b"18446744073709551615", "bit"),
        (247, 1, uvarint(0), b"0", "enum"),
        (248, 1, uvarint(1 << 63), b"9223372036854775808", "set"),
        (5, 1, double(0.1), b"0.1", "double"),
        (5, 1, double(-1.5e300), b"-1.5e+300", "double"),
        (5, 0x81, double(5e-324), b"5e-324", "double unsigned"),
        (5, 1, double(float("-inf")), b"-inf", "double"),
        (246, 1, b"-0.10", b"-0.10", "decimal"),
        (10, 1, b"0000-00-00", b"0000-00-00", "date"),
        (14, 1, b"2024-02-29", b"2024-02-29", "date"),
        (12, 1, b"2024-02-29 23:59:59.999999", b"2024-02-29 23:59:59.999999", "datetime"),
        (7, 1, b"1970-01-01 00:00:01", b"1970-01-01 00:00:01", "timestamp"),
        (11, 1, b"-838:59:59", b"-838:59:59", "time"),
        (245, 1, b'{"a": 1}', b'{"a": 1}', "json"),
        (225, 0, b"[1,2.5,-3]", b"[1,2.5,-3]", "vector"),
        (15, 0, "täxt".encode(), "täxt".encode(), "varchar"),
        (15, 1, b"\xff\x00", b"\xff\x00", "varbinary"),
        (254, 0, b"", b"", "char"),
        (252, 1, b"\x80", b"\x80", "blob"),
        (252, 0, b"x" * 70_000, b"x" * 70_000, "text"),
        (255, 1, None, None, "geometry"),
    ],
)
def test_a_value_becomes_canonical_text(code: int, flag: int, raw: bytes | None, text: bytes | None, word: str) -> None:
    (event,) = events(message(Row(new=[ID, ("v", code, flag, raw)])))
    assert event.kind == "row", event.error
    assert event.row_schema is not None
    assert (event.after, event.row_schema.columns[1]) == ([b"1", text], SchemaColumn("v", word, key=False, flag=flag))


@pytest.mark.parametrize(
    "code", [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 225, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255]
)
def test_any_type_may_be_null_and_null_is_not_the_empty_string(code: int) -> None:
    assert row(("a", code, 0, None), ("b", 15, 0, b""), ("c", code, 0x81, None)) == [None, b"", None]


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        (3.140000104904175, b"3.14"),  # a float32: the shortest text that gives it back
        (16777216.0, b"16777216.0"),
        (3.4028234663852886e38, b"3.4028235e+38"),
        (1.401298464324817e-45, b"1e-45"),
        (1.1754943508222875e-38, b"1.1754944e-38"),
        (-0.0, b"-0.0"),
        (8.0e283, b"8e+283"),  # what the encoder's bug leaves (3.8)
        (3.14, b"3.14"),  # no float32, the text of the float64
        (2.0000001, b"2.0000001"),
        (float("nan"), b"NaN"),
        (float("inf"), b"inf"),
        (float("-inf"), b"-inf"),
    ],
)
def test_a_float_has_the_text_of_a_float32_where_it_is_one(wire: float, text: bytes) -> None:
    assert row(("g", 4, 1, double(wire))) == [text]


def test_text_that_is_not_utf8_passes_through() -> None:
    assert row(("v", 15, 0, b"\xff\xfe")) == [b"\xff\xfe"]


def test_a_partition_is_a_physical_table_id() -> None:
    found = events(message(Row(new=[ID], partition=112), Row(new=[ID]), Resolved(ts=1, partition=(1 << 63) - 1)))
    assert [e.physical_table_id for e in found] == [112, None, (1 << 63) - 1]


def test_events_without_terms_have_no_names() -> None:
    (event,) = events(message(Ddl(query="create database d", code=1, table=None)))
    assert (event.database, event.table) == ("s", None)
    (event,) = events(message(Row(new=[ID], schema=None, table="")))
    assert (event.database, event.table) == (None, "")


def test_commit_ts_are_unsigned_and_may_go_down_within_a_message() -> None:
    stamps = [(1 << 64) - 1, 0, 1 << 63, 7]
    assert [e.commit_ts for e in events(message(*(Row(new=[ID], ts=ts) for ts in stamps)))] == stamps


def test_one_message_may_hold_tables_and_schemas_of_all_kinds() -> None:
    name: Column = ("name", 15, 0, b"x")
    rows = [
        Row(new=[ID, name], table="a"),
        Row(new=[name, ID], table="b"),
        Row(new=[ID, name], old=[ID], table="a"),
        Row(new=[("id", 3, 9, varint(2)), name], table="a"),
        Row(new=[("id", 8, 11, varint(2)), name], schema="s2", table="a"),
        Row(new=[], table="a"),
    ]
    found = events(message(*rows), message(*reversed(rows)), message(rows[1]))
    assert [(e.database, e.table) for e in found[:6]] == [("s", "a"), ("s", "b"), ("s", "a"), ("s", "a"), ("s2", "a"), ("s", "a")]
    assert [[c.name for c in e.row_schema.columns] for e in found[:3] if e.row_schema] == [["id", "name"], ["name", "id"], ["id", "name"]]
    assert [e.after for e in found[2:6]] == [[b"1", b"x"], [b"2", b"x"], [b"2", b"x"], []]
    assert found[12] == found[1]


def test_equal_dictionaries_of_different_messages_do_not_mix_up_their_terms() -> None:
    one, other = (
        message(Row(new=[("a", 3, 0, varint(1)), ("b", 3, 0, varint(2))])),
        message(Row(new=[("b", 3, 0, varint(1)), ("a", 3, 0, varint(2))])),
    )
    longer = message(Row(new=[("ab", 3, 0, varint(3))]))
    found = events(one, other, longer, one)
    assert [[c.name for c in e.row_schema.columns] for e in found if e.row_schema] == [["a", "b"], ["b", "a"], ["ab"], ["a", "b"]]


def test_the_next_batch_knows_the_schemas_of_the_last() -> None:
    context = Context()
    decoded("craft", [(None, SMALLEST)], context)
    memory: Any = context.memory["craft"]
    known = (len(memory.row_schemas.values), len(memory.names.values))
    decoded("craft", [(None, SMALLEST)] * 3, context)
    assert context.memory["craft"] is memory
    assert known == (len(memory.row_schemas.values), len(memory.names.values)) == (1, 1)


def test_a_context_can_be_sent_to_workers() -> None:
    context = Context()
    decoded("craft", [(None, SMALLEST)], context)
    assert both("craft", [(None, SMALLEST)], pickle.loads(pickle.dumps(context)))[0][0].op == "insert"


def test_the_memory_of_schemas_is_bounded_and_what_does_not_fit_is_still_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_known, "_MAX_ENTRIES", 4)
    context = Context()
    messages = [(None, message(Row(new=[(f"c{i}", 3, 0, varint(i))], table=f"t{i}"))) for i in range(9)]
    assert [e[0].after for e in both("craft", messages, context)] == [[b"%d" % i] for i in range(9)]
    crowded = context.memory["craft"]
    assert left("craft", messages[:2], context) == []
    assert context.memory["craft"] is not crowded


def test_a_message_of_many_new_schemas_is_left_after_some_lessons() -> None:
    rows = [Row(new=[(f"c{i}", 3, 0, varint(i))]) for i in range(40)]
    context = Context()
    assert left("craft", [(None, message(*rows)), (None, SMALLEST)], context) == [0]
    assert [e.after for e in events(message(*rows))] == [[b"%d" % i] for i in range(40)]


def test_the_key_of_a_message_means_nothing() -> None:
    assert both("craft", [(b"any", SMALLEST), (b"", SMALLEST)], Context())[0][0].op == "insert"


def edited(old: str, new: str) -> bytes:
    """The smallest message with some bytes changed."""
    assert SMALLEST.hex().count(old) == 1
    return bytes.fromhex(SMALLEST.hex().replace(old, new))


def with_body(body: bytes, groups: list[int] | None = None, terms: bytes = dictionary([b"s", b"t", b"id"])) -> bytes:
    """A row of this body."""
    return assemble(bytes.fromhex("0501010002"), [body], terms, [[len(body)] if groups is None else groups])


def of_header(header: str, terms: bytes = dictionary([b"s", b"t", b"id"])) -> bytes:
    body = bytes.fromhex("010104030b0202")
    return assemble(bytes.fromhex(header), [body], terms, [[len(body)]])


@pytest.mark.parametrize(
    ("value", "code", "says"),
    [
        (None, "NULL_VALUE", "never null"),
        (b"", "TRUNCATED", "the version at byte 0 runs beyond the message, which ends at byte 0"),
        (b"\x01", "TRUNCATED", "size tables of 1 bytes end at byte 0, the content starts at byte 1"),
        (b"\x02" + SMALLEST[1:], "UNKNOWN_VERSION", "version 2, expected 1"),
        (b"\x80" * 11, "BAD_LENGTH", "more than 64 bits"),
        (b"\x80" * 3, "TRUNCATED", "the version at byte 0 runs beyond the message"),
        (b"\x01" + b"\x00" * 20 + b"\x02" + b"\xff" * 9, "BAD_LENGTH", "more than 64 bits"),
        (SMALLEST[:-1] + b"\x00", "BAD_STRUCTURE", "have [] numbers"),
        (SMALLEST[:-1], "BAD_LENGTH", "the count of a size table at byte 17 is 115, but only 9 bytes of the size tables follow"),
        (SMALLEST[:-1] + b"\xc0\x84\x3d"[::-1], "TRUNCATED", "size tables of 1000000 bytes"),
        (edited("020a06010e010e07", "010a010e010e06"), "BAD_STRUCTURE", "have [1, 1] numbers, expected 2"),
        (edited("020a06010e010e07", "020a0600010e06"), "BAD_STRUCTURE", "have [2, 0] numbers"),
        (edited("020a06010e010e07", "020a06010e05"), "BAD_STRUCTURE", "0 tables of column groups for 1 row events"),
        (edited("010e010e07", "010e010e010e09"), "BAD_STRUCTURE", "2 tables of column groups"),
        (edited("020a06", "020a08"), "BAD_STRUCTURE", "have 21 bytes by the size tables, the message has 20"),
        (edited("010e010e07", "010d010e07"), "BAD_STRUCTURE", "a size table has size -7"),
        (edited("020a06010e010e07", "ffffffff070a06010e010e0b"), "BAD_LENGTH", "count of a size table at byte 21 is 2147483647"),
        (of_header("05010100"), "TRUNCATED", "a table id at byte 5 runs beyond the headers, which ends at byte 5"),
        (of_header("050101000200"), "TRAILING_BYTES", "the headers should end at byte 6, but ends at byte 7"),
        (of_header("0509010002"), "UNKNOWN_TYPE", "event 0 has type 9"),
        (of_header("0501030002"), "BAD_VALUE", "partition -2"),
        (of_header("0501010802"), "BAD_STRUCTURE", "schema: term 4, the dictionary has 3"),
        (of_header("0501010003"), "BAD_STRUCTURE", "table: term -2"),
        (of_header("0501010002", b""), "BAD_STRUCTURE", "term 0, the dictionary has 0"),
        (of_header("0501010002", b"\x03\x01\x01\x02stidx"), "TRAILING_BYTES", "the dictionary should end"),
        (of_header("0501010002", b"\x03\x01\x01\x03stid"), "TRUNCATED", "a term"),
        (of_header("0501010002", b"\x7f\x01\x01\x02stid"), "BAD_LENGTH", "count of terms"),
        (of_header("0501010002", dictionary([b"\xff", b"t", b"id"])), "BAD_UTF8", "a schema name is not UTF-8 at its byte 0"),
        (of_header("0501010002", dictionary([b"s", b"t", b"i\xff"])), "BAD_UTF8", "a column name is not UTF-8 at its byte 1"),
        (of_header("0501010002", dictionary([b"s", b"t" * 1025, b"id"])), "BAD_LENGTH", "a table name of 1025 bytes"),
        (of_header("0503010002"), "BAD_STRUCTURE", "1 tables of column groups for 0 row events"),
        (assemble(bytes.fromhex("0503010101"), [b"x"], b"", []), "TRAILING_BYTES", "the body of event 0"),
        (with_body(b"", []), "BAD_STRUCTURE", "without column groups"),
        (with_body(b"", [0]), "TRUNCATED", "the kind"),
        (with_body(bytes.fromhex("010104030b0202"), [6]), "TRUNCATED", "the value of b'id'"),
        (with_body(bytes.fromhex("010104030b0202"), [8]), "BAD_LENGTH", "a column group of the body of event 0 has 8 bytes"),
        (with_body(bytes.fromhex("010104030b020200")), "TRAILING_BYTES", "a column group"),
        (with_body(bytes.fromhex("010104030b020200"), [7]), "TRAILING_BYTES", "the body of event 0"),
        (with_body(bytes.fromhex("030104030b0202")), "UNKNOWN_TYPE", "column group kind 3"),
        (with_body(bytes.fromhex("010104030b0202" * 2), [7, 7]), "BAD_STRUCTURE", "a second column group of kind 1"),
        (with_body(bytes.fromhex("010104030b0202" * 3), [7, 7, 7]), "BAD_STRUCTURE", "a second column group"),
        (with_body(bytes.fromhex("010106030b0202")), "BAD_STRUCTURE", "column name: term 3, the dictionary has 3"),
        (with_body(bytes.fromhex("010101030b0202")), "BAD_STRUCTURE", "column name: term -1"),
        (with_body(bytes.fromhex("010104630b0202")), "UNKNOWN_TYPE", "column 'id' has type code 99"),
        (with_body(bytes.fromhex("01020400030302020202020202")), "BAD_STRUCTURE", "two columns of the name 'id'"),
        (with_body(bytes.fromhex("0104040b0202")), "BAD_LENGTH", "the count of columns at byte 7 is 4"),
        (with_body(b"\x01" + uvarint(1 << 62) + bytes.fromhex("04030b0202")), "BAD_LENGTH", "is 4611686018427387904"),
        (with_body(bytes.fromhex("010104030b0302")), "BAD_LENGTH", "has length -2"),
        (with_body(bytes.fromhex("010104030b") + varint(1 << 40) + b"\x02"), "BAD_LENGTH", "has length 1099511627776"),
        (with_body(bytes.fromhex("010104030b00")), "BAD_VALUE", "an integer"),
        (with_body(bytes.fromhex("010104030b028000")[:-1]), "BAD_VALUE", "an integer"),
        (with_body(bytes.fromhex("010104030b040202")), "BAD_VALUE", "should end at byte 1, but ends at byte 2"),
        (with_body(bytes.fromhex("01010408800116") + b"\x80" * 10 + b"\x01"), "BAD_VALUE", "more than 64 bits"),
        (with_body(bytes.fromhex("010104080014") + b"\xff" * 9 + b"\x02"), "BAD_VALUE", "more than 64 bits"),
        (with_body(bytes.fromhex("010104050b0e") + bytes(7)), "BAD_VALUE", "7 bytes, expected 8 bytes"),
        (with_body(bytes.fromhex("010104040b12") + bytes(9)), "BAD_VALUE", "9 bytes, expected 8 bytes"),
        (with_body(b"\x01\x01\x04" + uvarint(255) + bytes.fromhex("0b0201")), "BAD_VALUE", "1 bytes, expected NULL"),
    ],
)
def test_a_wrong_message_is_rejected_and_says_where(value: bytes | None, code: str, says: str) -> None:
    found, message_text = error(value)
    assert (found, says in message_text) == (code, True), (found, message_text)


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b"", "TRUNCATED", "the DDL type"),
        (b"\x03", "TRUNCATED", "the length of the query"),
        (b"\x03\x05abcd", "BAD_LENGTH", "the length of the query at byte 7 is 5, but only 4 bytes"),
        (b"\x03\x03abcd", "TRAILING_BYTES", "the body of event 0 should end"),
        (b"\x03\x01\xff", "BAD_UTF8", "the query"),
    ],
)
def test_a_wrong_ddl_body_is_rejected(body: bytes, code: str, says: str) -> None:
    found, text = error(assemble(bytes.fromhex("0502010002"), [body], dictionary([b"s", b"t"]), []))
    assert (found, says in text) == (code, True), text


def test_all_events_of_a_message_or_none_and_its_neighbours_stay() -> None:
    good = Row(new=[ID])
    bad = message(good, Row(new=[("id", 3, 11, b"\x80")]))
    found = both("craft", [(None, SMALLEST), (None, bad), (None, message(good, good))], Context())
    assert [[e.kind for e in events] for events in found] == [["row"], ["rejected"], ["row", "row"]]


def test_a_message_of_rows_and_others_is_read_with_a_table_per_row_or_per_event() -> None:
    mixed = [Resolved(ts=1), Row(new=[ID]), Ddl(query="q", code=3), Row(old=[ID])]
    per_row = message(*mixed)
    assert [e.kind for e in events(per_row)] == ["resolved", "row", "ddl", "row"]
    terms = Terms()
    header, parts = headers(mixed, terms), [group(kind, [ID], terms) for kind in (1, 2)]
    bodies = [b"", parts[0], b"\x03\x01q", parts[1]]
    per_event = assemble(header, bodies, terms.encode(), [[], [len(parts[0])], [], [len(parts[1])]])
    assert events(per_event) == events(per_row)
    wrong = assemble(header, bodies, terms.encode(), [[], [len(parts[0])], [3], [len(parts[1])]])
    assert error(wrong)[0] == "BAD_STRUCTURE"


def test_a_deep_difference_may_wrap_in_the_size_tables() -> None:
    """Sizes are differences mod 2^64; a writer may choose the long way round."""
    value = SMALLEST.replace(bytes.fromhex("020a06"), b"\x02\x0a" + uvarint(6), 1)
    assert value == SMALLEST
    assert read("craft", (None, value), Context())[0].after == [b"1"]


def test_the_size_of_a_batch_is_known_before_memory_is_taken() -> None:
    bombs = [uvarint(1) + deltas([0]) * 5 + uvarint(1 << 31) * 2 + b"\x04", b"\x01" + uvarint((1 << 64) - 1) + b"\x0a"]
    assert [e.kind for e in events(*bombs)] == ["rejected", "rejected"]
