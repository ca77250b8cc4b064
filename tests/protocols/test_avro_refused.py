"""Avro: what is refused, and what the refusal says."""

from __future__ import annotations

import pytest

from tests.protocols.avro_messages import (
    EXTENSION,
    ID,
    INT,
    KEY,
    UUIDS,
    confluent,
    error,
    extension,
    field,
    glue,
    kind,
    schema,
    some,
    text,
    unscaled,
)
from tests.protocols.both_paths import both
from tests.protocols.craft_messages import varint
from tidelake.errors import DecodeError
from tidelake.protocols import Context
from tidelake.protocols.avro import read
from tidelake.wire.binary.avro_schema import parse

WIDE = schema(*ID, field("v", kind("string", "TEXT"), null=0))


@pytest.mark.parametrize(
    ("key", "value", "code", "says"),
    [
        (None, None, "NULL_VALUE", "neither key nor value"),
        (b"", None, "NULL_VALUE", "neither key nor value"),
        (KEY, b"", "TRUNCATED", "the magic byte ends at byte 1, the value at byte 0"),
        (KEY, b"\0\0\0", "TRUNCATED", "the schema id ends at byte 5, the value at byte 3"),
        (KEY, b"\3\0" + bytes(10), "TRUNCATED", "the schema version id ends at byte 18, the value at byte 12"),
        (KEY, b"\3\5" + bytes(16), "BAD_COMPRESSION", "Glue compression 5"),
        (KEY, b"\7" + bytes(16), "UNKNOWN_VERSION", "the value starts with byte 7"),
        (KEY, b"\2" + bytes(8), "UNKNOWN_VERSION", "starts with byte 2"),
        (b"\1" + bytes(8), confluent(2, varint(7), some(0)), "UNKNOWN_VERSION", "the key starts with byte 1"),
        (KEY, confluent(3, varint(7)), "UNKNOWN_SCHEMA", "no schema 3"),
        (confluent(3, varint(7)), None, "UNKNOWN_SCHEMA", "no schema 3"),
        (KEY, glue(UUIDS[0], varint(7)), "UNKNOWN_SCHEMA", f"no schema {UUIDS[0]}"),
        (KEY, confluent(2), "TRUNCATED", "field 'id' at byte 5 runs beyond the value"),
        (KEY, confluent(2, varint(7)), "TRUNCATED", "the branch of 'v' at byte 6"),
        (KEY, confluent(2, varint(7), some(2)), "BAD_VALUE", "branch 2 of a union of 2"),
        (KEY, confluent(2, varint(7), some(-1)), "BAD_VALUE", "branch -1 of a union of 2"),
        (KEY, confluent(2, varint(7), some(1)), "TRUNCATED", "the length of 'v'"),
        (KEY, confluent(2, varint(7), some(1, b"\6ab")), "TRUNCATED", "field 'v' ends at byte 11, the value at byte 10"),
        (KEY, confluent(2, varint(7), some(1, varint(-1))), "BAD_LENGTH", "field 'v' at byte 8 has length -1"),
        (KEY, confluent(2, varint(7), some(1, varint(1 << 40))), "BAD_LENGTH", "has length 1099511627776, the message has 13 bytes"),
        (KEY, confluent(2, varint(7), some(1, varint((1 << 63) - 1))), "BAD_LENGTH", "has length 9223372036854775807"),
        (KEY, confluent(2, varint(7), some(1, b"\xff" * 10)), "BAD_LENGTH", "more than 64 bits"),
        (KEY, confluent(2, varint(1 << 31), some(0)), "BAD_VALUE", "field 'id' is 2147483648"),
        (KEY, confluent(2, varint(7), some(0), b"x"), "TRAILING_BYTES", "the value should end at byte 7, but ends at byte 8"),
        (KEY + b"x", confluent(2, varint(7), some(0)), "TRAILING_BYTES", "the key should end at byte 6"),
        (KEY + b"x", None, "TRAILING_BYTES", "the key should end at byte 6"),
        (None, b"\2" + bytes(7), "TRUNCATED", "the resolved ts ends at byte 9, the watermark at byte 8"),
        (None, b"\2" + bytes(9), "TRAILING_BYTES", "the watermark"),
    ],
)
def test_a_wrong_message_is_rejected_and_says_where(key: bytes | None, value: bytes | None, code: str, says: str) -> None:
    found, message = error(value, WIDE, key)
    assert (found, says in message) == (code, True), message


@pytest.mark.parametrize(
    ("avro", "value", "says"),
    [
        (kind("bytes", "BIT"), text(b""), "field 'v' has 0 bytes, expected 1 to 8"),
        (kind("bytes", "BIT"), text(bytes(9)), "has 9 bytes, expected 1 to 8"),
        (kind("bytes", "DECIMAL", decimal=(3, 1)), text(b""), "has 0 bytes, expected 1 to 32"),
        (kind("bytes", "DECIMAL", decimal=(3, 1)), text(bytes(33)), "has 33 bytes"),
        (kind("bytes", "DECIMAL", decimal=(3, 1)), unscaled(1000), "has 4 digits, its precision is 3"),
        (kind("bytes", "DECIMAL", decimal=(65, 1)), unscaled(-(10**65)), "has 66 digits"),
        ("boolean", b"\2", "is 2, expected 0 or 1"),
    ],
)
def test_a_value_that_its_type_cannot_have_is_rejected(avro: object, value: bytes, says: str) -> None:
    found, message = error(confluent(2, value), schema(field("v", avro)))
    assert (found, says in message) == ("BAD_VALUE", True), message


@pytest.mark.parametrize("size", [0, 1, 3, 7])
@pytest.mark.parametrize("avro", ["float", "double", "boolean", "long"])
def test_a_number_cut_short_is_truncated(avro: str, size: int) -> None:
    if size < {"float": 4, "double": 8, "boolean": 1, "long": 10}[avro]:
        assert error(confluent(2, b"\xff" * size), schema(field("v", avro)))[0] == "TRUNCATED"


def test_an_operation_that_is_none_is_rejected() -> None:
    for word in ("d", "", "cc"):
        found, message = error(confluent(2, varint(7), extension(word, 5)), schema(*ID, *EXTENSION))
        assert (found, "expected c or u" in message) == ("UNKNOWN_TYPE", True)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "BAD_JSON"),
        (b"[]", "BAD_JSON"),
        (b"{}", "BAD_STRUCTURE"),
        (b"\xff", "BAD_UTF8"),
        (b"[" * 100_000, "BAD_JSON"),
        (b'{"query":"q","type":3,"schema":"s","table":"t","commitTs":-1}', "BAD_VALUE"),
        (b'{"query":"q","type":3,"schema":"s","table":"t","commitTs":18446744073709551616}', "BAD_VALUE"),
        (b'{"query":"q","type":3,"schema":"s","table":"t","commitTs":1.0}', "BAD_VALUE"),
        (b'{"query":"q","type":true,"schema":"s","table":"t","commitTs":1}', "BAD_VALUE"),
        (b'{"query":null,"type":3,"schema":"s","table":"t","commitTs":1}', "BAD_VALUE"),
        (b'{"query":"\\ud800","type":3,"schema":"s","table":"t","commitTs":1}', "BAD_UTF8"),
        (b'{"query":"q","type":' + b"9" * 5000 + b',"schema":"s","table":"t","commitTs":1}', "BAD_JSON"),
    ],
)
def test_a_wrong_ddl_message_is_rejected(content: bytes, code: str) -> None:
    assert error(b"\1" + content, key=None)[0] == code


def test_without_any_schemas_the_schema_is_unknown() -> None:
    ((found,),) = both("avro", [(KEY, None)], Context())
    assert (found.error_code, found.error) == ("UNKNOWN_SCHEMA", "schema 1: no schemas were given")


def test_what_hinders_the_registry_is_no_fault_of_the_message() -> None:
    def find(schema_id: int | str) -> str:
        raise OSError("down")

    with pytest.raises(OSError, match="down"):
        read(KEY, None, Context(avro_schema=find))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a record"),
        ('"int"', "not a record"),
        ({"type": "array", "items": "int"}, "not a record"),
        ({"type": "record", "fields": [{"name": "a", "type": "int"}]}, "no name"),
        ({"type": "record", "name": "t", "namespace": 5, "fields": [{"name": "a", "type": "int"}]}, "'namespace' is no text"),
        (schema(), "no fields"),
        ({"type": "record", "name": "t", "fields": "x"}, "no fields"),
        (schema({"name": "a"}), "field 'a': type None"),
        (schema({"type": "int"}), "a field without a name"),
        ({"type": "record", "name": "t", "fields": [5]}, "a field without a name"),
        (schema(field("a", INT), field("a", INT)), "two fields of one name"),
        (schema(field("a", "null")), "type 'null'"),
        (schema(field("a", ["null"])), "a union is null and one type"),
        (schema(field("a", ["int", "string"])), "a union is null and one type"),
        (schema(field("a", ["null", "int", "string"])), "a union is null and one type"),
        (schema(field("a", ["null", ["null", "int"]])), "type None"),
        (schema(field("a", {"type": "array", "items": "int"})), "type 'array'"),
        (schema(field("a", {"type": "map", "values": "int"})), "type 'map'"),
        (schema(field("a", {"type": "enum", "name": "e", "symbols": ["x"]})), "type 'enum'"),
        (schema(field("a", schema(*ID, name="inner"))), "type 'record'"),
        (schema(field("a", kind("bytes", "DECIMAL", decimal=(66, 0)))), "precision 66"),
        (schema(field("a", kind("bytes", "DECIMAL", decimal=(5, 6)))), "scale 6"),
        (schema(field("a", kind("bytes", "DECIMAL", decimal=(5, -1)))), "scale -1"),
        (schema(field("a", {"type": "bytes", "logicalType": "decimal"})), "precision None"),
        (schema(*ID, {"name": "_tidb_op", "type": "int"}), "another type than TiDB's extension"),
        (schema(*ID, {"name": "_tidb_commit_ts", "type": ["null", "long"]}), "another type than TiDB's extension"),
        (schema(field("\ud800", INT)), "not JSON: UnicodeEncodeError"),
    ],
)
def test_a_schema_that_is_no_table_is_refused(bad: object, says: str) -> None:
    found, message = error(confluent(2, varint(7)), bad if bad != "" else " ")
    assert (found, says in message) == ("BAD_STRUCTURE", True), message


def test_a_schema_that_is_no_text_is_refused() -> None:
    with pytest.raises(DecodeError, match="not JSON: TypeError"):
        parse(None)  # type: ignore[arg-type]
