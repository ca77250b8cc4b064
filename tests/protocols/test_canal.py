"""Canal protobuf: every rule of its layout, by hand-made messages, through both paths."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.protocols.both_paths import both, decoded, left, read
from tests.protocols.canal_messages import (
    BEGIN,
    CREATE,
    DELETE,
    END,
    GTID,
    HEARTBEAT,
    ID,
    INSERT,
    NAME,
    QUERY,
    UPDATE,
    Column,
    change,
    column,
    column_fields,
    ddl,
    delete,
    entry,
    header,
    insert,
    number,
    packet,
    row_data,
    server_column,
    text,
    update,
)
from tests.protocols.craft_messages import uvarint
from tidelake.event import Event, Shape, ShapeColumn
from tidelake.protocols import Context
from tidelake.wire import canal_scan

# as TiCDC writes it: insert into test.t (id int primary key, v varchar) values (1, null)
SMALLEST = bytes.fromhex(
    "100118072a6512630a2d08012a055554462d3830aca6ede9c53138024204746573744a01745801620e0a09726f7773436f756e74120131"
    "10021a3010015000622a121410041a0269642001280130004201315203696e741212100c1a017628013001520776617263686172"
)
SHAPE = Shape((ShapeColumn("id", "int", True), ShapeColumn("name", "varchar")))
ROW = Event(kind="row", op="insert", database="s", table="t", shape=SHAPE, after=[b"1", "näme".encode()])


def events(*messages: bytes | None, compiled: bool | None = None) -> list[Event]:
    """By both paths. compiled: whether the scan takes all of them, or none."""
    pairs = [(None, m) for m in messages]
    if compiled is not None:
        assert left("canal", pairs, Context()) == ([] if compiled else list(range(len(pairs))))
    return [e for found in both("canal", pairs, Context()) for e in found]


def rows(*columns: Column, compiled: bool = True) -> list[bytes | None]:
    (event,) = events(packet(insert(*columns)), compiled=compiled)
    assert event.after is not None, event
    return list(event.after)


def of_column(data: bytes) -> bytes:
    """A message with one row of one column, given as bytes."""
    return packet(entry(header(), change(INSERT, text(2, data))))


def error(value: bytes | None) -> tuple[str | None, str]:
    (event,) = events(value, compiled=False)
    assert (event.kind, event.raw_value) == ("rejected", value)
    return event.error_code, event.error or ""


def test_a_message_of_ticdc() -> None:
    (event,) = events(SMALLEST, compiled=True)
    assert (event.kind, event.op, event.commit_ts, event.database, event.table) == ("row", "insert", None, "test", "t")
    assert event.shape == Shape((ShapeColumn("id", "int", True), ShapeColumn("v", "varchar")))
    assert (event.after, event.before, event.before_shape, event.physical_table_id) == ([b"1", None], None, None, None)


def test_inserts_updates_and_deletes_have_the_sides_that_they_say() -> None:
    new = Column("name", "varchar", "b")
    found = events(packet(insert(ID, NAME), update([ID, NAME], [ID, new]), delete(ID, NAME)), compiled=True)
    assert found[0] == ROW
    assert [(e.op, e.after, e.before) for e in found[1:]] == [("update", [b"1", b"b"], ROW.after), ("delete", None, ROW.after)]
    assert [(e.shape, e.before_shape) for e in found] == [(SHAPE, None), (SHAPE, SHAPE), (None, SHAPE)]


def test_an_update_may_have_no_or_only_some_columns_before() -> None:
    none, some = events(packet(update([], [ID, NAME]), update([NAME], [ID, NAME])), compiled=True)
    assert (none.before, none.before_shape) == ([], Shape(()))
    assert (some.before, some.before_shape) == (["näme".encode()], Shape((ShapeColumn("name", "varchar"),)))


def test_a_change_may_have_many_rows_and_a_message_many_tables() -> None:
    many = entry(header(), change(UPDATE, *(row_data([ID, Column("name", "varchar", str(n))], [ID]) for n in range(3))))
    found = events(packet(insert(ID), many, insert(NAME, table="u"), insert(ID, NAME, schema="x"), batch=77), compiled=True)
    assert [(e.database, e.table, e.op) for e in found] == [
        ("s", "t", "insert"),
        *[("s", "t", "update")] * 3,
        ("s", "u", "insert"),
        ("x", "t", "insert"),
    ]
    assert [e.after[1] for e in found[1:4] if e.after] == [b"0", b"1", b"2"]


def test_values_are_text_null_or_empty() -> None:
    assert rows(ID, Column("a", "varchar", None), Column("b", "varchar", ""), Column("c", "json", '{"a": 1}')) == [
        b"1",
        None,
        b"",
        b'{"a": 1}',
    ]
    assert rows(Column("t", "text", b"\xff\xfe")) == [b"\xff\xfe"]  # passed through, as in Craft and Avro


@pytest.mark.parametrize("word", ["binary", "varbinary(16)", "tinyblob", "BLOB", "mediumblob", "longblob"])
def test_binary_values_are_bytes_written_as_code_points(word: str) -> None:
    every = bytes(range(256))
    assert rows(Column("b", word, every.decode("latin-1")), Column("e", word, ""), Column("n", word, None)) == [every, b"", None]


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


@pytest.mark.parametrize(
    ("said", "word", "full"),
    [
        ("int", "int", None),
        ("bigint(20) unsigned", "bigint unsigned", "bigint(20) unsigned"),
        ("int unsigned zerofill", "int unsigned", None),
        ("enum('a','b')", "enum", "enum('a','b')"),
        ("decimal(10,2)", "decimal", "decimal(10,2)"),
    ],
)
def test_types_are_mysqls(said: str, word: str, full: str | None) -> None:
    (event,) = events(packet(insert(Column("c", said))), compiled=True)
    assert event.shape is not None
    assert [(c.type, c.full_type) for c in event.shape.columns] == [(word, full)]


def test_ddl_has_its_statement_and_canals_word() -> None:
    found = events(
        packet(ddl("ALTER TABLE t ADD c INT"), ddl("CREATE DATABASE x", QUERY, "x", ""), ddl("create table q", CREATE)), compiled=False
    )
    assert found == [
        Event(kind="ddl", database="s", table="t", ddl="ALTER TABLE t ADD c INT", ddl_type="ALTER"),
        Event(kind="ddl", database="x", table=None, ddl="CREATE DATABASE x", ddl_type="QUERY"),
        Event(kind="ddl", database="s", table="t", ddl="create table q", ddl_type="CREATE"),
    ]


def test_the_schema_of_a_ddl_may_stand_beside_the_statement_only() -> None:
    (event,) = events(packet(entry(header("", ""), change(QUERY, ddl=1, sql="create user x", schema="mysql"))))
    assert (event.database, event.table) == ("mysql", None)


def test_all_words_of_ddl() -> None:
    found = events(packet(*(ddl("q", kind) for kind in range(4, 12))))
    assert [e.ddl_type for e in found] == "CREATE ALTER ERASE QUERY TRUNCATE RENAME CINDEX DINDEX".split()


def test_rows_and_ddl_in_one_message_keep_their_order() -> None:
    assert [e.kind for e in events(packet(insert(ID), ddl("q"), insert(ID, NAME)))] == ["row", "ddl", "row"]


# Alibaba Canal's own server


def test_what_is_no_change_holds_no_events() -> None:
    silent = [entry(b"", b"\xff\xff", kind) for kind in (BEGIN, END, HEARTBEAT, GTID)]
    assert events(packet(*silent), compiled=True) == []
    assert events(packet(silent[0], insert(ID, NAME), silent[1]), compiled=True) == [ROW]


def test_a_statement_beside_the_rows_it_changed_is_no_event() -> None:
    said = [entry(header("", "t", kind), change(kind, sql="update t set a = 1")) for kind in (QUERY, 13)]
    assert events(packet(*said, insert(ID, NAME))) == [ROW]


@pytest.mark.parametrize("kind", [INSERT, UPDATE, DELETE])
def test_a_statement_instead_of_rows_is_refused(kind: int) -> None:
    code, said = error(packet(entry(header(), change(kind, sql="update t set a = 1"))))
    assert (code, "without rows" in said) == ("BAD_STRUCTURE", True)


def test_rows_that_were_rolled_back_are_not_forgotten() -> None:
    code, said = error(packet(insert(ID), entry(header("", ""), change(14, sql="XA ROLLBACK 'x'"))))
    assert (code, "XAROLLBACK" in said) == ("UNKNOWN_TYPE", True)


def test_the_servers_columns_say_more_and_mean_the_same() -> None:
    data = b"".join(text(2, server_column(i, c)) for i, c in enumerate((ID, NAME)))
    assert events(packet(entry(header(), change(INSERT, data, data)), batch=5), compiled=True) == [ROW, ROW]


# any legal form


def test_fields_may_come_in_any_order_and_unknown_ones_between() -> None:
    unknown = number(99, 5) + text(200, "x") + uvarint(15 << 3 | 1) + bytes(8) + uvarint(15 << 3 | 5) + bytes(4)
    columns = [b"".join([unknown, *reversed(column_fields(c)), unknown]) for c in (ID, NAME)]
    data = unknown + text(2, columns[0]) + text(3, "prop") + text(2, columns[1])
    store = unknown + text(12, data) + text(13, "prop") + number(10, 0) + number(2, INSERT)
    head = text(9, "t") + unknown + text(8, "s")
    inner = text(3, store) + unknown + number(2, 2) + text(1, head)
    value = unknown + text(5, text(2, inner) + number(1, 9) + unknown) + number(4, 1) + number(3, 7) + number(1, 17)
    assert events(value, compiled=True) == [ROW]
    assert events(value, packet(insert(ID, NAME)), value, compiled=True) == [ROW] * 3


def test_marks_are_true_for_every_number_but_zero() -> None:
    data = text(3, "a") + number(4, 1 << 63) + number(6, 300) + text(10, "int")
    (event,) = events(of_column(data), compiled=True)
    assert (event.after, event.shape) == ([None], Shape((ShapeColumn("a", "int", True),)))


def test_marks_that_are_absent_are_false() -> None:
    (event,) = events(of_column(text(3, "a") + text(10, "int") + text(8, "7")), compiled=True)
    assert (event.after, event.shape) == ([b"7"], Shape((ShapeColumn("a", "int"),)))


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16383, 16384, 1 << 20])
def test_values_of_any_size(size: int) -> None:
    assert rows(ID, Column("v", "text", "x" * size), Column("z", "int", "5")) == [b"1", b"x" * size, b"5"]


def test_a_table_that_changes_is_seen() -> None:
    """Name, type, key mark or number of columns, from one row to the next, and a code of the value's type that means nothing."""
    variants = [
        [ID, NAME],
        [ID, Column("nome", "varchar", "x")],
        [ID, Column("name", "varbinar", "x")],
        [ID, Column("name", "blob", "ÿ")],
        [ID, Column("name", "varchar", "x", key=True)],
        [ID],
        [ID, NAME, Column("c", "int", None)],
        [ID, Column("name", "varchar", "x", sql_type=-5)],
    ]
    sequence = [v for one in variants for other in variants for v in (one, other)]
    found = events(*(packet(insert(*columns)) for columns in sequence), compiled=True)
    assert [e.after for e in found] == [[_bytes(c) for c in columns] for columns in sequence]
    assert [e.shape for e in found] == [Shape(tuple(ShapeColumn(str(c.name), str(c.type), c.key) for c in columns)) for columns in sequence]


def _bytes(c: Column) -> bytes | None:
    return None if c.value is None else str(c.value).encode("latin-1" if c.type == "blob" else "utf-8")


def test_a_refused_row_does_not_spoil_what_was_learnt() -> None:
    bad = of_column(text(3, "id") + number(4, 1) + number(6, 1) + text(8, "x") + text(10, "int"))
    other = packet(entry(header(), change(INSERT, text(2, column(Column("x", "blob", "1"))) + text(2, b"\x1a"))))
    good = packet(insert(ID, NAME))
    assert [e.kind for e in events(good, bad, good, other, good)] == ["row", "rejected", "row", "rejected", "row"]


# refused

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
    assert error(SMALLEST[:-1])[1] == "the body at byte 5 has 101 bytes, of the message 100 are left"


def test_more_rows_or_columns_than_the_caps_are_refused() -> None:
    row = row_data([Column("a", "t", "")])
    full = packet(entry(HEAD, change(INSERT, *[row] * canal_scan.MAX_ROWS)))
    more = packet(insert(ID), entry(HEAD, change(INSERT, *[row] * canal_scan.MAX_ROWS)))
    assert left("canal", [(None, full), (None, more)], Context()) == [1]
    assert read("canal", (None, more), Context())[0].error_code == "TOO_LARGE"
    assert len(decoded("canal", [(None, full)], Context())[0]) == canal_scan.MAX_ROWS
    wide = [Column(f"c{i}", "int", "1") for i in range(canal_scan.MAX_COLUMNS + 1)]
    assert [len(e.after or ()) for e in events(packet(insert(*wide[:-1])))] == [canal_scan.MAX_COLUMNS]
    assert error(packet(insert(*wide)))[0] == "TOO_LARGE"


def test_more_tables_than_are_learnt_at_once_are_read_all_the_same() -> None:
    message = packet(*(insert(ID, table=f"t{i}") for i in range(40)))
    assert [e.table for e in events(message, compiled=False)] == [f"t{i}" for i in range(40)]
    assert events(message, packet(insert(ID)))[-1].table == "t"


def test_bad_neighbours_do_no_harm() -> None:
    good, context = packet(insert(ID, NAME)), Context()
    messages: list[Any] = [(None, v) for v in (good, b"", good, None, good[:-3], good)]
    found = both("canal", messages, context)
    assert [e.error_code or e for (e,) in found] == [ROW, "TRUNCATED", ROW, "NULL_VALUE", "TRUNCATED", ROW]


def test_a_context_that_has_learnt_goes_to_workers() -> None:
    context = Context()
    decoded("canal", [(None, packet(insert(ID, NAME)))], context)
    again = Context(memory=pickle.loads(pickle.dumps(context.memory)))
    assert decoded("canal", [(None, packet(insert(ID, NAME)))], again) == [[ROW]]
