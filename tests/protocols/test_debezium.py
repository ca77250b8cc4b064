"""Debezium's envelope as TiCDC writes it: values by their types, and what is refused and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tests.protocols.both_paths import Message, both
from tests.protocols.untyped_messages import COLUMNS, context, debezium, field, schema
from tidelake.errors import DecodeError
from tidelake.history.event import Event, SchemaColumn
from tidelake.protocols import Context, decoder

EPOCH = "1970-01-01T00:00:00Z"


def event(message: Message, with_context: Context | None = None) -> Event:
    (found,) = both("debezium", [message], with_context or context())[0]
    return found


def cell(value: Any, tidb_type: str | None = None, time_zone: str = "UTC", **more: Any) -> bytes | None:
    """The cell of a column with this field in the schema."""
    message = debezium("c", schema(field("x", tidb_type, **more)), after={"x": value})
    (found,) = both("debezium", [message], Context(time_zone=time_zone))[0]
    assert found.after is not None, found.error
    return found.after[0]


@pytest.mark.parametrize(
    ("op", "sides", "said"),
    [
        ("c", {"before": None, "after": {"id": 1}}, ("insert", [b"1"], None)),
        ("u", {"before": {"id": 2}, "after": {"id": 1}}, ("update", [b"1"], [b"2"])),
        ("u", {"after": {"id": 1}}, ("update", [b"1"], None)),
        ("d", {"before": {"id": 1}, "after": None}, ("delete", None, [b"1"])),
    ],
)
def test_operations(op: str, sides: dict[str, Any], said: tuple[Any, ...]) -> None:
    found = event(debezium(op, key={"id": 1}, **sides))
    assert (found.op, found.after, found.before) == said
    assert (found.commit_ts, found.database, found.table) == (7, "db", "t")
    row_schema = found.row_schema or found.before_schema
    assert row_schema is not None
    assert row_schema.columns == (SchemaColumn("id", key=True),)


def test_a_watermark_and_a_statement() -> None:
    found = event(debezium("m", key={}, db="", table="", commit_ts=(1 << 64) - 1))
    assert (found.kind, found.commit_ts) == ("resolved", (1 << 64) - 1)
    changes = [{"type": "ALTER", "id": '"db"."t"', "table": {}}]
    found = event(debezium(None, key={"databaseName": "db"}, ddl="ALTER TABLE t ADD c INT", tableChanges=changes))
    assert (found.kind, found.commit_ts, found.database, found.table) == ("ddl", 7, "db", "t")
    assert (found.ddl, found.ddl_type) == ("ALTER TABLE t ADD c INT", "ALTER")
    found = event(debezium(None, ddl="CREATE DATABASE db", table="", tableChanges=[]))
    assert (found.ddl_type, found.database, found.table) == (None, "db", None)


VALUES: list[tuple[Any, str, dict[str, Any], bytes]] = [
    (-1, "bigint unsigned", {}, b"18446744073709551615"),
    (-1, "bigint", {}, b"-1"),
    (2020, "year", {}, b"2020"),
    ("2020", "year", {}, b"2020"),
    (1.5e-7, "float", {}, b"1.5e-07"),
    (3.14, "double", {}, b"3.14"),
    (1.5e22, "decimal", {}, b"15000000000000000000000"),
    (1e-7, "decimal", {}, b"0.0000001"),
    (True, "bit", {"type": "boolean"}, b"1"),
    (False, "bit", {"type": "boolean"}, b"0"),
    ("/wM=", "bit", {"parameters": {"length": "10"}}, b"1023"),
    ("//////////8=", "bit", {}, b"18446744073709551615"),
    ("/wA=", "varbinary", {}, b"\xff\0"),
    ("/wA=", "varchar", {}, b"/wA="),
    ("raw!", "varbinary", {"default": "raw!"}, b"raw!"),
    ("QUJD", "varbinary", {"default": "QUJD"}, b"QUJD"),
    ("QUJD", "varbinary", {"default": "raw!"}, b"ABC"),
    ("b", "enum", {"parameters": {"allowed": "a,b"}}, b"b"),
    ("", "set", {"parameters": {"allowed": "a,b"}}, b""),
    (0, "date", {}, b"1970-01-01"),
    (-719_528, "date", {}, b"0000-01-01"),
    (2_932_896, "date", {}, b"9999-12-31"),
    (-1, "datetime", {"name": "io.debezium.time.Timestamp"}, b"1969-12-31 23:59:59.999"),
    (1_703_680_043_000, "datetime", {"name": "io.debezium.time.Timestamp"}, b"2023-12-27 12:27:23"),
    (1_703_680_043_000_001, "datetime", {"name": "io.debezium.time.MicroTimestamp"}, b"2023-12-27 12:27:23.000001"),
    (-3_020_399_000_001, "time", {}, b"-838:59:59.000001"),
    (3_723_004_000, "time", {}, b"01:02:03.004"),
    ("2024-03-11T08:51:01.4612Z", "timestamp", {}, b"2024-03-11 08:51:01.4612"),
    (EPOCH, "timestamp", {}, b"0000-00-00 00:00:00"),
    ('{"a": 1}', "json", {}, b'{"a": 1}'),
]


@pytest.mark.parametrize(("value", "word", "more", "text"), VALUES)
def test_a_value_is_read_by_its_type(value: Any, word: str, more: dict[str, Any], text: bytes) -> None:
    assert cell(value, word, **more) == text
    assert cell(None, word, **more) is None


def test_debezium_s_names_say_types_where_the_tidb_extension_is_off() -> None:
    assert cell(18_312, name="io.debezium.time.Date", type="int32") == b"2020-02-20"
    assert cell(True, type="boolean") == b"1"
    assert cell("QQA=", name="io.debezium.data.Bits", type="bytes") == b"65"
    assert cell("/wA=") == b"/wA="  # text or bytes: nothing says


@pytest.mark.parametrize(("zone", "text"), [("Asia/Shanghai", b"2024-03-12 00:00:00.5"), ("-07:30", b"2024-03-11 08:30:00.5")])
def test_timestamps_are_printed_in_the_time_zone_of_the_feed(zone: str, text: bytes) -> None:
    assert cell("2024-03-11T16:00:00.5Z", "timestamp", zone) == text


def test_without_a_schema_and_an_unknown_table_values_stay_as_they_are() -> None:
    found = event(debezium("c", after={"d": 18_312, "b": True, "x": 1.50, "t": "/wA=", "n": None}))
    assert found.after == [b"18312", b"1", b"1.5", b"/wA=", None]
    assert found.row_schema is not None
    assert {c.type for c in found.row_schema.columns} == {None}


def test_without_a_schema_a_known_table_says_the_types() -> None:
    columns = (*COLUMNS, SchemaColumn("at", "datetime", full_type="datetime(6)"), SchemaColumn("t", "time", full_type="time(3)"))
    row = {"id": 1, "v": "/wA=", "bin": "/wA=", "n": 1.5, "at": 1_703_680_043_000_000, "t": 0}
    found = event(debezium("c", key={"v": ""}, after=row), context(columns))
    assert found.after == [b"1", b"/wA=", b"\xff\0", b"1.50", b"2023-12-27 12:27:23.000000", b"00:00:00.000"]
    assert found.row_schema is not None
    assert [(c.name, c.key) for c in found.row_schema.columns if c.key] == [("v", True)]  # the message knows better


def test_types_that_will_be_known_later_leave_values_as_they_were_sent() -> None:
    later = replace(context((*COLUMNS, SchemaColumn("at", "datetime", full_type="datetime(6)"))), types_later=True)
    row = {"id": 1, "bin": "/wA=", "n": 1.5, "at": 1_703_680_043_000, "b": True}
    found = event(debezium("c", key={"id": 1}, after=row), later)
    assert found.after == [b"1", b"/wA=", b"1.5", b"1703680043000", b"1"]
    assert found.row_schema is not None
    assert [(c.type, c.key) for c in found.row_schema.columns] == [(None, True), *[(None, False)] * 4]
    told = event(debezium("c", schema(field("bin", "varbinary"), field("n")), after={"bin": "/wA=", "n": 1.5}), later)
    assert told.after == [b"\xff\0", b"1.5"]  # n's type is told by nobody


def test_no_digit_of_a_decimal_is_dropped_for_a_scale_that_is_out_of_date() -> None:
    assert event(debezium("c", after={"n": 1.2345}), context(COLUMNS)).after == [b"1.2345"]


def test_a_schema_overrules_a_known_table_but_for_the_digits_it_lacks() -> None:
    described = schema(field("id", "int"), field("n", "decimal"))
    found = event(debezium("c", described, after={"id": 1, "n": 1.5}), context(COLUMNS))
    assert found.after == [b"1", b"1.50"]
    assert found.row_schema is not None
    assert [c.type for c in found.row_schema.columns] == ["int", "decimal"]


def test_elements_of_an_enum_are_told() -> None:
    found = event(debezium("c", schema(field("e", "enum", parameters={"allowed": "a\\,b,c"})), after={"e": "c"}))
    assert found.row_schema is not None
    assert found.row_schema.columns[0].elements == ("a,b", "c")


@pytest.mark.parametrize("method", ["snappy", "lz4"])
def test_key_and_value_are_compressed_each_on_its_own(method: str) -> None:
    codec, plain = pa.Codec(method), debezium("c", key={"id": 1}, after={"id": 1})
    packed = [codec.compress(side, asbytes=True) for side in plain if side is not None]
    assert event((packed[0], packed[1]), context(large_message_handle_compression=method)) == event(plain)


GOOD = debezium("c", after={"id": 1})
BAD: dict[str, tuple[Message, str]] = {
    "no JSON": ((None, b""), "BAD_JSON"),
    "no payload": ((None, b"{}"), "BAD_STRUCTURE"),
    "payload null": ((None, b'{"payload":null}'), "BAD_STRUCTURE"),
    "no source": ((None, b'{"payload":{"op":"c"}}'), "BAD_STRUCTURE"),
    "a key that is no JSON": ((b"x", GOOD[1]), "BAD_JSON"),
    "a key without payload": ((b"{}", GOOD[1]), "BAD_STRUCTURE"),
    "NaN": ((None, (GOOD[1] or b"").replace(b":1}", b":NaN}")), "BAD_JSON"),
    "deep": ((None, b'{"payload":' * 100_000), "BAD_JSON"),
    "half a surrogate pair": ((None, (GOOD[1] or b"").replace(b":1}", rb':"\udc00"}')), "BAD_UTF8"),
    "another op": (debezium("x", after={"id": 1}), "UNKNOWN_TYPE"),
    "op a number": ((None, (GOOD[1] or b"").replace(b'"c"', b"1")), "BAD_VALUE"),
    "neither op nor statement": (debezium(None), "BAD_STRUCTURE"),
    "no table": (debezium("c", table="", after={"id": 1}), "BAD_STRUCTURE"),
    "an insert with before": (debezium("c", before={"id": 1}, after={"id": 1}), "BAD_STRUCTURE"),
    "an update without after": (debezium("u", before={"id": 1}), "BAD_STRUCTURE"),
    "a delete with after": (debezium("d", before={"id": 1}, after={"id": 1}), "BAD_STRUCTURE"),
    "no columns": (debezium("c", after={}), "BAD_STRUCTURE"),
    "columns in a list": (debezium("c", after=[1]), "BAD_STRUCTURE"),
    "a watermark without ts": (debezium("m", commit_ts=None), "BAD_VALUE"),
    "ts beyond 64 bits": (debezium("c", commit_ts=1 << 64, after={"id": 1}), "BAD_VALUE"),
    "negative ts": (debezium("c", commit_ts=-1, after={"id": 1}), "BAD_VALUE"),
    "table changes that are none": (debezium(None, ddl="x", tableChanges=[1]), "BAD_STRUCTURE"),
    "a nested value": (debezium("c", after={"x": {}}), "BAD_VALUE"),
    "a schema of another side": (debezium("c", {"fields": [{"field": "before", "fields": []}]}, after={"x": 1}), "BAD_STRUCTURE"),
    "a schema without fields": (debezium("c", {}, after={"x": 1}), "BAD_STRUCTURE"),
    "a column the schema lacks": (debezium("c", schema(field("y", "int")), after={"x": 1}), "BAD_STRUCTURE"),
    "a type that is none": (debezium("c", schema(field("x", "in(t")), after={"x": 1}), "UNKNOWN_TYPE"),
    "a type too long": (debezium("c", schema(field("x", "i" * 99)), after={"x": 1}), "UNKNOWN_TYPE"),
    "a type that is a number": (debezium("c", schema(field("x") | {"tidb_type": 1}), after={"x": 1}), "BAD_VALUE"),
}
WRONG: list[tuple[str, Any]] = [
    ("int", "x"),
    ("int", 1.5),
    ("int", True),
    ("int", 1 << 64),
    ("double", "x"),
    ("double", 1 << 2000),
    ("decimal", "0x1"),
    ("decimal", 1e300),
    ("bit", "AAAAAAAAAAAA"),
    ("bit", ""),
    ("bit", "="),
    ("bit", -1),
    ("varbinary", 1),
    ("varchar", 1),
    ("enum", 1),
    ("date", 2_932_897),
    ("date", "x"),
    ("datetime", 1 << 62),
    ("datetime", 1.5),
    ("time", 3_020_400_000_000),
    ("timestamp", 0),
    ("timestamp", "2024-02-30T00:00:00Z"),
    ("timestamp", "0000-01-01T00:00:00Z"),
    ("timestamp", "2024-02-20 00:00:00"),
]


@pytest.mark.parametrize(("message", "code"), BAD.values(), ids=BAD.keys())
def test_what_is_no_envelope_is_refused_with_its_code(message: Message, code: str) -> None:
    with pytest.raises(DecodeError) as error:
        decoder("debezium").read(*message, context())
    assert error.value.code == code


@pytest.mark.parametrize(("word", "value"), WRONG)
def test_a_value_of_another_type_is_refused(word: str, value: Any) -> None:
    with pytest.raises(DecodeError) as error:
        decoder("debezium").read(*debezium("c", schema(field("x", word)), after={"x": value}), context())
    assert error.value.code == "BAD_VALUE"


def test_an_exponent_beyond_all_bounds_is_refused() -> None:
    key, value = debezium("c", schema(field("x", "decimal")), after={"x": 12345})
    for number in (b"0e99999999999999999999", b"1e-99999999999999999999", b"1e99999", b"0.1e-400"):
        with pytest.raises(DecodeError, match="number"):
            decoder("debezium").read(key, (value or b"").replace(b"12345", number), context())


def test_bytes_that_are_neither_base64_nor_the_default_are_refused() -> None:
    message = debezium("c", schema(field("x", "varbinary", default="raw!")), after={"x": "row!"})
    with pytest.raises(DecodeError, match="neither base64 nor the column's default"):
        decoder("debezium").read(*message, context())
