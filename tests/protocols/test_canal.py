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
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.protocols import Context
from tidelake.wire.binary import canal_scan

# as TiCDC writes it: insert into test.t (id int primary key, v varchar) values (1, null)
SMALLEST = bytes.fromhex(
    "100118072a6512630a2d08012a055554462d3830aca6ede9c53138024204746573744a01745801620e0a09726f7773436f756e74120131"
    "10021a3010015000622a121410041a0269642001280130004201315203696e741212100c1a017628013001520776617263686172"
)
SCHEMA = RowSchema((SchemaColumn("id", "int", True), SchemaColumn("name", "varchar")))
ROW = Event(kind="row", op="insert", database="s", table="t", row_schema=SCHEMA, after=[b"1", "näme".encode()])


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
    assert event.row_schema == RowSchema((SchemaColumn("id", "int", True), SchemaColumn("v", "varchar")))
    assert (event.after, event.before, event.before_schema, event.physical_table_id) == ([b"1", None], None, None, None)


def test_inserts_updates_and_deletes_have_the_sides_that_they_say() -> None:
    new = Column("name", "varchar", "b")
    found = events(packet(insert(ID, NAME), update([ID, NAME], [ID, new]), delete(ID, NAME)), compiled=True)
    assert found[0] == ROW
    assert [(e.op, e.after, e.before) for e in found[1:]] == [("update", [b"1", b"b"], ROW.after), ("delete", None, ROW.after)]
    assert [(e.row_schema, e.before_schema) for e in found] == [(SCHEMA, None), (SCHEMA, SCHEMA), (None, SCHEMA)]


def test_an_update_may_have_no_or_only_some_columns_before() -> None:
    none, some = events(packet(update([], [ID, NAME]), update([NAME], [ID, NAME])), compiled=True)
    assert (none.before, none.before_schema) == ([], RowSchema(()))
    assert (some.before, some.before_schema) == (["näme".encode()], RowSchema((SchemaColumn("name", "varchar"),)))


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
    assert event.row_schema is not None
    assert [(c.type, c.full_type) for c in event.row_schema.columns] == [(word, full)]


def test_ddl_has_its_statement_and_canals_word() -> None:
    found = events(
        packet(ddl("ALTER TABLE t ADD c INT"), ddl("CREATE DATABASE x", QUERY, "x", ""), ddl("create table q", CREATE)), compiled=False
    )
    assert found == [
        Event(kind="ddl", database="s", table="t", ddl="ALTER TABLE t ADD c INT", ddl_type="ALTER"),
        Event(kind="ddl", database="x", table=None, ddl="CREATE DATABASE x", ddl_type="QUERY"),
        Event(kind="ddl", database="s", table="t", ddl="create table q", ddl_type="CREATE"),
    ]


def test_a_statement_looks_for_names_in_the_database_of_its_session_not_in_that_of_its_first_table() -> None:
    (event,) = events(packet(entry(header("other", "t", CREATE), change(CREATE, ddl=1, sql="create table other.t like u", schema="s"))))
    assert (event.database, event.table, event.ddl) == ("s", "t", "create table other.t like u")


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
    said = [entry(header("", "t" * (kind == QUERY), kind), change(kind, sql="update t set a = 1")) for kind in (QUERY, 13)]
    assert events(packet(*said, insert(ID, NAME))) == [ROW]


@pytest.mark.parametrize("sql", ["INSERT into t values (1)", "update t set ü = 1", "Delete from t", "replace into t values (1)"])
def test_the_statement_in_front_of_its_rows_is_stepped_over(sql: str) -> None:
    said = entry(header("", "", QUERY), change(QUERY, sql=sql))
    assert events(packet(said, insert(ID, NAME)), compiled=True) == [ROW]


@pytest.mark.parametrize(
    ("schema", "sql"),
    [
        ("shop", "drop database shop"),
        ("shop", "insert"),
        ("", "alter table t add c int"),
        ("", "/* x */ DROP TABLE t"),
        ("", "# x\nrename table t to u"),
    ],
)
def test_a_statement_that_an_old_server_does_not_mark_is_one(schema: str, sql: str) -> None:
    (event,) = events(packet(entry(header(schema, "", QUERY), change(QUERY, sql=sql))), compiled=False)
    assert event == Event(kind="ddl", database=schema or None, table=None, ddl=sql, ddl_type="QUERY")


@pytest.mark.parametrize("sql", ["create table u as select 1", "call p()", "", "ins"])
def test_other_statements_of_no_database_stand_beside_rows_too(sql: str) -> None:
    assert events(packet(entry(header("", "", QUERY), change(QUERY, sql=sql)), insert(ID, NAME)), compiled=False) == [ROW]


def test_text_that_the_server_takes_for_a_blob_is_written_as_the_code_points_of_its_utf_8() -> None:
    """MariaDB's JSON is a LONGTEXT in the binlog; Canal writes it as text only if it read the type LONGTEXT from the server."""
    blob, text_ = Column("j", "json", "Ã¼", sql_type=2004), Column("j", "json", "Ã¼", sql_type=12)
    cut, digits = Column("j", "json", "Ã", sql_type=2004), Column("j", "set('a','b')", "2", sql_type=2004)
    found = events(packet(insert(blob), insert(text_), insert(blob), insert(digits)))
    assert [e.after for e in found] == [["ü".encode()], ["Ã¼".encode()], ["ü".encode()], [b"2"]]
    assert [e.after for e in events(packet(insert(cut)))] == [["\ufffd".encode()]]
    null = Column("j", "json", None, sql_type=2004)
    assert [e.after for e in events(packet(insert(null), insert(blob)), compiled=None)] == [[None], ["ü".encode()]]


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
    assert (event.after, event.row_schema) == ([None], RowSchema((SchemaColumn("a", "int", True),)))


def test_marks_that_are_absent_are_false() -> None:
    (event,) = events(of_column(text(3, "a") + text(10, "int") + text(8, "7")), compiled=True)
    assert (event.after, event.row_schema) == ([b"7"], RowSchema((SchemaColumn("a", "int"),)))


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
    assert [e.row_schema for e in found] == [
        RowSchema(tuple(SchemaColumn(str(c.name), str(c.type), c.key) for c in columns)) for columns in sequence
    ]


def _bytes(c: Column) -> bytes | None:
    return None if c.value is None else str(c.value).encode("latin-1" if c.type == "blob" else "utf-8")


def test_a_refused_row_does_not_spoil_what_was_learnt() -> None:
    bad = of_column(text(3, "id") + number(4, 1) + number(6, 1) + text(8, "x") + text(10, "int"))
    other = packet(entry(header(), change(INSERT, text(2, column(Column("x", "blob", "1"))) + text(2, b"\x1a"))))
    good = packet(insert(ID, NAME))
    assert [e.kind for e in events(good, bad, good, other, good)] == ["row", "rejected", "row", "rejected", "row"]


def test_a_column_that_begins_and_ends_as_the_last_one_is_judged_as_strictly() -> None:
    first, last = column_fields(ID)[:3], column_fields(ID)[-1:]  # code, name, key mark; type
    middles = {
        "value": [number(6, 0), text(8, "7")],
        "no marks": [text(8, "7")],
        "changed": [number(5, 1), number(6, 0), text(8, "7")],
        "null": [number(5, 1), number(6, 1)],
        "empty": [number(5, 1)],
        "unknown": [number(6, 0), number(7, 5), text(8, "7")],
        "null and a value": [number(6, 1), text(8, "7")],
        "two values": [number(6, 0), text(8, "7"), text(8, "7")],
        "two marks": [number(6, 0), number(6, 0), text(8, "7")],
        "a second name": [number(6, 0), text(3, "id"), text(8, "7")],
        "value cut short": [number(6, 0), uvarint(8 << 3 | 2) + uvarint(50) + b"7"],
        "value that is a number": [number(6, 0), number(8, 7)],
    }
    good = packet(insert(ID))
    sequence = [good, *(m for middle in middles.values() for m in (of_column(b"".join([*first, *middle, *last])), good))]
    found = dict(zip(middles, events(*sequence)[1::2], strict=True))
    taken = {name: e.after for name, e in found.items() if e.kind == "row"}
    assert taken == {"value": [b"7"], "no marks": [b"7"], "changed": [b"7"], "null": [None], "empty": [b""], "unknown": [b"7"]}


def test_more_rows_or_columns_than_the_caps_are_refused() -> None:
    row = row_data([Column("a", "t", "")])
    full = packet(entry(header(), change(INSERT, *[row] * canal_scan.MAX_ROWS)))
    more = packet(insert(ID), entry(header(), change(INSERT, *[row] * canal_scan.MAX_ROWS)))
    assert left("canal", [(None, full), (None, more)], Context()) == [1]
    assert read("canal", (None, more), Context())[0].error_code == "TOO_LARGE"
    assert len(decoded("canal", [(None, full)], Context())[0]) == canal_scan.MAX_ROWS
    silent = [entry(b"", b"", BEGIN)] * canal_scan.MAX_ENTRIES
    assert events(packet(*silent), compiled=True) == []
    assert error(packet(*silent, silent[0]))[0] == "TOO_LARGE"
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
