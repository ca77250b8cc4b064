"""Canal protobuf: what is refused, and with which code, through both paths."""

from __future__ import annotations

import pytest

from tests.protocols.both_paths import both, left
from tests.protocols.canal_messages import (
    CREATE,
    DELETE,
    ID,
    INSERT,
    QUERY,
    UPDATE,
    Column,
    change,
    column,
    entry,
    header,
    insert,
    number,
    packet,
    row_data,
    text,
)
from tests.protocols.craft_messages import uvarint
from tidelake.protocols import Context

SMALLEST = packet(insert(ID))


def of_column(data: bytes) -> bytes:
    """A message with one row of one column, given as bytes."""
    return packet(entry(header(), change(INSERT, text(2, data))))


def error(value: bytes | None) -> tuple[str | None, str]:
    """By both paths; the scan leaves it."""
    messages = [(None, value)]
    assert left("canal", messages, Context()) == [0]
    ((event,),) = both("canal", messages, Context())
    assert (event.kind, event.raw_value) == ("rejected", value)
    return event.error_code, event.error or ""


COLUMN, HEAD = column(ID), header()
STORE = change(INSERT, row_data([ID]))
WRONG: dict[str, tuple[bytes | None, str]] = {
    "null": (None, "NULL_VALUE"),
    "empty": (b"", "TRUNCATED"),
    "version": (number(2, 2) + packet(insert(ID))[2:], "UNKNOWN_VERSION"),
    "packet type": (number(3, 3) + text(5, b""), "UNKNOWN_TYPE"),
    "no packet type": (text(5, text(2, insert(ID))), "TRUNCATED"),
    "no body": (number(2, 1) + number(3, 7), "TRUNCATED"),
    "no entries": (packet(), "BAD_STRUCTURE"),
    "zlib": (packet(insert(ID), extra=number(4, 2)), "BAD_COMPRESSION"),
    "gzip": (packet(insert(ID), extra=number(4, 3)), "BAD_COMPRESSION"),
    "lzf": (packet(insert(ID), extra=number(4, 4)), "BAD_COMPRESSION"),
    "compression -1": (packet(insert(ID), extra=number(4, -1)), "BAD_COMPRESSION"),
    "two bodies": (packet(insert(ID), extra=text(5, b"")), "BAD_STRUCTURE"),
    "two versions": (packet(insert(ID), extra=number(2, 1)), "BAD_STRUCTURE"),
    "an entry that is a number": (number(2, 1) + number(3, 7) + text(5, number(2, 5)), "BAD_STRUCTURE"),
    "entry type 0": (packet(entry(HEAD, STORE, 0)), "UNKNOWN_TYPE"),
    "entry type 6": (packet(entry(HEAD, STORE, 6)), "UNKNOWN_TYPE"),
    "no header": (packet(number(2, 2) + text(3, STORE)), "BAD_STRUCTURE"),
    "no store value": (packet(text(1, HEAD) + number(2, 2)), "BAD_STRUCTURE"),
    "two headers": (packet(text(1, HEAD) + entry(HEAD, STORE)), "BAD_STRUCTURE"),
    "no schema": (packet(entry(header(""), STORE)), "BAD_STRUCTURE"),
    "no table": (packet(entry(header("s", ""), STORE)), "BAD_STRUCTURE"),
    "long schema": (packet(insert(ID, schema="x" * 1025)), "BAD_LENGTH"),
    "schema that is no text": (packet(insert(ID, schema=b"\xff")), "BAD_UTF8"),
    "event type 0": (packet(entry(HEAD, change(0, row_data([ID])))), "UNKNOWN_TYPE"),
    "event type 99": (packet(entry(HEAD, change(99, row_data([ID])))), "UNKNOWN_TYPE"),
    "DDL without mark": (packet(entry(HEAD, change(CREATE, sql="q"))), "UNKNOWN_TYPE"),
    "query with rows": (packet(entry(HEAD, change(QUERY, row_data([ID]), sql="q"))), "UNKNOWN_TYPE"),
    "DDL of type insert": (packet(entry(HEAD, change(INSERT, ddl=1, sql="q"))), "BAD_STRUCTURE"),
    "DDL without statement": (packet(entry(HEAD, change(CREATE, ddl=1))), "BAD_STRUCTURE"),
    "DDL with rows": (packet(entry(HEAD, change(CREATE, row_data([ID]), ddl=1, sql="q"))), "BAD_STRUCTURE"),
    "statement that is no text": (packet(entry(HEAD, change(CREATE, ddl=1, sql=b"\xff"))), "BAD_UTF8"),
    "insert without columns": (packet(entry(HEAD, change(INSERT, row_data()))), "BAD_STRUCTURE"),
    "insert with columns before": (packet(entry(HEAD, change(INSERT, row_data([ID], [ID])))), "BAD_STRUCTURE"),
    "update without columns after": (packet(entry(HEAD, change(UPDATE, row_data([], [ID])))), "BAD_STRUCTURE"),
    "delete without columns": (packet(entry(HEAD, change(DELETE, row_data()))), "BAD_STRUCTURE"),
    "delete with columns after": (packet(entry(HEAD, change(DELETE, row_data([ID], [ID])))), "BAD_STRUCTURE"),
    "row that is a number": (packet(entry(HEAD, number(2, 1) + number(12, 5))), "BAD_STRUCTURE"),
    "no name": (of_column(text(10, "int")), "BAD_STRUCTURE"),
    "no type": (of_column(text(3, "a")), "BAD_STRUCTURE"),
    "two names": (of_column(COLUMN + text(3, "id")), "BAD_STRUCTURE"),
    "two values": (of_column(COLUMN + text(8, "1")), "BAD_STRUCTURE"),
    "NULL with a value": (of_column(text(3, "a") + number(6, 1) + text(8, "x") + text(10, "int")), "BAD_STRUCTURE"),
    "name that is a number": (of_column(number(3, 1) + text(10, "int")), "BAD_STRUCTURE"),
    "NULL mark that is text": (of_column(text(3, "a") + text(6, "x") + text(10, "int")), "BAD_STRUCTURE"),
    "two columns of a name": (packet(insert(ID, ID)), "BAD_STRUCTURE"),
    "name that is no text": (packet(insert(Column(b"\xff", "int"))), "BAD_UTF8"),
    "long name": (packet(insert(Column("x" * 1025, "int"))), "BAD_LENGTH"),
    "type that is none": (packet(insert(Column("a", "int("))), "UNKNOWN_TYPE"),
    "type that is no text": (packet(insert(Column("a", b"\xff"))), "BAD_UTF8"),
    "type that is long": (packet(insert(Column("a", "i" * 300_000))), "UNKNOWN_TYPE"),
    "tag 0": (b"\0" + packet(insert(ID)), "BAD_STRUCTURE"),
    "tag of 33 bits": (uvarint(1 << 32) + b"\0" + packet(insert(ID)), "BAD_STRUCTURE"),
    "group": (uvarint(9 << 3 | 3) + packet(insert(ID)), "BAD_STRUCTURE"),
    "wire type 7": (uvarint(9 << 3 | 7) + packet(insert(ID)), "BAD_STRUCTURE"),
    "endless number": (b"\x48" + b"\xff" * 11 + packet(insert(ID)), "BAD_LENGTH"),
    "eight bytes too few": (packet(insert(ID)) + uvarint(9 << 3 | 1) + bytes(7), "TRUNCATED"),
    "four bytes too few": (packet(insert(ID)) + uvarint(9 << 3 | 5) + bytes(3), "TRUNCATED"),
    "JSON": (b'{"type": "INSERT"}', "BAD_STRUCTURE"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_with_a_code(name: str) -> None:
    value, code = WRONG[name]
    assert error(value)[0] == code


@pytest.mark.parametrize("size", [1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 200])
@pytest.mark.parametrize("level", range(6))
def test_a_length_larger_than_what_is_left_is_refused_wherever_it_stands(size: int, level: int) -> None:
    def long(field: int, data: bytes, depth: int) -> bytes:
        return uvarint(field << 3 | 2) + uvarint(size if depth == level else len(data)) + data

    row = long(2, long(3, b"a", 0) + text(10, "int"), 1)
    store = number(2, 1) + long(12, row, 2)
    value = number(2, 1) + number(3, 7) + long(5, long(2, text(1, HEAD) + number(2, 2) + long(3, store, 3), 4), 5)
    assert error(value)[0] in ("BAD_LENGTH", "TRUNCATED")


def test_a_message_says_where_it_is_wrong() -> None:
    bad = packet(insert(ID), entry(HEAD, change(INSERT, row_data([ID]), text(2, text(3, "a")))))
    assert error(bad) == ("BAD_STRUCTURE", "a column of name b'a' and type b'', expected both")
    assert error(packet(insert(ID), entry(HEAD, STORE, 9)))[1].startswith("entry 1 has type 9, expected 2 (ROWDATA)")
    assert error(packet(insert(ID), extra=number(4, 3)))[1].startswith("the packet has compression 3 (GZIP)")
    size = len(SMALLEST) - 6
    assert error(SMALLEST[:-1])[1] == f"the body at byte 5 has {size} bytes, of the message {size - 1} are left"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("Ā", "BAD_VALUE"),
        ("a€", "BAD_VALUE"),
        (b"\xc3", "BAD_UTF8"),
        (b"\xc3a", "BAD_UTF8"),
        (b"\x80", "BAD_UTF8"),
        (b"\xc1\x81", "BAD_UTF8"),
    ],
)
def test_what_is_no_byte_is_refused_in_a_binary_column(value: str | bytes, code: str) -> None:
    assert error(packet(insert(ID, Column("b", "blob", value))))[0] == code
